package kv

// Ranges is a cache in which the blocks of each sequence lie side by side: in the first range that was large enough.
type Ranges struct {
	Counted
	gaps   *contiguous
	starts []int32 // of the ranges, by sequence
}

// NewRanges returns a cache of usable blocks.
func NewRanges(usable int) *Ranges {
	return &Ranges{Counted: *NewCounted(usable), gaps: newContiguous(usable)}
}

// Largest implements [Cache].
func (r *Ranges) Largest(free int) int { return min(r.gaps.Largest(), free) }

// Spare implements [Cache]. A range cannot grow.
func (r *Ranges) Spare(int) int { return 0 }

// Fits implements [Cache].
func (r *Ranges) Fits(need, _ int) bool { return need == 0 }

// start returns where the start of the range of a sequence is kept.
func (r *Ranges) start(seq int32) *int32 {
	for int(seq) >= len(r.starts) {
		r.starts = append(r.starts, 0)
	}
	return &r.starts[seq]
}

// Grow implements [Cache]. A sequence can move only while it has computed nothing.
func (r *Ranges) Grow(seq int32, g Growth) bool {
	if g.Blocks == g.Held {
		return true
	}
	if g.Held > 0 && !g.Moves || g.Held == 0 && g.Blocks > g.Free {
		return false
	}
	at := r.start(seq)
	r.gaps.Put(int(*at), g.Held)
	start, ok := r.gaps.Take(g.Blocks)
	if ok {
		r.free -= g.Blocks - g.Held
	} else {
		start, _ = r.gaps.Take(g.Held)
	}
	*at = int32(start)
	return ok
}

// Release implements [Cache].
func (r *Ranges) Release(seq int32, counted int) {
	r.Counted.Release(seq, counted)
	r.gaps.Put(int(*r.start(seq)), counted)
}
