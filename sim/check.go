package sim

import (
	"fmt"
)

// check asserts that the closed forms of the cohort agree with its members one by one, and the
// invariants of pool and limits. It is called between events, when Config.Check is set.
func (r *Replica) check() error {
	c := &r.cohort
	if r.pipe != nil {
		c = r.pipe.whole()
	}
	var running, members, prefills, drafting, held, windowed, growing int
	var context, owed int64
	takes, promised := make([]int32, len(c.takes.need)), make([]int32, len(c.takes.need))
	left, empty, remaining := 0, 0, int64(0)
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		running++
		computed, issued := s.computed, s.issued
		switch s.phase {
		case decoding:
			members++
			steps := r.steps(s)
			computed = s.target + int32(steps-s.joined)
			issued += int32(steps - s.joined)
			context += int64(computed)
			if s.covered {
				empty += s.coverage - r.blocksFor(computed)
			} else {
				takes[s.residue]++
			}
			if s.promising {
				promised[s.residue]++
			}
			if s.covered && computed > int32(s.reserved)*r.cfg.BlockSize {
				return r.broken("request %d has computed %d tokens in %d reserved blocks", s.rec.Request.ID, computed, s.reserved)
			}
			if s.ends <= steps {
				return r.broken("sequence of request %d decodes at step %d past its last %d", s.rec.Request.ID, steps, s.ends)
			}
		case prefilling:
			prefills++
		case speculating:
			drafting++
		}
		if !s.over {
			remaining += int64(s.declared - issued)
		}
		blocks := max(s.reserved, r.blocksFor(computed))
		if r.cfg.Speculative.On() {
			if blocks > r.held(s) {
				return r.broken("request %d has %d blocks for %d tokens", s.rec.Request.ID, r.held(s), computed)
			}
			blocks = r.held(s) // those for drafts stay
		}
		all := blocks
		if !s.promising && s.owed != s.promiseLeft(blocks) {
			return r.broken("request %d is owed %d blocks of %d promised, not %d", s.rec.Request.ID, s.promiseLeft(blocks), s.promise, s.owed)
		}
		left += s.promiseLeft(blocks)
		if r.caching {
			owed += int64(blocks - len(s.blocks))
			blocks = len(s.blocks)
			if s.registered > int32(blocks) {
				return r.broken("request %d registered %d of %d blocks", s.rec.Request.ID, s.registered, blocks)
			}
		}
		held += blocks
		windowed += s.windowed
		if charge := r.cfg.Window.Extra(all); s.windowed != charge {
			return r.broken("request %d is charged %d blocks for windowed layers, not %d", s.rec.Request.ID, s.windowed, charge)
		}
		if s.growing {
			growing++
		}
	}
	if r.conn != nil {
		n, m := r.conn.holds(r)
		held, windowed = held+n, windowed+m
	}
	if r.promise.N > 0 { // its first step is counted, but not committed
		remaining += int64(r.it.decodes)
	}
	switch {
	case running != r.running || running > r.cfg.MaxNumSeqs:
		return r.broken("%d sequences run, counted %d, at most %d allowed", running, r.running, r.cfg.MaxNumSeqs)
	case members != c.size || context != c.context || prefills != len(r.prefills):
		return r.broken("cohort of %d with context %d and %d prefills, counted %d, %d and %d",
			members, context, prefills, c.size, c.context, len(r.prefills))
	case drafting != r.speculating:
		return r.broken("%d sequences speculate, counted %d", drafting, r.speculating)
	case owed != int64(c.debt):
		return r.broken("%d blocks owed, counted %d", owed, c.debt)
	case windowed != r.windowed || growing != c.growing:
		return r.broken("%d blocks charged to %d growing sequences, counted %d and %d", windowed, growing, r.windowed, c.growing)
	case remaining != r.remaining || r.promise.N == 0 && r.groups.size() != 0 && r.groups.size() != c.size-r.lagging:
		return r.broken("%d tokens remain, counted %d; groups of %d sequences in a cohort of %d, %d lagging",
			remaining, r.remaining, r.groups.size(), c.size, r.lagging)
	case r.hosted < 0 || r.hosted > r.cfg.HostBlocks:
		return r.broken("%d blocks in host memory, which has room for %d", r.hosted, r.cfg.HostBlocks)
	case empty != c.empty:
		return r.broken("%d reserved blocks of the cohort are empty, counted %d", empty, c.empty)
	case left != r.promised:
		return r.broken("%d promised blocks are left, counted %d", left, r.promised)
	case r.free() < 0:
		return r.broken("%d blocks free", r.free())
	}
	if free := r.pool.Usable() - held + int(r.shared()); free != r.poolFree() {
		return r.broken("%d of %d KV blocks are free, counted %d", free, r.pool.Usable(), r.poolFree())
	}
	for k := range takes {
		if takes[k] != c.takes.need[k] || promised[k] != c.promised.need[k] {
			return r.broken("%d sequences of residue %d take blocks and %d were promised them, counted %d and %d",
				takes[k], k, promised[k], c.takes.need[k], c.promised.need[k])
		}
	}
	var tokens int64
	for _, chunk := range r.it.chunks {
		tokens += int64(chunk.New)
	}
	if tokens += int64(r.it.decodes + r.it.drafts); tokens > int64(r.cfg.MaxNumBatchedTokens) {
		return r.broken("%d tokens scheduled, %d allowed", tokens, r.cfg.MaxNumBatchedTokens)
	}
	if l := &r.levels; l.Waiting < r.queue.len() || l.Running != r.running {
		return r.broken("levels %+v with %d waiting and %d running", *l, r.queue.len(), r.running)
	}
	if err := r.checkGPUTime(); err != nil {
		return err
	}
	if r.inFlight.n == 0 && r.promise.N == 0 && r.queue.len() > 0 && (r.conn == nil || len(r.conn.loads)+len(r.conn.leases) == 0) {
		audit{&r.it}.wrong("%d requests wait and %d run, but nothing can be scheduled", r.queue.len(), r.running)
		return r.fault
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
