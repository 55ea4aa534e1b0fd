package curve

import (
	"fmt"
	"math"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// top is the index of the highest throughput, -1 without points.
func (a *analysis) top() int {
	best := -1
	for i := range a.at {
		if best < 0 || a.at[i].throughput > a.at[best].throughput {
			best = i
		}
	}
	return best
}

// summit is the index of the lowest load at which throughput is not clearly below the highest, -1 without
// points. On a plateau the highest itself is a matter of chance.
func (a *analysis) summit() int {
	if a.summitIs == nil {
		i := a.findSummit()
		a.summitIs = &i
	}
	return *a.summitIs
}

func (a *analysis) findSummit() int {
	top := a.top()
	for i := range a.at {
		margin := a.Plateau * a.at[top].throughput
		if both := a.intervals(&a.at[i], &a.at[top]); !unknown(both) {
			margin = both
		}
		if i == top || a.at[i].throughput >= a.at[top].throughput-margin {
			return i
		}
	}
	return -1
}

func (a *analysis) peak() *Peak {
	i := a.summit()
	if i < 0 {
		return nil
	}
	l := &a.at[i]
	overloaded := !unknown(l.growth) // there is no more to be had
	p := &Peak{Value: l.value, OutputTokensPerS: l.throughput, AtEdge: i == len(a.at)-1 && !overloaded}
	if !unknown(l.usdPerHour) {
		p.USDPerMillionOutput = report.CostPerMillion(l.usdPerHour, &p.OutputTokensPerS)
	}
	return p
}

// plateau is how much more throughput there is beyond the summit at most, as a fraction; 0 where it does not show.
func (a *analysis) plateau() float64 {
	const shows = .001
	i, top := a.summit(), a.top()
	if i < 0 || !(a.at[i].throughput > 0) {
		return 0
	}
	if more := a.at[top].throughput/a.at[i].throughput - 1; more >= shows {
		return more
	}
	return 0
}

// next is the index of the load to measure the gain at load i against, or of the last.
func (a *analysis) next(i int) int {
	j := min(i+1, len(a.at)-1)
	for j < len(a.at)-1 && a.at[j].offered < a.Stride*a.at[i].offered {
		j++
	}
	return j
}

// gain is the throughput that each further unit of load brings after load i, as a fraction of what a unit brings at the
// lowest load, and its standard deviation. They are NaN if the points do not determine them.
func (a *analysis) gain(i int) (gain, deviates float64) {
	j := a.next(i)
	if j == i || !(a.at[0].offered > 0) || !a.isLoad || !(a.at[j].offered > a.at[i].offered) {
		return math.NaN(), math.NaN()
	}
	unit := a.at[0].throughput / a.at[0].offered * (a.at[j].offered - a.at[i].offered)
	return (a.at[j].throughput - a.at[i].throughput) / unit, deviation(&a.at[i], &a.at[j]) / unit
}

// flat reports whether the gain after load i is less than a quarter of the gain at the lowest load.
func (a *analysis) flat(i int) bool {
	g, _ := a.gain(i)
	return g < a.KneeGain
}

// knee needs the maximum of power to lie between other points: at an end of the sweep it might be beyond.
func (a *analysis) knee() *Knee {
	best, most := -1, 0.0
	for i := range a.at {
		l := &a.at[i]
		if !(l.e2e > 0) || !a.isLoad {
			continue
		}
		if power := l.throughput / l.e2e; power > most {
			best, most = i, power
		}
	}
	if best <= 0 || best == len(a.at)-1 {
		return nil
	}
	k := &Knee{
		Value: a.at[best].value, OutputTokensPerS: a.at[best].throughput, E2EMeanMs: a.at[best].e2e,
		Evidence: fmt.Sprintf("throughput divided by mean E2E latency is greatest at %s: %s tokens/s in %s ms",
			axisValue(a.at[best].value), layout.Digits(a.at[best].throughput), layout.Digits(a.at[best].e2e)),
	}
	for i := range a.at {
		if a.flat(i) {
			k.MarginalValue = stats.Finite(a.at[i].value)
			break
		}
	}
	return k
}
