package report

import (
	"strings"
	"testing"

	"clifftop/report/stats"
)

// poolRun is a run of so many seconds and tokens, with its latencies.
func poolRun(seed uint64, seconds, tokens, ttft float64, steady bool) *Summary {
	s := &Summary{Seed: seed, Warnings: []Warning{{"same", "in every run"}}}
	s.Window = Window{EndS: seconds, Stationary: &steady}
	s.Throughput.OutputTokensPerS = stats.Finite(tokens / seconds)
	s.Throughput.OfferedRequestsPerS = stats.Finite(100 / seconds)
	s.Requests.Offered = 100
	s.Latency.TTFT = Distribution{N: 1200, Mean: stats.Finite(ttft), SD: stats.Finite(1), P50: stats.Finite(ttft),
		P99: stats.Finite(2 * ttft), Max: stats.Finite(3 * ttft)}
	s.Latency.E2E = Distribution{N: 100, Mean: stats.Finite(10 * ttft)}
	s.System.ErrorRate = stats.Finite(0)
	return s
}

func TestPool(t *testing.T) {
	runs := []*Summary{poolRun(1, 10, 1000, 4, true), poolRun(2, 30, 2000, 6, true), poolRun(3, 20, 3000, 8, true)}
	runs[2].Warnings = append(runs[2].Warnings, Warning{"odd", "something"})
	runs[1].Latency.TTFT.P50 = nil
	s := Pool(runs)
	within(t, "throughput, a ratio of sums", *s.Throughput.OutputTokensPerS, 6000./60, 1e-9)
	within(t, "mean of means", *s.Latency.TTFT.Mean, 6, 1e-12)
	within(t, "maximum", *s.Latency.TTFT.Max, 24, 0)
	within(t, "length", s.Window.EndS, 20, 1e-9)
	// t(2) = 4.3027, s = 2.
	ci := s.CI95["latency_ms.ttft.mean"]
	within(t, "half width", (ci[1]-ci[0])/2, 4.3027*2/1.7320508, 1e-3)
	if s.Latency.TTFT.P50 != nil {
		t.Error("what one run does not know is known")
	}
	if _, ok := s.CI95["latency_ms.ttft.max"]; ok {
		t.Error("a maximum has an interval")
	}
	if s.Requests.Offered != 300 || s.Latency.TTFT.N != 3600 || s.Latency.TTFT.Samples() != 1200 {
		t.Errorf("%d offered, %d samples, %d in a run", s.Requests.Offered, s.Latency.TTFT.N, s.Latency.TTFT.Samples())
	}
	if n := s.TailSamples["latency_ms.ttft.p99"]; n != 36 {
		t.Errorf("%d samples beyond p99, want 36", n)
	}
	// No error in 300 requests does not mean that there are none.
	if ci := s.CI95["system.error_rate"]; ci[0] != 0 || !(ci[1] > .01 && ci[1] < .013) {
		t.Errorf("error rate %v", ci)
	}
	if len(s.Warnings) != 2 || s.Warnings[1].Text != "in 1 of 3 runs: something" {
		t.Errorf("warnings %v", s.Warnings)
	}
	if runs[0].Requests.Offered != 100 || len(runs[0].Warnings) != 1 || *runs[0].Latency.TTFT.Mean != 4 {
		t.Error("a run has changed")
	}
}

func TestPoolOverload(t *testing.T) {
	var runs []*Summary
	for i := range 5 {
		r := poolRun(uint64(i), 10, 1000+float64(i), 4+float64(i), false)
		r.Window.GrowthRequestsPerS = stats.Finite(2)
		r.Warnings = append(r.Warnings, Warning{"not_stationary", "overload"})
		runs = append(runs, r)
	}
	s := Pool(runs)
	if _, ok := s.CI95["latency_ms.ttft.mean"]; ok {
		t.Error("latency under overload has an interval")
	}
	if _, ok := s.CI95["throughput.output_tokens_per_s"]; !ok {
		t.Error("throughput has none")
	}
	if w := s.Warnings[1]; w.Code != "not_stationary" || !strings.Contains(w.Text, "no steady state") {
		t.Errorf("warning %v", w)
	}
}

