// Package verify compares a simulation with a measured run of the same deployment, metric by metric, within the error
// bars of the model, and gives a verdict. If the measured run is outside the bars, it searches for changes that would
// explain the difference.
package verify

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/experiments/validation"
	"clifftop/model/catalog"
	"clifftop/report"
)

// Schema identifies the JSON form of a [Result].
const Schema = "clifftop.verify/1"

// Verdict says how a measured value stands to the simulated one.
type Verdict string

// The verdicts.
const (
	Within        Verdict = "within"         // inside the bar that holds 90 % of measured runs
	Outside       Verdict = "outside"        // outside of it
	NotComparable Verdict = "not comparable" // it cannot be judged
)

// Result is a verification.
type Result struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"`
	Runs     []Run  `json:"runs"`
	// Verdict is outside if one run is, and not comparable if none could be judged.
	Verdict Verdict `json:"verdict"`

	reports []*validation.Report
}

// Run is one measured run.
type Run struct {
	Name   string `json:"name"`
	Tool   string `json:"tool"` // that recorded it
	Model  string `json:"model"`
	GPU    string `json:"gpu"`
	Engine string `json:"engine"`
	Load   string `json:"load"`
	// Requests is the number of measured requests; nil if it is not known.
	Requests *int     `json:"requests"`
	Metrics  []Metric `json:"metrics"`
	// OverTime is the state of the engine over time; nil without samples of a log or of Prometheus.
	OverTime *OverTime `json:"over_time,omitempty"`
	Verdict  Verdict   `json:"verdict"`
	// Bars names the measured runs behind the error bars.
	Bars string `json:"bars,omitempty"`
	// Causes are changes that would explain what is outside, the most likely one first. Searched says that they were
	// looked for.
	Causes   []Cause  `json:"causes"`
	Searched bool     `json:"searched"`
	Notes    []string `json:"notes"`
}

// Metric is one number of a run, measured and simulated.
type Metric struct {
	Name      string   `json:"metric"` // such as ttft_mean_ms
	Measured  *float64 `json:"measured"`
	Simulated *float64 `json:"simulated"`
	// Difference is measured over simulated, less 1; of shares it is the difference.
	Difference *float64 `json:"difference"`
	// Half and P90 are the bars that hold half and 90 % of measured runs of this kind; nil if there are none.
	Half *[2]float64 `json:"half"`
	P90  *[2]float64 `json:"p90"`
	// Chance are the least and the largest of simulations with other seeds, over the simulated value less 1. P90
	// includes it. It is nil if it was not needed, because the metric is within the bars of the model, or the traffic
	// is replayed.
	Chance  *[2]float64 `json:"chance,omitempty"`
	Verdict Verdict     `json:"verdict"`
	// Why says why the metric is not comparable.
	Why string `json:"why,omitempty"`
}

// Options control a verification.
type Options struct {
	// Jobs is the number of simulations at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants.
	Check bool
	// NoCauses leaves out the search for causes.
	NoCauses bool
	// Progress is called with the number of finished simulations; it may be nil.
	Progress func(done, total int)

	states bool // the state over time is wanted
}

// New verifies a scenario by measured results. The scenario describes the deployment. Without traffic of its own it
// gets the traffic of each run. A log has no traffic; it gets that of the only run that has one.
func New(ctx context.Context, s *scenario.Scenario, results []*measured.Result, o Options) (*Result, error) {
	out := &Result{Schema: Schema, Clifftop: experiments.Version, Runs: []Run{}}
	for _, result := range withTraffic(s, results) {
		for i := range result.Runs {
			run := &result.Runs[i]
			if err := sameModel(s, run, result.File); err != nil {
				return nil, err
			}
			if err := sameTraffic(s, run, result.File); err != nil {
				return nil, err
			}
			if err := sameEngine(s, run, result.File); err != nil {
				return nil, err
			}
			c, err := validation.FromRun(result, run, s)
			if err != nil {
				return nil, err
			}
			if err := sameLaws(s, c, run, result.File); err != nil {
				return nil, err
			}
			one, err := out.verify(ctx, c, run, result, o)
			if err != nil {
				return nil, err
			}
			out.Runs = append(out.Runs, *one)
		}
	}
	out.Verdict = sum(out.Runs)
	return out, nil
}

func sum(runs []Run) Verdict {
	verdict := NotComparable
	for i := range runs {
		switch runs[i].Verdict {
		case Outside:
			return Outside
		case Within:
			verdict = Within
		}
	}
	return verdict
}

