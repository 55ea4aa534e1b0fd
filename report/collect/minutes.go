package collect

import (
	"slices"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// minutes are the numbers of arrivals by minute.
type minutes []int32

// leastMinutes is the number of minutes from which their spread is told.
const leastMinutes = 10

func (m *minutes) arrived(at clock.Time) {
	i := int(at / clock.Time(clock.Minute))
	for len(*m) <= i {
		*m = append(*m, 0)
	}
	(*m)[i]++
}

// traffic is the spread of the whole minutes up to the last arrival; nil if they are few.
func (m minutes) traffic() *report.Traffic {
	n := len(m) - 1 // the last one is not whole
	if n < leastMinutes {
		return nil
	}
	counts, rates := make([]float64, n), make([]float64, n)
	for i, k := range m[:n] {
		counts[i], rates[i] = float64(k), float64(k)/60
	}
	mean := stats.Mean(counts)
	squares := 0.0
	for _, k := range counts {
		squares += (k - mean) * (k - mean)
	}
	slices.Sort(rates)
	p := stats.Percentiles(rates, n, .05, .5, .95)
	return &report.Traffic{Dispersion60S: stats.Ratio(squares/float64(n-1), mean), MinuteRate: report.MinuteRate{
		P05: stats.Finite(p[0]), P50: stats.Finite(p[1]), P95: stats.Finite(p[2])}}
}
