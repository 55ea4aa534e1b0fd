package stats

// Shape is a distribution in bins, whose width is at most 1/32 of their values.
type Shape struct {
	N    int64
	Bins []Bin // that are not empty, in ascending order
}

// Bin counts values from Low up to High, in milliseconds.
type Bin struct {
	Low, High float64
	N         int64
}

// joined is how many buckets of a [Histogram] make a bin of a [Shape].
const joined = 4

// Shape returns the distribution of the recorded values, multiplied by scale.
func (h *Histogram) Shape(scale float64) Shape {
	s := Shape{N: int64(h.n)}
	for p, counts := range h.pages {
		if counts == nil {
			continue
		}
		for sub := 0; sub < subs; sub += joined {
			var n uint64
			for _, k := range counts[sub : sub+joined] {
				n += k
			}
			if n > 0 {
				lo, _ := bounds(p, sub)
				_, hi := bounds(p, sub+joined-1)
				s.Bins = append(s.Bins, Bin{float64(max(lo, h.min)) * scale, float64(min(hi, h.max)) * scale, int64(n)})
			}
		}
	}
	return s
}
