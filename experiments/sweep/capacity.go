package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report"
	"clifftop/report/curve"
)

// CapacityOptions says where to look for a capacity. The zero value looks for the highest rate, or number of users of a
// closed loop, that meets the scenario's SLO.
type CapacityOptions struct {
	// Over is what varies: "rate", "users", or a dotted key of the scenario with a number or a duration, then in
	// seconds. Empty is users for a closed loop and else rate.
	Over string
	// Low and High bound the search; both 0 leave that to the search, which looks around the scenario's own value.
	Low, High float64
	// Precision is how near the ends of the result should come, as a fraction of the value; 0 is 0.05. Values that are
	// whole need not come nearer than neighbours.
	Precision float64
	// Replications is the greatest number of runs at one value; 0 is 16.
	Replications int
	// Requests is how many a run has where nothing in the scenario says so; 0 leaves that to the search, which takes
	// 2,000, more for percentiles far out, and more again where that is too short for the system to fill.
	Requests int
	// Runs ends the search after so many runs in all, short of the precision; 0 is 600.
	Runs int
	// Jobs is the number of runs at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Cache keeps the results of the runs, and gives those that it has; nil keeps none.
	Cache *experiments.ResultCache
	// Progress is told, from one goroutine at a time, how many runs are done of how many are expected.
	Progress func(done, expected int)
}

const (
	capacityPrecision    = .05
	capacityReplications = 16
	capacityRequests     = 2_000
	capacityRuns         = 600
	// firstLook is the number of runs after which intervals are looked at; each later look is after twice as many.
	firstLook = 4
	// tailSamples is the number of requests that a run should have beyond the percentile that is limited.
	tailSamples = 20
	// capacityLengths is how many times longer than a request takes a run is, at least.
	capacityLengths = 40
	// expectedRuns is a forecast of a search's length, for progress.
	expectedRuns = 80
)

