package workload

import (
	"math/rand/v2"
	"sort"
)

// Quantiles is a law given by points of its quantile function: a length is at most Q[i] with
// probability P[i], and linear between. P rises strictly from 0 to 1, Q does not fall; equal
// neighbours in Q are an atom. A table of real lengths keeps the caps and modes that no smooth law
// has.
type Quantiles struct{ P, Q []float64 }

// Sample draws a length: u uniform, x interpolated, max(1, floor(x + ½)).
func (t Quantiles) Sample(src rand.Source) int32 {
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
	return tokens(t.Q[lo] + float64(f*(t.Q[hi]-t.Q[lo]))) // no fused multiply-add: same on every platform
}

// Exceeds is the tail of the rounded law.
func (t Quantiles) Exceeds(n int32) float64 { return exceeds(n, t.reaches) }

// reaches is the probability that the law before rounding gives x or more.
func (t Quantiles) reaches(x float64) float64 {
	i := sort.SearchFloat64s(t.Q, x) // the first with Q[i] ≥ x
	switch i {
	case 0:
		return 1
	case len(t.Q):
		return 0
	}
	return 1 - t.P[i-1] - (x-t.Q[i-1])/(t.Q[i]-t.Q[i-1])*(t.P[i]-t.P[i-1])
}

// GivenInput is a law of the answer's length given the prompt's: row i holds for prompts with
// Edges[i] ≤ input < Edges[i+1], the first and the last also for those beyond the edges. Drawing
// both lengths independently would lose what the table keeps: in chat the medians of the answer may
// differ fourfold between the deciles of the prompt although the rank correlation is near 0.
type GivenInput struct {
	Edges []int32 // rises, one more than there are rows
	Rows  []Lengths
}

// SampleGiven draws the length of the answer to a prompt of input tokens.
func (g GivenInput) SampleGiven(input int32, src rand.Source) int32 {
	return g.Rows[g.row(input)].Sample(src)
}

func (g GivenInput) row(input int32) int {
	i := 0
	for i < len(g.Rows)-1 && input >= g.Edges[i+1] {
		i++
	}
	return i
}

// Marginal is the law of the answer's length when prompts follow the law input.
func (g GivenInput) Marginal(input Lengths) Mixture {
	var m Mixture
	above := 1.0
	for i, row := range g.Rows {
		next := 0.0
		if i < len(g.Rows)-1 {
			next = input.Exceeds(g.Edges[i+1] - 1)
		}
		if above > next {
			m = append(m, Part{Weight: above - next, Law: row})
		}
		above = next
	}
	return m
}

// Mixture draws from one of several laws, chosen with probability proportional to its weight.
type Mixture []Part

// Part is one law of a [Mixture].
type Part struct {
	Weight float64
	Law    Lengths
}

func (m Mixture) total() float64 {
	sum := 0.0
	for _, p := range m {
		sum += p.Weight
	}
	return sum
}

// Sample chooses a part and draws from it.
func (m Mixture) Sample(src rand.Source) int32 {
	u := uniform(src) * m.total()
	for _, p := range m[:len(m)-1] {
		if u < p.Weight {
			return p.Law.Sample(src)
		}
		u -= p.Weight
	}
	return m[len(m)-1].Law.Sample(src)
}

// Exceeds is the weighted mean over the parts.
func (m Mixture) Exceeds(n int32) float64 {
	sum := 0.0
	for _, p := range m {
		sum += p.Weight * p.Law.Exceeds(n)
	}
	return sum / m.total()
}

var (
	_ Lengths = Quantiles{}
	_ Lengths = Mixture{}
)
