package sim

import "clifftop/sim/sched"

// The running batch: who is in it, who decodes, and who holds which blocks.

const none = int32(sched.None)

// joinRunning appends sequence i to the running batch.
func (r *Replica) joinRunning(i int32) {
	s := r.seq(i)
	r.serials++
	s.serial = r.serials
	if int(r.slots)+1 >= len(r.ranks.tree) {
		r.renumber()
	}
	s.slot = r.slots
	r.slots++
	s.prev, s.next = r.last, none
	if r.last == none {
		r.first = i
	} else {
		r.seq(r.last).next = i
	}
	r.last = i
	r.running++
	r.host.levels.Running++
	if s.rec.Request.Session != 0 {
		r.answers++
	}
}

// clients goes through the clients of the running sequences.
func (r *Replica) clients(yield func(client int32) bool) {
	for i := r.first; i != none && yield(r.seq(i).client); i = r.seq(i).next {
	}
}

// renumber gives the running sequences new slots from 0, keeping their order.
func (r *Replica) renumber() {
	r.ranks.reset(max(64, 4*r.running))
	r.slots = 0
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		s.slot = r.slots
		r.slots++
		if s.phase == decoding {
			r.ranks.add(s.slot, 1)
		}
	}
}

// leaveRunning takes sequence i out of the running batch and frees its blocks. Owed blocks have
// been settled.
func (r *Replica) leaveRunning(i int32) {
	s := r.seq(i)
	switch s.phase {
	case decoding:
		r.leaveCohort(i)
	case prefilling:
		r.prefills = without(r.prefills, i)
	}
	if s.prev == none {
		r.first = s.next
	} else {
		r.seq(s.prev).next = s.next
	}
	if s.next == none {
		r.last = s.prev
	} else {
		r.seq(s.next).prev = s.prev
	}
	r.running--
	r.departures++
	s.promised = 0
	r.host.levels.Running--
	if s.streamed {
		s.streamed = false
		r.host.levels.Decoding--
	}
	if s.rec.Request.Session != 0 {
		r.answers--
	}
	r.windowed -= s.windowed
	s.windowed = 0
	if r.caching {
		r.pool.Release(s.blocks)
		s.blocks = s.blocks[:0]
		s.registered = 0
		return
	}
	r.pool.PutCount(s.blockCount)
}

// joinCohort makes sequence i, which has computed all its known tokens, decode from the cohort's
// next step on.
func (r *Replica) joinCohort(i int32) {
	s, c := r.seq(i), &r.cohort
	s.phase = decoding
	s.joined = c.steps
	s.ends = c.steps + int64(s.output-s.issued)
	c.size++
	c.context += int64(s.target)
	c.ends.push(entry{s.ends, s.serial, i})
	if r.queue.fair != nil {
		r.queue.fair.joins(s)
	}
	r.ranks.add(s.slot, 1)
	r.enterResidue(i)
	if r.blocksFor(s.target) < r.cfg.Window.Blocks {
		s.growing = true
		c.growing++
	}
}

// leaveCohort takes sequence i out; from then on its own counters hold.
func (r *Replica) leaveCohort(i int32) {
	r.settle()
	s, c := r.seq(i), &r.cohort
	grown := int32(c.steps - s.joined)
	r.leaveStep(s)
	if r.queue.fair != nil {
		r.queue.fair.leaves(s, grown)
	}
	c.size--
	c.context -= int64(s.target + grown)
	r.ranks.add(s.slot, -1)
	r.leaveResidue(i)
	if s.growing {
		s.growing = false
		c.growing--
	}
	s.computed = s.target + grown
	s.issued += grown
	s.blockCount = r.blocksFor(s.computed)
	s.phase = finishing
	if s.lagging {
		s.lagging = false
		r.lagging--
	}
}

// enterResidue files sequence i under the residue of the steps at which it takes a new block.
func (r *Replica) enterResidue(i int32) {
	s, c := r.seq(i), &r.cohort
	size := int64(r.cfg.BlockSize)
	s.residue = int32(((s.joined-int64(s.target))%size + size) % size)
	c.need[s.residue]++
	if c.first == nil {
		return
	}
	// Members stand in running order; a new one nearly always goes last.
	after := c.last[s.residue]
	for after != none && r.seq(after).serial > s.serial {
		after = r.seq(after).prevSame
	}
	s.prevSame = after
	if after == none {
		s.nextSame = c.first[s.residue]
		c.first[s.residue] = i
	} else {
		s.nextSame = r.seq(after).nextSame
		r.seq(after).nextSame = i
	}
	if s.nextSame == none {
		c.last[s.residue] = i
	} else {
		r.seq(s.nextSame).prevSame = i
	}
}

