package estimate

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/sim/clock"
)

// Lengths of simulations in requests, and the limit of simulated days at a low rate.
const (
	idleRequests  = 2_000
	loadRequests  = 20_000
	leastRequests = 1_000
	mostDays      = 60
)

// AtLoad simulates a scenario at the demand's rate and estimates the mean number of requests in the system. The
// duration W of a request depends on the number N of requests, and a run settles at the N with N = λ·W(N). The
// durations of the demand are ignored.
func AtLoad(ctx context.Context, s *scenario.Scenario, d Demand, crowd *Crowd) (*Result, error) {
	d.TTFTSeconds, d.StreamSeconds = 0, 1
	if err := d.validate(); err != nil {
		return nil, err
	}
	rate := d.PerMinute / 60
	idle, err := simulate(ctx, s, scenario.UsersKey, "1", idleRequests)
	if err != nil {
		return nil, err
	}
	requests := min(loadRequests, max(leastRequests, int(rate*mostDays*clock.Day.Seconds())))
	busy, err := simulate(ctx, s, scenario.RateKey, strconv.FormatFloat(rate, 'g', -1, 64), requests)
	if err != nil {
		return nil, err
	}
	r := newResult("concurrency", fmt.Sprintf("%s requests per minute on %s", amount(d.PerMinute), busy.deployment))
	r.crowd(d, crowd)
	r.fixedPoint(rate, idle.Summary, busy.Summary)
	r.note("Found by simulation: a run at this rate settles at the number of requests N with N = rate × W(N), " +
		"where W is the duration. Percentiles are measured in the run and include bursts.")
	return r, nil
}

// unsettled is the largest relative difference between the counted mean number of requests and the one of Little's law.
// They differ more while a system fills up.
const unsettled = .10

// outcome is the summary of a run and its deployment.
type outcome struct {
	*report.Summary
	deployment string
}

// simulate runs the scenario at a load.
func simulate(ctx context.Context, s *scenario.Scenario, key, value string, requests int) (*outcome, error) {
	at, err := s.With(
		scenario.Setting{Key: key, Value: value, Flag: "the load"},
		scenario.Setting{Key: "run.requests", Value: strconv.Itoa(requests)})
	if err != nil {
		return nil, err
	}
	u, err := at.Resolve()
	if err != nil {
		return nil, err
	}
	res, err := experiments.RunSetup(ctx, u, experiments.RunOptions{})
	if err != nil {
		return nil, err
	}
	return &outcome{res.Summary, u.Pools[0].Deployment.String()}, nil
}

func (r *Result) fixedPoint(rate float64, idle, busy *report.Summary) {
	alone, together := idle.Latency.E2E.Mean, busy.Latency.E2E.Mean
	if alone != nil {
		r.given("duration_idle_s", "duration of a request, alone", *alone/1000, "s")
		r.add("mean_idle_requests", "mean number at that duration", rate**alone/1000, "requests",
			"requests per second × duration of a request", fmt.Sprintf("%s × %s", amount(rate), amount(*alone/1000)))
	}
	if busy.Window.Unsettled() {
		line := Line{Name: "growth_requests_per_s", Text: "the system fills up by",
			Value: busy.Window.GrowthRequestsPerS,
			Unit:  "requests/s", Says: "no steady state: requests arrive faster than they are served"}
		r.Lines = append(r.Lines, line)
		return
	}
	offered, counted := rate, busy.Concurrency.InSystem.Mean
	if v := busy.Throughput.OfferedRequestsPerS; v != nil {
		offered = *v
	}
	if together != nil && counted != nil && math.Abs(offered**together/1000-*counted) > unsettled**counted {
		line := Line{Name: "measured_requests", Text: "concurrent requests in the run, mean", Value: counted,
			Unit: "requests",
			Says: "not settled: still changing at the end of the run, perhaps without limit"}
		r.Lines = append(r.Lines, line)
		return
	}
	if together != nil {
		r.given("duration_s", "duration of a request, at this load", *together/1000, "s")
		line := r.add("mean_requests", "concurrent requests, mean", offered**together/1000, "requests",
			"arrived requests per second × duration of a request", fmt.Sprintf("%s × %s", amount(offered),
				amount(*together/1000)))
		line.Says = tierOf(*line.Value).String()
	}
	for _, m := range []struct {
		name, text string
		v          *float64
	}{
		{"measured_requests", "the same, measured over time", counted},
		{"decoding_requests", "of these in decode, mean", busy.Concurrency.Decoding.Mean},
		{"p95_requests", "95 % of the time at most", busy.Concurrency.InSystem.P95},
		{"p99_requests", "99 % of the time at most", busy.Concurrency.InSystem.P99},
		{"max_requests", "maximum", busy.Concurrency.InSystem.Max},
	} {
		if m.v != nil {
			r.given(m.name, m.text, *m.v, "requests")
		}
	}
}
