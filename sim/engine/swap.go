package engine

import "clifftop/sim/sched"

// Sequences whose KV goes to host memory and comes back.

// SwapOut implements [sched.View].
func (it *batchBuilder) SwapOut(h sched.Seq) bool {
	r, i := it.r, int32(h)
	s := r.seq(i)
	computed := it.computed(s)
	blocks := r.pagesFor(computed)
	if s.phase == finishing || s.over || computed == 0 || r.hosted+blocks > r.cfg.HostBlocks {
		return false
	}
	decodes := s.phase == decoding || s.swapped && s.joinBatch == it.current.number
	it.takeBack(i, s)
	s.reached = max(s.reached, s.computed)
	s.swapped, s.hosted = decodes, blocks
	r.hosted += blocks
	r.moved += blocks
	if r.detailed {
		it.swaps = append(it.swaps, s.rec.Request.ID)
	}
	it.takeOut(i, s)
	r.requeue(i, s, false)
	return true
}

// load brings s back from host memory.
func (r *Engine) load(s *sequence) {
	r.hosted -= s.hosted
	r.moved += s.hosted
	s.loaded, s.hosted = s.computed, 0
}

// resume gives sequence i, which decoded when it was swapped out and is admitted again, its token.
func (it *batchBuilder) resume(i int32, s *sequence) {
	s.given, s.grown = 1, false
	s.joinBatch = it.current.number
	s.computed++
	s.issued++
	s.target = s.computed
	it.budget--
	it.decodes++
	it.resumed++
	it.context += int64(s.computed)
	it.countGaps(s.lastBatch, s.lastEnd, 1)
	it.current.firsts = append(it.current.firsts, i)
}
