package naive

import "slices"

// contiguous is a contiguous pool: every sequence holds one run of it.
type contiguous struct {
	usable int
	taken  []*sequence // by start
}

// gaps calls f with the start and the length of each free run in order, until f returns true.
func (h *contiguous) gaps(f func(start, length int) bool) {
	start := 0
	for _, s := range h.taken {
		if f(start, s.kv.start-start) {
			return
		}
		start = s.kv.start + s.kv.length
	}
	f(start, h.usable-start)
}

func (h *contiguous) free() int {
	sum := 0
	h.gaps(func(start, length int) bool { sum += length; return false })
	return sum
}

func (h *contiguous) largest() int {
	most := 0
	h.gaps(func(start, length int) bool { most = max(most, length); return false })
	return most
}

func (h *contiguous) take(s *sequence, n int) {
	if n == 0 {
		return
	}
	h.gaps(func(start, length int) bool {
		s.kv.start, s.kv.length = start, n
		return length >= n
	})
	h.taken = insert(h.taken, s, func(a, b *sequence) int { return a.kv.start - b.kv.start })
}

func (h *contiguous) release(s *sequence, ended bool) {
	h.taken = slices.DeleteFunc(h.taken, func(x *sequence) bool { return x == s })
	s.kv.start, s.kv.length = 0, 0
}

func (h *contiguous) holds(s *sequence) int { return s.kv.length }
func (h *contiguous) grows(s *sequence, n int) bool {
	return n == 0 || s.kv.length == 0 && n <= h.largest()
}
func (h *contiguous) shared() int                                   { return 0 }
func (h *contiguous) lookup(s *sequence, most int32) (int32, int)   { return 0, 0 }
func (h *contiguous) lost(s *sequence, most int32) (from, to int32) { return 0, 0 }

func (h *contiguous) path(s *sequence, n int32) []int32            { return nil }
func (h *contiguous) admit(s *sequence, most int32) (tokens int32) { return 0 }
func (h *contiguous) known(s *sequence, tokens int32)              {}
func (h *contiguous) done(*sequence, int32, bool)                  {}
