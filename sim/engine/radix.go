package engine

import (
	"slices"

	"clifftop/sim/kv"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// With a radix cache blocks are counted, as without a cache, and the tree counts with them. What a sequence has
// computed enters it when a prefill chunk has been processed, and when the sequence is complete.

// computedChunk is a prefill chunk of a flight: the sequence, its admission, and its computed tokens after it.
type computedChunk struct {
	seq    int32
	upTo   int32
	serial int64
}

// radixMatch is the last match, of so many tokens of a request. As long as the tree is in the same epoch it need not be
// repeated.
type radixMatch struct {
	request int64
	limit   int32
	epoch   uint64
	prefix  kv.Prefix
}

// match finds what the tree holds of a waiting request, all but at least one of its known tokens.
func (c *prefixCache) match(w *waiting, known int32) kv.Prefix {
	if w.seq != none {
		return c.matchText(w.req.ID, c.seqs.at(w.seq).text, known)
	}
	c.look.text = w.req.Text(c.look.text[:0])
	return c.matchText(w.req.ID, c.look.text, known)
}

// matchText is the same of the text of a request.
func (c *prefixCache) matchText(request int64, text []workload.Segment, known int32) kv.Prefix {
	m := &c.matched
	if m.request != request || m.limit != known-1 || m.epoch != c.radix.Epoch() {
		m.prefix = c.radix.Match(text, known-1)
		m.request, m.limit, m.epoch = request, known-1, c.radix.Epoch()
	}
	return m.prefix
}

// cached completes the description of a waiting request.
func (c *prefixCache) cached(w *waiting, d *sched.Waiting, shared bool) {
	if d.Computed > 0 || !w.req.SharesPrompt() && w.seq == none {
		return
	}
	p := c.match(w, d.Known)
	d.Cached, d.Held = int32(p.Blocks)*c.cfg.BlockSize, p.Held
	d.Live = int32(p.Blocks) < (d.Known-1)/c.cfg.BlockSize && shared && w.req.SharesPrompt()
}

// lockPrefix gives s, which is being admitted, what the tree holds of its known tokens, and returns how many these are.
func (c *prefixCache) lockPrefix(s *sequence) int32 {
	known := s.rec.Request.InputTokens + s.issued
	s.prefix = c.matchText(s.rec.Request.ID, s.text, known)
	c.radix.Lock(s.prefix)
	s.blockCount = s.prefix.Blocks
	tokens := int32(s.prefix.Blocks) * c.cfg.BlockSize
	lost := int32(c.radix.Lost(&s.prefix, s.text, known-1, s.common))
	s.lostFrom, s.lostTo = tokens, tokens+lost*c.cfg.BlockSize
	return tokens
}

// common is how many of the first tokens of a request others may begin with: all, where there may be more attempts; the
// content of its prompt, and, if that is the whole of it, an answer in a session.
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

// unlockPrefix takes from s, which leaves the running batch, what it holds.
func (c *prefixCache) unlockPrefix(s *sequence) {
	c.radix.Put(s.blockCount - s.prefix.Blocks)
	c.radix.Unlock(s.prefix)
	s.prefix, s.blockCount = kv.Prefix{}, 0
}

// insert enters the first tokens of s, which runs, into the tree.
func (c *prefixCache) insert(s *sequence, tokens int32) {
	if c.radix != nil {
		s.prefix = c.radix.Insert(s.prefix, s.text, tokens, s.common)
	}
}

// insertChunks enters the chunks of flight f that belong to admissions up to a serial number, in running order.
func (c *prefixCache) insertChunks(f *iteration, serial int64) {
	for ; f.entered < len(f.computed) && f.computed[f.entered].serial <= serial; f.entered++ {
		part := f.computed[f.entered]
		if s := c.seqs.at(part.seq); s.serial == part.serial && s.running() {
			c.insert(s, part.upTo)
		}
	}
}

// sortChunks brings the chunks of f, which stand in the order of giving, into running order.
func (f *iteration) sortChunks() {
	slices.SortStableFunc(f.computed, func(a, b computedChunk) int { return int(a.serial - b.serial) })
}
