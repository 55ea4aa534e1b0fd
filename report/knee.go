package report

import (
	"fmt"
	"math"
)

// top is the index of the highest throughput, -1 without points.
func (a analysis) top() int {
	best := -1
	for i := range a {
		if best < 0 || a[i].throughput > a[best].throughput {
			best = i
		}
	}
	return best
}

// summit is the index of the lowest load at which throughput is not clearly below the highest, -1 without
// points. On a plateau the highest itself is a matter of chance.
func (a analysis) summit() int {
	top := a.top()
	for i := range a {
		margin := plateau * a[top].throughput
		if both := intervals(a[i], a[top]); !math.IsNaN(both) {
			margin = both
		}
		if i == top || a[i].throughput >= a[top].throughput-margin {
			return i
		}
	}
	return -1
}

func (a analysis) peak() *Peak {
	i := a.summit()
	if i < 0 {
		return nil
	}
	w := &a[i].s.Window
	overloaded := w.GrowthRequestsPerS != nil // there is no more to be had
	return &Peak{Value: a[i].value, OutputTokensPerS: a[i].throughput, AtEdge: i == len(a)-1 && !overloaded}
}

// stride is the factor between two loads from which on a gain can be told: chance has its part in every
// throughput, and the smaller the step the larger the part.
const stride = 1.15

// next is the index of the load to measure the gain at load i against, or of the last.
func (a analysis) next(i int) int {
	j := min(i+1, len(a)-1)
	for j < len(a)-1 && a[j].offered < stride*a[i].offered {
		j++
	}
	return j
}

// gain is the throughput that each further unit of load brings after load i, as a fraction of what a unit
// brings at the lowest load, and its standard deviation. They are NaN if that cannot be said.
func (a analysis) gain(i int) (gain, deviates float64) {
	j := a.next(i)
	if j == i || !(a[0].offered > 0) || !a[0].isLoad || !(a[j].offered > a[i].offered) {
		return math.NaN(), math.NaN()
	}
	unit := a[0].throughput / a[0].offered * (a[j].offered - a[i].offered)
	return (a[j].throughput - a[i].throughput) / unit, deviation(a[i], a[j]) / unit
}

// flat reports whether more load than load i brings less than a quarter of what it brings at the lowest.
func (a analysis) flat(i int) bool {
	g, _ := a.gain(i)
	return g < quarter
}

// knee needs the maximum of power to lie between other points: at an end of the sweep it might be beyond.
func (a analysis) knee() *Knee {
	best, most := -1, 0.0
	for i, l := range a {
		if l.e2e == nil || *l.e2e <= 0 || !l.isLoad {
			continue
		}
		if power := l.throughput / *l.e2e; power > most {
			best, most = i, power
		}
	}
	if best <= 0 || best == len(a)-1 {
		return nil
	}
	k := &Knee{
		Value: a[best].value, OutputTokensPerS: a[best].throughput, E2EMeanMs: *a[best].e2e,
		Evidence: fmt.Sprintf("throughput divided by mean E2E latency is greatest at %.4g: %s tokens/s in %s ms",
			a[best].value, digits(a[best].throughput), digits(*a[best].e2e)),
	}
	for i := range a {
		if a.flat(i) {
			k.MarginalValue = &a[i].value
			break
		}
	}
	return k
}
