package report

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// VerdictSchema identifies the JSON form of a [Verdict].
const VerdictSchema = "clifftop.verdict/1"

// Verdict holds variants of a scenario against a baseline. Each was run several times; the k-th runs of all
// share their random numbers, so that the differences within a pair say more than the two means.
type Verdict struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"` // version of the program
	Baseline string `json:"baseline"` // its name
	// Seeds are those of the replications, in order.
	Seeds    []uint64  `json:"seeds"`
	Variants []Variant `json:"variants"`
	Warnings []Warning `json:"warnings"`

	baseline []float64 // means by metric, NaN where unknown
	metrics  []metric
}

// Variant is what came of one variant.
type Variant struct {
	Name    string       `json:"name"`
	Metrics []MetricDiff `json:"metrics"`
}

// MetricDiff is one number of a variant against the baseline's. Nil says that some run did not give the number.
type MetricDiff struct {
	// Path is the number's place in a [Summary].
	Path string `json:"path"`
	// Baseline and Variant are means over the replications, and Difference is Variant less Baseline.
	Baseline   *float64 `json:"baseline"`
	Variant    *float64 `json:"variant"`
	Difference *float64 `json:"difference"`
	// CI95 holds the ends of the 95 % confidence interval of the difference, by Student's t over the paired
	// replications; nil from a single one, or where the random numbers change nothing.
	CI95 *[2]float64 `json:"ci95"`
	// Verdict says whether the variant is better (pass) or worse (fail) by more than chance explains.
	Verdict string `json:"verdict"`
}

// The verdicts on a difference.
const (
	Pass               = "pass"
	Fail               = "fail"
	NotDistinguishable = "not distinguishable"
	Unknown            = "unknown" // there are no numbers, or no interval, to tell by
)

// metric is a number by which runs are compared.
type metric struct {
	path, title string
	lower       bool // less is better
	of          func(*Summary) *float64
}

// compared are the metrics, in the order of tables.
func compared() []metric {
	return []metric{
		{"throughput.requests_per_s", "requests/s", false, func(s *Summary) *float64 { return s.Throughput.RequestsPerS }},
		{"throughput.output_tokens_per_s", "output tokens/s", false, func(s *Summary) *float64 { return s.Throughput.OutputTokensPerS }},
		{"latency_ms.ttft.mean", "TTFT mean, ms", true, func(s *Summary) *float64 { return s.Latency.TTFT.Mean }},
		{"latency_ms.ttft.p50", "TTFT p50, ms", true, func(s *Summary) *float64 { return s.Latency.TTFT.P50 }},
		{"latency_ms.ttft.p99", "TTFT p99, ms", true, func(s *Summary) *float64 { return s.Latency.TTFT.tail(s.Latency.TTFT.P99, minP99) }},
		{"latency_ms.tpot.p50", "TPOT p50, ms", true, func(s *Summary) *float64 { return s.Latency.TPOT.P50 }},
		{"latency_ms.tpot.p99", "TPOT p99, ms", true, func(s *Summary) *float64 { return s.Latency.TPOT.tail(s.Latency.TPOT.P99, minP99) }},
		{"latency_ms.itl.p99", "ITL p99, ms", true, func(s *Summary) *float64 { return s.Latency.ITL.tail(s.Latency.ITL.P99, minP99) }},
		{"latency_ms.e2e.mean", "E2E mean, ms", true, func(s *Summary) *float64 { return s.Latency.E2E.Mean }},
		{"latency_ms.e2e.p99", "E2E p99, ms", true, func(s *Summary) *float64 { return s.Latency.E2E.tail(s.Latency.E2E.P99, minP99) }},
		{"goodput.requests_per_s", "good requests/s", false, func(s *Summary) *float64 { return s.Goodput.RequestsPerS }},
		{"system.error_rate", "error rate", true, func(s *Summary) *float64 { return s.System.ErrorRate }},
		{"system.gap_fraction", "gap fraction", true, func(s *Summary) *float64 { return s.System.GapFraction }},
		{"system.preemptions", "preemptions", true, func(s *Summary) *float64 { v := float64(s.System.Preemptions); return &v }},
		{"tokens.recomputed", "recomputed tokens", true, func(s *Summary) *float64 { v := float64(s.Tokens.Recomputed); return &v }},
		{"fairness", "fairness (Jain)", false, (*Summary).Fairness},
	}
}

// Fairness is Jain's index over the speeds at which requests were served, output tokens over the time from
// sending to the last token: 1 when all are alike, 1/n when one of n has everything. It is nil without requests.
//
//	(Σ x)² / (n Σ x²) = 1 / (1 + (sd/mean)²)        R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984
func (s *Summary) Fairness() *float64 {
	d := &s.E2ETPSUser
	if d.Mean == nil || d.SD == nil || *d.Mean == 0 {
		return nil
	}
	cv := *d.SD / *d.Mean
	index := 1 / (1 + float64(cv*cv))
	return &index
}

// Compare judges variants against a baseline. runs has the summaries of the baseline first, then those of the
// variants in the order of names; each has one for every seed, in the order of the seeds.
func Compare(names []string, seeds []uint64, runs [][]*Summary) *Verdict {
	v := &Verdict{Schema: VerdictSchema, Baseline: names[0], Seeds: seeds, Variants: []Variant{}, Warnings: []Warning{}, metrics: compared()}
	values := func(runs []*Summary, m metric) []float64 {
		xs := make([]float64, len(runs))
		for i, s := range runs {
			xs[i] = math.NaN()
			if x := m.of(s); x != nil {
				xs[i] = *x
			}
		}
		return xs
	}
	base := make([][]float64, len(v.metrics))
	random := false
	for k, m := range v.metrics {
		base[k] = values(runs[0], m)
		v.baseline = append(v.baseline, stat.Mean(base[k], nil))
		for _, x := range base[k] {
			random = random || !alike(x, base[k][0])
		}
	}
	for i, name := range names[1:] {
		variant := Variant{Name: name}
		for k, m := range v.metrics {
			variant.Metrics = append(variant.Metrics, m.difference(base[k], values(runs[i+1], m), random))
		}
		v.Variants = append(v.Variants, variant)
	}
	switch {
	case len(seeds) == 1:
		v.Warnings = append(v.Warnings, Warning{"one_replication", "one run of each says nothing about chance; there are no intervals"})
	case !random:
		v.Warnings = append(v.Warnings, Warning{"no_randomness", "the seed changes nothing in this traffic: the runs are alike, and there are no intervals"})
	}
	return v
}

// alike reports whether two numbers are equal, or both unknown.
func alike(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }

// difference judges paired values.
func (m metric) difference(base, variant []float64, random bool) MetricDiff {
	d := MetricDiff{Path: m.path, Verdict: Unknown}
	differences := make([]float64, len(base))
	for i := range base {
		differences[i] = variant[i] - base[i]
	}
	d.Baseline, d.Variant, d.Difference = number(stat.Mean(base, nil)), number(stat.Mean(variant, nil)), number(stat.Mean(differences, nil))
	n := float64(len(base))
	if d.Difference == nil || n < 2 || !random {
		return d
	}
	mean, sd := stat.MeanStdDev(differences, nil)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(.975) * sd / math.Sqrt(n)
	d.CI95 = &[2]float64{mean - half, mean + half}
	switch {
	case d.CI95[0] <= 0 && d.CI95[1] >= 0:
		d.Verdict = NotDistinguishable
	case (mean < 0) == m.lower:
		d.Verdict = Pass
	default:
		d.Verdict = Fail
	}
	return d
}
