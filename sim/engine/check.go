package engine

import (
	"clifftop/sim/event"
)

// checker asserts the invariants of an engine between events, when Config.Check is set: that the closed forms of the
// cohort agree with its members one by one, and that pool and limits are kept.
type checker struct {
	e *Engine
	c *cohort // all decoding sequences
	census
}

// check returns the first broken invariant of an engine, or nil.
func check(e *Engine) error {
	k := checker{e: e, c: &e.cohort}
	if e.pipe != nil {
		k.c = e.pipe.whole()
	}
	for _, holds := range [...]func() error{
		k.count, k.checkBatch, k.checkOwed, k.checkRemaining, k.checkPool, k.checkSchedules,
		k.checkBudget, k.checkDelivery, k.checkLevels, k.checkGPUTime, k.checkWork, k.checkInFlight,
	} {
		if err := holds(); err != nil {
			return err
		}
	}
	return nil
}

// census is the sums over the running sequences, counted one by one.
type census struct {
	running, prefills, drafting int
	remaining                   int64 // output tokens that they may still be given

	members       int // of the cohort
	context       int64
	squares       uint64
	takes, booked []int32 // members that take blocks, and that have booked the next one, by residue
	empty         int     // reserved blocks of members that hold nothing
	growing       int     // sequences whose windowed layers still take blocks

	held, windowed int   // blocks of the pool, and those charged for windowed layers
	owed           int64 // blocks that sequences need for their tokens and do not hold yet
	left           int   // booked blocks not taken
}

// count counts the running sequences, and asserts the invariants of each. It also counts the blocks of loading and
// loaded sequences, and those kept for other engines.
func (k *checker) count() error {
	size := k.e.cfg.BlockSize
	k.takes, k.booked = make([]int32, size), make([]int32, size)
	for i := k.e.running.first; i != none; i = k.e.seqs.at(i).next {
		if err := k.add(k.e.seqs.at(i)); err != nil {
			return err
		}
	}
	held, windowed := k.e.remote.blocks(&k.e.space)
	k.held, k.windowed = k.held+held, k.windowed+windowed
	if k.e.ahead.N > 0 { // its first step is counted, but not committed
		k.remaining += int64(k.e.it.decodes)
	}
	return nil
}

// add counts sequence s.
func (k *checker) add(s *sequence) error {
	k.running++
	computed, issued := s.computed, s.issued
	switch s.phase {
	case decoding:
		grown := int32(k.e.cohortOf(s).steps - s.joined)
		computed, issued = s.target+grown, issued+grown
		if err := k.addMember(s, computed); err != nil {
			return err
		}
	case prefilling:
		k.prefills++
	case speculating:
		k.drafting++
	}
	k.remaining += int64(s.declared - issued)
	return k.addBlocks(s, computed)
}

// addMember counts s, which has computed this many tokens, as a member of the cohort.
func (k *checker) addMember(s *sequence, computed int32) error {
	k.members++
	k.context += int64(computed)
	k.squares += square(computed)
	if s.covered {
		k.empty += s.coverage - k.e.cfg.blocksFor(computed)
	} else {
		k.takes[s.residue]++
	}
	if s.bookedNext {
		k.booked[s.residue]++
	}
	if s.covered && computed > int32(s.reserved)*k.e.cfg.BlockSize {
		return k.e.Broken("request %d has computed %d tokens in %d reserved blocks", s.rec.Request.ID, computed,
			s.reserved)
	}
	if steps := k.e.cohortOf(s).steps; s.ends <= steps {
		return k.e.Broken("sequence of request %d decodes at step %d past its last %d", s.rec.Request.ID, steps, s.ends)
	}
	return nil
}