// sameModel refuses a run of another model than the scenario names.
func sameModel(s *scenario.Scenario, run *measured.Run, file string) error {
	if run.Model == "" || !s.Given("model") {
		return nil
	}
	was, err := catalog.LLM(run.Model)
	if err != nil {
		return nil // a name that the catalog does not know proves nothing
	}
	is, err := catalog.LLM(s.Model)
	if err != nil || is.Name == was.Name {
		return nil
	}
	return s.Fault("model", "%s, but %s was measured in %s (want the same model)", is.Name, was.Name, file)
}

// sameEngine refuses a run of another engine than the scenario has.
func sameEngine(s *scenario.Scenario, run *measured.Run, file string) error {
	if run.Engine == "" || strings.HasPrefix(s.Engine.Policy, run.Engine) || s.Engine.Policy == "preemptive" ||
		!slices.Contains([]string{"vllm", "sglang", "trtllm"}, run.Engine) {
		return nil
	}
	f := s.Fault("engine.policy", "%s, but %s was measured in %s (want the same engine)", s.Engine.Policy,
		run.Engine, file)
	f.Hint = "--set engine.policy=" + map[string]string{"trtllm": "trtllm-guaranteed-no-evict"}[run.Engine]
	if run.Engine != "trtllm" {
		f.Hint += run.Engine
	}
	return f
}

