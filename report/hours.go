package report

import (
	"fmt"
	"math"
	"slices"

	"clifftop/report/layout"
	"clifftop/report/stats"
)

// Hours says how much the hours of a run differ, or the runs that were pooled, if each lasts about an hour or longer.
// Near saturation a few bad hours make most of a mean, so that it says little about any hour.
type Hours struct {
	Of      int     `json:"of"`
	LengthS float64 `json:"length_s"` // of each, in seconds
	// The means of the hours, and their percentiles.
	TTFT         HourSpread `json:"ttft_mean_ms"`
	TTFTP50      HourSpread `json:"ttft_p50_ms"`
	TTFTP95      HourSpread `json:"ttft_p95_ms"`
	TTFTP99      HourSpread `json:"ttft_p99_ms"`
	TPOT         HourSpread `json:"tpot_mean_ms"`
	TPOTP50      HourSpread `json:"tpot_p50_ms"`
	TPOTP95      HourSpread `json:"tpot_p95_ms"`
	TPOTP99      HourSpread `json:"tpot_p99_ms"`
	E2E          HourSpread `json:"e2e_mean_ms"`
	OutputTokens HourSpread `json:"output_tokens_per_s"`
}

// hourNumber is a number by which hours are compared: its place in [Hours] and in a summary.
type hourNumber struct {
	path, title, in string
	of              func(*Hours) *HourSpread
}

var hourNumbers = []hourNumber{
	{"ttft_mean_ms", "mean TTFT", "latency_ms.ttft.mean", func(h *Hours) *HourSpread { return &h.TTFT }},
	{"ttft_p50_ms", "TTFT p50", "latency_ms.ttft.p50", func(h *Hours) *HourSpread { return &h.TTFTP50 }},
	{"ttft_p95_ms", "TTFT p95", "latency_ms.ttft.p95", func(h *Hours) *HourSpread { return &h.TTFTP95 }},
	{"ttft_p99_ms", "TTFT p99", "latency_ms.ttft.p99", func(h *Hours) *HourSpread { return &h.TTFTP99 }},
	{"tpot_mean_ms", "mean TPOT", "latency_ms.tpot.mean", func(h *Hours) *HourSpread { return &h.TPOT }},
	{"tpot_p50_ms", "TPOT p50", "latency_ms.tpot.p50", func(h *Hours) *HourSpread { return &h.TPOTP50 }},
	{"tpot_p95_ms", "TPOT p95", "latency_ms.tpot.p95", func(h *Hours) *HourSpread { return &h.TPOTP95 }},
	{"tpot_p99_ms", "TPOT p99", "latency_ms.tpot.p99", func(h *Hours) *HourSpread { return &h.TPOTP99 }},
	{"e2e_mean_ms", "mean E2E", "latency_ms.e2e.mean", func(h *Hours) *HourSpread { return &h.E2E }},
	{"output_tokens_per_s", "output tokens", "throughput.output_tokens_per_s",
		func(h *Hours) *HourSpread { return &h.OutputTokens }},
}

// At is the spread of the number at a path of a summary; nil if hours are not compared by it.
func (h *Hours) At(path string) *HourSpread {
	for _, n := range hourNumbers {
		if h != nil && n.in == path {
			return n.of(h)
		}
	}
	return nil
}

// CompareHours describes hours by the summary of each. They are independent, or parts of one run.
func CompareHours(hours []*Summary, lengthS float64, independent bool) *Hours {
	h := &Hours{Of: len(hours), LengthS: lengthS}
	for _, n := range hourNumbers {
		m := MetricAt(n.in)
		var values []float64
		for _, s := range hours {
			x := math.NaN()
			if v := m.Reliable(s); v != nil {
				x = *v
			}
			values = append(values, x)
		}
		*n.of(h) = spreadOfHours(values, independent)
	}
	return h
}

// HourSpread describes the hours' values of one number.
type HourSpread struct {
	Median *float64 `json:"median"`
	Least  *float64 `json:"least"`
	Most   *float64 `json:"most"`
	// P10 and P90 are nil for less than ten hours.
	P10 *float64 `json:"p10"`
	P90 *float64 `json:"p90"`
	// MedianCI95 is the 95 % confidence interval of the median of all such hours, from order statistics, whatever their
	// distribution; nil for less than six hours, and for the hours of one run, which depend on each other.
	MedianCI95 *[2]float64 `json:"median_ci95"`
}

// LeastHour is the shortest window in seconds that counts as an hour. The warm-up is cut.
const LeastHour = 3000

// leastHours is the smallest number of hours that gives percentiles.
const leastHours = 10

// spreadOfHours describes the values of hours. Independent ones give an interval.
func spreadOfHours(values []float64, independent bool) HourSpread {
	for _, x := range values {
		if math.IsNaN(x) {
			return HourSpread{}
		}
	}
	at := stats.Percentiles(values, len(values), 0, .1, .5, .9, 1)
	h := HourSpread{Least: &at[0], Median: &at[2], Most: &at[4]}
	if len(values) >= leastHours {
		h.P10, h.P90 = &at[1], &at[3]
	}
	if _, low, high := stats.QuantileOrder(slices.Sorted(slices.Values(values)), .5, stats.Confidence); independent &&
		!math.IsInf(low, 0) && !math.IsInf(high, 0) {
		h.MedianCI95 = &[2]float64{low, high}
	}
	return h
}

// poolHours takes each run as an hour; nil where runs are shorter, or differ in length.
func poolHours(runs []*Summary) *Hours {
	length := runs[0].Window.EndS - runs[0].Window.StartS
	for _, r := range runs {
		if own := r.Window.EndS - r.Window.StartS; own < LeastHour || math.Abs(own/length-1) > .02 {
			return nil
		}
	}
	return CompareHours(runs, length, true)
}

// String is the spread of the mean TTFT in words.
func (h *Hours) String() string {
	name := "hours"
	if math.Abs(h.LengthS/3600-1) > .1 {
		name = "parts of " + layout.Seconds(h.LengthS)
	}
	t := &h.TTFT
	if t.Median == nil {
		return fmt.Sprintf("%d %s", h.Of, name)
	}
	text := fmt.Sprintf("%d %s: mean TTFT of the median one %s ms", h.Of, name, layout.Digits(*t.Median))
	if ci := t.MedianCI95; ci != nil {
		text += fmt.Sprintf(" (%s to %s)", layout.Digits(ci[0]), layout.Digits(ci[1]))
	}
	if t.P10 != nil {
		text += fmt.Sprintf(", of 10 to 90 %% of them %s to %s", layout.Digits(*t.P10), layout.Digits(*t.P90))
	}
	return text + fmt.Sprintf(", of all %s to %s", layout.Digits(*t.Least), layout.Digits(*t.Most))
}

// hourMetrics compare the hours of a run.
func hourMetrics() []Metric {
	list := []Metric{
		{Path: "hours.of", Title: "hours of the run, or runs of an hour or longer, that are compared",
			Pool: Recomputed},
		{Path: "hours.length_s", Title: "length of each of the hours that are compared", Unit: "s", Pool: Recomputed},
	}
	for _, n := range hourNumbers {
		better, unit := Lower, "ms"
		if n.in == "throughput.output_tokens_per_s" {
			better, unit = Higher, "tokens/s"
		}
		for _, statistic := range []string{"median", "least", "most", "p10", "p90"} {
			list = append(list, Metric{Path: "hours." + n.path + "." + statistic,
				Title: n.title + " of an hour, " + statistic, Unit: unit, Better: better, Pool: Recomputed})
		}
	}
	return list
}
