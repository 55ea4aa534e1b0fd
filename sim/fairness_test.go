package sim_test

import (
	"context"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// served adds up the weighted tokens that clients were served, request by request.
type served struct {
	quiet
	tokens map[int32]int64
	until  clock.Time
}

func (y *served) Finished(rec *event.Record) {
	if rec.Released <= y.until {
		y.tokens[rec.Request.User] += int64(rec.Request.InputTokens) + 2*int64(rec.Tokens)
	}
}

// TestVTCEqualises has two clients that always have waiting requests, one with short requests and many of them, one
// with long ones: under VTC they are served the same, within the bound of the theory, which is twice what a full batch
// can hold; under first come, first served they are not.
func TestVTCEqualises(t *testing.T) {
	var list []workload.Request
	for i := range 3000 { // all at once
		list = append(list, workload.Request{User: 0, InputTokens: 20, OutputTokens: 30})
		if i%3 == 0 {
			list = append(list, workload.Request{User: 1, InputTokens: 300, OutputTokens: 100})
		}
	}
	const seats, until = 8, 100 * clock.Time(clock.Second)
	share := func(order sched.Order) (a, b int64) {
		cfg := engine.Config{
			Scheduler: new(sched.VLLM), Order: order, Timer: simtest.Affine{Base: 10e12, PerToken: 1e10},
			MaxNumSeqs: seats, MaxNumBatchedTokens: 512, MaxModelLen: 1000, BlockSize: 16,
		}
		y := &served{tokens: map[int32]int64{}, until: until}
		e, err := sim.New(cfg, simtest.NewRequests(list), y)
		if err != nil {
			t.Fatal(err)
		}
		e.Horizon = until
		if err := e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return y.tokens[0], y.tokens[1]
	}
	a, b := share(sched.VTC{})
	const bound = 2 * seats * (300 + 2*100)
	t.Logf("served under VTC %d and %d; bound of the difference %d", a, b, bound)
	if a < 10*bound || max(a-b, b-a) > bound {
		t.Errorf("served %d and %d under VTC, want the same within %d", a, b, bound)
	}
	a, b = share(nil)
	t.Logf("served in order of arrival %d and %d", a, b)
	if 3*a > 2*b {
		t.Errorf("served %d and %d in order of arrival, want far more for the second", a, b)
	}
}