func (r *Result) verify(ctx context.Context, c *validation.Case, run *measured.Run, result *measured.Result,
	o Options) (*Run, error) {
	row := c.Rows[0]
	o.states = len(run.Series) > 0
	report, err := simulated(ctx, c, o)
	if err != nil {
		return nil, err
	}
	scored := &report.Rows[0]
	out := &Run{Name: row.ID, Tool: result.Tool, Model: scored.Model, GPU: scored.GPU, Engine: scored.Engine,
		Load: run.Name, Requests: run.Completed, Metrics: []Metric{}, Causes: []Cause{},
		Notes: append(append([]string{}, result.Notes...), scored.Notes...)}
	if scored.Status != validation.Scored {
		return nil, fmt.Errorf("%s: %s", result.File, scored.Reason)
	}
	r.reports = append(r.reports, report)
	bars := c.Setup().Predictive()
	if bars != nil {
		out.Bars = bars.Kind
	}
	for _, m := range scored.Metrics {
		if m.Measured != nil {
			out.Metrics = append(out.Metrics, judge(m, bars, row, run))
		}
	}
	outside := func(m Metric) bool { return m.Verdict == Outside }
	if c.Drawn() && slices.ContainsFunc(out.Metrics, outside) {
		if err := byChance(ctx, c, out, o); err != nil {
			return nil, err
		}
	}
	if out.OverTime, err = overTime(ctx, c, run, result.Tool, scored.States, o); err != nil {
		return nil, err
	}
	if out.OverTime != nil && out.OverTime.begun {
		out.Notes = append(out.Notes, "the first sample has requests already: the simulated traffic starts at most a "+
			"period before it")
	}
	out.Verdict = NotComparable
	for _, m := range out.Metrics {
		if m.Verdict == Outside || m.Verdict == Within && out.Verdict == NotComparable {
			out.Verdict = m.Verdict
		}
	}
	if out.Verdict == Outside && !o.NoCauses {
		out.Searched = true
		if out.Causes, err = causes(ctx, c, out, o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func simulated(ctx context.Context, c *validation.Case, o Options) (*validation.Report, error) {
	ref := &validation.Reference{Name: c.Rows[0].ID, Rows: c.Rows}
	return validation.Run(ctx, ref, []*validation.Case{c}, nil, validation.Options{Jobs: o.Jobs, Check: o.Check,
		Progress: o.Progress, States: o.states})
}

// Samples that a mean and a 99th percentile need.
const (
	fewForMean = 10
	fewForP99  = 100
)

// widest is the upper end of a bar, measured over simulated less 1, above which it judges nothing.
const widest = 4

func judge(x validation.Comparison, bars *report.Predictive, row *validation.Row, run *measured.Run) Metric {
	m := Metric{Name: x.Metric, Measured: x.Measured, Simulated: x.Simulated, Verdict: NotComparable}
	if x.Simulated == nil {
		m.Why = "the simulation has no such number"
		return m
	}
	d := *x.Measured / *x.Simulated - 1
	if isShare(x.Metric) {
		d = *x.Measured - *x.Simulated
	}
	if !math.IsNaN(d) && !math.IsInf(d, 0) {
		m.Difference = &d
	}
	b, closed := barOf(x.Metric, bars), row.Closed()
	n := run.Completed
	switch {
	case m.Difference == nil:
		m.Why = "the simulated value is 0"
	case row.Overloaded() && (isLatency(x.Metric, "ttft") || isLatency(x.Metric, "e2e")):
		m.Why = "the system is overloaded: the time in the queue grows for as long as the run lasts"
	case x.Metric == "output_tokens_per_s" && !closed:
		m.Why = "the throughput of an open loop is that of its arrivals"
	case b == nil:
		m.Why = "no measured runs give error bars of it"
	case n != nil && *n < fewForMean:
		m.Why = fmt.Sprintf("%d requests are too few (want %d)", *n, fewForMean)
	case n != nil && *n < fewForP99 && isP99(x.Metric):
		m.Why = fmt.Sprintf("%d requests are too few for a 99th percentile (want %d)", *n, fewForP99)
	case b.P90[1] > widest:
		m.Why = "the bar of measured runs is too wide to judge by"
	default:
		half, p90 := b.Half, b.P90
		m.Half, m.P90, m.Verdict = &half, &p90, Within
		if d < p90[0] || d > p90[1] {
			m.Verdict = Outside
		}
	}
	return m
}

func isShare(metric string) bool {
	return slices.Contains([]string{"gpu_hit_rate", "host_hit_rate", "kv_usage"}, metric)
}

func isLatency(metric, kind string) bool {
	return len(metric) > len(kind) && metric[:len(kind)+1] == kind+"_"
}

func isP99(metric string) bool { return len(metric) > 7 && metric[len(metric)-7:] == "_p99_ms" }

// barOf are the error bars of a metric; nil where there are none.
func barOf(metric string, p *report.Predictive) *report.ErrorBars {
	if p == nil {
		return nil
	}
	return map[string]*report.ErrorBars{"ttft_mean_ms": p.TTFTMean, "ttft_p99_ms": p.TTFTP99,
		"tpot_mean_ms": p.TPOTMean, "tpot_p99_ms": p.TPOTP99, "e2e_mean_ms": p.E2EMean, "e2e_p99_ms": p.E2EP99,
		"output_tokens_per_s": p.Throughput}[metric]
}

// Own are the errors of the runs, for the scenario key accuracy. before holds those of earlier runs; it may be nil.
func (r *Result) Own(before *catalog.OwnAccuracy) (*catalog.OwnAccuracy, error) {
	out := &catalog.OwnAccuracy{Clifftop: experiments.Version, Source: "own runs"}
	if before != nil {
		out = before
	}
	for i, report := range r.reports {
		id := r.Runs[i].identity()
		if slices.ContainsFunc(out.Kinds, func(k catalog.OwnErrors) bool { return slices.Contains(k.Names, id) }) {
			continue // it was verified before
		}
		more, err := report.Own()
		if err != nil {
			return nil, err
		}
		for _, k := range more.Kinds {
			k.Names = []string{id}
			out.Kinds = joined(out.Kinds, k)
		}
	}
	return out, nil
}

// identity returns a text that identifies the run: its name, and a hash of its measurements.
func (r *Run) identity() string {
	h := fnv.New64a()
	for _, m := range r.Metrics {
		fmt.Fprintf(h, "%s %v\n", m.Name, *m.Measured)
	}
	return fmt.Sprintf("%s %016x", r.Name, h.Sum64())
}

func joined(kinds []catalog.OwnErrors, k catalog.OwnErrors) []catalog.OwnErrors {
	for i := range kinds {
		own := &kinds[i]
		if own.Engine != k.Engine || own.Load != k.Load || own.MoE != k.MoE {
			continue
		}
		own.Runs += k.Runs
		own.Names = append(own.Names, k.Names...)
		for _, g := range k.GPUs {
			if !slices.Contains(own.GPUs, g) {
				own.GPUs = append(own.GPUs, g)
			}
		}
		if own.Errors == nil {
			own.Errors = map[string][]float64{}
		}
		for metric, list := range k.Errors {
			own.Errors[metric] = append(own.Errors[metric], list...)
		}
		return kinds
	}
	return append(kinds, k)
}
