package workload

import (
	"math"
	"math/rand/v2"
)

// geometric is the distribution of the number of trials up to the first success: n with probability (1−p)ⁿ⁻¹·p with
// p = 1/Mean. It is memoryless: a conversation ends after any turn with the same probability.
type geometric struct{ Mean float64 }

// Sample draws a number by inversion.
func (g geometric) Sample(src rand.Source) int32 {
	if g.Mean <= 1 {
		return 1
	}
	u := 1 - uniform(src) // in (0, 1]
	return tokens(math.Floor(math.Log(u)/math.Log1p(-1/g.Mean)) + 1)
}

// Exceeds returns (1−p)ⁿ.
func (g geometric) Exceeds(n int32) float64 {
	if n < 1 {
		return 1
	}
	return math.Pow(1-1/g.Mean, float64(n))
}

// logSeries is the logarithmic distribution (Fisher 1943): n with probability −Pⁿ / (n·ln(1−P)). Compared with a
// geometric distribution of the same mean it has more ones and a longer tail.
type logSeries struct{ P float64 }

// logSeriesOf returns the distribution with the given mean, found by bisection of −P / ((1−P)·ln(1−P)) = mean.
func logSeriesOf(mean float64) logSeries {
	low, high := 0.0, 1.0
	for range 100 {
		p := (low + high) / 2
		if -p/((1-p)*math.Log1p(-p)) < mean {
			low = p
		} else {
			high = p
		}
	}
	return logSeries{P: low}
}

// Sample draws a number by inversion, term by term.
func (l logSeries) Sample(src rand.Source) int32 {
	u := uniform(src)
	term := -l.P / math.Log1p(-l.P)
	for n := int32(1); n < MaxTokens; n++ {
		if u -= term; u < 0 || term < 1e-18 {
			return n
		}
		term *= l.P * float64(n) / float64(n+1)
	}
	return MaxTokens
}

// Exceeds returns 1 minus the sum of the terms up to n.
func (l logSeries) Exceeds(n int32) float64 {
	left, term := 1.0, -l.P/math.Log1p(-l.P)
	for k := int32(1); k <= n && term > 1e-18; k++ {
		left -= term
		term *= l.P * float64(k) / float64(k+1)
	}
	return max(left, 0)
}

var (
	_ Lengths = geometric{}
	_ Lengths = logSeries{}
)