// addBlocks counts the blocks of s, which has computed this many tokens.
func (k *checker) addBlocks(s *sequence, computed int32) error {
	if k.e.space.kind.Singly {
		k.held += k.e.space.held(s)
		return nil
	}
	blocks := max(s.reserved, k.e.cfg.blocksFor(computed))
	if k.e.cfg.Speculative.On() {
		if blocks > k.e.space.held(s) {
			return k.e.Broken("request %d has %d blocks for %d tokens", s.rec.Request.ID, k.e.space.held(s), computed)
		}
		blocks = k.e.space.held(s) // those for drafts stay
	}
	left := s.bookedLeft(blocks)
	if !s.bookedNext && s.owed != left {
		return k.e.Broken("request %d has %d of %d booked blocks left, counted %d", s.rec.Request.ID, left, s.booking,
			s.owed)
	}
	k.left += left
	held := blocks
	if h := k.e.space.hashed; h != nil {
		held, _ = h.Held(s.number) // the rest are owed until settle
		k.owed += int64(blocks - held)
		if n := h.Registered(s.number); n > int32(held) {
			return k.e.Broken("request %d registered %d of %d blocks", s.rec.Request.ID, n, held)
		}
	}
	k.held += held
	k.windowed += s.windowed
	if charge := k.e.cfg.Charge(blocks); s.windowed != charge {
		return k.e.Broken("request %d is charged %d blocks for windowed layers, not %d", s.rec.Request.ID, s.windowed,
			charge)
	}
	if s.growing {
		k.growing++
	}
	return nil
}

// checkBatch asserts that the running batch has at most MaxNumSeqs sequences, and that its counts are right.
func (k *checker) checkBatch() error {
	switch {
	case k.running != k.e.running.size || k.running > k.e.cfg.MaxNumSeqs:
		return k.e.Broken("%d sequences run, counted %d, at most %d allowed", k.running, k.e.running.size, k.e.cfg.MaxNumSeqs)
	case k.members != k.c.size || k.context != k.c.context || k.squares != k.c.squares ||
		k.prefills != len(k.e.running.prefills):
		return k.e.Broken("cohort of %d with context %d and %d prefills, counted %d, %d and %d",
			k.members, k.context, k.prefills, k.c.size, k.c.context, len(k.e.running.prefills))
	case k.drafting != k.e.running.speculating:
		return k.e.Broken("%d sequences speculate, counted %d", k.drafting, k.e.running.speculating)
	}
	return nil
}

// checkOwed asserts that the blocks owed to the cohort, and those charged for windowed layers, are the sums over the
// sequences.
func (k *checker) checkOwed() error {
	switch {
	case k.owed != int64(k.c.debt):
		return k.e.Broken("%d blocks owed, counted %d", k.owed, k.c.debt)
	case k.windowed != k.e.space.windowed || k.growing != k.c.growing:
		return k.e.Broken("%d blocks charged to %d growing sequences, counted %d and %d", k.windowed, k.growing,
			k.e.space.windowed, k.c.growing)
	}
	return nil
}

// checkRemaining asserts that the remaining output tokens are the sum over the sequences, and that each member of the
// cohort is in a group of members whose last tokens came from the same iteration.
func (k *checker) checkRemaining() error {
	if k.remaining != k.e.running.remaining || k.e.ahead.N == 0 && k.e.groups.size() != 0 &&
		k.e.groups.size() != k.c.size-k.e.lagging {
		return k.e.Broken("%d tokens remain, counted %d; groups of %d sequences in a cohort of %d, %d lagging",
			k.remaining, k.e.running.remaining, k.e.groups.size(), k.c.size, k.e.lagging)
	}
	return nil
}

// checkPool asserts that every block of the pool is either free or held, and that empty, booked and host blocks are
// counted right.
func (k *checker) checkPool() error {
	switch {
	case k.e.space.hosted < 0 || k.e.space.hosted > k.e.cfg.HostBlocks:
		return k.e.Broken("%d blocks in host memory, which has room for %d", k.e.space.hosted, k.e.cfg.HostBlocks)
	case k.empty != k.c.empty:
		return k.e.Broken("%d reserved blocks of the cohort are empty, counted %d", k.empty, k.c.empty)
	case k.left != k.e.space.booked:
		return k.e.Broken("%d booked blocks are left, counted %d", k.left, k.e.space.booked)
	case k.e.space.free() < 0:
		return k.e.Broken("%d blocks free", k.e.space.free())
	}
	cache := k.e.space.cache
	if free := cache.FreeBeside(k.held); free != cache.Free() {
		return k.e.Broken("%d of %d KV blocks are free, counted %d", free, k.e.space.Usable(), cache.Free())
	}
	return nil
}

