package collect

import (
	"context"
	"testing"

	"clifftop/model"
	"clifftop/report"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// pipelined runs requests on an engine of so many stages with steps of 20 ms, and measures it.
func pipelined(t *testing.T, stages int, weights []int64, budget int, requests []workload.Request) (*Collector,
	*report.Summary) {
	t.Helper()
	timer := simtest.Staged{StepTimer: model.NewLinear(20*clock.Millisecond, 0), Weights: weights}
	cfg := engine.Config{
		Scheduler: &sched.VLLM{}, Timer: timer, MaxNumSeqs: 16, MaxNumBatchedTokens: budget, MaxModelLen: 4096,
		BlockSize: 16, Stages: stages, Check: true,
	}
	c := New(Options{GPUs: stages, PipelineStages: stages, MaxNumSeqs: 16, End: clock.Time(clock.Second)})
	e, err := sim.New(cfg, simtest.NewRequests(requests), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c, c.Summary()
}

// TestBubbles tells by hand what stages wait for: two stages of 10 ms, and requests of 10 tokens, in a window of a
// second.
func TestBubbles(t *testing.T) {
	one := workload.Request{InputTokens: 16, OutputTokens: 10}
	for _, c := range []struct {
		name                 string
		weights              []int64
		budget, n            int
		flight, first, last  float64 // Seconds with a batch in flight, and of work of the stages
		useful, bubble, idle float64
	}{
		// 10 iterations of 20 ms, 10 ms of which each stage works.
		{"alone", []int64{1, 1}, 16, 1, .2, .1, .1, .2, .2, 1.6},
		// In two batches the second stage begins 10 ms later, and the first ends 10 ms before the second.
		{"two batches", []int64{1, 1}, 16, 2, .21, .2, .2, .4, .02, 1.58},
		// In one batch they are as one.
		{"one batch", []int64{1, 1}, 32, 2, .2, .1, .1, .2, .2, 1.6},
		// The first stage has 15 ms of each iteration's 20: it works all the time, and the second a third of that.
		{"uneven", []int64{3, 1}, 16, 2, .305, .3, .1, .4, .21, 1.39},
	} {
		requests := make([]workload.Request, c.n)
		for i := range requests {
			requests[i] = one
		}
		_, s := pipelined(t, 2, c.weights, c.budget, requests)
		g := &s.System.GPUSeconds
		near(t, c.name+": busy", s.System.BusyFraction, c.flight)
		near(t, c.name+": first stage", s.System.PipelineStages[0].BusyFraction, c.first)
		near(t, c.name+": last stage", s.System.PipelineStages[1].BusyFraction, c.last)
		near(t, c.name+": useful", g.Useful, c.useful)
		near(t, c.name+": bubble", g.Bubble, c.bubble)
		near(t, c.name+": idle", g.Idle, c.idle)
	}
}

// TestStageTimeAddsUp demands that the parts of the GPU time are, to the femtosecond, the window times the stages,
// wherever it ends, and that requests took what the stages worked.
func TestStageTimeAddsUp(t *testing.T) {
	var requests []workload.Request
	for i := range 60 {
		requests = append(requests, workload.Request{
			InputTokens: int32(1 + i*37%90), OutputTokens: int32(1 + i*13%30),
			Arrival: clock.Time(i) * clock.Time(23*clock.Millisecond) / 3,
		})
	}
	const stages = 3
	c, s := pipelined(t, stages, []int64{2, 5, 3}, 48, requests)
	whole := c.line.whole()
	var worked clock.Uint128
	for _, w := range whole.worked {
		worked = worked.Add(w)
	}
	var took clock.Uint128
	for _, part := range c.totals.records.gpu {
		took = took.Add(part)
	}
	if took.Cmp(worked) > 0 || worked.Sub(took).Float64() > 1e-9*worked.Float64() {
		t.Errorf("requests took %v fs, the stages worked %v", took, worked)
	}
	for n := 1; n <= len(c.line.buckets); n += 7 {
		w := window{to: n, end: c.line.end(n - 1)}
		sum, d := c.line.total(0, n)
		u := summariser{c}.units(&w, &sum, d)[0]
		g := u.gpuTime(&w)
		all := g.useful.Add(g.cancelled).Add(g.idle).Add(g.bubble)
		for _, part := range g.lost {
			all = all.Add(part)
		}
		if want := clock.Mul64(uint64(w.end), clock.FemtosPerPico*stages); all != want || g.whole != want {
			t.Fatalf("up to %v: parts of %v fs, %v in all, want %v", w.end, all, g.whole, want)
		}
		var here clock.Uint128
		for _, worked := range sum.worked {
			here = here.Add(worked)
		}
		if inFlight := sum.busy.Mul(stages); here.Cmp(inFlight) > 0 || inFlight.Sub(here) != g.bubble {
			t.Fatalf("up to %v: the stages worked %v fs of %v, and waited %v", w.end, here, inFlight, g.bubble)
		}
	}
	if s.Requests.Completed != 60 || *s.System.GPUSeconds.Bubble <= 0 {
		t.Errorf("%d requests, bubbles of %v GPU seconds", s.Requests.Completed, *s.System.GPUSeconds.Bubble)
	}
}
