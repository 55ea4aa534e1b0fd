package sim

import (
	"fmt"
)

// check asserts that the closed forms of the cohort agree with its members one by one, and the
// invariants of pool and limits. It is called between events, when Config.Check is set.
func (r *Replica) check() error {
	c := &r.cohort
	var running, members, prefills, held, windowed, growing int
	var context, owed int64
	need := make([]int32, len(c.need))
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		running++
		computed := s.computed
		switch s.phase {
		case decoding:
			members++
			computed = s.target + int32(c.steps-s.joined)
			context += int64(computed)
			need[s.residue]++
			if s.ends <= c.steps {
				return r.broken("sequence of request %d decodes at step %d past its last %d", s.rec.Request.ID, c.steps, s.ends)
			}
		case prefilling:
			prefills++
		}
		blocks := r.blocksFor(computed)
		if r.caching {
			owed += int64(blocks - len(s.blocks))
			blocks = len(s.blocks)
			if s.registered > int32(blocks) {
				return r.broken("request %d registered %d of %d blocks", s.rec.Request.ID, s.registered, blocks)
			}
		}
		held += blocks
		windowed += s.windowed
		if charge := r.cfg.Window.Extra(r.blocksFor(computed)); s.windowed != charge {
			return r.broken("request %d is charged %d blocks for windowed layers, not %d", s.rec.Request.ID, s.windowed, charge)
		}
		if s.growing {
			growing++
		}
	}
	switch {
	case running != r.running || running > r.cfg.MaxNumSeqs:
		return r.broken("%d sequences run, counted %d, at most %d allowed", running, r.running, r.cfg.MaxNumSeqs)
	case members != c.size || context != c.context || prefills != len(r.prefills):
		return r.broken("cohort of %d with context %d and %d prefills, counted %d, %d and %d",
			members, context, prefills, c.size, c.context, len(r.prefills))
	case owed != int64(c.debt):
		return r.broken("%d blocks owed, counted %d", owed, c.debt)
	case windowed != r.windowed || growing != c.growing:
		return r.broken("%d blocks charged to %d growing sequences, counted %d and %d", windowed, growing, r.windowed, c.growing)
	case r.free() < 0:
		return r.broken("%d blocks free", r.free())
	}
	if free := r.pool.Usable() - held + int(r.pool.Shared()); free != r.pool.Free() {
		return r.broken("%d of %d KV blocks are free, counted %d", free, r.pool.Usable(), r.pool.Free())
	}
	for k := range need {
		if need[k] != c.need[k] {
			return r.broken("%d sequences of residue %d, counted %d", need[k], k, c.need[k])
		}
	}
	var tokens int64
	for _, chunk := range r.it.chunks {
		tokens += int64(chunk.New)
	}
	if tokens += int64(r.it.decodes); tokens > int64(r.cfg.MaxNumBatchedTokens) {
		return r.broken("%d tokens scheduled, %d allowed", tokens, r.cfg.MaxNumBatchedTokens)
	}
	if l := &r.host.levels; l.Waiting < r.queue.len() || l.Running != r.running {
		return r.broken("levels %+v with %d waiting and %d running", *l, r.queue.len(), r.running)
	}
	if r.inFlight.n == 0 && r.promise.N == 0 && r.queue.len() > 0 {
		return r.broken("idle while %d requests wait", r.queue.len())
	}
	for k := range r.inFlight.n {
		if end := r.inFlight.at(k).end; end < r.now {
			return r.broken("an iteration in flight ended at %v", end)
		}
	}
	return nil
}

func (r *Replica) broken(format string, args ...any) error {
	return fmt.Errorf("sim: broken invariant at %v: %w", r.now, fmt.Errorf(format, args...))
}
