package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/report"
	"clifftop/report/stats"
)

// Schema identifies the JSON form of a [Result].
const Schema = "clifftop.verdict/1"

// Result holds variants of a scenario against a baseline. Each was run several times; the k-th runs of all
// share their random numbers, so that the differences within a pair say more than the two means.
type Result struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"` // version of the program
	Baseline string `json:"baseline"` // its name
	// Partial says that fewer runs were made than were asked for; it is set by the caller.
	Partial bool `json:"partial"`
	// Seeds of the replications, in order.
	Seeds []uint64 `json:"seeds"`
	// Margin is the smallest difference that matters, as a fraction of the baseline's value.
	Margin   float64   `json:"margin"`
	Variants []Variant `json:"variants"`
	// Groups are the variants that do not differ significantly, for each metric that has intervals.
	Groups []MetricGroups `json:"groups"`
	// States say whether the runs show a steady state: those of the baseline, and then those of each variant.
	States []State `json:"states"`
	// Pass says that no variant fails.
	Pass bool `json:"pass"`
	// Bootstrap says how the intervals on one recorded trace were made; nil otherwise.
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`
	// Traffic says how much the arrivals of the baseline vary; nil for a closed loop and if it is unknown.
	Traffic  *report.Traffic  `json:"traffic,omitempty"`
	Warnings []report.Warning `json:"warnings"`
	// Effort counts the requests that were simulated; the caller adds the requests of searches.
	Effort report.Effort `json:"effort"`
	// Scenarios are the resolved scenarios of the first runs: the baseline's, then the variants'.
	Scenarios []any `json:"-"`
	// Pooled are the runs of the baseline together, and then those of each variant.
	Pooled []*report.Summary `json:"-"`
	// Typical are the same for pictures of latencies: of runs that do not settle the one with the median TTFT, and nil
	// under overload.
	Typical []*report.Summary `json:"-"`

	baseline    []float64 // means or medians by metric, NaN where unknown
	metrics     []metric
	differences [][]estimate // by variant and metric
}

// Bootstrap describes a moving-block bootstrap over the window of one run of each variant.
type Bootstrap struct {
	Blocks    int     `json:"blocks"`    // that make the window
	BlockS    float64 `json:"block_s"`   // length of each, in seconds
	Resamples int     `json:"resamples"` // 0 if there are too few blocks
	// Runs are the runs of the baseline on the resampled blocks, then the runs of each variant.
	Runs [][]*report.Summary `json:"-"`
}

// Options say by what to compare. The zero value takes the defaults.
type Options struct {
	// Margin is the smallest difference that matters, as a fraction of the baseline's value; 0 is any. A number that
	// users feel may be worse by so much, or by [DefaultTolerance].
	Margin float64 `json:"margin"`
	// Criteria are the conditions for taking a variant; none is for the defaults: SLO attainment, goodput and cost.
	Criteria []Condition `json:"criteria,omitempty"`
	// Metrics are further numbers to compare, as [ParseMetric] reads them.
	Metrics []string `json:"metrics,omitempty"`
	// Bootstrap is of runs on one recorded trace, one of each variant; nil for replications.
	Bootstrap *Bootstrap `json:"-"`
	// Judge says in the pooled runs of a variant, or of the baseline, number 0, whether they show a steady state. Nil
	// judges none.
	Judge func(variant int, pooled *report.Summary) `json:"-"`
}

// Variant is the result of one variant.
type Variant struct {
	Name    string       `json:"name"`
	Metrics []Difference `json:"metrics"`
	// Criteria for replacing the baseline by the variant.
	Criteria []Criterion `json:"criteria"`
	// Harms are the numbers that users feel and that are worse, the worst first.
	Harms []Harm `json:"harms"`
	// Verdict is fail where a criterion fails or users are harmed, pass where all criteria pass, or not
	// distinguishable. Pass says that it is not fail.
	Verdict string `json:"verdict"`
	Pass    bool   `json:"pass"`

	overload string // says that the variant is overloaded, and the baseline is not; empty otherwise
}

// Difference is one number of a variant against the baseline's. Nil says that some run did not give the number.
type Difference struct {
	// Path is the number's place in a [report.Summary].
	Path string `json:"path"`
	// Statistic is mean or median. Baseline and Variant are this statistic over the replications, and Difference is
	// this statistic of Variant minus Baseline over the pairs. Runs that do not settle have medians. Their differences
	// are shares of the baseline of the pair, and Difference is the median share times Baseline.
	Statistic  string   `json:"statistic"`
	Baseline   *float64 `json:"baseline"`
	Variant    *float64 `json:"variant"`
	Difference *float64 `json:"difference"`
	// CI95 holds the ends of the 95 % confidence interval of the difference, by Student's t over the paired
	// replications, by order statistics of a median, or by a bootstrap over one trace; nil from a single one, or where
	// the random numbers change nothing.
	CI95 *[2]float64 `json:"ci95"`
	// P is how likely so great a difference is by chance, were there none beyond the margin.
	P *float64 `json:"p"`
	// VarianceReduction is by how much more the difference would vary if the runs of a pair did not share their random
	// numbers; nil where it does not vary, and where the runs of a pair have different windows.
	VarianceReduction *float64 `json:"variance_reduction"`
	// Verdict says whether the variant is better (pass) or worse (fail) by more than chance, and the margin, explain.
	// Of several variants, the chance of a wrong one among the verdicts on a metric is 5 % (Holm).
	Verdict string `json:"verdict"`
}

// Ratio is the variant's number by the baseline's, or of medians what the median difference makes of the baseline's;
// NaN where it is unknown.
func (d *Difference) Ratio() float64 {
	if d.Baseline == nil || d.Difference == nil || *d.Baseline == 0 {
		return math.NaN()
	}
	return 1 + *d.Difference / *d.Baseline
}

// The verdicts on a difference.
const (
	Pass               = "pass"
	Fail               = "fail"
	NotDistinguishable = "not distinguishable"
	NotRelevant        = "not relevant" // any difference is surely within the margin
	Unknown            = "unknown"      // there are no numbers, or no interval, to tell by
)

// metric is a number by which runs are compared. Users feel those of latencies, goodput and failures. Latencies and
// numbers of requests have no limit under overload.
type metric struct {
	*report.Metric
	felt, endless bool
}

// newMetric is a metric of the requests of a class, or of all if the name is empty.
func newMetric(class string, m *report.Metric) metric {
	x := metric{m, felt(m.Path), m.Unbounded && !strings.HasPrefix(m.Path, "goodput.")}
	if class != "" {
		x.Metric = classed(class, m)
	}
	return x
}

// compared are the metrics, in the order of tables.
func compared() []metric {
	var list []metric
	for _, m := range report.ComparedMetrics() {
		list = append(list, newMetric("", m))
	}
	return list
}

// felt reports whether users feel a number: TTFT, TPOT, E2E, goodput and failures.
func felt(path string) bool {
	for _, part := range [...]string{"latency_ms.ttft.", "latency_ms.tpot.", "latency_ms.e2e.",
		"goodput.requests_per_s",
		"system.error_rate"} {
		if strings.HasPrefix(path, part) {
			return true
		}
	}
	return false
}

// maxClasses is the number of classes up to which each is compared.
const maxClasses = 16

// also are the metrics of the classes and those asked for, which are not in the list.
func (o *Options) also(list []metric, runs [][]*report.Summary) []metric {
	add := func(class string, m *report.Metric) {
		own := newMetric(class, m)
		if !slices.ContainsFunc(list, func(x metric) bool { return x.Path == own.Path }) {
			list = append(list, own)
		}
	}
	if classes := runs[0][0].Classes; len(classes) <= maxClasses {
		for _, k := range classes {
			for _, path := range [...]string{"latency_ms.ttft.p95", "latency_ms.tpot.p95", "latency_ms.e2e.p95",
				"goodput.requests_per_s"} {
				add(k.Name, report.MetricAt(path))
			}
		}
	}
	for _, name := range o.Metrics {
		if class, m, err := ParseMetric(name); err == nil {
			add(class, m)
		}
	}
	return list
}

// pathCost is the path of the cost per output token. If all prices are equal it says the same as throughput.
const pathCost = "cost.usd_per_million_output_tokens_at_load"

func comparedOf(runs [][]*report.Summary) []metric {
	hour := func(s *report.Summary) float64 {
		if s.Cost == nil || s.Cost.USDPerHour == nil {
			return math.NaN()
		}
		return *s.Cost.USDPerHour
	}
	first := hour(runs[0][0])
	for _, list := range runs {
		for _, s := range list {
			if !alike(hour(s), first) {
				return compared()
			}
		}
	}
	return slices.DeleteFunc(compared(), func(m metric) bool { return m.Path == pathCost })
}

// Title names a metric with its unit. It returns the path if the metric is not known.
func (v *Result) Title(path string) string {
	if m := report.FindMetric(path); m != nil {
		return m.Heading()
	}
	for _, m := range v.metrics {
		if m.Path == path {
			return m.Heading()
		}
	}
	return path
}

// Compare is [CompareBy] the defaults.
func Compare(names []string, seeds []uint64, runs [][]*report.Summary) *Result {
	return CompareBy(Options{}, names, seeds, runs)
}

// CompareBy judges variants against a baseline. runs has the summaries of the baseline first, then those of the
// variants in the order of names; each has one for every seed, in the order of the seeds.
func CompareBy(o Options, names []string, seeds []uint64, runs [][]*report.Summary) *Result {
	margin := o.Margin
	v := &Result{
		Schema: Schema, Baseline: names[0], Seeds: seeds, Margin: margin, Variants: []Variant{},
		Groups:   []MetricGroups{},
		Warnings: []report.Warning{}, metrics: o.also(comparedOf(runs), runs), Traffic: runs[0][0].Traffic,
	}
	e := evidence{runs: runs, bootstrap: o.Bootstrap}
	for i, list := range runs {
		v.Scenarios = append(v.Scenarios, list[0].Scenario)
		pooled := *report.Pool(list)
		if o.Judge != nil {
			o.Judge(i, &pooled)
		}
		v.Effort.Add(pooled.Effort)
		v.Pooled, v.States = append(v.Pooled, &pooled), append(v.States, newState(names[i], &pooled))
		v.Typical = append(v.Typical, v.States[i].typical(&pooled, list))
	}
	e.states = v.States
	for _, m := range v.metrics {
		v.baseline = append(v.baseline, e.center(m, 0))
		base := m.values(runs[0])
		for _, x := range base {
			e.random = e.random || !alike(x, base[0])
		}
	}
	for i, name := range names[1:] {
		v.Variants = append(v.Variants, Variant{Name: name, Harms: []Harm{}})
		v.differences = append(v.differences, nil)
		for _, m := range v.metrics {
			x := e.difference(m, i+1, less)
			v.Variants[i].Metrics = append(v.Variants[i].Metrics, e.describe(m, i+1, margin, x))
			v.differences[i] = append(v.differences[i], x)
		}
	}
	v.judge()
	if e.random && len(seeds) > 1 && len(names) > 2 {
		v.group(names, &e)
	}
	v.decide(&o, &e)
	v.warnOfStates()
	if text := v.unsteady(runs); text != "" {
		v.Warnings = append(v.Warnings, report.Warning{Code: "not_stationary", Text: text})
	}
	switch b := o.Bootstrap; {
	case b != nil:
		v.Bootstrap = b
		v.Warnings = append(v.Warnings, report.Warning{Code: "one_trace", Text: b.says()})
	case len(seeds) == 1:
		v.Warnings = append(v.Warnings, report.Warning{Code: "one_replication",
			Text: "one run of each says nothing about chance; there are no intervals"})
	case !e.random:
		v.Warnings = append(v.Warnings, report.Warning{Code: "no_randomness",
			Text: "the seed changes nothing in this traffic: the runs are alike, and there are no intervals"})
	}
	return v
}

// shareWindow reports whether the runs of each pair begin to be measured at the same instant.
func shareWindow(base, variant []*report.Summary) bool {
	for k := range base {
		if base[k].Window.StartS != variant[k].Window.StartS {
			return false
		}
	}
	return true
}

// unsteady names the variants with runs that have no steady state. It is empty if all runs have one, or if the state
// was judged by the saturation of the system.
func (v *Result) unsteady(runs [][]*report.Summary) string {
	var list []string
	for i, s := range v.States {
		n := 0
		for _, r := range runs[i] {
			if r.Window.Unsettled() {
				n++
			}
		}
		if n > 0 && s.Saturation == nil {
			list = append(list, fmt.Sprintf("%s (%d of %d runs)", s.Name, n, len(runs[i])))
		}
	}
	if list == nil {
		return ""
	}
	return "no steady state: " + strings.Join(list,
		", ") + ". Latencies there grow with the length of the run, and so do differences from them"
}

// Precise reports whether the differences of throughput and of mean latencies are known to within a fraction of the
// baseline's value, on each side. What no run knows does not count.
func (v *Result) Precise(fraction float64) bool {
	for _, variant := range v.Variants {
		for _, path := range report.PrecisionPaths() {
			d := variant.metric(path)
			if d.CI95 != nil && (d.CI95[1]-d.CI95[0])/2 > fraction*math.Abs(*d.Baseline) {
				return false
			}
		}
	}
	return true
}

// values are the metric's in each run, NaN where unknown.
func (m metric) values(runs []*report.Summary) []float64 {
	xs := make([]float64, len(runs))
	for i, s := range runs {
		xs[i] = math.NaN()
		if x := m.Reliable(s); x != nil {
			xs[i] = *x
		}
	}
	return xs
}

// alike reports whether two numbers are equal, or both unknown.
func alike(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }

// The statistics by which values are compared.
const (
	Mean   = "mean"
	Median = "median"
)

func (e *evidence) describe(m metric, variant int, margin float64, x estimate) Difference {
	d := Difference{Path: m.Path, Statistic: Mean, Verdict: Unknown,
		Baseline: stats.Finite(e.center(m, 0, variant)), Variant: stats.Finite(e.center(m, variant, 0)),
		Difference: stats.Finite(x.center)}
	if x.sorted != nil {
		d.Statistic = Median
	}
	if d.Difference == nil || !x.known {
		return d
	}
	low, high := x.interval()
	d.CI95 = &[2]float64{low, high}
	d.P = stats.Finite(x.chance(margin * math.Abs(*d.Baseline)))
	base, other := e.values(m, 0), e.values(m, variant)
	if v := stats.Variance(pairs(base, other, less)); v > 0 && shareWindow(e.runs[0], e.runs[variant]) {
		d.VarianceReduction = stats.Finite((stats.Variance(base) + stats.Variance(other)) / v)
	}
	return d
}

// judge draws the verdicts, metric by metric, by Holm's step-down: the likeliest difference has to pass the strictest
// test, as if all variants were looked at for a chance find, the next one that of the variants left, until one does
// not.
func (v *Result) judge() {
	for k, m := range v.metrics {
		var family []*Difference
		var ps []float64
		for i := range v.Variants {
			if d := &v.Variants[i].Metrics[k]; d.P != nil {
				family, ps = append(family, d), append(ps, *d.P)
			}
		}
		for i, real := range holm(ps) {
			d := family[i]
			within := v.Margin * math.Abs(*d.Baseline)
			switch {
			case real && (*d.Difference < 0) == (m.Better == report.Lower):
				d.Verdict = Pass
			case real:
				d.Verdict = Fail
			case v.Margin > 0 && d.CI95[0] >= -within && d.CI95[1] <= within:
				d.Verdict = NotRelevant
			default:
				d.Verdict = NotDistinguishable
			}
		}
	}
}

func (v *Variant) metric(path string) *Difference {
	for i := range v.Metrics {
		if v.Metrics[i].Path == path {
			return &v.Metrics[i]
		}
	}
	return &Difference{Path: path, Verdict: Unknown}
}