// checkSchedules asserts that the block schedules of the cohort are the sums over its members.
func (k *checker) checkSchedules() error {
	for i := range k.takes {
		if k.takes[i] != k.c.takes.need[i] || k.booked[i] != k.c.booked.need[i] {
			return k.e.Broken("%d sequences of residue %d take blocks, %d of them booked, counted %d and %d",
				k.takes[i], i, k.booked[i], k.c.takes.need[i], k.c.booked.need[i])
		}
	}
	return nil
}

// checkBudget asserts that an iteration has no more tokens than its budget allows.
func (k *checker) checkBudget() error {
	tokens := int64(k.e.it.decodes + k.e.it.drafts)
	for _, chunk := range k.e.it.chunks {
		tokens += int64(chunk.New)
	}
	if tokens > int64(k.e.cfg.MaxNumBatchedTokens) {
		return k.e.Broken("%d tokens scheduled, %d allowed", tokens, k.e.cfg.MaxNumBatchedTokens)
	}
	return nil
}

// checkDelivery asserts that the gaps between the chunks of all requests are the times from their first to their last
// chunks.
func (k *checker) checkDelivery() error {
	if gaps, elapsed := k.e.line.Imbalance(); k.e.cfg.StreamPerSequence > 0 && elapsed != gaps {
		return k.e.Broken("chunks reach clients in gaps of %d ps, but it is %d ps from the first to the last",
			int64(gaps), int64(elapsed))
	}
	return nil
}

// checkLevels asserts that the reported levels are the sizes of the queue and of the batch.
func (k *checker) checkLevels() error {
	waiting := k.e.queue.Len() + len(k.e.inbox.requests)
	if l := &k.e.levels; l.Waiting < waiting || l.Running != k.e.running.size {
		return k.e.Broken("levels %+v with %d waiting and %d running", *l, waiting, k.e.running.size)
	}
	return nil
}

// checkWork asserts that the policy does not leave the engine idle while requests wait.
func (k *checker) checkWork() error {
	idle := k.e.inFlight.n == 0 && k.e.ahead.N == 0 && !k.e.remote.awaited()
	if waiting := k.e.queue.Len() + len(k.e.inbox.requests); idle && waiting > 0 {
		policyCheck{&k.e.it}.wrong("%d requests wait and %d run, but nothing can be scheduled", waiting,
			k.e.running.size)
		return k.e.fault
	}
	return nil
}

// checkInFlight asserts that time does not go back: iterations in flight have not ended.
func (k *checker) checkInFlight() error {
	for i := range k.e.inFlight.n {
		if end := k.e.inFlight.at(i).end; end < k.e.now {
			return k.e.Broken("an iteration in flight ended at %v", end)
		}
	}
	return nil
}

// checkGPUTime asserts that the GPU time of all requests, those that have ended included, is the time shared out.
func (k *checker) checkGPUTime() error {
	took := k.e.gpu.took
	for i, s := range k.e.seqs.items {
		if s.serial == 0 {
			continue
		}
		t := s.rec.GPU
		if s.phase == decoding {
			t.Decode += k.e.cohortOf(s).share - s.shared
		}
		if took += t.Total(); t.Prefill|t.Lost|t.Recomputed|t.Decode|t.Drafts < 0 {
			return k.e.Broken("request %d, sequence %d, took %+v of GPU time", s.rec.Request.ID, i, t)
		}
	}
	if took != k.e.gpu.given {
		return k.e.Broken("%d fs of GPU time were given to requests, and %d taken", k.e.gpu.given, took)
	}
	return nil
}

// checkEmpty asserts that an engine that has failed has no requests and no blocks in use.
func (k *checker) checkEmpty() error {
	if (k.e.levels != event.Levels{Blocked: k.e.levels.Blocked}) || k.e.space.Used() != 0 || k.e.running.size != 0 {
		return k.e.Broken("replica %d has failed, but %+v and %d blocks are in use", k.e.index, k.e.levels, k.e.space.Used())
	}
	return k.checkGPUTime()
}
