package workload

import (
	"math"
	"slices"
)

// Minutes says how much the arrivals of open traffic differ from minute to minute.
type Minutes struct {
	// Dispersion is the index of dispersion of counts over 60 s: variance by mean.
	Dispersion float64
	// P05, P50 and P95 are percentiles of the rate of a minute, in requests per second.
	P05, P50, P95 float64
}

// minuteQuantiles are the ranks of the percentiles of [Minutes].
var minuteQuantiles = [3]float64{.05, .5, .95}

// counted is a process for which the distribution of the arrivals in a minute is known.
type counted interface {
	process
	windowed
	// atMost returns the probability of n arrivals or fewer in a minute at a random place.
	atMost(n float64) float64
}

// Minutes returns the spread of minutes. The percentiles of the processes constant, poisson and cox follow from
// formulas. Other processes are sampled, with the same sample for every seed of a run; so is the index of dispersion if
// there is no formula. The rate of a profile over time counts in the percentiles and not in the index. The turns of a
// conversation count at its start. ok is false for traffic without a single open phase.
func (s Spec) Minutes() (m Minutes, ok bool) {
	if len(s.Arrivals) != 1 || s.Closed() || s.Arrivals[0].Process == "all-at-once" {
		return m, false
	}
	free := s
	free.Requests, free.Duration = 0, 0 // so that no mean is exact
	var f fieldFaults
	t := free.compile(&f)
	if f.Len() > 0 || len(t.processes) != 1 {
		return m, false
	}
	p := t.processes[0]
	perStart := s.Rate() / p.Rate()
	var at [3]float64
	if c, ok := p.(counted); ok {
		for i, q := range minuteQuantiles {
			at[i] = leastCount(60*p.Rate(), q, c.atMost)
		}
	} else if at, m.Dispersion = sampleMinutes(p); m.Dispersion == 0 {
		return m, false
	}
	m.Dispersion *= perStart
	if w, ok := p.(windowed); ok {
		m.Dispersion = perStart * w.dispersionOver(60)
	}
	scale := perStart / 60
	m.P05, m.P50, m.P95 = scale*at[0], scale*at[1], scale*at[2]
	return m, true
}

// sampleMinutes counts the arrivals of many minutes. It returns percentiles of the counts, and their index of
// dispersion, which is 0 if there is no arrival.
func sampleMinutes(p process) (at [3]float64, dispersion float64) {
	const (
		arrivals = 600_000
		least    = 60
		most     = 1000
		domain   = 0x6d696e75
	)
	n := int(min(max(arrivals/(60*p.Rate()), least), most))
	counts := make([]float64, n)
	a := p.Start(Hash(domain, 0), 0)
	for {
		i := int(a.Next().Seconds() / 60)
		if i >= n {
			break
		}
		counts[i]++
	}
	mean, square := 0.0, 0.0
	for _, x := range counts {
		mean += x / float64(n)
	}
	for _, x := range counts {
		square += (x - mean) * (x - mean) / float64(n-1)
	}
	if mean == 0 {
		return at, 0
	}
	slices.Sort(counts)
	for i, q := range minuteQuantiles {
		at[i] = counts[int(q*float64(n-1)+.5)]
	}
	return at, square / mean
}

// leastCount returns the smallest number whose probability not to be exceeded is q or more. mean is where the search
// starts.
func leastCount(mean, q float64, atMost func(n float64) float64) float64 {
	low, high := -1.0, math.Ceil(mean)
	for atMost(high) < q {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := math.Floor((low + high) / 2); atMost(middle) < q {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// atMost of a window at a random place: the count is one of two neighbouring integers.
func (c constantGaps) atMost(n float64) float64 {
	mean := 60 * c.PerSecond
	return min(max(n+1-mean, 0), 1)
}

func (p Poisson) atMost(n float64) float64 { return poissonAtMost(n, 60*p.PerSecond) }

// atMost treats the mean rate of a minute as lognormal with the right variance. This is exact if steps are whole
// minutes. It averages the probabilities of Poisson counts over the rate.
func (c Cox) atMost(n float64) float64 {
	const (
		width = .1 // standard deviations between the nodes of the trapezoidal rule
		nodes = 50 // on each side of 0
	)
	mean := 60 * c.PerSecond
	square := math.Log1p((c.dispersionOver(60) - 1) / mean)
	sigma := math.Sqrt(square)
	sum, weights := 0.0, 0.0
	for k := -nodes; k <= nodes; k++ {
		z := width * float64(k)
		w := math.Exp(-z * z / 2)
		weights += w
		sum += w * poissonAtMost(n, mean*math.Exp(float64(sigma*z)-square/2))
	}
	return sum / weights
}

// poissonAtMost is the probability that a Poisson variable is n or less: that of a χ² variable with 2(n+1) degrees of
// freedom to exceed 2·mean, by its cube root, which is nearly normal (Wilson and Hilferty 1931).
func poissonAtMost(n, mean float64) float64 {
	if n < 0 {
		return 0
	}
	variance := 1 / (9 * (n + 1))
	z := (math.Cbrt(mean/(n+1)) - (1 - variance)) / math.Sqrt(variance)
	return math.Erfc(z/math.Sqrt2) / 2
}

var (
	_ counted = constantGaps{}
	_ counted = Poisson{}
	_ counted = Cox{}
)
