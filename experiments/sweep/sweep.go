package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/curve"
)

// Options says what to vary. The zero value varies the load from near idle to beyond saturation.
type Options struct {
	// Over is what varies: "rate", "users", or a dotted key of the scenario with a number or a
	// duration. Empty is users for a closed loop and else rate.
	Over string
	// Values are the values to take, as YAML. Empty lets the sweep choose, which it can for rate and users: it
	// finds out where the system saturates and takes loads around that.
	Values []string
	// Points is the number of loads to choose; 0 is 14.
	Points int
	// Jobs is the number of runs at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Progress is called, from one goroutine at a time, with the number of finished runs.
	Progress func(done, total int)
	// Detail gives the summaries their details, for pictures, unless there are more than a few hundred loads.
	Detail bool

	cache *experiments.ResultCache // of the runs; nil keeps none
}

// mostDetailed is the number of loads up to which details are kept: each takes about 100 kB.
const mostDetailed = 300

const (
	defaultPoints = 14
	maxPoints     = 10_000

	// maxSuperposed is how many times its own load a sweep lets a trace carry, which is as much as a replay
	// allows, and highestShare the highest of the loads as a multiple of saturation.
	maxSuperposed = 99
	highestShare  = 1.5
)

// ParseOver reads KEY, KEY=V1,V2,… or KEY=LO..HI[:N], the latter being N evenly spaced values.
func ParseOver(s string) (over string, values []string, err error) {
	key, list, given := strings.Cut(s, "=")
	fault := func(format string, args ...any) (string, []string, error) {
		return "", nil, yamldoc.Faults{{Where: "--over", Problem: fmt.Sprintf(format, args...)}}
	}
	if key == "" {
		return fault("%q names no key (want KEY, KEY=V1,V2 or KEY=LO..HI:N)", yamldoc.Short(s))
	}
	if !given {
		return key, nil, nil
	}
	low, rest, isRange := strings.Cut(list, "..")
	if !isRange {
		for _, v := range splitValues(list) {
			if v = strings.TrimSpace(v); v == "" {
				return fault("%q has an empty value", yamldoc.Short(s))
			}
			values = append(values, v)
		}
		return key, values, nil
	}
	high, count, counted := strings.Cut(rest, ":")
	lo, err1 := strconv.ParseFloat(low, 64)
	hi, err2 := strconv.ParseFloat(high, 64)
	if err1 != nil || err2 != nil || !finite(lo) || !finite(hi) || lo >= hi {
		return fault("%q is not a range (want LO..HI or LO..HI:N, rising numbers)", yamldoc.Short(list))
	}
	n := defaultPoints
	if counted {
		if n, err = strconv.Atoi(count); err != nil || n < 2 || n > maxPoints {
			return fault("%q points are not allowed (want 2 to %d)", yamldoc.Short(count), maxPoints)
		}
	}
	whole := !strings.ContainsAny(low+high, ".eE") || key == scenario.UsersKey
	for i := range n {
		x := lo + (hi-lo)*float64(i)/float64(n-1)
		text := strconv.FormatFloat(significant(x, 9), 'f', -1, 64)
		if whole && (key != scenario.RateKey || hi-lo >= float64(n-1)) {
			text = strconv.FormatFloat(math.Round(x), 'f', -1, 64)
		}
		if len(values) == 0 || values[len(values)-1] != text {
			values = append(values, text)
		}
	}
	return key, values, nil
}

// splitValues divides a list at its commas, but for those within the brackets or quotes of a value.
func splitValues(list string) []string {
	var values []string
	start, depth, quote := 0, 0, rune(0)
	for i, r := range list {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		case r == ',' && depth <= 0:
			values = append(values, list[start:i])
			start = i + 1
		}
	}
	return append(values, list[start:])
}

