package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/hours"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/layout"
)

// CapacityOptions says where to look for a capacity. The zero value looks for the highest rate, or number of users of a
// closed loop, at which 90 % of hours meet the scenario's SLO.
type CapacityOptions struct {
	// Over is what varies: "rate", "users", or a dotted key of the scenario with a number or a duration, then in
	// seconds. Empty is users for a closed loop and else rate.
	Over string
	// Low and High bound the search; both 0 leave that to the search, which looks around the scenario's own value.
	Low, High float64
	// Precision is the half width of the interval that is wanted, as a fraction of the value: hours are added until
	// it is reached, up to 209. 0 adds none.
	Precision float64
	// Hours is the number of hours; 0 is 29.
	Hours int
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
	// leastHours is the smallest number of hours of a search.
	leastHours = 10
	// capacityResolution is how near the ends of an hour's threshold come, as a share of the value. Between them it is
	// interpolated.
	capacityResolution = .06
)

// Capacity finds how much of something the scenario's SLO allows: the highest rate, the most users, the longest
// prompts, or the fewest seats or replicas with which a share of hours, 90 % or slo.hours, meets the SLO.
//
// Each hour is a run of its own with a lead-in; see [hours.Judge]. The k-th hours of all values share their random
// numbers, so that each hour has a threshold: the value up to which it meets the SLO. The search brackets the
// threshold of the first hour by striding, and then finds that of every hour, guided by the logarithm of the SLO
// metric divided by its limit. The answer is the quantile of the thresholds that belongs to the share, with an
// interval by a normal distribution of their logarithms, or by order statistics where some hours have no threshold.
// At last these hours, and as many fresh ones, are simulated at the answer, which gives way until enough hours
// meet the SLO for the share.
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
	a, base, err := newAxis(s, o)
	if err != nil {
		return nil, err
	}
	if !base.Report.Limited() {
		return nil, yamldoc.Faults{s.Fault("slo",
			"the search needs an SLO (set a limit such as ttft_p95: 800ms, or attainment: 0.95)")}
	}
	q := &search{
		ctx: ctx, s: s, o: o, axis: a, base: base, share: hours.DefaultShare, horizon: hours.DefaultHorizon,
		resolution: capacityResolution,
		trials:     trials{setups: map[float64]*trial{}, hours: map[cell]*hours.Hour{}},
		found:      &curve.Capacity{Over: o.Over, SLO: base.Report.SLO, Warnings: []report.Warning{}},
	}
	if s.SLO.Hours != nil {
		q.share = *s.SLO.Hours
	}
	if s.SLO.Horizon != nil {
		q.horizon = s.SLO.Horizon.Clock()
	}
	if all := math.Ceil(1/(1-q.share) - 1e-9); o.Hours < int(all) {
		return nil, yamldoc.Faults{s.Fault("slo.hours", "%d hours are too few to judge a share of %s (want %d or more)",
			o.Hours, layout.Percent(q.share), int(all))}
	}
	if q.lead, err = hours.Lead(ctx, base, q.horizon); err != nil {
		return nil, err
	}
	q.found.Share, q.found.LeadS = q.share, q.lead.Seconds()
	q.found.Effort.SearchRequests = steady.IdleRequests
	if t := base.Traffic.Recording; t != nil {
		q.found.Warnings = append(q.found.Warnings, report.Warning{Code: "one_trace",
			Text: "all hours are parts of one recorded trace: they show nothing about days that differ from it"})
	}
	return q, nil
}

// fill fills in the defaults, and checks the rest.
func (o *CapacityOptions) fill() error {
	if o.Hours == 0 {
		o.Hours = hours.DefaultHours
	}
	refuse := func(where, format string, args ...any) error {
		return yamldoc.Faults{{Where: where, Problem: fmt.Sprintf(format, args...)}}
	}
	switch {
	case o.Precision != 0 && !(o.Precision > 0 && o.Precision < 1):
		return refuse("--precision", "%v is not allowed (want %s)", o.Precision, yamldoc.WantShare)
	case o.Hours < leastHours || o.Hours > experiments.MaxReplications:
		return refuse("--replications", "%d hours are too few or too many to judge an SLO by (want %d to %d; 29 "+
			"show a share of 90 %%)", o.Hours, leastHours, experiments.MaxReplications)
	case o.Low != 0 || o.High != 0:
		if !(o.Low < o.High) || !finite(o.Low) || !finite(o.High) {
			return refuse("--over", "%v..%v is not a range (want rising numbers)", o.Low, o.High)
		}
	}
	return nil
}

// Capacity looks for the capacity under the scenario's SLO over what the sweep varies, between its values where they
// were given. It is nil without an SLO.
func (o Options) Capacity(ctx context.Context, s *scenario.Scenario,
	progress func(done, expected int)) (*curve.Capacity, error) {
	if ok, err := limited(s); err != nil || !ok {
		return nil, err
	}
	search := CapacityOptions{Over: o.over(s), Jobs: o.Jobs, Check: o.Check, Progress: progress, Cache: o.cache}
	if s.Run.Precision != nil {
		search.Precision = float64(*s.Run.Precision)
	}
	if s.Run.Replications >= leastHours {
		search.Hours = s.Run.Replications
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

// limited reports whether the scenario's SLO, or that of a class, limits anything.
func limited(s *scenario.Scenario) (bool, error) {
	slo, err := s.SLO.Objective()
	for i := range s.Workload.Classes {
		if err != nil || slo.Limits() {
			break
		}
		slo, err = s.Workload.Classes[i].SLO.Objective()
	}
	return err == nil && slo.Limits(), err
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
		switch least := key == "attainment" || key == "hours"; {
		case least && strings.Contains(part, "<"):
			return "", fmt.Errorf("want %s>=%s: it is a minimum", key, limit)
		case !least && strings.Contains(part, ">"):
			return "", fmt.Errorf("want %s<%s: it is a maximum", key, limit)
		}
		limits = append(limits, key+": "+limit)
	}
	return "{" + strings.Join(limits, ", ") + "}", nil
}
