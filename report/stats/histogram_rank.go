package stats

import "math"

// AtMost is how many of the recorded values are v or less; values that share v's bucket count as its middle.
func (h *Histogram) AtMost(v int64) int64 {
	if h.n > 0 && v >= h.max {
		return int64(h.n)
	}
	var below uint64
	h.each(func(middle float64, n uint64) bool {
		if middle > float64(v) {
			return false
		}
		below += n
		return true
	})
	return int64(below)
}

// QuantileAmong returns the q-quantile, or for q = 0 the mean, of the recorded values together with a number of zeros
// and of infinite values; 0 if there are no values.
func (h *Histogram) QuantileAmong(q float64, zeros, infinite int64) float64 {
	finite := zeros + int64(h.n)
	n := finite + infinite
	switch {
	case n == 0:
		return 0
	case q == 0 && infinite > 0:
		return math.Inf(1)
	case q == 0:
		return h.sum.Float64() / float64(n)
	}
	value := func(rank int64) float64 {
		switch {
		case rank < zeros:
			return 0
		case rank < finite:
			return h.ranked(uint64(rank - zeros))
		}
		return math.Inf(1)
	}
	at := float64(n-1) * q
	rank := int64(at)
	v, frac := value(rank), at-float64(rank)
	if frac > 0 && !math.IsInf(v, 1) {
		v += frac * (value(rank+1) - v)
	}
	return v
}
