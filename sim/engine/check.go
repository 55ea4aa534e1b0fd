package engine

import "fmt"

// check asserts that the closed forms of the cohort agree with its members one by one, and the
// invariants of pool and limits. It is called between events, when Config.Check is set.
func (r *Engine) check() error {
	c := &r.cohort
	if r.pipe != nil {
		c = r.pipe.whole()
	}
	n, err := r.count()
	if err != nil {
		return err
	}
	for _, holds := range [...]func(*Engine, *cohort, *census) error{
		(*Engine).checkBatch,
		(*Engine).checkOwed,
		(*Engine).checkRemaining,
		(*Engine).checkPool,
		(*Engine).checkSchedules,
	} {
		if err := holds(r, c, n); err != nil {
			return err
		}
	}
	for _, holds := range [...]func(*Engine) error{
		(*Engine).checkBudget,
		(*Engine).checkLevels,
		(*Engine).checkGPUTime,
		(*Engine).checkWork,
		(*Engine).checkInFlight,
	} {
		if err := holds(r); err != nil {
			return err
		}
	}
	return nil
}

// census is what running sequences come to, counted one by one.
type census struct {
	running, prefills, drafting int
	remaining                   int64 // answer tokens that they may still be given

	members       int // of the cohort
	context       int64
	takes, booked []int32 // members by residue that take blocks, and that were promised the next one
	empty         int     // reserved blocks of members that hold nothing
	growing       int     // sequences whose windowed layers still take blocks

	held, windowed int   // blocks of the pool, and those charged for windowed layers
	owed           int64 // blocks that sequences have grown into and not been given
	left           int   // blocks promised and not taken
}

// count counts the running sequences, and asserts what holds for each by itself. Blocks are counted of those too that
// are out of the batch while KV is loaded, or kept for others.
func (r *Engine) count() (*census, error) {
	size := r.cfg.BlockSize
	n := &census{takes: make([]int32, size), booked: make([]int32, size)}
	for i := r.running.first; i != none; i = r.seq(i).next {
		if err := n.add(r, r.seq(i)); err != nil {
			return nil, err
		}
	}
	if r.conn != nil {
		held, windowed := r.conn.holds(r)
		n.held, n.windowed = n.held+held, n.windowed+windowed
	}
	if r.ahead.N > 0 { // its first step is counted, but not committed
		n.remaining += int64(r.it.decodes)
	}
	return n, nil
}

// add counts s.
func (n *census) add(r *Engine, s *sequence) error {
	n.running++
	computed, issued := s.computed, s.issued
	switch s.phase {
	case decoding:
		grown := int32(r.steps(s) - s.joined)
		computed, issued = s.target+grown, issued+grown
		if err := n.addMember(r, s, computed); err != nil {
			return err
		}
	case prefilling:
		n.prefills++
	case speculating:
		n.drafting++
	}
	if !s.over {
		n.remaining += int64(s.declared - issued)
	}
	return n.addBlocks(r, s, computed)
}

// addMember counts s, which has computed so many tokens, as a member of the cohort.
func (n *census) addMember(r *Engine, s *sequence, computed int32) error {
	n.members++
	n.context += int64(computed)
	if s.covered {
		n.empty += s.coverage - r.cfg.blocksFor(computed)
	} else {
		n.takes[s.residue]++
	}
	if s.bookedNext {
		n.booked[s.residue]++
	}
	if s.covered && computed > int32(s.reserved)*r.cfg.BlockSize {
		return r.Broken("request %d has computed %d tokens in %d reserved blocks", s.rec.Request.ID, computed,
			s.reserved)
	}
	if steps := r.steps(s); s.ends <= steps {
		return r.Broken("sequence of request %d decodes at step %d past its last %d", s.rec.Request.ID, steps, s.ends)
	}
	return nil
}

// addBlocks counts the blocks of s, which has computed so many tokens.
func (n *census) addBlocks(r *Engine, s *sequence, computed int32) error {
	blocks := max(s.reserved, r.cfg.blocksFor(computed))
	if r.cfg.Speculative.On() {
		if blocks > r.space.held(s) {
			return r.Broken("request %d has %d blocks for %d tokens", s.rec.Request.ID, r.space.held(s), computed)
		}
		blocks = r.space.held(s) // those for drafts stay
	}
	left := s.bookedLeft(blocks)
	if !s.bookedNext && s.owed != left {
		return r.Broken("request %d is owed %d blocks of %d promised, not %d", s.rec.Request.ID, left, s.booking,
			s.owed)
	}
	n.left += left
	held := blocks
	if r.space.caching {
		held = len(s.blocks) // the rest are owed until settle
		n.owed += int64(blocks - held)
		if s.registered > int32(held) {
			return r.Broken("request %d registered %d of %d blocks", s.rec.Request.ID, s.registered, held)
		}
	}
	n.held += held
	n.windowed += s.windowed
	if charge := r.cfg.Window.Extra(blocks); s.windowed != charge {
		return r.Broken("request %d is charged %d blocks for windowed layers, not %d", s.rec.Request.ID, s.windowed,
			charge)
	}
	if s.growing {
		n.growing++
	}
	return nil
}

