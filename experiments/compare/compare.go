package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/experiments/sweep"
	"clifftop/report"
	"clifftop/report/verdict"
)

// Variant is a scenario under a name.
type Variant struct {
	Name     string
	Scenario *scenario.Scenario
}

// Options says how to compare. The zero value takes the defaults.
type Options struct {
	// Replications is the number of runs of each variant, or the greatest number beside a precision; 0 is the first
	// variant's run.replications, or 5.
	Replications int
	// Precision is the half width of the differences' intervals wanted, as a fraction of the baseline's value; 0 is the
	// first variant's run.precision.
	Precision float64
	// Margin is the smallest difference that matters, as a fraction of the baseline's value; 0 is any.
	Margin float64
	// Criteria are the conditions for taking a variant; none is for SLO attainment, goodput and cost.
	Criteria []verdict.Condition
	// Metrics are further numbers to compare, as [verdict.ParseMetric] reads them.
	Metrics []string
	// Jobs is the number of runs at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Progress is told, from one goroutine at a time, how many of the runs are done.
	Progress func(done, total int)
}

// The number of runs of each variant if nothing says it. Hours are more, because the median of five has no interval.
const (
	defaultReplications = 5
	defaultHours        = 10
)

// by is what the variants are compared by.
func (o *Options) by() verdict.Options {
	return verdict.Options{Margin: o.Margin, Criteria: o.Criteria, Metrics: o.Metrics}
}

// mostVariants is the number of variants that several keys may make together.
const mostVariants = 1000

// Vary makes a variant for each value of a key, the first being the baseline. Each spec is KEY=V1,V2,… Several specs
// make a variant for each combination of their values, the last key varying fastest.
func Vary(s *scenario.Scenario, specs ...string) ([]Variant, error) {
	variants := []Variant{{Scenario: s}}
	seen := map[string]bool{}
	for _, spec := range specs {
		key, values, err := parseVary(spec)
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, yamldoc.Faults{{Where: "--vary", Key: key, Problem: "it is given twice (want all values in " +
				"one list)"}}
		}
		seen[key] = true
		if n := len(variants) * len(values); n > mostVariants {
			return nil, yamldoc.Faults{{Where: "--vary",
				Problem: fmt.Sprintf("%d combinations are too many (want at most %d)", n, mostVariants)}}
		}
		var more []Variant
		for _, v := range variants {
			for _, value := range values {
				at, err := v.Scenario.With(scenario.Setting{Key: key, Value: value, Flag: "--vary " + key})
				if err != nil {
					return nil, err
				}
				name := key[strings.LastIndexByte(key, '.')+1:] + "=" + value
				if v.Name != "" {
					name = v.Name + " " + name
				}
				more = append(more, Variant{Name: name, Scenario: at})
			}
		}
		variants = more
	}
	return variants, nil
}

// parseVary reads KEY=V1,V2,…
func parseVary(spec string) (key string, values []string, err error) {
	key, values, err = sweep.ParseOver(spec)
	var fs yamldoc.Faults
	if errors.As(err, &fs) {
		fs[0].Where = "--vary"
		return "", nil, fs
	}
	if len(values) < 2 {
		return "", nil, yamldoc.Faults{{Where: "--vary",
			Problem: fmt.Sprintf("%q has no values to compare (want KEY=V1,V2 or more)", yamldoc.Short(spec))}}
	}
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return "", nil, yamldoc.Faults{{Where: "--vary", Key: key,
				Problem: fmt.Sprintf("%s is given twice (want each value once)", yamldoc.Short(v))}}
		}
	}
	return key, values, nil
}

