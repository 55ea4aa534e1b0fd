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

// Simulations are as long as so many requests take to come, and at most so many days.
const (
	idleRequests  = 2_000
	loadRequests  = 20_000
	leastRequests = 1_000
	mostDays      = 60
)

// AtLoad is how many requests of a scenario are in the system at once when they come at the demand's rate. How long
// each takes depends on how many there are: the simulator finds the number N at which N = λ·W(N), since that is where
// a run settles. The demand's own times are not looked at.
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
	r := newResult("concurrency", fmt.Sprintf("%s requests per minute of %s", amount(d.PerMinute), busy.deployment))
	r.crowd(d, crowd)
	r.fixedPoint(rate, idle.Summary, busy.Summary)
	r.note("Solved by the simulator: a run at this rate settles at the number of requests N for which N = rate × W(N). Percentiles are measured in it, bursts and all.")
	return r, nil
}

// unsettled is how far the mean number in the window and that of Little's law for the requests which arrived in it may
// lie apart, as a fraction: while a system fills up, they do.
const unsettled = .10

// outcome is a run and what it ran on.
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
	return &outcome{res.Summary, u.Deployment.String()}, nil
}

// fixedPoint shows what the runs found.
func (r *Result) fixedPoint(rate float64, idle, busy *report.Summary) {
	alone, together := idle.Latency.E2E.Mean, busy.Latency.E2E.Mean
	if alone != nil {
		r.given("duration_idle_s", "time of a request, alone", *alone/1000, "s")
		r.add("mean_idle_requests", "at once, if it stayed so", rate**alone/1000, "requests", "requests per second × time of a request",
			fmt.Sprintf("%s × %s", amount(rate), amount(*alone/1000)))
	}
	if busy.Window.Unsettled() {
		line := Line{Name: "growth_requests_per_s", Text: "the system fills up by", Value: busy.Window.GrowthRequestsPerS, Unit: "requests/s",
			Says: "no such number: requests come faster than they are served"}
		r.Lines = append(r.Lines, line)
		return
	}
	offered, counted := rate, busy.Concurrency.InSystem.Mean
	if v := busy.Throughput.OfferedRequestsPerS; v != nil {
		offered = *v
	}
	if together != nil && counted != nil && math.Abs(offered**together/1000-*counted) > unsettled**counted {
		line := Line{Name: "measured_requests", Text: "requests at once in the run, on average", Value: counted, Unit: "requests",
			Says: "not settled: it was still changing when the run ended, and may have no limit"}
		r.Lines = append(r.Lines, line)
		return
	}
	if together != nil {
		r.given("duration_s", "time of a request, at this load", *together/1000, "s")
		line := r.add("mean_requests", "requests at once, on average", offered**together/1000, "requests", "requests per second that came × time of a request",
			fmt.Sprintf("%s × %s", amount(offered), amount(*together/1000)))
		line.Says = TierOf(*line.Value).String()
	}
	for _, m := range []struct {
		name, text string
		v          *float64
	}{
		{"measured_requests", "the same, counted over time", counted},
		{"decoding_requests", "of which receive tokens", busy.Concurrency.Decoding.Mean},
		{"p95_requests", "95 % of the time at most", busy.Concurrency.InSystem.P95},
		{"p99_requests", "99 % of the time at most", busy.Concurrency.InSystem.P99},
		{"max_requests", "at most", busy.Concurrency.InSystem.Max},
	} {
		if m.v != nil {
			r.given(m.name, m.text, *m.v, "requests")
		}
	}
}
