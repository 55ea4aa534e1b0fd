package workload

import (
	"math/rand/v2"
	"sort"
)

// quantiles is a distribution given by points of its quantile function: P[i] of the lengths are at most Q[i], with
// linear interpolation between the points. P increases strictly from 0 to 1, Q does not decrease; equal neighbours
// in Q are an atom. A table of measured lengths keeps the caps and modes that no smooth distribution has.
type quantiles struct{ P, Q []float64 }

// Sample draws a length: the quantile of a uniform number, rounded, at least 1.
func (t quantiles) Sample(src rand.Source) int32 {
	u := uniform(src)
	lo, hi := 0, len(t.P)-1 // P[lo] ≤ u < P[hi]
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); t.P[mid] <= u {
			lo = mid
		} else {
			hi = mid
		}
	}
	f := (u - t.P[lo]) / (t.P[hi] - t.P[lo])
	return tokens(t.Q[lo] + float64(f*(t.Q[hi]-t.Q[lo]))) // the conversion prevents a fused multiply-add
}

// Exceeds returns the tail after rounding.
func (t quantiles) Exceeds(n int32) float64 { return exceeds(n, t.reaches) }

// reaches returns the probability that a draw before rounding is at least x.
func (t quantiles) reaches(x float64) float64 {
	i := sort.SearchFloat64s(t.Q, x) // the first with Q[i] ≥ x
	switch i {
	case 0:
		return 1
	case len(t.Q):
		return 0
	}
	return 1 - t.P[i-1] - (x-t.Q[i-1])/(t.Q[i]-t.Q[i-1])*(t.P[i]-t.P[i-1])
}

// givenInput is a distribution of the output length given the prompt length. Row i holds for prompts with Edges[i]
// ≤ input < Edges[i+1]; the first and the last row also hold beyond the edges. Independent draws of both lengths
// would lose this dependence: in chat the median output may differ fourfold between deciles of the prompt although
// the rank correlation is near 0.
type givenInput struct {
	Edges []int32 // increasing, one more than rows
	Rows  []Lengths
}

// SampleGiven draws the output length for a prompt of input tokens.
func (g givenInput) SampleGiven(input int32, src rand.Source) int32 {
	return g.Rows[g.row(input)].Sample(src)
}

func (g givenInput) row(input int32) int {
	i := 0
	for i < len(g.Rows)-1 && input >= g.Edges[i+1] {
		i++
	}
	return i
}

// Marginal returns the distribution of the output length if prompts follow input.
func (g givenInput) Marginal(input Lengths) mixture {
	var m mixture
	above := 1.0
	for i, row := range g.Rows {
		next := 0.0
		if i < len(g.Rows)-1 {
			next = input.Exceeds(g.Edges[i+1] - 1)
		}
		if above > next {
			m = append(m, mixturePart{Weight: above - next, Law: row})
		}
		above = next
	}
	return m
}

// mixture draws from one of several distributions, chosen with probability proportional to its weight.
type mixture []mixturePart

// mixturePart is one component of a mixture.
type mixturePart struct {
	Weight float64
	Law    Lengths
}

func (m mixture) total() float64 {
	sum := 0.0
	for _, p := range m {
		sum += p.Weight
	}
	return sum
}

// Sample chooses a component and draws from it.
func (m mixture) Sample(src rand.Source) int32 {
	u := uniform(src) * m.total()
	for _, p := range m[:len(m)-1] {
		if u < p.Weight {
			return p.Law.Sample(src)
		}
		u -= p.Weight
	}
	return m[len(m)-1].Law.Sample(src)
}

// Exceeds returns the weighted mean over the components.
func (m mixture) Exceeds(n int32) float64 {
	sum := 0.0
	for _, p := range m {
		sum += p.Weight * p.Law.Exceeds(n)
	}
	return sum / m.total()
}

var (
	_ Lengths = quantiles{}
	_ Lengths = mixture{}
)