// Run runs every variant with the same seeds, the scenario's of the first and those after it, and holds the others
// against the first. With a precision it adds runs, five of each variant at a time, until the differences of throughput
// and of the means of TTFT, TPOT and E2E are known so well. When ctx is done before the end, the verdict is of the
// seeds that all variants were run with, is marked partial, and comes together with the context's error; there is none
// without such a seed.
func Run(ctx context.Context, variants []Variant, o Options) (*verdict.Result, error) {
	c, r, err := newComparison(ctx, variants, o)
	if err != nil {
		return nil, err
	}
	var result *verdict.Result
	var runErr error
	for runErr == nil {
		more := r.More(len(c.seeds))
		if more <= 0 {
			break
		}
		if runErr = c.add(more); runErr != nil && ctx.Err() == nil || len(c.seeds) == 0 {
			return nil, runErr
		}
		by := o.by()
		by.Bootstrap, by.Judge = c.bootstrap, c.judge
		result = verdict.CompareBy(by, c.names, c.seeds, c.runs)
		if text := result.Missing(o.by()); text != "" {
			return nil, yamldoc.Faults{{Where: "--criterion", Problem: text}}
		}
		if runErr != nil {
			MarkPartial(result, r.Runs)
			break
		}
		if r.Precision > 0 && result.Precise(r.Precision/(1+r.Precision)) {
			break
		}
	}
	result.Clifftop = experiments.Version
	result.Effort.SearchRequests += c.searched
	if t, _ := steady.Traffic(c.setups[0]); t != nil {
		result.Traffic = t
	}
	if runErr == nil && r.Precision > 0 && !result.Precise(r.Precision/(1+r.Precision)) {
		result.Warnings = append(result.Warnings, report.Warning{Code: "imprecise", Text: fmt.Sprintf(
			"%d runs of each were not enough for a precision of %.3g %%", len(c.seeds), 100*r.Precision)})
	}
	result.Warnings = append(result.Warnings, c.warnings()...)
	return result, runErr
}

// MarkPartial says that a verdict rests on fewer runs than were asked for.
func MarkPartial(v *verdict.Result, runs int) {
	v.Partial = true
	v.Warnings = append(v.Warnings, report.Warning{Code: "partial",
		Text: fmt.Sprintf("partial: only %d of %d runs of each are there", len(v.Seeds), runs)})
}

// newComparison checks what is asked for, and resolves it.
func newComparison(ctx context.Context, variants []Variant, o Options) (*comparison, experiments.Replication, error) {
	fail := func(err error) (*comparison, experiments.Replication, error) {
		return nil, experiments.Replication{}, err
	}
	if len(variants) < 2 {
		return fail(yamldoc.Faults{{Problem: fmt.Sprintf("found %d scenarios to compare (want two or more, or one and "+
			"--vary KEY=V1,V2)", len(variants))}})
	}
	if !(o.Margin >= 0 && o.Margin < 1) {
		return fail(yamldoc.Faults{{Where: "--margin",
			Problem: fmt.Sprintf("%v is not allowed (want 0 or more and less than 1, or such as 2%%)", o.Margin)}})
	}
	first := variants[0].Scenario
	open := o.Replications == 0 && !first.Replicated() && !first.Given("run.replications")
	if open {
		o.Replications = defaultReplications
	}
	r, err := experiments.ReplicateOptions{Replications: o.Replications, Precision: o.Precision}.Plan(first)
	if err != nil {
		return fail(err)
	}
	c := &comparison{ctx: ctx, variants: variants, o: o, runs: make([][]*report.Summary, len(variants))}
	for _, v := range variants {
		u, err := v.Scenario.Resolve()
		if err != nil {
			return fail(err)
		}
		c.names, c.setups = append(c.names, v.Name), append(c.setups, u)
	}
	if c.oneTrace() {
		r = experiments.Replication{Runs: 1}
	}
	hourly, err := c.prepare(r)
	if err != nil {
		return fail(err)
	}
	if hourly && open {
		r.Runs = defaultHours
	}
	return c, r, nil
}

// comparison is one in the making.
type comparison struct {
	ctx      context.Context
	variants []Variant
	o        Options
	names    []string
	setups   []*scenario.Setup
	cases    []steady.Case
	requests int   // of each run, if all scenarios leave it open; otherwise 0
	searched int64 // requests simulated to find saturation rates and lengths
	seeds    []uint64
	runs     [][]*report.Summary // by variant

	bootstrap *verdict.Bootstrap // on one recorded trace
}

// oneTrace reports whether all variants are asked for the same recorded traffic. Other seeds would not be other
// traffic.
func (c *comparison) oneTrace() bool {
	for _, u := range c.setups {
		if u.Traffic.Recording == nil || unlikeTraffic(c.setups[0].Scenario, u.Scenario) != "" {
			return false
		}
	}
	return true
}

// addResampled makes one run of each variant on the trace, and resamples its blocks.
func (c *comparison) addResampled() error {
	results, by, again, err := experiments.RunResampled(c.ctx, c.setups,
		experiments.BatchOptions{Jobs: c.o.Jobs, Check: c.o.Check, Progress: c.o.Progress})
	if err != nil {
		return err
	}
	c.addSeeds(1)
	for i, s := range results {
		c.runs[i] = append(c.runs[i], s)
	}
	c.bootstrap = &verdict.Bootstrap{Blocks: by.Blocks, BlockS: by.Length.Seconds(), Runs: again}
	if again != nil {
		c.bootstrap.Resamples = experiments.Resamples
	}
	return nil
}

