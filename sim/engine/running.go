package engine

import (
	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/delivery"
	"clifftop/sim/sched"
)

// The running batch: its sequences, those that decode, and the blocks that they hold.

const none = int32(sched.None)

// runningBatch is the sequences that run, in order of admission.
type runningBatch struct {
	seqs        *slab
	first, last int32
	size        int
	serials     int64          // admissions so far
	departures  int64          // times that a sequence left
	line        *delivery.Line // which keeps their order, too
	prefills    []int32        // sequences in prefill, in running order
	speculating int            // sequences that decode with drafts
	answers     int            // sequences whose output later requests may share
	remaining   int64          // output tokens that the sequences may still be given, up to the declared maxima
	longest     int32          // upper bound of the tokens that one of them may still be given
}

// join appends sequence i to the running batch.
func (b *runningBatch) join(i int32) {
	s := b.seqs.at(i)
	b.serials++
	s.serial = b.serials
	b.line.Enter(i)
	s.prev, s.next = b.last, none
	if b.last == none {
		b.first = i
	} else {
		b.seqs.at(b.last).next = i
	}
	b.last = i
	if b.size == 0 {
		b.longest = 0
	}
	b.longest = max(b.longest, s.declared-s.issued)
	b.remaining += int64(s.declared - s.issued)
	b.size++
	if s.rec.Request.SharesOutput() {
		b.answers++
	}
}

// clients yields the clients of the running sequences, as indices of the fair queue.
func (b *runningBatch) clients(yield func(client int32) bool) {
	for i := b.first; i != none && yield(b.seqs.at(i).client); i = b.seqs.at(i).next {
	}
}

// leaveRunning takes sequence i out of the running batch and frees its blocks, or keeps them for another engine under a
// lease. The blocks of the cohort are settled.
func (e *Engine) leaveRunning(i int32, lease clock.Duration) {
	s := e.seqs.at(i)
	switch s.phase {
	case decoding:
		e.leaveCohort(i)
	case speculating:
		e.running.speculating--
	case prefilling:
		e.running.prefills = without(e.running.prefills, i)
	}
	e.line.Exit(i)
	if s.prev == none {
		e.running.first = s.next
	} else {
		e.seqs.at(s.prev).next = s.next
	}
	if s.next == none {
		e.running.last = s.prev
	} else {
		e.seqs.at(s.next).prev = s.prev
	}
	e.running.remaining -= int64(s.declared - s.issued)
	e.running.size--
	e.running.departures++
	e.space.booked -= s.owed
	s.booking, s.owed, s.reserved = 0, 0, 0
	e.levels.Running--
	if s.streamed {
		s.streamed = false
		e.levels.Decoding--
	}
	if s.rec.Request.SharesOutput() {
		e.running.answers--
	}
	if c := e.remote.connector; c != nil {
		c.Left(e.now, i, s.computed)
	}
	if lease > 0 {
		e.remote.keep(s, e.now, lease, &e.space)
	} else {
		e.space.freeBlocks(s)
	}
}

// joinCohort adds sequence i, whose known tokens are all computed, to the cohort. It decodes from the next step on.
func (d *decoders) joinCohort(i int32) {
	s, c := d.seqs.at(i), &d.cohort
	if d.berths != nil {
		s.berth = d.berths.seat
	}
	s.phase = decoding
	s.joined = c.steps
	s.ends = c.steps + int64(s.output-s.issued)
	if s.issued == s.output {
		s.ends++ // one more than it produces
	}
	c.size++
	c.context += int64(s.target)
	c.squares += square(s.target)
	c.ends.Push(pq.Item[int32]{Key: s.ends, Tie: s.serial, Value: i})
	d.fair.Joins(s.client, s.joined)
	d.line.Joins(i, s.joinBatch)
	d.space.enterSchedule(i)
}

// leaveCohort takes sequence i out of its cohort, and sets its own counters.
func (d *decoders) leaveCohort(i int32) {
	s, c := d.seqs.at(i), &d.cohort
	if b := d.berths; b != nil && s.berth != b.seat {
		from := b.seat
		d.sit(s.berth)
		d.leaveCohort(i)
		d.sit(from)
		return
	}
	d.space.Settle()
	d.line.Leaves(i)
	grown := int32(c.steps - s.joined)
	s.rec.GPU.Decode += c.share - s.shared
	held := d.space.held(s)
	d.leaveStep(s)
	d.fair.Leaves(s.client, s.joined, grown)
	c.size--
	c.context -= int64(s.target + grown)
	c.squares -= square(s.target + grown)
	d.space.leaveSchedule(i)
	s.computed = s.target + grown
	s.issued += grown
	s.blockCount = held
	s.phase = finishing
	if s.lagging {
		s.lagging = false
		d.lagging--
	}
}
