package kv

import "clifftop/workload"

// tables is a cache with a block table of each sequence for each KV cache group. A sequence first gives back blocks
// that no further token attends to, so that decoding sequences get their blocks one by one.
type tables struct {
	paged
	groups    *grouped
	blockSize int32
	seqs      []tablesSeq
	fresh     *groupTables // of the request that was looked up last, if it was never admitted
	begun     bool         // fresh is in use
	request   int64
}

// tablesSeq is the tables of a sequence, and the tokens that it was given in an iteration.
type tablesSeq struct {
	*groupTables
	given     int32
	iteration int64
}

// NewTables returns a cache of usable blocks. A sequence shares blocks of blockSize tokens.
func NewTables(usable int, blockSize int32, appendUnkeyed bool, c GroupedConfig) Cache {
	pool := newCountingPool(usable)
	if c.Caching {
		pool = newCachingPool(usable, appendUnkeyed)
	}
	return &tables{groups: newGrouped(pool, c), blockSize: blockSize, fresh: new(groupTables)}
}

// Kind implements [Cache].
func (t *tables) Kind() Kind { return Kind{Registers: true, Singly: true, Tree: noTree{}} }

// Free implements [Cache].
func (t *tables) Free() int { return t.groups.pool.Free() }

// FreeBeside implements [Cache].
func (t *tables) FreeBeside(held int) int {
	return t.groups.pool.Usable() - held + int(t.groups.pool.Shared())
}

// Shared implements [Cache]. It counts blocks of the first group of full attention.
func (t *tables) Shared() int64 { return t.groups.Shared() / int64(t.blockSize) }

// Owe implements [Cache].
func (t *tables) Owe(int) (later int) { return 0 }

// Begin implements [Cache].
func (t *tables) Begin(seq int32, req *workload.Request) {
	for int(seq) >= len(t.seqs) {
		t.seqs = append(t.seqs, tablesSeq{groupTables: new(groupTables)})
	}
	s := &t.seqs[seq]
	if t.begun && t.request == req.ID {
		s.groupTables, t.fresh, t.begun = t.fresh, s.groupTables, false
	} else {
		t.groups.Start(s.groupTables, req)
	}
}

// tablesOf returns the tables of a request. The tables of a waiting request are empty.
func (t *tables) tablesOf(x Text) *groupTables {
	if x.Seq != noSeq {
		return t.seqs[x.Seq].groupTables
	}
	if !t.begun || t.request != x.Request.ID {
		t.groups.Start(t.fresh, x.Request)
		t.begun, t.request = true, x.Request.ID
	}
	return t.fresh
}

// Findable implements [Cache].
func (t *tables) Findable(Text) bool { return true }

// Find implements [Cache].
func (t *tables) Find(x Text) Hit {
	return Hit{Tokens: t.groups.Find(t.tablesOf(x), x.Known-1), Tables: true}
}

// Take implements [Cache].
func (t *tables) Take(x Text) Taken {
	s := &t.seqs[x.Seq]
	s.iteration = 0
	return Taken{Tokens: t.groups.Take(s.groupTables)}
}

// Held implements [Cache].
func (t *tables) Held(seq int32) (n int, ok bool) { return t.seqs[seq].Held(), true }

// Grow implements [Cache].
func (t *tables) Grow(seq int32, g Growth) bool {
	s, processed := &t.seqs[seq], g.Computed
	if g.Oldest > 0 && s.iteration == g.Oldest {
		processed -= s.given
	}
	if !t.groups.Grow(s.groupTables, g.Slots, processed) {
		return false
	}
	s.given, s.iteration = g.Given, g.Iteration
	return true
}

// Register implements [Cache].
func (t *tables) Register(seq, tokens int32) { t.groups.Register(t.seqs[seq].groupTables, tokens) }

// Retain implements [Cache].
func (t *tables) Retain(int32) {}

// Release implements [Cache].
func (t *tables) Release(seq int32, _ int) { t.groups.Free(t.seqs[seq].groupTables) }

// Keep implements [Cache]. Tables are not kept.
func (t *tables) Keep(int32, int) (k Kept) { return }

// Drop implements [Cache].
func (t *tables) Drop(Kept) {}

// Warm implements [Cache].
func (t *tables) Warm(req *workload.Request, blocks int32) { t.groups.Warm(req, blocks*t.blockSize) }

// Hashed implements [Cache].
func (t *tables) Hashed() int32 { return t.groups.Hashed() }

// Tell implements [Cache]. It tells of the blocks of the first group of full attention.
func (t *tables) Tell(tell func(Change)) int32 {
	size := t.groups.Hashed()
	if size > 0 {
		t.groups.Tell(tell)
	}
	return size
}

// Compose implements [Cache].
func (t *tables) Compose() { t.groups.Begin() }

// Needs implements [Cache].
func (t *tables) Needs(x Text, tokens int32, capped bool) int {
	return t.groups.Needs(t.tablesOf(x), tokens, capped)
}

// Junction implements [Cache].
func (t *tables) Junction(x Text) int32 { return t.tablesOf(x).Junction }