// Capacity finds how much of something the scenario's SLO allows: the highest rate, the most users, the longest
// prompts, or the fewest seats or replicas. The result is an interval: at its one end the objective was shown to be
// met, at the other to be missed.
//
// The search brackets the result by doubling and halving, with a short run at each value, and then bisects. At each
// value runs are added, from 4 up to 16, until the confidence intervals of the limited statistics, or of the share of
// requests within the limit, lie on one side of their targets; the looks share an error of 5 %. Values that stay
// undecided are left between the ends. The k-th runs of all values share their random numbers. A load without a steady
// state misses every objective. Three values beyond the failing end tell whether it is met again there.
//
// The result does not depend on the number of jobs.
func Capacity(ctx context.Context, s *scenario.Scenario, o CapacityOptions) (*curve.Capacity, error) {
	q, err := newSearch(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if err := q.run(); err != nil {
		return nil, err
	}
	return q.result(), nil
}

// newSearch checks what is asked for.
func newSearch(ctx context.Context, s *scenario.Scenario, o CapacityOptions) (*search, error) {
	o.Over = Options{Over: o.Over}.over(s)
	if err := o.fill(); err != nil {
		return nil, err
	}
	if err := s.Lasting("a search"); err != nil {
		return nil, err
	}
	a, base, err := newAxis(s, o)
	if err != nil {
		return nil, err
	}
	slo := base.Report.SLO
	if slo == nil || len(slo.Objectives) == 0 && slo.Attainment == 0 && slo.WaitProbability == nil {
		return nil, yamldoc.Faults{s.Fault("slo",
			"the search needs an SLO (set a limit such as ttft_p95: 800ms, or attainment: 0.95)")}
	}
	q := &search{
		ctx: ctx, s: s, o: o, axis: a, base: base, states: map[float64]*state{},
		found: &curve.Capacity{Over: o.Over, SLO: slo, Precision: o.Precision, Probes: []curve.Probe{},
			Warnings: []report.Warning{}},
	}
	q.requests = o.Requests
	if q.requests == 0 {
		q.requests = requestsOfSLO(slo)
	}
	for n := firstLook; n < o.Replications; n *= 2 {
		q.looks = append(q.looks, n)
	}
	q.looks = append(q.looks, o.Replications)
	if n := base.Traffic.Requests; !s.Endless() && n > 0 && n < int64(requestsOfSLO(slo)) {
		q.found.Warnings = append(q.found.Warnings, report.Warning{Code: "short_runs", Text: fmt.Sprintf(
			"runs have %d requests, as the scenario says; for these limits %d or more would be better", n,
			requestsOfSLO(slo))})
	}
	return q, nil
}

// fill fills in the defaults, and checks the rest.
func (o *CapacityOptions) fill() error {
	if o.Replications == 0 {
		o.Replications = capacityReplications
	}
	if o.Runs == 0 {
		o.Runs = capacityRuns
	}
	if o.Precision == 0 {
		o.Precision = capacityPrecision
	}
	refuse := func(where, format string, args ...any) error {
		return yamldoc.Faults{{Where: where, Problem: fmt.Sprintf(format, args...)}}
	}
	switch {
	case !(o.Precision > 0 && o.Precision < 1):
		return refuse("--precision", "%v is not allowed (want %s)", o.Precision, unit.WantShare)
	case o.Replications < firstLook || o.Replications > experiments.MaxReplications:
		return refuse("--replications", "%d is not allowed in a search (want %d to %d)", o.Replications, firstLook,
			experiments.MaxReplications)
	case o.Low != 0 || o.High != 0:
		if !(o.Low < o.High) || !finite(o.Low) || !finite(o.High) {
			return refuse("--over", "%v..%v is not a range (want rising numbers)", o.Low, o.High)
		}
	}
	return nil
}

// requestsOfSLO is how many requests a run should have so that the shares that are limited can be told.
func requestsOfSLO(slo *report.SLO) int {
	rarest := .05
	consider := func(share float64) {
		if share > 0 {
			rarest = min(rarest, share)
		}
	}
	for _, o := range slo.Objectives {
		if o.Percentile > 0 {
			consider(1 - o.Percentile/100)
		}
	}
	consider(1 - slo.Attainment)
	return min(max(capacityRequests, int(math.Ceil(tailSamples/rarest))), mostRequests)
}

// Capacity looks for the capacity under the scenario's SLO over what the sweep varies, between its values where they
// were given. It is nil without an SLO.
func (o Options) Capacity(ctx context.Context, s *scenario.Scenario,
	progress func(done, expected int)) (*curve.Capacity, error) {
	if slo, err := objectiveOfRuns(s); err != nil || slo == nil {
		return nil, err
	}
	search := CapacityOptions{Over: o.over(s), Jobs: o.Jobs, Check: o.Check, Progress: progress, Cache: o.cache}
	if s.Run.Precision != nil {
		search.Precision = float64(*s.Run.Precision)
	}
	if s.Run.Replications >= firstLook {
		search.Replications = s.Run.Replications
	}
	if len(o.Values) > 1 {
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range o.Values {
			if x, ok := pointValue(v); ok {
				low, high = min(low, x), max(high, x)
			}
		}
		search.Low, search.High = low, high
	}
	return Capacity(ctx, s, search)
}

// objectiveOfRuns is the scenario's SLO, nil where it limits nothing.
func objectiveOfRuns(s *scenario.Scenario) (*report.SLO, error) {
	slo, err := s.SLO.Objective()
	if err != nil || slo == nil || len(slo.Objectives) == 0 && slo.Attainment == 0 && slo.WaitProbability == nil {
		return nil, err
	}
	return slo, nil
}

// ParseSLO reads limits as they are given on a command line, such as ttft_p95<800ms,attainment>=0.9, and gives them as
// YAML.
func ParseSLO(text string) (string, error) {
	var limits []string
	for _, part := range strings.Split(text, ",") {
		key, limit, ok := "", "", false
		for _, sign := range []string{"<=", ">=", "<", ">", "="} {
			if key, limit, ok = strings.Cut(part, sign); ok {
				break
			}
		}
		key, limit = strings.TrimSpace(key), strings.TrimSpace(limit)
		if !ok || key == "" || limit == "" {
			return "", errors.New("want limits such as ttft_p95<800ms or attainment>=0.95, with commas between")
		}
		switch least := key == "attainment"; {
		case least && strings.Contains(part, "<"):
			return "", fmt.Errorf("want %s>=%s: it is a minimum", key, limit)
		case !least && strings.Contains(part, ">"):
			return "", fmt.Errorf("want %s<%s: it is a maximum", key, limit)
		}
		limits = append(limits, key+": "+limit)
	}
	return "{" + strings.Join(limits, ", ") + "}", nil
}
