package stats

import "testing"

// A shape has every value, in bins that are narrow and in order.
func TestShape(t *testing.T) {
	var h Histogram
	for v := int64(0); v < 100_000; v += 37 {
		h.Record(v, uint64(v%5+1))
	}
	s := h.Shape(0.5)
	var n int64
	last := -1.0
	for _, b := range s.Bins {
		n += b.N
		if b.Low <= last || b.High < b.Low || b.High > 200 && (b.High-b.Low)/b.Low > 1./32 {
			t.Errorf("bin %+v after %g", b, last)
		}
		last = b.High
	}
	if n != int64(h.Count()) || s.N != n || last != 0.5*float64(h.Max()) {
		t.Errorf("%d of %d values, %d in all, up to %g", n, h.Count(), s.N, last)
	}
}
