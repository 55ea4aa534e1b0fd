package collect

import (
	"context"
	"math"
	"testing"

	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// testPower is the energy of iterations of llama-3.1-8b on an H100.
func testPower(t interface{ Fatal(...any) }) *model.StepPower {
	llm, err := catalog.LLM("llama-3.1-8b")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	d, err := model.NewDeployment(llm, gpu, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return model.NewStepPower(d)
}

// powered runs requests on replicas with steps of 20 ms, in a window of a second.
func powered(t *testing.T, replicas int, requests []workload.Request) *report.Summary {
	t.Helper()
	cfg := engine.Config{
		Scheduler: &sched.VLLM{}, Timer: model.NewLinear(20*clock.Millisecond, 0), MaxNumSeqs: 16,
		MaxNumBatchedTokens: 512, MaxModelLen: 4096, BlockSize: 16, Check: true,
	}
	opts := Options{GPUs: 2 * replicas, Replicas: replicas, MaxNumSeqs: 16 * replicas, End: clock.Time(clock.Second),
		Power: testPower(t), Facility: Facility{ServerPower: 1.5, PUE: 1.2, CarbonGPerKWh: new(float64), USDPerKWh: new(float64)}}
	*opts.Facility.CarbonGPerKWh, *opts.Facility.USDPerKWh = 400, 0.1
	var fleet sim.Fleet
	fleet.Routers = []route.Router{new(route.RoundRobin)}
	for range replicas {
		fleet.Replicas = append(fleet.Replicas, cfg)
		opts.Fleet = append(opts.Fleet, ReplicaOptions{GPUs: 2, MaxNumSeqs: 16, Power: opts.Power})
	}
	c := New(opts)
	f, err := sim.NewFleet(fleet, simtest.NewRequests(requests), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c.Summary()
}

// TestEnergy tells by hand the energy of a request on one of two replicas of two GPUs: idle power all the time, base
// power in its iterations, and the weights read in each.
func TestEnergy(t *testing.T) {
	const tokens = 10
	s := powered(t, 2, []workload.Request{{InputTokens: 16, OutputTokens: tokens}})
	busy, idle := s.Replicas[0].Energy, s.Replicas[1].Energy
	within := func(what string, got *float64, want, tolerance float64) {
		t.Helper()
		if got == nil || math.Abs(*got/want-1) > tolerance {
			t.Errorf("%s is %v, want %v", what, stats.OrNaN(got), want)
		}
	}
	gpu, _ := catalog.GPU("h100-sxm")
	p := gpu.Power
	within("idle energy", idle.GPUJoules, 2*p.Idle, 1e-9)
	within("idle power", idle.GPUWatts.Mean, p.Idle, 1e-9)
	within("idle maximum", idle.GPUWatts.Max, p.Idle, 1e-9)
	// Ten iterations of 20 ms, in each of which 15 GB of weights cross the memory, and little arithmetic.
	reading := p.Memory * 15.0e9 / gpu.HBMBytesPerSecond
	within("busy energy", busy.GPUJoules, 2*(p.Idle+0.2*(p.Base-p.Idle)+tokens*reading), 0.005)
	within("busy maximum", busy.GPUWatts.Max, p.Base+reading/0.02, 0.02)
	// Energies add up, and are power times time.
	e := s.Energy
	within("sum", e.GPUJoules, *busy.GPUJoules+*idle.GPUJoules, 1e-12)
	within("power times time", e.GPUJoules, *e.GPUWatts.Mean*4*1, 1e-12)
	within("servers", e.SystemWatts.Mean, 1.5**e.GPUJoules, 1e-12)
	within("per token", e.PerOutputToken, *e.GPUJoules/tokens, 1e-12)
	within("per request", e.PerRequest, *e.GPUJoules, 1e-12)
	kWh := *e.GPUJoules * 1.5 * 1.2 / 3.6e6 / tokens * 1e6
	within("carbon", e.CarbonPerMillion, 400*kWh, 1e-12)
	within("electricity", e.USDPerMillion, 0.1*kWh, 1e-12)
}

// TestIdlePower gives a system without a request its idle power.
func TestIdlePower(t *testing.T) {
	c := New(Options{GPUs: 3, End: clock.Time(clock.Second), Power: testPower(t)})
	e := c.Summary().Energy
	gpu, _ := catalog.GPU("h100-sxm")
	if e == nil || *e.GPUJoules != 3*gpu.Power.Idle || *e.SystemWatts.Max != 3*gpu.Power.Idle {
		t.Errorf("energy %+v, want %g W", e, 3*gpu.Power.Idle)
	}
	if e := New(Options{End: clock.Time(clock.Second)}).Summary().Energy; e != nil {
		t.Errorf("energy %+v of an unknown GPU", e)
	}
}

// BenchmarkPowered times the count of a span's energy.
func BenchmarkPowered(b *testing.B) {
	p, use := testPower(b), powerUse{}
	s := event.Span{Decodes: 32, Context: 32_000}
	s.First, s.Slope, s.N = 8e12, 1e8, 20
	for b.Loop() {
		use.powered(p, &s)
	}
}
