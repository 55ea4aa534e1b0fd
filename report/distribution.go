package report

import (
	"math"

	"clifftop/report/stats"
)

// DistributionOfValues describes values, which are not negative, multiplied by scale. It overwrites
// them. failures count as infinite: percentiles that fall among them are nil, and so are mean, sd and max if there
// are any.
func DistributionOfValues(values []float64, scale float64, failures int64) Distribution {
	d := Distribution{N: int64(len(values)) + failures}
	if len(values) == 0 {
		return d
	}
	mean, sd, q := stats.Describe(values, int(d.N), .5, .9, .95, .99, .999, 1)
	if failures == 0 {
		d.Mean, d.SD = stats.Finite(mean*scale), stats.Finite(sd*scale)
	}
	for i, to := range []**float64{&d.P50, &d.P90, &d.P95, &d.P99, &d.P999, &d.Max} {
		if v := q[i]; !math.IsInf(v, 0) {
			*to = stats.Finite(v * scale)
		}
	}
	return d
}

// DistributionOfHistogram describes what the histogram recorded, multiplied by scale.
func DistributionOfHistogram(h *stats.Histogram, scale float64) Distribution {
	d := Distribution{N: int64(h.Count())}
	if h.Count() == 0 {
		return d
	}
	quantile := func(q float64) *float64 { return stats.Finite(h.Quantile(q) * scale) }
	d.Mean, d.SD = stats.Finite(h.Mean()*scale), stats.Finite(h.SD()*scale)
	d.P50, d.P90, d.P95, d.P99, d.P999 = quantile(.5), quantile(.9), quantile(.95), quantile(.99), quantile(.999)
	d.Max = stats.Finite(float64(h.Max()) * scale)
	return d
}

// MinSamplesP99 is the number of samples below which tables refuse a p99.
const MinSamplesP99 = 1000

// MinSamplesP999 is the number of samples below which tables refuse a p99.9.
const MinSamplesP999 = 10_000
