package kv

import (
	"math"
	"slices"

	"clifftop/workload"
)

// tree is a cache that counts blocks and finds tokens in a radix tree, as SGLang does. The computed tokens of a
// sequence enter the tree when a prefill chunk has been processed, and when the sequence is complete.
type tree struct {
	paged
	tableless
	radix      *radix
	blockSize  int32
	seqs       []treeSeq
	admissions int64
	last       treeMatch
	text       []workload.Segment // scratch
}

// treeSeq is the text of a sequence, and the part of it in the tree that the sequence holds.
type treeSeq struct {
	text      []workload.Segment
	prefix    treePrefix
	common    int32 // leading tokens that other requests may begin with
	priority  int32
	admission int64 // the number of its admission, while it runs; else 0
}

// treeMatch is the last match of the first limit tokens of a request. It is valid while the tree is in the same epoch.
type treeMatch struct {
	request int64
	limit   int32
	epoch   uint64
	prefix  treePrefix
}

// chunkOf is a prefill chunk: the sequence, the number of its admission, and its computed tokens after the chunk.
type chunkOf struct {
	seq, upTo int32
	admission int64
	ends      bool // the prefill
}

// inTree is the number of the admission of a chunk that is in the tree.
const inTree = -1

// NewTree returns a cache of usable blocks with an empty radix tree, which evicts leaves in an order.
func NewTree(usable int, blockSize int32, order LeafOrder) Cache {
	t := &tree{radix: newRadix(usable, blockSize), blockSize: blockSize}
	t.radix.Order = order
	return t
}

// Kind implements [Cache].
func (t *tree) Kind() Kind { return Kind{Tree: t} }

// Free implements [Cache].
func (t *tree) Free() int { return t.radix.Free() }

// FreeBeside implements [Cache].
func (t *tree) FreeBeside(held int) int { return t.radix.Usable() - held + int(t.radix.Shared()) }

// Shared implements [Cache].
func (t *tree) Shared() int64 { return t.radix.Shared() }

// Fits implements [Cache]. SGLang evicts before it finds that this is not enough.
func (t *tree) Fits(need, free int) bool {
	if need > free {
		t.radix.Evict(t.radix.Usable())
	}
	return need <= free
}

// Owe implements [Cache]. What is evicted is known when the iteration is composed.
func (t *tree) Owe(n int) (later int) {
	t.radix.Owe(n)
	return 0
}

// Covers implements [Tree].
func (t *tree) Covers(n, sequences int) bool { return t.radix.Available()-n >= sequences }

// OweStep implements [Tree].
func (t *tree) OweStep(n, sequences int) {
	t.radix.Owe(n)
	t.evictFor(Need{Decodes: sequences, DecodeBlocks: n})
}

// Begin implements [Cache].
func (t *tree) Begin(seq int32, req *workload.Request) {
	for int(seq) >= len(t.seqs) {
		t.seqs = append(t.seqs, treeSeq{})
	}
	s := &t.seqs[seq]
	*s = treeSeq{text: req.Text(s.text[:0]), common: common(req), priority: -int32(req.Priority)}
}

// common returns how many of the first tokens of a request other requests may begin with: all, if there may be more
// attempts; otherwise the content of its prompt and, if that is the whole prompt, its output in a session.
func common(q *workload.Request) int32 {
	if c := q.Client; c != nil && (c.Attempt > 0 || c.MayRetry) {
		return q.InputTokens + q.OutputTokens
	}
	tokens := int32(min(q.Content.Tokens(), int64(q.InputTokens)))
	if tokens == q.InputTokens && q.Session != 0 {
		tokens += q.OutputTokens
	}
	return tokens
}

// match returns the longest prefix of a text in the tree, of at most limit tokens.
func (t *tree) match(x Text, limit int32) treePrefix {
	m := &t.last
	if m.request != x.Request.ID || m.limit != limit || m.epoch != t.radix.Epoch() {
		if x.Seq == noSeq {
			t.text = x.Request.Text(t.text[:0])
			m.prefix = t.radix.Match(t.text, limit)
		} else {
			m.prefix = t.radix.Match(t.seqs[x.Seq].text, limit)
		}
		m.request, m.limit, m.epoch = x.Request.ID, limit, t.radix.Epoch()
	}
	return m.prefix
}

// Findable implements [Cache].
func (t *tree) Findable(x Text) bool { return x.Seq != noSeq || x.Request.SharesPrompt() }

// Find implements [Cache].
func (t *tree) Find(x Text) Hit {
	if !t.Findable(x) {
		return Hit{}
	}
	p := t.match(x, x.Known-1)
	return Hit{Tokens: int32(p.Blocks) * t.blockSize, Held: p.Held, More: int32(p.Blocks) < (x.Known-1)/t.blockSize}
}

// Peek implements [Tree].
func (t *tree) Peek(req *workload.Request) int32 {
	t.text = req.Text(t.text[:0])
	return int32(t.radix.Peek(t.text, req.InputTokens-1)) * t.blockSize
}

// Path implements [Tree].
func (t *tree) Path(x Text, to []int32) []int32 { return t.radix.Path(t.match(x, x.Known), to) }

// Take implements [Cache].
func (t *tree) Take(x Text) Taken {
	s := &t.seqs[x.Seq]
	s.prefix = t.match(x, x.Known-1)
	t.radix.Lock(s.prefix)
	t.admissions++
	s.admission = t.admissions
	tokens := int32(s.prefix.Blocks) * t.blockSize
	lost := int32(t.radix.Lost(&s.prefix, s.text, x.Known-1, s.common))
	return Taken{tokens, tokens, tokens + lost*t.blockSize}
}