func TestPoolAlike(t *testing.T) {
	s := Pool([]*Summary{poolRun(1, 10, 1000, 4, true), poolRun(2, 10, 1000, 4, true)})
	if s.CI95 != nil || s.CI95Method != "" || s.Warnings[len(s.Warnings)-1].Code != "no_randomness" {
		t.Errorf("intervals %v, warnings %v", s.CI95, s.Warnings)
	}
}

// A run whose window has no request says nothing of the objective's limits, and the others do.
func TestPoolOfRunsWithoutRequests(t *testing.T) {
	runs := []*Summary{poolRun(1, 10, 0, 4, false), poolRun(2, 10, 1000, 4, true)}
	for _, r := range runs {
		r.Goodput.SLO = &SLO{}
	}
	runs[1].Goodput.Limits = []LimitResult{{Key: "ttft_p90", N: 100, Fraction: stats.Finite(.95),
		Target: stats.Finite(.9)}}
	if g := Pool(runs).Goodput; len(g.Limits) != 1 || g.Limits[0].N != 100 {
		t.Errorf("limits %+v", g.Limits)
	}
	runs[1].Goodput.Limits = nil
	if g := Pool(runs).Goodput; g.Limits != nil {
		t.Errorf("limits %+v of no run", g.Limits)
	}
}

// TestPoolOfRatesOfReplicas: a replica with one GPU has the same throughput per GPU, also over windows of unlike lengths.
func TestPoolOfRatesOfReplicas(t *testing.T) {
	run := func(seed uint64, seconds, tokens float64) *Summary {
		s := poolRun(seed, seconds, tokens, 4, true)
		rate := Throughput{OutputTokensPerS: stats.Finite(tokens / seconds)}
		rate.OutputTokensPerSPerGPU = stats.Finite(tokens / seconds)
		s.Replicas = []Replica{{Throughput: rate}}
		return s
	}
	r := Pool([]*Summary{run(1, 10, 1000), run(2, 30, 1500)}).Replicas[0].Throughput
	within(t, "tokens per second", *r.OutputTokensPerS, 2500./40, 1e-9)
	within(t, "tokens per second and GPU", *r.OutputTokensPerSPerGPU, 2500./40, 1e-9)
}

// TestPoolOfReplicas: what was paid for is that of all runs, what was done with it a ratio of sums, and the price of an
// hour an average over time.
func TestPoolOfReplicas(t *testing.T) {
	run := func(seed uint64, seconds, hours, requests, price float64, most int) *Summary {
		s := poolRun(seed, seconds, 1000, 5, true)
		s.System.Replicas = &ReplicaCounts{Mean: stats.Finite(float64(most) / 2), Max: most,
			GPUHours: stats.Finite(hours), IdleGPUHours: stats.Finite(hours / 4),
			RequestsPerGPUHour: stats.Finite(requests / hours)}
		s.Cost = &Cost{USDPerHour: &price}
		return s
	}
	s := Pool([]*Summary{run(1, 100, 2, 50, 4, 3), run(2, 300, 8, 150, 8, 5), run(3, 100, 2, 100, 4, 2)})
	r := s.System.Replicas
	if r.Max != 5 {
		t.Errorf("%d replicas at most", r.Max)
	}
	within(t, "hours", *r.GPUHours, 12, 1e-12)
	within(t, "idle hours", *r.IdleGPUHours, 3, 1e-12)
	within(t, "requests for an hour", *r.RequestsPerGPUHour, 300./12, 1e-9)
	within(t, "price of an hour", *s.Cost.USDPerHour, (4*100+8*300+4*100)/500., 1e-9)
	within(t, "price of tokens", *s.Cost.USDPerMillionOutputAtLoad, 6.4/3600/6*1e6, 1e-6)
	if _, ok := s.CI95["system.replicas.gpu_hours"]; ok {
		t.Error("a sum has an interval")
	}
}