// addSeeds takes so many further seeds.
func (c *comparison) addSeeds(n int) {
	first, done := c.variants[0].Scenario.Run.Seed, len(c.seeds)
	for k := range n {
		c.seeds = append(c.seeds, first+uint64(done+k))
	}
}

func (c *comparison) setup(variant int, seed uint64) (*scenario.Setup, error) {
	s := c.variants[variant].Scenario
	if seed == s.Run.Seed {
		return c.setups[variant], nil
	}
	other := *s
	other.Run.Seed = seed
	if c.requests > 0 {
		other.Run.Requests = &c.requests
	}
	return other.Resolve()
}

// add runs every variant so many times more, with the next seeds, one seed after the other: when it is interrupted,
// those that all variants were run with stay.
func (c *comparison) add(n int) error {
	if c.oneTrace() {
		return c.addResampled()
	}
	done := len(c.seeds)
	c.addSeeds(n)
	var setups []*scenario.Setup
	for _, seed := range c.seeds[done:] {
		for i := range c.variants {
			u, err := c.setup(i, seed)
			if err != nil {
				return err
			}
			setups = append(setups, u)
		}
	}
	progress := c.o.Progress
	if progress != nil {
		before := (1 + done) * len(c.variants) // the systems come first
		progress = func(n, total int) { c.o.Progress(before+n, before+total) }
	}
	members := len(c.variants)
	group := func(i int) int { return c.group(i%members, i/members, n) }
	results, err := experiments.RunShared(c.ctx, setups, group,
		experiments.BatchOptions{Jobs: c.o.Jobs, Check: c.o.Check, Progress: progress})
	there := c.seeds[:done:done]
	for k, seed := range c.seeds[done:] {
		runs := results[k*len(c.variants) : (k+1)*len(c.variants)]
		if slices.Contains(runs, nil) {
			continue
		}
		there = append(there, seed)
		for i, s := range runs {
			c.runs[i] = append(c.runs[i], s)
		}
	}
	c.seeds = there
	return err
}

// group is the number of the group of runs that share their window, of a variant with one of n seeds: the variants with
// the traffic of the baseline, for each seed. A variant with other traffic has a window of its own.
func (c *comparison) group(variant, seed, n int) int {
	if variant > 0 && unlikeTraffic(c.setups[0].Scenario, c.setups[variant].Scenario) != "" {
		return variant*n + seed
	}
	return seed
}

// warnings are of the scenarios, whatever their runs say.
func (c *comparison) warnings() []report.Warning { return append(c.unlike(), c.setups[0].Warnings...) }

// unlike warns of variants that differ from the baseline in what they are asked for, or in what a token is.
func (c *comparison) unlike() []report.Warning {
	var warnings []report.Warning
	base := c.setups[0].Scenario
	for i, u := range c.setups[1:] {
		s := u.Scenario
		if key := unlikeTraffic(base, s); key != "" {
			warnings = append(warnings, report.Warning{Code: "traffic_differs", Text: fmt.Sprintf(
				"the traffic of %s is not that of %s (%s): differences may be the traffic's", c.names[i+1], c.names[0],
				key)})
		}
		if s.Model != base.Model {
			warnings = append(warnings, report.Warning{Code: "models_differ", Text: fmt.Sprintf(
				"%s and %s are models with tokens of their own: tokens per second of one are not those of the other",
				s.Model, base.Model)})
		}
	}
	return warnings
}

// unlikeTraffic is the first key in which the traffic of two resolved scenarios differs; empty if it does not.
func unlikeTraffic(s *scenario.Scenario, t *scenario.Scenario) string {
	type part struct {
		key  string
		a, b any
	}
	for _, p := range []part{
		{"workload", s.Workload, t.Workload}, {"clients", s.Clients, t.Clients},
		{"run.requests", s.Run.Requests, t.Run.Requests}, {"run.duration", s.Run.Duration, t.Run.Duration},
	} {
		a, errA := json.Marshal(p.a)
		b, errB := json.Marshal(p.b)
		if errA == nil && errB == nil && !bytes.Equal(a, b) {
			return p.key
		}
	}
	return ""
}
