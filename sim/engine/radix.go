package engine

import (
	"slices"

	"clifftop/sim/kv"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// With a radix cache, blocks are counted as without a cache, and the tree counts the cached ones. The computed tokens
// of a sequence enter the tree when a prefill chunk has been processed, and when the sequence is complete.

// computedChunk is a prefill chunk of an iteration: the sequence, the number of its admission, and its computed tokens
// after the chunk.
type computedChunk struct {
	seq    int32
	upTo   int32
	serial int64
	ends   bool // the prefill
}

// radixMatch is the last match of the first limit tokens of a request. It is valid while the tree is in the same epoch.
type radixMatch struct {
	request int64
	limit   int32
	epoch   uint64
	prefix  kv.Prefix
}

// match returns the longest prefix of a waiting request in the tree, of at most limit tokens.
func (c *prefixCache) match(w *queue.Waiting, limit int32) kv.Prefix {
	if w.Seq != none {
		return c.matchText(w.Request.ID, c.seqs.at(w.Seq).text, limit)
	}
	c.look.text = w.Request.Text(c.look.text[:0])
	return c.matchText(w.Request.ID, c.look.text, limit)
}

// matchText is match for the text of a request.
func (c *prefixCache) matchText(request int64, text []workload.Segment, limit int32) kv.Prefix {
	m := &c.matched
	if m.request != request || m.limit != limit || m.epoch != c.radix.Epoch() {
		m.prefix = c.radix.Match(text, limit)
		m.request, m.limit, m.epoch = request, limit, c.radix.Epoch()
	}
	return m.prefix
}

// cached sets the fields of d that depend on the radix cache.
func (c *prefixCache) cached(w *queue.Waiting, d *sched.Waiting, shared bool) {
	if d.Computed > 0 || !w.Request.SharesPrompt() && w.Seq == none {
		return
	}
	p := c.match(w, d.Known-1)
	d.Cached, d.Held = int32(p.Blocks)*c.cfg.BlockSize, p.Held
	d.Live = int32(p.Blocks) < (d.Known-1)/c.cfg.BlockSize && shared && w.Request.SharesPrompt()
}

// lockPrefix references the cached prefix of s, which is being admitted, and returns its number of tokens.
func (c *prefixCache) lockPrefix(s *sequence) int32 {
	known := s.rec.Request.InputTokens + s.issued
	s.prefix = c.matchText(s.rec.Request.ID, s.text, known-1)
	c.radix.Lock(s.prefix)
	s.blockCount = s.prefix.Blocks
	tokens := int32(s.prefix.Blocks) * c.cfg.BlockSize
	lost := int32(c.radix.Lost(&s.prefix, s.text, known-1, s.common))
	s.lostFrom, s.lostTo = tokens, tokens+lost*c.cfg.BlockSize
	return tokens
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

// unlockPrefix frees the blocks of s, which leaves the running batch.
func (c *prefixCache) unlockPrefix(s *sequence) {
	c.radix.Put(s.blockCount - s.prefix.Blocks)
	c.radix.Unlock(s.prefix)
	s.prefix, s.blockCount = kv.Prefix{}, 0
}

// insert adds the first tokens of s, which runs, to the tree. SGLang counts a hit when a prefill ends and when a request
// ends, but only one if the request ends with its first token. A lower priority is more urgent here; by default SGLang
// has it the other way round.
func (c *prefixCache) insert(s *sequence, tokens int32, counts bool) {
	if c.radix != nil {
		s.prefix = c.radix.Insert(s.prefix, s.text, kv.Entry{Tokens: tokens, Common: s.common, Counts: counts,
			Priority: -int32(s.rec.Request.Priority)})
	}
}

// insertChunks adds the chunks of iteration f that belong to admissions up to a serial number to the tree, in running
// order. The sequence with the number of admission ends is complete with this iteration.
func (c *prefixCache) insertChunks(f *iteration, serial, ends int64) {
	for ; f.entered < len(f.computed) && f.computed[f.entered].serial <= serial; f.entered++ {
		part := f.computed[f.entered]
		if s := c.seqs.at(part.seq); s.serial == part.serial && s.running() {
			c.insert(s, part.upTo, part.ends && part.serial != ends)
		}
	}
}

// insertUnfinished adds the chunks of prompts that go on to the tree although their iteration is in flight: SGLang does
// so when it composes the next batch.
func (c *prefixCache) insertUnfinished(f *iteration) {
	for k := range f.computed {
		part := &f.computed[k]
		if s := c.seqs.at(part.seq); s.serial == part.serial && s.phase == prefilling {
			c.insert(s, part.upTo, false)
			part.serial = inserted
		}
	}
}

// inserted is the number of the admission of a chunk that is in the tree.
const inserted = -1

// sortChunks sorts the chunks of f, which are in the order in which they were given, into running order.
func (f *iteration) sortChunks() {
	slices.SortStableFunc(f.computed, func(a, b computedChunk) int { return int(a.serial - b.serial) })
}

// Eviction from a radix cache. SGLang allocates for a batch as a whole, after all its requests were matched: if fewer
// tokens are available than the batch needs, it evicts as many as the batch needs, not as many as are missing
// (evict_from_tree_cache in mem_cache/common.py, July 2026). Decoding with pages of several tokens asks twice: for the
// pages that sequences begin, and for one page of each sequence.

// batchNeed is what an iteration allocates.
type batchNeed struct {
	prompts      int // sequences in prefill
	tokens       int // prompt tokens
	promptBlocks int // blocks for them
	decodes      int // sequences that decode
	decodeBlocks int // blocks that they begin
}

// evictFor evicts what an iteration needs whose blocks were taken.
func (c *prefixCache) evictFor(n batchNeed) {
	t, page := c.radix, int(c.cfg.BlockSize)
	available := t.Available() + n.promptBlocks + n.decodeBlocks
	if n.prompts > 0 {
		need := n.tokens
		if page > 1 {
			need += n.prompts * page
		}
		if available*page < need {
			available += t.Evict((need + page - 1) / page)
		}
	}
	available -= n.promptBlocks
	if n.prompts == 0 && page > 1 && available < n.decodeBlocks {
		available += t.Evict(n.decodeBlocks)
	}
	if available < n.decodes {
		t.Evict(n.decodes)
	}
	t.Cover()
}

// takeSteps takes blocks for the members in n steps of the cohort from a radix cache.
func (k *space) takeSteps(step int64, n int) {
	c := k.members
	if blocks := c.takes.over(step, n); k.radix.Available()-blocks >= c.size {
		k.radix.Take(blocks)
		return
	}
	for j := range n {
		blocks := c.takes.at(step + int64(j))
		k.radix.Owe(blocks)
		k.evictFor(batchNeed{decodes: c.size, decodeBlocks: blocks})
	}
}

// need returns what the composed iteration allocates, as far as it is composed.
func (it *batchBuilder) need() batchNeed {
	r := it.r
	n := batchNeed{prompts: len(it.chunks), decodes: it.decodes, decodeBlocks: it.stepBlocks}
	for i := range it.chunks {
		chunk := &it.chunks[i]
		n.tokens += int(chunk.New)
		n.promptBlocks += r.cfg.blocksFor(chunk.Cached+chunk.New) - r.cfg.blocksFor(chunk.Cached)
	}
	if !it.slow && it.preempted == 0 {
		return n
	}
	n.decodeBlocks = 0 // stepBlocks counts blocks of members that are preempted
	if it.decodes == 0 {
		return n
	}
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		if s.phase == decoding && it.hasToken(s) {
			length, page := r.cohort.computed(s), r.cfg.BlockSize
			if (length-1)%page == 0 && length > int32(s.reserved)*page {
				n.decodeBlocks++
			}
		}
	}
	return n
}

// MakeRoom implements [sched.Reservation].
func (a *kvAllocator) MakeRoom(tokens int) {
	r := a.r
	if r.space.radix == nil {
		return
	}
	n, page := r.it.need(), int(r.cfg.BlockSize)
	if (r.space.radix.Available()+n.promptBlocks+n.decodeBlocks)*page < tokens {
		r.space.radix.Evict((tokens + page - 1) / page)
	}
}