// Run runs a scenario once for each value and puts the results together in the order of the
// values. When ctx is done before the end, the curve holds the runs that were complete, is marked partial, and
// comes together with the context's error.
func Run(ctx context.Context, s *scenario.Scenario, o Options) (*curve.Curve, error) {
	o.Over = o.over(s)
	if err := s.Lasting("a sweep"); err != nil {
		return nil, err
	}
	p, err := o.plan(ctx, s)
	if err != nil {
		return nil, err
	}
	more := 0
	if p.refine {
		more = refinements
	}
	done, runErr, err := p.round(ctx, s, o, 0, more)
	if err != nil || len(done) == 0 {
		return nil, errors.Join(err, runErr)
	}
	partial := len(done) < len(p.values)
	swept := newCurve(o.Over, done, partial)
	if p.refine && !partial && swept.Peak != nil {
		first := len(p.values)
		p.refineAround(swept.Peak, o.Over == scenario.UsersKey)
		var around []curve.Point
		around, runErr, err = p.round(ctx, s, o, first, 0)
		if err != nil {
			return nil, err
		}
		partial = len(around) < len(p.values)-first
		swept = newCurve(o.Over, append(done, around...), partial)
	}
	swept.Effort.SearchRequests += p.searched
	return swept, runErr
}

func newCurve(over string, points []curve.Point, partial bool) *curve.Curve {
	curve := curve.New(over, points)
	_ = Describe(curve, partial) // the points are there already, so that reading cannot fail
	return curve
}

// Describe says of a curve what it does not know itself.
func Describe(curve *curve.Curve, partial bool) error {
	curve.Clifftop, curve.Partial = experiments.Version, partial
	s, err := curve.Summary(0)
	if s != nil {
		curve.Accuracy, curve.Predictive = s.Accuracy, s.Predictive
	}
	return err
}

// round runs the plan's values from the given one on, when more are to come. What was not run to its end is
// left out, and runErr says why.
func (p *plan) round(ctx context.Context, s *scenario.Scenario, o Options, from, more int) (done []curve.Point, runErr,
	err error) {
	points, runs, err := p.prepare(ctx, s, o, p.values[from:])
	if err != nil {
		return nil, nil, err
	}
	if progress := o.Progress; progress != nil {
		o.Progress = func(done, total int) { progress(from+done, from+total+more) }
	}
	o.Detail = o.Detail && len(p.values) <= mostDetailed
	var results []*report.Summary
	if s.Replicated() {
		results, runErr, err = p.replicate(ctx, s, o, runs)
	} else {
		results, runErr, err = p.single(ctx, o, runs)
	}
	if err != nil {
		return nil, nil, err
	}
	for i, r := range results {
		if r != nil {
			done = append(done, curve.Point{Value: points[i], Summary: r})
		}
	}
	return done, runErr, nil
}

// single makes one run of each value, the longest first, so that no processor is idle at the end.
func (p *plan) single(ctx context.Context, o Options, runs []*experiments.SettledRun) (results []*report.Summary,
	runErr,
	err error) {
	order := make([]int, len(runs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(runs[b].Work(), runs[a].Work()) })
	results = make([]*report.Summary, len(runs))
	runErr = experiments.Parallel(ctx, len(runs), o.Jobs, o.Progress, func(ctx context.Context, k int) error {
		i := order[k]
		r, err := runs[i].Run(ctx, experiments.RunOptions{Check: o.Check, Detail: o.Detail})
		if err == nil {
			results[i] = r.Summary
		}
		runs[i] = nil // its memory is no longer needed
		return err
	})
	if runErr != nil && ctx.Err() == nil {
		return nil, nil, runErr
	}
	return results, runErr, nil
}

