package sim_test

import (
	"context"
	"testing"

	"clifftop/sim"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/route"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// counter sends everything to the first endpoint, and counts what it has sent and has not seen end.
type counter struct{ open int }

func (c *counter) Route(route.View, *workload.Request) int {
	c.open++
	return 0
}

var _ route.RequestObserver = (*counter)(nil)

func (c *counter) Began(route.View, int, *workload.Request) {}

func (c *counter) Ended(route.View, int, *workload.Request) { c.open-- }

// warmed is a fleet of two replicas with prefix caches, which was given a request of an earlier time.
func warmed(t *testing.T, router route.Router, lifecycle *sim.Lifecycle, requests ...workload.Request) *sim.Simulation {
	t.Helper()
	caching := func(i int) engine.Config {
		c := steady(i)
		c.NumGPUBlocks, c.PrefixCaching = 101, true
		return c
	}
	if lifecycle != nil {
		lifecycle.Renew = caching
	}
	e, err := sim.NewFleet(sim.Fleet{Replicas: []engine.Config{caching(0), caching(1)}, Routers: []route.Router{router},
		Lifecycle: lifecycle},
		simtest.NewRequests(requests), new(simtest.Recorder))
	if err != nil {
		t.Fatal(err)
	}
	e.Warm(&workload.Request{ID: -1, InputTokens: 64, OutputTokens: 33})
	return e
}

// What warms the caches has ended before the run: no router counts it among what is outstanding.
func TestWarmLeavesNothingOutstanding(t *testing.T) {
	c := new(counter)
	if e := warmed(t, c, nil, asks(0, 3)); c.open != 0 {
		t.Errorf("%d requests are outstanding before the run", c.open)
	} else if err := e.Run(context.Background()); err != nil || c.open != 0 {
		t.Errorf("%v; %d requests are outstanding after it", err, c.open)
	}
}

// A fleet that begins with no replica at all has no cache to warm.
func TestWarmWithoutReadyReplica(t *testing.T) {
	scaler := sim.Scaler{Policy: autoscale.NewKnative(10), Last: 1, Most: 2, Scrape: clock.Second, Keep: clock.Minute}
	e := warmed(t, new(route.RoundRobin), &sim.Lifecycle{Scalers: []sim.Scaler{scaler}}, asks(0, 3))
	if err := e.Run(context.Background()); err != nil {
		t.Error(err)
	}
}