func (r *Replica) leaveResidue(i int32) {
	s, c := r.seq(i), &r.cohort
	c.need[s.residue]--
	if c.first == nil {
		return
	}
	if s.prevSame == none {
		c.first[s.residue] = s.nextSame
	} else {
		r.seq(s.prevSame).nextSame = s.nextSame
	}
	if s.nextSame == none {
		c.last[s.residue] = s.prevSame
	} else {
		r.seq(s.nextSame).prevSame = s.prevSame
	}
}

// windowNeed is what the windowed layers of the members take in the next step. With take it is charged.
func (r *Replica) windowNeed(take bool) int {
	c, sum := &r.cohort, 0
	if c.growing == 0 {
		return 0
	}
	for i := c.first[c.residueAt(c.steps)]; i != none; i = r.seq(i).nextSame {
		s := r.seq(i)
		if !s.growing {
			continue
		}
		blocks := r.blocksFor(s.target+int32(c.steps-s.joined)) + 1
		sum += r.cfg.Window.Extra(blocks) - s.windowed
		if take {
			r.chargeWindow(s, blocks)
		}
	}
	return sum
}

// chargeWindow charges s for the windowed layers of so many blocks.
func (r *Replica) chargeWindow(s *sequence, blocks int) {
	charge := r.cfg.Window.Extra(blocks)
	r.windowed += charge - s.windowed
	s.windowed = charge
	if s.growing && blocks >= r.cfg.Window.Blocks {
		s.growing = false
		r.cohort.growing--
	}
}

// settle takes the blocks that the cohort owes, in the order in which single steps would have, and
// registers those that filled up meanwhile.
func (r *Replica) settle() {
	c := &r.cohort
	if !r.caching || c.settled == c.steps {
		c.settled = c.steps
		return
	}
	at := c.residueAt(c.settled)
	for ; c.settled < c.steps; c.settled++ {
		following := at + 1
		if following == len(c.need) {
			following = 0
		}
		for i := c.first[at]; i != none; i = r.seq(i).nextSame {
			s := r.seq(i)
			if r.depth == 2 {
				// The token is known only now that the next one is being computed.
				r.register(s, int32(len(s.blocks)))
			}
			s.blocks = r.pool.Pop(s.blocks, 1)
			c.debt--
		}
		if r.depth == 1 {
			// The token computed in this step is known, and fills the block of those who take a
			// new one in the next.
			for i := c.first[following]; i != none; i = r.seq(i).nextSame {
				s := r.seq(i)
				r.register(s, (s.target+int32(c.settled-s.joined)+1)/r.cfg.BlockSize)
			}
		}
		at = following
	}
}

// register notes the leading full blocks of s as cached content.
func (r *Replica) register(s *sequence, full int32) {
	for i := s.registered; i < full; i++ {
		r.pool.Register(s.blocks[i])
	}
	indexed := full
	if !s.indexOwn {
		indexed = min(full, s.private)
	}
	for i := s.registered; i < indexed; i++ {
		key := s.key(i)
		if i >= s.private && !s.indexOwn {
			break // the walk has just come to what no other request can have
		}
		r.pool.Index(s.blocks[i], key)
	}
	s.registered = max(s.registered, full)
}

// registerHeld registers what the delivery of flight f makes known of the sequences that are not in
// the next iteration; the others register when they are next visited.
func (r *Replica) registerHeld(f *flight) {
	c := &r.cohort
	if r.lagging > 0 {
		for i := r.first; i != none; i = r.seq(i).next {
			s := r.seq(i)
			if s.lagging && r.emits(f, i) {
				delivered := s.target + int32(c.steps-s.joined) - (r.tokensInFlight(i) - 1)
				r.register(s, delivered/r.cfg.BlockSize)
			}
		}
	}
	if r.depth == 1 || !f.stepped || r.promise.N > 0 || r.inFlight.n > 1 && r.inFlight.at(1).stepped {
		return
	}
	// The cohort's blocks that f has filled.
	r.settle()
	for i := c.first[c.residueAt(c.steps)]; i != none; i = r.seq(i).nextSame {
		s := r.seq(i)
		r.register(s, (s.target+int32(c.steps-s.joined))/r.cfg.BlockSize)
	}
}

// indexOwnBlocks makes the private blocks of s findable, for its return after a preemption.
func (r *Replica) indexOwnBlocks(s *sequence) {
	if s.indexOwn {
		return
	}
	s.indexOwn = true
	for i := min(s.private, s.registered); i < s.registered; i++ {
		r.pool.Index(s.blocks[i], s.key(i))
	}
}