// replicate makes several runs of each value.
func (p *plan) replicate(ctx context.Context, s *scenario.Scenario, o Options, runs []*experiments.SettledRun) (
	results []*report.Summary, runErr, err error) {
	replications, err := experiments.ReplicateOptions{}.Plan(s)
	if err != nil {
		return nil, nil, err
	}
	setups := make([]*scenario.Setup, len(runs))
	for i, r := range runs {
		setups[i] = r.Setup
	}
	results, runErr = experiments.ReplicateAll(ctx, setups, replications,
		experiments.ReplicateOptions{Jobs: o.Jobs, Check: o.Check, Progress: o.Progress, Detail: o.Detail})
	err = experiments.Parallel(ctx, len(results), o.Jobs, nil, func(ctx context.Context, i int) error {
		if results[i] == nil {
			return nil
		}
		return runs[i].Judge(ctx, results[i])
	})
	if ctx.Err() != nil { // an interrupt leaves some results without a verdict
		return results, cmp.Or(runErr, err), nil
	}
	return results, runErr, err
}

// plan is what a sweep runs.
type plan struct {
	values   []string
	system   *steady.Saturation // of all values; nil if they change the system
	searched int64              // requests simulated to find it
	refine   bool               // look again around the peak
	highest  float64            // load that can be had; 0 for no limit
}

func (p *plan) refineAround(peak *curve.Peak, users bool) {
	var loads []float64
	for _, v := range p.values {
		x, _ := pointValue(v)
		loads = append(loads, x)
	}
	for _, v := range refine(loads, peak.Value, peak.AtEdge, users) {
		if p.highest == 0 || v <= p.highest {
			p.values = append(p.values, loadText(v))
		}
	}
}

