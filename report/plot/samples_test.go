package plot

import (
	"math"

	"gonum.org/v1/plot/vg"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/sim/clock"
)

func of[T any](v T) *T { return &v }

// dist is a distribution with the given percentiles.
func dist(n int64, p50, p95, p99 float64) report.Distribution {
	return report.Distribution{N: n, Mean: of((p50 + p95) / 2), P50: of(p50), P90: of((p50 + p95) / 2), P95: of(p95),
		P99: of(p99), Max: of(1.2 * p99)}
}

// openCurve is like a chat service on one GPU: it saturates near 28 requests a second.
func openCurve(loads ...float64) *curve.Curve {
	if loads == nil {
		loads = []float64{1, 4, 7, 10, 13, 16, 19, 22, 24, 26, 28, 30, 32, 36, 40}
	}
	const perRequest, capacity = 180.0, 28.0
	c := &curve.Curve{Schema: curve.Schema, Over: "rate"}
	for _, r := range loads {
		rho := r / capacity
		served := min(r, capacity*0.995)
		running := min(256, 2+served*perRequest*0.008/(1-0.8*min(rho, 1)))
		tpot := 7.5 + 0.11*running
		wait := 12 * rho * rho / math.Max(0.012, 1-rho)
		steady := rho < 1
		s := &report.Summary{Seed: 1}
		s.Window = report.Window{EndS: 300, Stationary: of(steady)}
		s.Requests = report.Requests{Offered: int64(r * 300), Completed: int64(served * 300)}
		s.Tokens.OutputSuccessful = int64(served*300) * perRequest
		s.Throughput.OutputTokensPerS = of(served * perRequest)
		s.Throughput.SuccessfulOutputTokensPerS = of(served * perRequest)
		s.Throughput.OutputTokensPerSPerGPU = of(served * perRequest)
		s.Latency.TTFT = dist(int64(served*300)*4, 34+wait, 60+2.4*wait, 95+5*wait)
		if longest := 3000 + 300e3*(1-capacity/r); !steady {
			s.Latency.TTFT = dist(int64(served*300)*4, 0.5*longest, 0.95*longest, 0.99*longest)
		}
		s.Latency.TPOT = dist(int64(served*300)*4, tpot, 1.25*tpot+2, 1.5*tpot+5)
		use := min(0.985, 0.02+running*0.0049)
		s.System.KVUsage = report.KVUsage{Mean: of(use), Max: of(min(1, use*1.25+0.04))}
		if rho > 0.9 {
			s.System.Preemptions = int64(300 * (rho - 0.9) * 4)
		}
		s.System.ErrorRate = of(0.0)
		s.Goodput.SLO = &report.SLO{Objectives: []report.Objective{
			{Metric: "ttft", Percentile: 95, Limit: 800 * clock.Millisecond},
			{Metric: "tpot", Percentile: 95, Limit: 50 * clock.Millisecond},
		}}
		met := *s.Latency.TTFT.P95 <= 800 && *s.Latency.TPOT.P95 <= 50
		s.Goodput.Met = of(met)
		good := served * perRequest
		if !met {
			good *= math.Exp(-(*s.Latency.TTFT.P50 / 900))
		}
		s.Goodput.OutputTokensPerS = of(good)
		c.Points = append(c.Points, curve.Point{Value: r, Summary: s})
	}
	c.Knee = &curve.Knee{Value: 22, OutputTokensPerS: 22 * perRequest, E2EMeanMs: 5000}
	c.Peak = &curve.Peak{Value: 30, OutputTokensPerS: capacity * 0.995 * perRequest}
	c.FirstLimit = &curve.Limit{Resource: "kv", Value: 26}
	return c
}

// closedCurve collapses as its prefix cache begins to thrash.
func closedCurve() *curve.Curve {
	c := &curve.Curve{Schema: curve.Schema, Over: "users"}
	users := []float64{10, 25, 50, 60, 70, 80, 90, 100, 120, 150, 200}
	output := []float64{180, 445, 885, 1045, 1200, 1340, 1390, 1400, 1170, 985, 970}
	hits := []float64{.96, .96, .96, .96, .95, .9, .78, .65, .3, .05, 0}
	for i, n := range users {
		s := &report.Summary{Seed: 1}
		s.Window = report.Window{EndS: 600, Stationary: of(true)}
		s.Requests = report.Requests{Offered: int64(output[i] * 600 / 180), Completed: int64(output[i] * 580 / 180),
			TimedOut: int64(output[i] * 20 / 180 * n / 100)}
		s.Throughput.OutputTokensPerS = of(output[i])
		s.Throughput.SuccessfulOutputTokensPerS = of(output[i] * (1 - math.Max(0, n-90)/400))
		s.Throughput.OutputTokensPerSPerGPU = of(output[i])
		over := math.Max(0, n-70)
		s.Latency.TTFT = dist(4000, 18+over*over*0.9, 30+over*over*1.1+n*n*0.1, 45+over*over*1.25+n*n*0.25)
		s.Latency.TPOT = dist(4000, 7.6+0.02*n+0.004*over*over, 9+0.03*n+0.0042*over*over, 11+0.1*n+0.0045*over*over)
		s.System.KVUsage = report.KVUsage{Mean: of(math.Min(0.99, 0.012*n)), Max: of(math.Min(1, 0.02+0.0132*n))}
		s.System.PrefixHitRate = of(hits[i])
		s.System.ErrorRate = of(math.Max(0, n-90) / 400)
		c.Points = append(c.Points, curve.Point{Value: n, Summary: s})
	}
	c.Knee = &curve.Knee{Value: 80, OutputTokensPerS: 1340}
	c.Peak = &curve.Peak{Value: 100, OutputTokensPerS: 1400}
	c.Collapse = &curve.Collapse{Value: 120, OutputTokensPerS: 1170, FallFraction: 0.31}
	c.FirstLimit = &curve.Limit{Resource: "kv", Value: 80}
	return c
}

// buckets are a run's time series: at first in equilibrium, or overloaded from the start.
func buckets(growth float64) []report.SeriesPoint {
	var out []report.SeriesPoint
	for i := range 240 {
		t := float64(i) * 1.25
		wave := math.Sin(t/7) + 0.6*math.Sin(t/2.3)
		p := report.SeriesPoint{StartS: t, EndS: t + 1.25, InWindow: i >= 30 && i < 225}
		ramp := 1 - math.Exp(-t/15)
		if i >= 225 {
			ramp = math.Exp(-(t - 281) / 4)
		}
		p.RunningMean = (120 + 14*wave) * ramp
		p.QueueMean = math.Max(0, (3*wave+growth*t)*ramp)
		p.KVUsageMean = of(math.Min(0.99, p.RunningMean/150))
		p.OutputTokens = int64((5600 + 180*wave) * ramp)
		out = append(out, p)
	}
	return out
}

type rectangle = vg.Rectangle

func lengths(in []float64) []vg.Length {
	out := make([]vg.Length, len(in))
	for i, v := range in {
		out[i] = vg.Length(v)
	}
	return out
}
