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

func (r *Engine) poolFree() int {
	if r.space.radix != nil {
		return r.space.radix.Free()
	}
	return r.space.pool.Free()
}

// Shared is the number of blocks referenced more than once, each counted as often as that, less one.
func (r *Engine) Shared() int64 {
	if r.space.radix != nil {
		return r.space.radix.Shared()
	}
	return r.space.pool.Shared()
}

// takeCount takes n blocks where they are only counted, putCount returns them.
func (r *Engine) takeCount(n int) {
	if r.space.radix != nil {
		r.space.radix.Take(n)
	} else {
		r.space.pool.TakeCount(n)
	}
}

func (r *Engine) putCount(n int) {
	if r.space.radix != nil {
		r.space.radix.Put(n)
	} else {
		r.space.pool.PutCount(n)
	}
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
func (r *Engine) match(w *waiting, known int32) kv.Prefix {
	if w.seq != none {
		return r.matchText(w.req.ID, r.seq(w.seq).text, known)
	}
	r.space.look.text = w.req.Text(r.space.look.text[:0])
	return r.matchText(w.req.ID, r.space.look.text, known)
}

// matchText is the same of the text of a request.
func (r *Engine) matchText(request int64, text []workload.Segment, known int32) kv.Prefix {
	m := &r.space.matched
	if m.request != request || m.limit != known-1 || m.epoch != r.space.radix.Epoch() {
		m.prefix = r.space.radix.Match(text, known-1)
		m.request, m.limit, m.epoch = request, known-1, r.space.radix.Epoch()
	}
	return m.prefix
}

// cached completes the description of a waiting request.
func (r *Engine) cached(w *waiting, d *sched.Waiting) {
	if d.Computed > 0 || !w.req.SharesPrompt() && w.seq == none {
		return
	}
	p := r.match(w, d.Known)
	d.Cached, d.Held = int32(p.Blocks)*r.cfg.BlockSize, p.Held
	d.Live = int32(p.Blocks) < (d.Known-1)/r.cfg.BlockSize && r.running.answers > 0 && w.req.SharesPrompt()
}

// lockPrefix gives s, which is being admitted, what the tree holds of its known tokens, and returns how many these are.
func (r *Engine) lockPrefix(s *sequence) int32 {
	known := s.rec.Request.InputTokens + s.issued
	s.prefix = r.matchText(s.rec.Request.ID, s.text, known)
	r.space.radix.Lock(s.prefix)
	s.blockCount = s.prefix.Blocks
	tokens := int32(s.prefix.Blocks) * r.cfg.BlockSize
	lost := int32(r.space.radix.Lost(&s.prefix, s.text, known-1, s.common))
	s.lostFrom, s.lostTo = tokens, tokens+lost*r.cfg.BlockSize
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
func (r *Engine) unlockPrefix(s *sequence) {
	r.space.radix.Put(s.blockCount - s.prefix.Blocks)
	r.space.radix.Unlock(s.prefix)
	s.prefix, s.blockCount = kv.Prefix{}, 0
}

// insert enters the first tokens of s, which runs, into the tree.
func (r *Engine) insert(s *sequence, tokens int32) {
	s.prefix = r.space.radix.Insert(s.prefix, s.text, tokens, s.common)
}

// insertChunks enters the chunks of flight f that belong to admissions up to a serial number, in running order.
func (r *Engine) insertChunks(f *iteration, serial int64) {
	for ; f.entered < len(f.computed) && f.computed[f.entered].serial <= serial; f.entered++ {
		c := f.computed[f.entered]
		if s := r.seq(c.seq); s.serial == c.serial && s.running() {
			r.insert(s, c.upTo)
		}
	}
}

// sortChunks brings the chunks of f, which stand in the order of giving, into running order.
func (f *iteration) sortChunks() {
	slices.SortStableFunc(f.computed, func(a, b computedChunk) int { return int(a.serial - b.serial) })
}