func loadText(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (o Options) over(s *scenario.Scenario) string {
	if a := s.Workload.Arrivals; o.Over == "" && a != nil && !a.Listed && a.Stages[0].Process == "closed" {
		return scenario.UsersKey
	}
	if o.Over == "" {
		return scenario.RateKey
	}
	return o.Over
}

// Trial resolves the scenario at one of the sweep's loads, or at a load of 1 where the sweep chooses them. Its
// faults are those of the sweep.
func (o Options) Trial(s *scenario.Scenario) (*scenario.Setup, error) {
	at := scenario.Setting{Key: o.over(s), Value: "1", Flag: "--over " + o.over(s)}
	if len(o.Values) > 0 {
		at.Value = o.Values[0]
	} else if at.Key != scenario.RateKey && at.Key != scenario.UsersKey {
		return nil, yamldoc.Faults{{Where: "--over", Key: at.Key,
			Problem: "values are missing (want KEY=V1,V2,… or KEY=LO..HI:N)"}}
	}
	trial, err := s.With(at)
	if err != nil {
		return nil, err
	}
	return trial.Resolve()
}

// plan takes the values given, or loads around saturation.
func (o Options) plan(ctx context.Context, s *scenario.Scenario) (*plan, error) {
	p := &plan{values: o.Values}
	if o.Over != scenario.RateKey && len(o.Values) > 0 {
		return p, nil
	}
	base, err := o.Trial(s)
	if err != nil {
		return nil, err
	}
	if o.Over == scenario.RateKey {
		if p.system, err = steady.Find(ctx, base); err != nil {
			return nil, fmt.Errorf("looking for saturation: %w", err)
		}
		p.searched = p.system.Simulated
	}
	if len(o.Values) > 0 {
		return p, nil
	}
	return p, o.choose(ctx, base, p)
}

// choose plans loads around saturation.
func (o Options) choose(ctx context.Context, base *scenario.Setup, p *plan) error {
	users := o.Over == scenario.UsersKey
	load := 0.0
	if users {
		var err error
		if load, p.searched, err = steady.Users(ctx, base); err != nil {
			return fmt.Errorf("looking for saturation: %w", err)
		}
	} else if p.system.Rates != nil {
		load = p.system.Rates.HighRequestsPerS
	}
	if load == 0 {
		return yamldoc.Faults{{Where: "sweep", Problem: fmt.Sprintf(
			"no request completes, however small the load (want requests that fit max_model_len, %d tokens, and a "+
				"clients.timeout to suit)", optional.Value(base.Scenario.Engine.MaxModelLen))}}
	}
	if t := base.Scenario.Workload.Trace; t != nil && t.Statistics != nil && t.Statistics.RequestsPerS > 0 {
		p.highest = maxSuperposed * t.Statistics.RequestsPerS
		load = min(load, p.highest/highestShare)
	}
	n := o.Points
	if n == 0 {
		n = defaultPoints
	}
	// The peak of an open loop is at its saturation rate, unless throughput falls beyond it.
	falls := users || p.system.Rates.Metastable
	if p.refine = falls && n >= minRefined; p.refine {
		n -= refinements
	}
	for _, v := range loadGrid(load, users, n) {
		p.values = append(p.values, loadText(v))
	}
	return nil
}

// prepare resolves the scenario for values, so that faults show before anything runs.
func (p *plan) prepare(ctx context.Context, s *scenario.Scenario, o Options, values []string) ([]float64,
	[]*experiments.SettledRun, error) {
	var points []float64
	var runs []*experiments.SettledRun
	var faults yamldoc.Faults
	for _, v := range values {
		x, fault := o.point(v)
		if fault != nil {
			faults = append(faults, fault)
			continue
		}
		r, err := p.settled(ctx, s, o, v, x)
		var fs yamldoc.Faults
		switch {
		case errors.As(err, &fs):
			faults = append(faults, fs...)
		case err != nil:
			return nil, nil, err
		}
		points, runs = append(points, x), append(runs, r)
	}
	if faults != nil {
		return nil, nil, faults
	}
	return points, runs, nil
}

// point is the place of a value on the axis.
func (o Options) point(v string) (float64, *yamldoc.Fault) {
	x, ok := pointValue(v)
	if !ok {
		return 0, &yamldoc.Fault{Where: "--over", Key: o.Over,
			Problem: fmt.Sprintf("%q is not a number or a duration (the axis of a sweep needs numbers or durations)",
				yamldoc.Short(v)), Hint: "use clifftop compare --vary to compare names"}
	}
	return x, nil
}

// settled makes the scenario ready at a value, whose place on the axis is x. A run that the scenario leaves open is as
// long as it needs to settle, within a budget, if the saturation of the system is known. Where values change the
// system, each has saturation rates of its own, which are looked for if a run depends on them.
func (p *plan) settled(ctx context.Context, s *scenario.Scenario, o Options, v string, x float64) (
	*experiments.SettledRun, error) {
	settings := []scenario.Setting{{Key: o.Over, Value: v, Flag: "--over " + o.Over}}
	if n := scenario.DefaultRequests; s.Endless() && p.system == nil {
		if o.Over == scenario.UsersKey {
			n = requestsOfUsers(x)
		}
		settings = append(settings, scenario.Setting{Key: "run.requests", Value: strconv.Itoa(n), Flag: "sweep"})
	}
	at, err := s.With(settings...)
	if err != nil {
		return nil, err
	}
	replications, err := experiments.ReplicateOptions{}.Plan(s)
	if err != nil {
		return nil, err
	}
	return experiments.NewSettled(ctx, at,
		steady.Options{System: p.system, Search: steady.IfOpen, Runs: replications.Runs})
}

// A run of a closed loop has this many requests at most, and so many of each user at least, if nothing says how many.
const (
	mostRequests = 250_000
	runLengths   = 25
)

// requestsOfUsers is the number of requests of a run of a closed loop that leaves it open.
func requestsOfUsers(users float64) int {
	return int(min(max(scenario.DefaultRequests, runLengths*users), mostRequests))
}

// pointValue is the place of a value on the axis: a number, or the seconds of a duration.
func pointValue(v string) (float64, bool) {
	if x, err := strconv.ParseFloat(v, 64); err == nil && finite(x) {
		return x, true
	}
	d, ok := yamldoc.ParseDuration(v)
	return d.Seconds(), ok
}