// checkBatch asserts that the running batch has no more sequences than seats, and each is what it is counted as.
func (r *Engine) checkBatch(c *cohort, n *census) error {
	switch {
	case n.running != r.running.size || n.running > r.cfg.MaxNumSeqs:
		return r.Broken("%d sequences run, counted %d, at most %d allowed", n.running, r.running.size, r.cfg.MaxNumSeqs)
	case n.members != c.size || n.context != c.context || n.prefills != len(r.running.prefills):
		return r.Broken("cohort of %d with context %d and %d prefills, counted %d, %d and %d",
			n.members, n.context, n.prefills, c.size, c.context, len(r.running.prefills))
	case n.drafting != r.running.speculating:
		return r.Broken("%d sequences speculate, counted %d", n.drafting, r.running.speculating)
	}
	return nil
}

// checkOwed asserts that blocks owed to the cohort, and charged for windowed layers, are those of the sequences.
func (r *Engine) checkOwed(c *cohort, n *census) error {
	switch {
	case n.owed != int64(c.debt):
		return r.Broken("%d blocks owed, counted %d", n.owed, c.debt)
	case n.windowed != r.space.windowed || n.growing != c.growing:
		return r.Broken("%d blocks charged to %d growing sequences, counted %d and %d", n.windowed, n.growing,
			r.space.windowed, c.growing)
	}
	return nil
}

// checkRemaining asserts that the tokens to come are those of the sequences, and that each member of the cohort is in a
// group of members whose last tokens came from the same iteration.
func (r *Engine) checkRemaining(c *cohort, n *census) error {
	if n.remaining != r.running.remaining || r.ahead.N == 0 && r.groups.size() != 0 &&
		r.groups.size() != c.size-r.lagging {
		return r.Broken("%d tokens remain, counted %d; groups of %d sequences in a cohort of %d, %d lagging",
			n.remaining, r.running.remaining, r.groups.size(), c.size, r.lagging)
	}
	return nil
}

// checkPool asserts that every block is either free or held.
func (r *Engine) checkPool(c *cohort, n *census) error {
	switch {
	case r.space.hosted < 0 || r.space.hosted > r.cfg.HostBlocks:
		return r.Broken("%d blocks in host memory, which has room for %d", r.space.hosted, r.cfg.HostBlocks)
	case n.empty != c.empty:
		return r.Broken("%d reserved blocks of the cohort are empty, counted %d", n.empty, c.empty)
	case n.left != r.space.booked:
		return r.Broken("%d promised blocks are left, counted %d", n.left, r.space.booked)
	case r.space.free() < 0:
		return r.Broken("%d blocks free", r.space.free())
	}
	if free := r.space.pool.Usable() - n.held + int(r.space.Shared()); free != r.space.poolFree() {
		return r.Broken("%d of %d KV blocks are free, counted %d", free, r.space.pool.Usable(), r.space.poolFree())
	}
	return nil
}

// checkSchedules asserts that the cohort takes its blocks at the steps at which its members do.
func (r *Engine) checkSchedules(c *cohort, n *census) error {
	for k := range n.takes {
		if n.takes[k] != c.takes.need[k] || n.booked[k] != c.booked.need[k] {
			return r.Broken("%d sequences of residue %d take blocks and %d were promised them, counted %d and %d",
				n.takes[k], k, n.booked[k], c.takes.need[k], c.booked.need[k])
		}
	}
	return nil
}

// checkBudget asserts that no more tokens are scheduled than an iteration may have.
func (r *Engine) checkBudget() error {
	tokens := int64(r.it.decodes + r.it.drafts)
	for _, chunk := range r.it.chunks {
		tokens += int64(chunk.New)
	}
	if tokens > int64(r.cfg.MaxNumBatchedTokens) {
		return r.Broken("%d tokens scheduled, %d allowed", tokens, r.cfg.MaxNumBatchedTokens)
	}
	return nil
}

// checkLevels asserts that the reported levels are those of the queue and the batch.
func (r *Engine) checkLevels() error {
	if l := &r.levels; l.Waiting < r.queue.len() || l.Running != r.running.size {
		return r.Broken("levels %+v with %d waiting and %d running", *l, r.queue.len(), r.running.size)
	}
	return nil
}

// checkWork asserts that the policy does not leave the engine idle while requests wait.
func (r *Engine) checkWork() error {
	idle := r.inFlight.n == 0 && r.ahead.N == 0 && (r.conn == nil || len(r.conn.loads)+len(r.conn.leases) == 0)
	if idle && r.queue.len() > 0 {
		policyCheck{&r.it}.wrong("%d requests wait and %d run, but nothing can be scheduled", r.queue.len(),
			r.running.size)
		return r.fault
	}
	return nil
}

// checkInFlight asserts that time does not go back: iterations in flight have not ended.
func (r *Engine) checkInFlight() error {
	for k := range r.inFlight.n {
		if end := r.inFlight.at(k).end; end < r.now {
			return r.Broken("an iteration in flight ended at %v", end)
		}
	}
	return nil
}

// Broken makes the error of a broken invariant.
func (r *Engine) Broken(format string, args ...any) error {
	return fmt.Errorf("sim: broken invariant at %v: %w", r.now, fmt.Errorf(format, args...))
}
