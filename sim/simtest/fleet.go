package simtest

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// VerifyFleet runs a policy on random fleets behind routers. It checks that each replica does with its requests what
// the naive engine does, that a fleet of one does what an engine alone does, and that all results are equal without
// spans, whatever the routers query.
func VerifyFleet(t testing.TB, p Policy, router func(id route.Identity) route.Router) {
	t.Helper()
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		c := p.Draw(t)
		replicas := rapid.IntRange(1, 4).Draw(t, "replicas")
		routers := rapid.IntRange(1, 3).Draw(t, "routers")
		scrape := clock.Duration(rapid.Int64Range(0, 2).Draw(t, "scrape")) * 50 * clock.Millisecond
		spans := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 3}), replicas, replicas).Draw(t, "max spans")
		run := func(span func(i int) int) (*Requests, *fleetRecorder) {
			f := sim.Fleet{Scrape: scrape}
			for i := range routers {
				f.Routers = append(f.Routers, router(route.Identity{Seed: 5, Number: i, Of: routers}))
			}
			for i := range replicas {
				cfg := c.Config()
				cfg.Check, cfg.MaxSpan = true, span(i)
				f.Replicas = append(f.Replicas, cfg)
			}
			src, obs := c.Source(), &fleetRecorder{parts: make([]Recorder, replicas)}
			e, err := sim.NewFleet(f, src, obs)
			if err == nil {
				err = e.Run(context.Background())
			}
			if err != nil {
				t.Fatalf("%d replicas: %v\n%v", replicas, err, c)
			}
			return src, obs
		}
		src, obs := run(func(i int) int { return spans[i] })
		_, single := run(func(int) int { return 1 })
		for i := range obs.parts {
			if d := Diff(&single.parts[i], &obs.parts[i]); d != "" {
				t.Fatalf("replica %d of %d, stepped singly and in spans: %s\n%v", i, replicas, d, c)
			}
		}
		if replicas == 1 {
			naive, told := c.runNaive(t, nil)
			if d := Diff(&naive.Recorder, &obs.Recorder); d != "" {
				t.Fatalf("fleet of one: %s\n%v", d, c)
			}
			if !slices.Equal(src.Ended, told) {
				t.Fatalf("fleet of one: clients get %v, naive %v\n%v", src.Ended, told, c)
			}
		}
		if n := len(obs.Records); n != len(c.requests) && c.retries == (Retries{}) {
			t.Fatalf("%d of %d requests ended\n%v", n, len(c.requests), c)
		}
		if c.users > 0 || c.retries != (Retries{}) || c.config.NetworkIn > 0 {
			return // what a replica does changes what its clients ask for, and when at an instant
		}
		for i := range obs.parts {
			part := &obs.parts[i]
			if d := alone(t, &c, i, part, src); d != "" {
				t.Fatalf("replica %d of %d, alone and in the fleet: %s\n%v", i, replicas, d, c)
			}
			if len(part.Records) > 0 {
				seen["replicas that served"]++
			}
		}
		count(seen, &obs.Recorder)
	})
	t.Log(seen)
}

// alone runs the naive engine with the requests of replica i of a fleet, and returns how the replica's part differs.
func alone(t *rapid.T, c *Case, i int, part *Recorder, src *Requests) string {
	run := new(StepRecorder)
	if err := naive.Run(c.Config(), newReplay(part.Arrivals, src), run); err != nil {
		t.Fatalf("replica %d alone: %v\n%v", i, err, *c)
	}
	for k := range run.Records {
		run.Records[k].Replica = i
	}
	for k := range run.Moves {
		run.Moves[k].Replica = i
	}
	return Diff(&run.Recorder, part)
}

// fleetRecorder is a recording of a fleet, with one of each replica.
type fleetRecorder struct {
	Recorder
	parts []Recorder
}

var _ event.FleetObserver = (*fleetRecorder)(nil)

// OfReplica implements [event.FleetObserver].
func (t *fleetRecorder) OfReplica(i int) event.Observer { return &t.parts[i] }

// replay is a source of requests as they once arrived, or were sent on by a router.
type replay struct {
	list []workload.Request
	sent map[int64]clock.Time
}

// newReplay repeats arrivals, with the contents that the source gave them.
func newReplay(arrivals []Arrival, of *Requests) *replay {
	p := new(replay)
	for _, a := range arrivals {
		r := a.Request
		r.Content = of.list[of.sent[r.ID]].Content
		p.list = append(p.list, r)
	}
	return p
}

// Peek implements [workload.Source].
func (p *replay) Peek() (clock.Time, bool) {
	if len(p.list) == 0 {
		return 0, false
	}
	if at, ok := p.sent[p.list[0].ID]; ok {
		return at, true
	}
	return p.list[0].Arrival, true
}

// Next implements [workload.Source].
func (p *replay) Next() workload.Request {
	r := p.list[0]
	p.list = p.list[1:]
	return r
}

// Done implements [workload.Source].
func (p *replay) Done(*workload.Request, workload.End) bool { return false }

// Err implements [workload.Source].
func (p *replay) Err() error { return nil }
