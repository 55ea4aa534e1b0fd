package sim_test

import (
	"context"
	"slices"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/route"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// TestFleetTruth checks that each replica of a fleet does what the naive engine does with the same requests.
func TestFleetTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyFleet(t, p, func(route.Identity) route.Router { return new(route.RoundRobin) })
		})
	}
}

// TestRoutersTruth checks the same with every router, on policies with the caches that routers may query.
func TestRoutersTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		if p.Name != "vllm" && p.Name != "sglang" {
			continue
		}
		for _, r := range simtest.Routers() {
			t.Run(p.Name+"/"+r.Name, func(t *testing.T) {
				t.Parallel()
				simtest.VerifyFleet(t, p, r.New)
			})
		}
	}
}

// TestLifecycleTruth checks that each engine of a replica that fails, drains or is scaled does what the naive engine
// does.
func TestLifecycleTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyLifecycle(t, p, func(route.Identity) route.Router { return new(route.RoundRobin) })
		})
	}
	for _, r := range simtest.Routers() {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyLifecycle(t, simtest.Policies()[0], r.New)
		})
	}
}

// TestLifecycleTiersTruth checks the same for engines with tiers: those that persist are found as they were left,
// others are empty again.
func TestLifecycleTiersTruth(t *testing.T) {
	simtest.VerifyTierLifecycle(t, simtest.Policies()[0], func(route.Identity) route.Router {
		return new(route.RoundRobin)
	})
}

// TestLifecyclePipelinesTruth checks the same for engines with pipeline stages, which all stop together.
func TestLifecyclePipelinesTruth(t *testing.T) {
	simtest.VerifyPipelineLifecycle(t, simtest.Policies()[0], func(route.Identity) route.Router {
		return new(route.RoundRobin)
	})
}

// TestLifecycleLockstepTruth checks that groups of ranks in lock step fail, drain and are scaled as one.
func TestLifecycleLockstepTruth(t *testing.T) {
	simtest.VerifyLockstepLifecycle(t, simtest.Policies()[0], func() route.Router { return new(route.RoundRobin) })
}

// TestDisaggregatedTruth checks the same with disaggregated prefill and decode, over one network.
func TestDisaggregatedTruth(t *testing.T) {
	simtest.VerifyDisaggregated(t, simtest.Policies()[0])
}

// inTurn is a source of requests, of which the last one is sent when request 1 has ended.
type inTurn struct{ list []workload.Request }

func (q *inTurn) Peek() (clock.Time, bool) {
	if len(q.list) == 0 || q.list[0].Arrival == clock.Never {
		return 0, false
	}
	return q.list[0].Arrival, true
}

func (q *inTurn) Next() workload.Request {
	r := q.list[0]
	q.list = q.list[1:]
	return r
}

func (q *inTurn) Done(r *workload.Request, end workload.End) bool {
	if r.ID == 1 {
		q.list[0].Arrival = end.At
	}
	return false
}

func (q *inTurn) Err() error { return nil }

// blockRouter sends requests in turn, and notes how many blocks were in use on each replica.
type blockRouter struct {
	route.RoundRobin
	used []int
}

func (o *blockRouter) Route(v route.View, r *workload.Request) int {
	for k := range v.Len() {
		o.used = append(o.used, v.Metrics(k).UsedBlocks)
	}
	return o.RoundRobin.Route(v, r)
}

// TestSharedInstant has two replicas with iterations of 10 ms. At 30 ms the second one ends request 1, after the first
// has composed its next iteration with a third block: request 2, which follows at once, is in the one composed at 40
// ms, and ends at 50 ms.
func TestSharedInstant(t *testing.T) {
	for _, span := range []int{0, 1} {
		single := func() engine.Config {
			c := steady(0)
			c.BlockSize, c.NumGPUBlocks, c.MaxSpan = 1, 100, span
			return c
		}
		q := &inTurn{list: []workload.Request{asks(0, 20), asks(0, 3), asks(clock.Duration(clock.Never), 1)}}
		for i := range q.list {
			q.list[i].ID, q.list[i].InputTokens = int64(i), 1
		}
		o, recorder := new(blockRouter), new(simtest.Recorder)
		e, err := sim.NewFleet(sim.Fleet{Replicas: []engine.Config{single(), single()}, Routers: []route.Router{o}}, q,
			recorder)
		if err == nil {
			err = e.Run(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 0, 0, 0, 4, 0}; !slices.Equal(o.used, want) {
			t.Errorf("spans of at most %d: the router sees blocks %v, want %v", span, o.used, want)
		}
		for _, r := range recorder.Records {
			if r.Request.ID == 2 && r.LastToken != clock.Time(50*milli) {
				t.Errorf("spans of at most %d: request 2 ends at %v, want 50 ms", span, r.LastToken)
			}
		}
	}
}
