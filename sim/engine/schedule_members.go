package engine

import (
	"math"

	"clifftop/internal/pq"
)

// Members of the cohort are filed by the steps at which they take a new block.

// enterSchedule files sequence i under the residue of the steps at which it takes a new block.
func (r *Engine) enterSchedule(i int32) {
	s, c := r.seq(i), &r.cohort
	size := int64(r.cfg.BlockSize)
	s.residue = int32(((s.joined-int64(s.target))%size + size) % size)
	r.enlist(s, i)
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

func (r *Engine) leaveSchedule(i int32) {
	s, c := r.seq(i), &r.cohort
	r.delist(s)
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

// enlist counts member s among those that take blocks, and those that were promised them, until its
// reservation or its promise is used up.
func (r *Engine) enlist(s *sequence, i int32) {
	c := &r.cohort
	if s.reserved == 0 && s.booking == 0 && r.cfg.Window.Layers == 0 {
		c.takes.add(s.residue, 1)
		return
	}
	size := int64(r.cfg.BlockSize)
	computed := int64(s.target) + c.steps - s.joined
	until := c.steps + int64(s.reserved)*size - computed // the step at which no reserved room is left
	s.covered = until > c.steps
	if s.covered {
		s.coverage = s.reserved
		c.empty += s.reserved - r.blocksFor(int32(computed))
		c.fills.add(s.residue, 1)
	} else {
		c.takes.add(s.residue, 1)
		until = 0
		if held := max(s.reserved, r.blocksFor(int32(computed))); held < r.cfg.Window.Blocks {
			s.growing = true
			c.growing++
		} else if s.booking > held+s.windowed {
			s.bookedNext = true
			c.booked.add(s.residue, 1)
			until = c.steps + int64(s.booking-s.windowed)*size - computed
		}
	}
	s.refileAt = until
	if until > 0 && until <= s.ends {
		c.refiling.Push(pq.Item[int32]{Key: until, Tie: s.serial, Value: i})
	}
}

// delist undoes enlist.
func (r *Engine) delist(s *sequence) {
	c := &r.cohort
	if s.covered {
		c.empty -= s.coverage - r.blocksFor(s.target+int32(c.steps-s.joined))
		c.fills.add(s.residue, -1)
	} else {
		c.takes.add(s.residue, -1)
	}
	if s.bookedNext {
		s.owed = s.bookedLeft(r.held(s))
		c.booked.add(s.residue, -1)
	}
	if s.growing {
		c.growing--
	}
	s.covered, s.bookedNext, s.growing = false, false, false
}

// refile counts anew the members whose reservation or promise is used up by now.
func (r *Engine) refile() {
	c := &r.cohort
	for c.refiling.Len() > 0 && c.refiling.Top().Key <= c.steps {
		e := c.refiling.Pop()
		if s := r.seq(e.Value); s.phase == decoding && s.serial == e.Tie && s.refileAt == e.Key {
			r.Settle()
			r.delist(s)
			r.enlist(s, e.Value)
		}
	}
}

// nextRefile is the next step at which a reservation or a promise is used up.
func (r *Engine) nextRefile() int64 {
	h := &r.cohort.refiling
	for h.Len() > 0 {
		top := h.Top()
		if s := r.seq(top.Value); s.phase == decoding && s.serial == top.Tie && s.refileAt == top.Key {
			return top.Key
		}
		h.Pop()
	}
	return math.MaxInt64
}
