package engine

import (
	"clifftop/internal/pq"
	"clifftop/sim/sched"
)

// The running batch: which sequences are in it, which decode, and which blocks they hold.

const none = int32(sched.None)

// joinRunning appends sequence i to the running batch.
func (r *Engine) joinRunning(i int32) {
	s := r.seqs.at(i)
	r.running.serials++
	s.serial = r.running.serials
	if int(r.running.slots)+1 >= len(r.running.order.tree) {
		r.renumber()
	}
	s.slot = r.running.slots
	r.running.slots++
	s.prev, s.next = r.running.last, none
	if r.running.last == none {
		r.running.first = i
	} else {
		r.seqs.at(r.running.last).next = i
	}
	r.running.last = i
	if r.running.size == 0 {
		r.running.longest = 0
	}
	r.running.longest = max(r.running.longest, s.declared-s.issued)
	r.running.remaining += int64(s.declared - s.issued)
	r.running.size++
	r.levels.Running++
	if s.rec.Request.SharesAnswer() {
		r.running.answers++
	}
}

// clients goes through the clients of the running sequences.
func (r *Engine) clients(yield func(client int32) bool) {
	for i := r.running.first; i != none && yield(r.seqs.at(i).client); i = r.seqs.at(i).next {
	}
}

// renumber gives the running sequences new slots from 0, keeping their order.
func (r *Engine) renumber() {
	r.running.order.reset(max(64, 4*r.running.size))
	r.running.slots = 0
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		s.slot = r.running.slots
		r.running.slots++
		if s.phase == decoding {
			r.running.order.add(s.slot, 1)
		}
	}
}

// leaveRunning takes sequence i out of the running batch and frees its blocks. Owed blocks have
// been settled.
func (r *Engine) leaveRunning(i int32) {
	s := r.seqs.at(i)
	switch s.phase {
	case decoding:
		r.leaveCohort(i)
	case speculating:
		r.running.speculating--
	case prefilling:
		r.running.prefills = without(r.running.prefills, i)
	}
	if s.prev == none {
		r.running.first = s.next
	} else {
		r.seqs.at(s.prev).next = s.next
	}
	if s.next == none {
		r.running.last = s.prev
	} else {
		r.seqs.at(s.next).prev = s.prev
	}
	if !s.over {
		r.running.remaining -= int64(s.declared - s.issued)
	}
	r.running.size--
	r.running.departures++
	r.space.booked -= s.owed
	s.booking, s.owed, s.reserved = 0, 0, 0
	r.levels.Running--
	if s.streamed {
		s.streamed = false
		r.levels.Decoding--
	}
	if s.rec.Request.SharesAnswer() {
		r.running.answers--
	}
	r.connector.leaves(s)
	if s.lease > 0 {
		r.connector.keepUnderLease(s)
	} else {
		r.space.freeBlocks(s)
	}
}

// joinCohort makes sequence i, which has computed all its known tokens, decode from the cohort's
// next step on.
func (r *Engine) joinCohort(i int32) {
	s, c := r.seqs.at(i), &r.cohort
	if r.pipe != nil {
		s.berth = r.pipe.seat
	}
	s.phase = decoding
	s.joined = c.steps
	s.ends = c.steps + int64(s.output-s.issued)
	if s.issued == s.output {
		s.ends++ // one more than it produces
	}
	c.size++
	c.context += int64(s.target)
	c.ends.Push(pq.Item[int32]{Key: s.ends, Tie: s.serial, Value: i})
	if r.queue.fair != nil {
		r.queue.fair.joins(s)
	}
	r.running.order.add(s.slot, 1)
	r.space.enterSchedule(i)
}

// leaveCohort takes sequence i out; from then on its own counters hold.
func (r *Engine) leaveCohort(i int32) {
	if r.pipe != nil && r.pipe.leaveOtherCohort(i) {
		return
	}
	r.space.Settle()
	s, c := r.seqs.at(i), &r.cohort
	grown := int32(c.steps - s.joined)
	s.rec.GPU.Decode += c.share - s.shared
	held := r.space.held(s)
	r.leaveStep(s)
	if r.queue.fair != nil {
		r.queue.fair.leaves(s, grown)
	}
	c.size--
	c.context -= int64(s.target + grown)
	r.running.order.add(s.slot, -1)
	r.space.leaveSchedule(i)
	s.computed = s.target + grown
	s.issued += grown
	s.blockCount = held
	s.phase = finishing
	if s.lagging {
		s.lagging = false
		r.lagging--
	}
}

// ranks counts the decoding sequences up to a place in the running batch: a Fenwick tree over slots.
// Slots are given out in order of admission.
type streamOrder struct{ tree []int32 }

func (r *streamOrder) reset(slots int) {
	if cap(r.tree) < slots+1 {
		r.tree = make([]int32, slots+1)
		return
	}
	r.tree = r.tree[:slots+1]
	clear(r.tree)
}

func (r *streamOrder) add(slot int32, n int32) {
	for i := int(slot) + 1; i < len(r.tree); i += i & -i {
		r.tree[i] += n
	}
}

// upTo is the number of decoding sequences in slots 0…slot.
func (r *streamOrder) upTo(slot int32) int32 {
	var n int32
	for i := int(slot) + 1; i > 0; i -= i & -i {
		n += r.tree[i]
	}
	return n
}
