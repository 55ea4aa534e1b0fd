package kv

import "clifftop/workload"

// Hashed is a cache that finds blocks by hashes of their tokens and of all tokens before them, as vLLM does.
type Hashed struct {
	tableless
	paged
	HashedConfig
	pool  *blockPool
	seqs  []hashedSeq
	look  hashedLook
	fresh blockKeys // of the request that was looked up last, if it was never admitted
}

// HashedConfig describes a [Hashed] cache.
type HashedConfig struct {
	Usable    int
	BlockSize int32
	// AppendUnkeyed puts freed blocks that hold no text at the back of the free list instead of the front.
	AppendUnkeyed bool
	// DropsBlock means that a hit goes without its last block.
	DropsBlock bool
	// IndexOwn makes blocks findable too that no other request can share, and WarmOwn the blocks of earlier requests.
	IndexOwn, WarmOwn bool
}

// hashedSeq is the blocks of a sequence.
type hashedSeq struct {
	blockKeys
	blocks     []int32
	registered int32 // leading blocks that are registered
}

// hashedLook is the result of the last lookup. While the head of the queue stays blocked, the lookup is repeated only
// after a change of the pool.
type hashedLook struct {
	valid   bool
	begun   bool // the keys of the request are in fresh
	request int64
	epoch   uint64
	blocks  []int32 // cached leading blocks
	found   int32   // their number, with the one that a hit goes without
	held    int     // number of those blocks that are referenced
	most    int32   // the maximum number of blocks that can be found
}

// NewHashed returns a cache of which all blocks are free.
func NewHashed(c HashedConfig) *Hashed {
	return &Hashed{HashedConfig: c, pool: newCachingPool(c.Usable, c.AppendUnkeyed)}
}

// Kind implements [Cache].
func (h *Hashed) Kind() Kind { return Kind{Registers: true, Tree: noTree{}} }

// Free implements [Cache].
func (h *Hashed) Free() int { return h.pool.Free() }

// FreeBeside implements [Cache].
func (h *Hashed) FreeBeside(held int) int { return h.pool.Usable() - held + int(h.pool.Shared()) }

// Shared implements [Cache].
func (h *Hashed) Shared() int64 { return h.pool.Shared() }

// Epoch changes whenever the result of a lookup may change.
func (h *Hashed) Epoch() uint64 { return h.pool.Epoch() }

// LogEvictions makes the cache record the keys that it evicts.
func (h *Hashed) LogEvictions() { h.pool.LogEvictions() }

// Evicted returns the keys that were evicted since the last call, in order.
func (h *Hashed) Evicted() []uint64 { return h.pool.Evicted() }

// Owe implements [Cache].
func (h *Hashed) Owe(n int) (later int) { return n }

// Begin implements [Cache].
func (h *Hashed) Begin(seq int32, req *workload.Request) {
	for int(seq) >= len(h.seqs) {
		h.seqs = append(h.seqs, hashedSeq{})
	}
	s, l := &h.seqs[seq], &h.look
	s.blocks, s.registered = s.blocks[:0], 0
	if l.begun && l.request == req.ID {
		s.blockKeys, h.fresh, l.begun = h.fresh, s.blockKeys, false
	} else {
		s.begin(h.HashedConfig, req)
	}
}

// Adopt begins a sequence that runs, and makes it hold blocks, of which the first full ones are registered.
func (h *Hashed) Adopt(seq int32, req *workload.Request, blocks int, full int32) {
	h.Begin(seq, req)
	s := &h.seqs[seq]
	s.blocks = h.pool.Pop(s.blocks, blocks)
	s.registered = full
}

// Findable implements [Cache].
func (h *Hashed) Findable(t Text) bool { return t.Seq != noSeq || t.Request.SharesPrompt() }

// keysOf returns the keys of a request that was looked up.
func (h *Hashed) keysOf(t Text) *blockKeys {
	if t.Seq != noSeq {
		return &h.seqs[t.Seq].blockKeys
	}
	return &h.fresh
}

// Key returns the key of block i of a request that was looked up.
func (h *Hashed) Key(t Text, i int32) uint64 { return h.keysOf(t).key(i) }

// Find implements [Cache].
func (h *Hashed) Find(t Text) Hit {
	if !h.Findable(t) {
		return Hit{}
	}
	l := &h.look
	if !l.valid || l.request != t.Request.ID || l.epoch != h.pool.Epoch() {
		h.lookUp(t)
	}
	found := int32(len(l.blocks))
	return Hit{Tokens: found * h.BlockSize, Held: l.held, More: found < l.most}
}

// lookUp finds the cached leading blocks of a waiting request.
func (h *Hashed) lookUp(t Text) {
	l := &h.look
	if t.Seq == noSeq && (!l.begun || l.request != t.Request.ID) {
		h.fresh.begin(h.HashedConfig, t.Request)
		l.begun = true
	}
	keys := h.keysOf(t)
	l.valid, l.request, l.epoch = true, t.Request.ID, h.pool.Epoch()
	l.most = (t.Known - 1) / h.BlockSize
	l.blocks = h.pool.Match(&keys.keys, keys.findable(l.most), l.blocks[:0])
	l.found = int32(len(l.blocks))
	if n := len(l.blocks); n > 0 && h.DropsBlock {
		l.blocks = l.blocks[:n-1]
	}
	l.held = h.pool.Referenced(l.blocks)
}

// Take implements [Cache]. The request was looked up last, if it is findable.
func (h *Hashed) Take(t Text) (taken Taken) {
	l, s := &h.look, &h.seqs[t.Seq]
	if !l.valid || l.request != t.Request.ID {
		return taken
	}
	l.valid = false
	lost := h.pool.Lost(&s.keys, l.found, s.findable(l.most))
	h.pool.Reference(l.blocks)
	s.blocks = append(s.blocks[:0], l.blocks...)
	s.registered = int32(len(l.blocks))
	return Taken{s.registered * h.BlockSize, l.found * h.BlockSize, (l.found + lost) * h.BlockSize}
}

