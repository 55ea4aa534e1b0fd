package collect_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/collect"
	"clifftop/report/layout"
	"clifftop/report/table"
	"clifftop/sim"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// course wants so many replicas in each second.
type course []int

func (c course) Validate(int) error { return nil }

func (c course) Turn(s *autoscale.State) (int, clock.Time) {
	return c[min(int(s.Now.Seconds()), len(c)-1)], s.Now.Add(clock.Second)
}

// The stages of a pipeline are GPUs of the replica: a replica that does nothing for 10 s has 10 idle seconds on each of
// its 4 GPUs, in two stages or in one.
func TestIdleHoursOfStages(t *testing.T) {
	for _, stages := range []int{1, 2} {
		c := collect.New(collect.Options{
			Replicas: 1, GPUs: 4, MaxNumSeqs: 8, UsableBlocks: 100, PipelineStages: stages,
			End: clock.Time(10 * clock.Second), Lifecycle: true,
			Fleet: []collect.ReplicaOptions{{GPUs: 4, MaxNumSeqs: 8, UsableBlocks: 100, PipelineStages: stages}},
		})
		c.ReplicaState(0, 0, event.Ready)
		c.ReplicaState(clock.Time(10*clock.Second), 0, event.Ready)
		if idle := c.Summary().System.Replicas.IdleGPUHours; idle == nil || math.Abs(*idle-40./3600) > 1e-12 {
			t.Errorf("%d stages: %v idle GPU hours, want %v", stages, layout.Cell(idle), 40./3600)
		}
	}
}

// TestPaidTime follows a fleet of 2 to 4 replicas of 2 GPUs for 10 s: who is paid for, for what, and how it is divided.
func TestPaidTime(t *testing.T) {
	engine := func(int) engine.Config {
		return engine.Config{
			Scheduler: new(sched.VLLM), Timer: simtest.Affine{Base: 1e13}, Check: true,
			MaxNumSeqs: 8, MaxNumBatchedTokens: 64, MaxModelLen: 1000, BlockSize: 16, NumGPUBlocks: 101,
		}
	}
	f := sim.Fleet{Routers: []route.Router{new(route.RoundRobin)}, Lifecycle: &sim.Lifecycle{
		Renew: engine, ColdStart: workload.Delay{Mean: 1500 * clock.Millisecond},
		Failures: []sim.Failure{{Kind: sim.Crash, Replica: 1, At: clock.Time(7850 * clock.Millisecond),
			For: clock.Second / 2}},
		Scalers: []sim.Scaler{{Policy: course{2, 4, 4, 4, 4, 2}, Last: 3, Least: 2, Most: 4, Initial: 2,
			Scrape: clock.Second}},
	}}
	options := collect.Options{Replicas: 4, GPUs: 8, MaxNumSeqs: 32, UsableBlocks: 400, USDPerHour: 32,
		End: clock.Time(10 * clock.Second), Lifecycle: true}
	for range 4 {
		f.Replicas = append(f.Replicas, engine(0))
		options.Fleet = append(options.Fleet,
			collect.ReplicaOptions{GPUs: 2, MaxNumSeqs: 8, UsableBlocks: 100, USDPerHour: 8})
	}
	var requests []workload.Request
	for at := clock.Duration(0); at < 9*clock.Second; at += clock.Second / 4 {
		requests = append(requests, workload.Request{Arrival: clock.Time(at), InputTokens: 10, OutputTokens: 40})
	}
	c := collect.New(options)
	e, err := sim.NewFleet(f, simtest.NewRequests(requests), c)
	if err != nil {
		t.Fatal(err)
	}
	e.Horizon = options.End
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	s := c.Summary()
	r := s.System.Replicas
	// Replicas 2 and 3 start at 1 s, are ready at 2.5 s and off at 5 s, when they have drained; 1 is down from 7.85 to
	// 8.35 s, and starts until 9.85 s.
	for what, x := range map[string][2]float64{
		"starting": {*r.Starting, (2*1.5 + 1.5) / 10}, "down": {*r.Down, .05}, "most": {float64(r.Max), 4},
		"all states": {*r.Mean, *r.Ready + *r.Starting + *r.Draining + *r.Down},
		"GPU hours":  {*r.GPUHours, *r.Mean * 10 * 2 / 3600}, "price": {*s.Cost.USDPerHour, *r.Mean * 8},
		"idle hours": {*r.IdleGPUHours, *s.System.GPUSeconds.Idle / 3600},
		"failed":     {float64(s.Requests.Failed), float64(s.Replicas[1].Requests.Failed)},
	} {
		if math.Abs(x[0]-x[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, x[0], x[1])
		}
	}
	if *r.Mean < 2.799 || *r.Mean > 2.9 || s.Requests.Failed == 0 {
		t.Errorf("%v on average, %+v", *r.Mean, s.Requests)
	}
	g := s.System.GPUSeconds
	sum := *g.Useful + *g.Recompute + *g.CacheMiss + *g.Cancelled + *g.Rejected + *g.Padding + *g.Swap + *g.Host +
		*g.Idle
	if paid := *r.GPUHours * 3600; math.Abs(sum-paid) > 1e-9 {
		t.Errorf("GPU time adds up to %v s, %v s are paid for", sum, paid)
	}
	k := g.IdleByCause
	if idle := *k.NoRequests + *k.Elsewhere + *k.FrontEnd + *k.Starting + *k.Down; math.Abs(idle-*g.Idle) > 1e-9 ||
		*k.Starting < 8.9 || *k.Down < .9 {
		t.Errorf("idle time adds up to %v of %v s: %v starting, %v down", idle, *g.Idle, *k.Starting, *k.Down)
	}
	if *g.Cancelled <= 0 {
		t.Errorf("failed requests took %v s", *g.Cancelled)
	}
	var csv, text bytes.Buffer
	points := c.Series()
	if err := report.WriteSeries(&csv, points); err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(csv.String(), "\n"); !strings.HasSuffix(head,
		",replicas_ready,replicas_paid,held_mean") {
		t.Error(head)
	}
	paid := 0.0
	for _, p := range points {
		paid += *p.ReplicasPaid * (p.EndS - p.StartS)
	}
	if math.Abs(paid-*r.Mean*10) > 1e-9 {
		t.Errorf("the series has %v replica seconds, the summary %v", paid, *r.Mean*10)
	}
	if err := table.Write(s, &text, report.Profile{}); err != nil ||
		!strings.Contains(text.String(), "4 at most: ready") {
		t.Errorf("%v\n%s", err, text.String())
	}
}
