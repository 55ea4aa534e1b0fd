package engine

// The charge for the KV of sliding-window layers.

// windowNeed is what the windowed layers of the members take in the next step. With take it is charged.
func (r *Engine) windowNeed(take bool) int {
	c, sum := &r.cohort, 0
	if c.growing == 0 {
		return 0
	}
	for i := c.first[c.takes.residueAt(c.steps)]; i != none; i = r.seq(i).nextSame {
		s := r.seq(i)
		if !s.growing {
			continue
		}
		blocks := r.blocksFor(s.target+int32(c.steps-s.joined)) + 1
		sum += r.cfg.Window.Extra(blocks) - s.windowed
		if take {
			r.growWindow(i, s, blocks)
		}
	}
	return sum
}

// chargeWindow charges s for the windowed layers of so many blocks.
func (r *Engine) chargeWindow(s *sequence, blocks int) {
	charge := r.cfg.Window.Extra(blocks)
	r.windowed += charge - s.windowed
	s.windowed = charge
	if s.growing && blocks >= r.cfg.Window.Blocks {
		s.growing = false
		r.cohort.growing--
	}
}

// growWindow charges s, which decodes and takes the last of so many blocks.
func (r *Engine) growWindow(i int32, s *sequence, blocks int) {
	before := s.bookedLeft(blocks - 1)
	r.chargeWindow(s, blocks)
	if s.booking == 0 {
		return
	}
	s.owed = s.bookedLeft(blocks)
	r.booked += s.owed - before
	if !s.growing { // what was promised falls steadily from now on
		r.delist(s)
		r.enlist(s, i)
	}
}