// Held implements [Cache].
func (h *Hashed) Held(seq int32) (n int, ok bool) { return len(h.seqs[seq].blocks), true }

// Registered is the number of leading blocks of a sequence that are registered.
func (h *Hashed) Registered(seq int32) int32 { return h.seqs[seq].registered }

// Grow implements [Cache].
func (h *Hashed) Grow(seq int32, g Growth) bool {
	if g.Blocks-g.Held > g.Free {
		return false
	}
	s := &h.seqs[seq]
	s.blocks = h.pool.Pop(s.blocks, g.Blocks-g.Held)
	return true
}

// TakeOwed gives a sequence whose first full blocks are full the next block, and reports whether it did: it may have
// one ahead of need.
func (h *Hashed) TakeOwed(seq, full int32) bool {
	s := &h.seqs[seq]
	if int(full) < len(s.blocks) {
		return false
	}
	s.blocks = h.pool.Pop(s.blocks, 1)
	return true
}

// Register implements [Cache].
func (h *Hashed) Register(seq, tokens int32) { h.RegisterBlocks(seq, tokens/h.BlockSize) }

// RegisterBlocks makes the first full blocks of a sequence findable.
func (h *Hashed) RegisterBlocks(seq, full int32) {
	s := &h.seqs[seq]
	if full <= s.registered {
		return
	}
	if n := s.findable(full); s.registered < n {
		h.pool.Index(s.blocks, &s.keys, s.registered, n)
	}
	s.registered = full
}

// Retain implements [Cache].
func (h *Hashed) Retain(seq int32) {
	s := &h.seqs[seq]
	if s.indexOwn {
		return
	}
	s.indexOwn = true
	from := min(s.private, s.registered)
	h.pool.Index(s.blocks, &s.keys, from, s.findable(s.registered))
}

// Release implements [Cache].
func (h *Hashed) Release(seq int32, _ int) {
	s := &h.seqs[seq]
	h.pool.Release(s.blocks, s.registered)
	s.blocks, s.registered = s.blocks[:0], 0
}

// Keep implements [Cache].
func (h *Hashed) Keep(seq int32, _ int) Kept {
	s := &h.seqs[seq]
	k := Kept{len(s.blocks), s.blocks, s.registered}
	s.blocks, s.registered = nil, 0
	return k
}

// Drop implements [Cache].
func (h *Hashed) Drop(k Kept) { h.pool.Release(k.blocks, k.registered) }

// Hashed implements [Cache].
func (h *Hashed) Hashed() int32 { return h.BlockSize }

// Tell implements [Cache].
func (h *Hashed) Tell(tell func(Change)) int32 {
	h.pool.Tell(tell)
	return h.BlockSize
}

// KeysOf returns the keys of the first blocks of a sequence.
func (h *Hashed) KeysOf(seq, blocks int32) *Keys {
	s := &h.seqs[seq]
	s.make(blocks)
	return &s.keys
}

// KeysOfText returns the keys of the first blocks of a request.
func (h *Hashed) KeysOfText(req *workload.Request, blocks int32) *Keys {
	var k blockKeys
	k.begin(h.HashedConfig, req)
	k.make(blocks)
	return &k.keys
}

// Warm implements [Cache].
func (h *Hashed) Warm(req *workload.Request, full int32) {
	var k blockKeys
	k.begin(h.HashedConfig, req)
	k.make(full)
	findable := min(full, k.private)
	blocks := h.pool.Match(&k.keys, findable, nil)
	h.pool.Reference(blocks)
	found := int32(len(blocks))
	blocks = h.pool.Pop(blocks, int(full-found))
	if h.WarmOwn {
		findable = full
	}
	h.pool.Index(blocks, &k.keys, found, findable)
	h.pool.Release(blocks, full)
}

// blockKeys is the keys of the blocks of a text, computed on demand.
type blockKeys struct {
	keys     Keys
	walk     workload.BlockKeys
	private  int32 // from this block on no other request can have the same content
	indexOwn bool  // private blocks are findable too
}

// notPrivate is the value of private while no private block is known.
const notPrivate = 1<<31 - 1

// begin resets k to the blocks of a request, and keeps its memory.
func (k *blockKeys) begin(c HashedConfig, req *workload.Request) {
	k.keys.Reset()
	k.indexOwn = c.IndexOwn
	k.private = 0
	if req.SharesPrompt() {
		k.private = notPrivate
	}
	k.walk = workload.NewBlockKeys(req, c.BlockSize)
}

func (k *blockKeys) key(i int32) uint64 {
	k.make(i + 1)
	return k.keys.At(i)
}

// findable returns how many of the first n blocks can be found: all, or those before the first private one if private
// blocks are not findable. It computes their keys.
func (k *blockKeys) findable(n int32) int32 {
	if k.indexOwn {
		k.make(n)
		return n
	}
	for k.keys.Len() < min(n, k.private) {
		k.walkOn(n)
	}
	return min(n, k.private)
}

// make computes the keys of the first n blocks.
func (k *blockKeys) make(n int32) {
	for k.keys.Len() < n {
		k.walkOn(n)
	}
}

// walkOn computes the keys of the next blocks, within the first n.
func (k *blockKeys) walkOn(n int32) {
	known := k.keys.Len()
	key, blocks, private := k.walk.NextRun(n - known)
	if private && k.private == notPrivate {
		k.private = known
	}
	k.keys.Add(key, blocks)
}
