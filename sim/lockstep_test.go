package sim_test

import (
	"context"
	"testing"

	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// TestLockstepTruth checks that ranks iterate together with every policy, as the naive engine does.
func TestLockstepTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyLockstep(t, p, func() route.Router { return new(route.RoundRobin) })
		})
	}
}

// prefillsStall takes 200 ms for an iteration with a prefill, and 10 ms for others.
type prefillsStall struct{}

// Span implements [model.StepTimer].
func (prefillsStall) Span(b *model.Batch) (first, slope int64, n int) {
	if len(b.Chunks) > 0 {
		return 200e12, 0, 1
	}
	return 10e12, 0, 1 << 20
}

// rank notes the gaps between tokens and the dummy iterations of a rank.
type rank struct {
	quiet
	gaps    map[clock.Duration]int
	steps   int
	dummies []int // numbers of them, from 1
}

func (r *rank) Span(s *event.Span) {
	for k := range s.N {
		r.steps++
		if s.Decodes+s.PrefillTokens == 0 {
			r.dummies = append(r.dummies, r.steps)
			continue
		}
		gap := clock.Duration((s.First + int64(k)*s.Slope) / clock.FemtosPerPico)
		if k == 0 {
			r.gaps[gap+s.Wait] += s.Gaps
		} else {
			r.gaps[gap] += s.Decodes
		}
	}
}

type ranksSeen struct {
	quiet
	of []rank
}

func (s *ranksSeen) OfReplica(i int) event.Observer { return &s.of[i] }

// lockstepped runs requests on two ranks with seats for 32, round robin.
func lockstepped(t *testing.T, list []workload.Request) []rank {
	t.Helper()
	var f sim.Fleet
	for range 2 {
		f.Replicas = append(f.Replicas, engine.Config{
			Scheduler: new(sched.VLLM), Timer: prefillsStall{}, MaxNumSeqs: 32, MaxNumBatchedTokens: 8192,
			MaxModelLen: 4096, BlockSize: 16, Check: true,
		})
	}
	f.Lockstep, f.Routers = []int{2}, []route.Router{new(route.RoundRobin)}
	obs := &ranksSeen{of: []rank{{gaps: map[clock.Duration]int{}}, {gaps: map[clock.Duration]int{}}}}
	e, err := sim.NewFleet(f, simtest.NewRequests(list), obs)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return obs.of
}

// A prefill of one rank stalls the decodes of the other.
func TestLockstepPrefillStallsOthers(t *testing.T) {
	var list []workload.Request
	for range 32 { // rank 0 gets those that end at once, rank 1 those that go on
		list = append(list, workload.Request{InputTokens: 10, OutputTokens: 1},
			workload.Request{InputTokens: 10, OutputTokens: 40})
	}
	list = append(list, workload.Request{Arrival: clock.Time(405 * clock.Millisecond), InputTokens: 1000,
		OutputTokens: 2})
	ranks := lockstepped(t, list)
	if n := ranks[1].gaps[200*clock.Millisecond]; n != 32 {
		t.Errorf("%d gaps of 200 ms on rank 1, want 32: %v", n, ranks[1].gaps)
	}
	if n := ranks[1].gaps[10*clock.Millisecond]; n != 32*38 {
		t.Errorf("%d gaps of 10 ms on rank 1, want %d: %v", n, 32*38, ranks[1].gaps)
	}
}

// After the last real step of a wave, dummies continue until the ranks agree that no rank has work.
func TestLockstepDummies(t *testing.T) {
	for _, c := range []struct{ output, steps int }{{45, 64}, {64, 64}, {1, 32}, {65, 96}} {
		ranks := lockstepped(t, []workload.Request{{InputTokens: 10, OutputTokens: int32(c.output)}})
		for i, r := range ranks {
			if r.steps != c.steps {
				t.Errorf("%d tokens: rank %d makes %d steps, want %d", c.output, i, r.steps, c.steps)
			}
		}
		if n := len(ranks[0].dummies); n != c.steps-c.output || n > 0 && ranks[0].dummies[0] != c.output+1 {
			t.Errorf("%d tokens: dummy steps %v", c.output, ranks[0].dummies)
		}
		if n := len(ranks[1].dummies); n != c.steps {
			t.Errorf("%d tokens: the rank without work makes %d dummy steps, want %d", c.output, n, c.steps)
		}
	}
}