// Held implements [Cache].
func (t *tree) Held(int32) (n int, ok bool) { return 0, false }

// Grow implements [Cache].
func (t *tree) Grow(_ int32, g Growth) bool {
	if g.Blocks-g.Held > g.Free {
		return false
	}
	t.radix.Owe(g.Blocks - g.Held)
	return true
}

// Register implements [Cache].
func (t *tree) Register(int32, int32) {}

// Retain implements [Cache].
func (t *tree) Retain(int32) {}

// Complete implements [Tree].
func (t *tree) Complete(seq, tokens int32) { t.insert(seq, tokens, true) }

// Release implements [Cache].
func (t *tree) Release(seq int32, counted int) {
	s := &t.seqs[seq]
	t.radix.Put(counted - s.prefix.Blocks)
	t.radix.Unlock(s.prefix)
	s.prefix, s.admission = treePrefix{}, 0
}

// Keep implements [Cache]. Blocks of the tree are not kept.
func (t *tree) Keep(int32, int) (k Kept) { return }

// Drop implements [Cache].
func (t *tree) Drop(Kept) {}

// Warm implements [Cache].
func (t *tree) Warm(req *workload.Request, full int32) {
	t.text = req.Text(t.text[:0])
	tokens := full * t.blockSize
	p := t.radix.Match(t.text, tokens)
	t.radix.Lock(p)
	t.radix.Take(int(full) - p.Blocks)
	t.radix.Unlock(t.radix.Insert(p, t.text, treeEntry{Tokens: tokens, Common: common(req), Counts: true,
		Priority: -int32(req.Priority)}))
}

// Hashed implements [Cache].
func (t *tree) Hashed() int32 { return 0 }

// Tell implements [Cache]. It tells of the pages of the tree.
func (t *tree) Tell(tell func(Change)) int32 {
	t.radix.Tell(tell)
	return t.blockSize
}

// insert adds the first tokens of a sequence that runs to the tree. SGLang counts a hit when a prefill ends and when a
// request ends, but only one if the request ends with its first token. A lower priority is more urgent here; by default
// SGLang has it the other way round.
func (t *tree) insert(seq, tokens int32, counts bool) {
	s := &t.seqs[seq]
	s.prefix = t.radix.Insert(s.prefix, s.text, treeEntry{Tokens: tokens, Common: s.common, Counts: counts,
		Priority: s.priority})
}

// Gave implements [Tree].
func (t *tree) Gave(c *Chunks, seq, upTo int32, ends bool) {
	c.N++
	c.list = append(c.list, chunkOf{seq, upTo, t.seqs[seq].admission, ends})
}

// EnterUnfinished implements [Tree]. SGLang enters these chunks when it composes the next batch.
func (t *tree) EnterUnfinished(c *Chunks) {
	for k := range c.list {
		part := &c.list[k]
		if t.seqs[part.seq].admission == part.admission && !part.ends {
			t.insert(part.seq, part.upTo, false)
			part.admission = inTree
		}
	}
}

// Enter implements [Tree].
func (t *tree) Enter(c *Chunks, seq int32) {
	if seq < 0 {
		t.enter(c, math.MaxInt64, noSeq)
	} else {
		t.enter(c, t.seqs[seq].admission, seq)
	}
}

// enter adds the chunks that belong to admissions up to a number to the tree, in the order of the admissions. ended is
// the sequence that is complete with the iteration.
func (t *tree) enter(c *Chunks, upTo int64, ended int32) {
	if !c.sorted {
		slices.SortStableFunc(c.list, func(a, b chunkOf) int { return int(a.admission - b.admission) })
		c.sorted = true
	}
	for ; c.entered < len(c.list) && c.list[c.entered].admission <= upTo; c.entered++ {
		if part := &c.list[c.entered]; t.seqs[part.seq].admission == part.admission {
			t.insert(part.seq, part.upTo, part.ends && part.seq != ended)
		}
	}
}

// Eviction. SGLang allocates for a batch as a whole, after all its requests were matched: if fewer tokens are available
// than the batch needs, it evicts as many as the batch needs, not as many as are missing (evict_from_tree_cache in
// mem_cache/common.py, July 2026). Decoding with pages of several tokens asks twice: for the pages that sequences
// begin, and for one page of each sequence.

// Composed implements [Tree].
func (t *tree) Composed(b Batch) { t.evictFor(b.Need()) }

// evictFor evicts what an iteration needs whose blocks were taken.
func (t *tree) evictFor(n Need) {
	r, page := t.radix, int(t.blockSize)
	available := r.Available() + n.PromptBlocks + n.DecodeBlocks
	if n.Prompts > 0 {
		need := n.Tokens
		if page > 1 {
			need += n.Prompts * page
		}
		if available*page < need {
			available += r.Evict((need + page - 1) / page)
		}
	}
	available -= n.PromptBlocks
	if n.Prompts == 0 && page > 1 && available < n.DecodeBlocks {
		available += r.Evict(n.DecodeBlocks)
	}
	if available < n.Decodes {
		r.Evict(n.Decodes)
	}
	r.Cover()
}

// MakeRoom implements [Tree].
func (t *tree) MakeRoom(tokens int, b Batch) {
	n, page := b.Need(), int(t.blockSize)
	if (t.radix.Available()+n.PromptBlocks+n.DecodeBlocks)*page < tokens {
		t.radix.Evict((tokens + page - 1) / page)
	}
}
