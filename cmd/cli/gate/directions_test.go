package gate

import (
	"math"
	"strconv"

	"pgregory.net/rapid"
)

// directions are laws about what a change does.
var directions = []relation{
	scaled("constant arrivals", func(d drawer, slow float64) any { return law{"process": "constant", "rate": 8 / slow} }),
	scaled("Poisson arrivals", func(d drawer, slow float64) any { return law{"process": "poisson", "rate": 8 / slow} }),
	scaled("bursts", func(d drawer, slow float64) any { return law{"process": "gamma", "rate": 8 / slow, "cv": 1.5} }),
	scaled("Weibull gaps", func(d drawer, slow float64) any {
		return law{"process": "weibull", "rate": 8 / slow, "shape": .7}
	}),
	scaled("arrivals at once", func(drawer, float64) any { return law{"process": "all-at-once"} }),
	scaled("a closed loop", func(d drawer, slow float64) any {
		return law{"process": "closed", "users": 12, "think_time": seconds(slow)}
	}),
	{"twice the price is twice the cost", func(t *rapid.T) {
		s, price := plain(t), drawer{t}.between(.5, 9)
		a, b := summary(t, s.with("cost.gpu_hour", price)), summary(t, s.with("cost.gpu_hour", 2*price))
		for _, path := range []string{"cost.usd_per_hour", "cost.usd_per_million_output_tokens_at_load"} {
			if x, y := at(t, a, path), at(t, b, path); math.Abs(y-2*x) > 1e-9*y {
				t.Fatalf("%s is %v and %v", path, x, y)
			}
		}
	}},
	{"another seed is another run", func(t *rapid.T) {
		s := plain(t).with("workload.output", law{"distribution": "uniform", "min": 1, "max": 900})
		a, b := summary(t, s), summary(t, s.with("run.seed", 1000001))
		if len(differences(a["latency_ms"], b["latency_ms"])) == 0 {
			t.Fatalf("two seeds give the same latencies")
		}
	}},
	{"an idle system has no queue", func(t *rapid.T) {
		d := drawer{t}
		s := doc{"workload": law{"arrivals": law{"process": "constant", "rate": .01}, "input": d.whole(1, 3000),
			"output": d.whole(2, 300)}, "lifecycle": law{}, "run": law{"requests": 20},
			"engine": law{"enable_prefix_caching": false}}
		sum := summary(t, s)
		low, high := at(t, sum, "latency_ms.e2e.p50"), at(t, sum, "latency_ms.e2e.max")
		if high-low > 1e-6*high {
			t.Fatalf("equal requests take %v to %v ms", low, high)
		}
		if q := at(t, sum, "concurrency.in_system.max"); q > 1 {
			t.Fatalf("%v requests are in the system at once", q)
		}
	}},
	{"a tighter SLO attains no more", func(t *rapid.T) {
		s, d := plain(t), drawer{t}
		limit := d.between(.02, 3)
		slo := func(x float64) law { return law{"ttft_p95": seconds(x), "tpot_p95": seconds(x / 10)} }
		loose, tight := summary(t, s.with("slo", slo(limit))), summary(t, s.with("slo", slo(limit*d.between(.1, 1))))
		if a, b := at(t, loose, "goodput.attainment"), at(t, tight, "goodput.attainment"); b > a {
			t.Fatalf("attainment is %v, and %v with tighter limits", a, b)
		}
	}},
	{"more replicas never lower saturation", func(t *rapid.T) {
		d := drawer{t}
		s := saturated(d)
		n := d.whole(1, 3)
		a := summary(t, s.with("deployment.replicas", n), find)
		b := summary(t, s.with("deployment.replicas", 2*n), find)
		if x, y := at(t, a, lowRate), at(t, b, lowRate); y < 1.8*x || y > 2.2*x {
			t.Fatalf("%d replicas saturate at %v, and twice as many at %v", n, x, y)
		}
	}},
	{"twice as fast saturates at twice the rate", func(t *rapid.T) {
		d := drawer{t}
		s := saturated(d)
		ms, us := d.between(2, 20), d.between(10, 200)
		a := summary(t, s.with("step_time", law{"linear": law{"a_ms": 2 * ms, "b_us": 2 * us}}), find)
		b := summary(t, s.with("step_time", law{"linear": law{"a_ms": ms, "b_us": us}}), find)
		if x, y := at(t, a, lowRate), at(t, b, lowRate); math.Abs(y/x-2) > .1 {
			t.Fatalf("saturation is %v, and %v at twice the speed", x, y)
		}
	}},
	{"saturation does not depend on the load", func(t *rapid.T) {
		d := drawer{t}
		s := saturated(d)
		a := summary(t, s.with("workload.arrivals.rate", 1), find)
		b := summary(t, s.with("workload.arrivals.rate", 7), find)
		if x, y := at(t, a, lowRate), at(t, b, lowRate); math.Abs(y/x-1) > .02 {
			t.Fatalf("saturation is %v at one rate and %v at another", x, y)
		}
	}},
	{"no step is faster on a slower GPU", func(t *rapid.T) {
		d := drawer{t}
		s := doc{"workload": law{"arrivals": law{"process": "constant", "rate": .1}, "input": d.whole(1, 3000),
			"output": d.whole(20, 300)}, "lifecycle": law{}, "run": law{"requests": 10}}
		slow, fast := summary(t, s.with("gpu", "a100-80gb-sxm")), summary(t, s.with("gpu", "h200-sxm"))
		if x, y := at(t, slow, "latency_ms.e2e.mean"), at(t, fast, "latency_ms.e2e.mean"); x < y {
			t.Fatalf("a request takes %v ms on an A100 and %v ms on an H200", x, y)
		}
	}},
	{"drafts that are never accepted help nobody", func(t *rapid.T) {
		s := open(t).with("engine", nil, "model", "llama-3.1-8b")
		draft := law{"method": "ngram", "num_speculative_tokens": drawer{t}.whole(1, 5), "acceptance": 0}
		a, b := summary(t, s), summary(t, valid(t, s.with("engine.speculative", draft)))
		if x, y := at(t, a, "tokens.output"), at(t, b, "tokens.output"); x != y {
			t.Fatalf("%v tokens, and %v with drafts", x, y)
		}
		if x, y := at(t, a, "latency_ms.tpot.mean"), at(t, b, "latency_ms.tpot.mean"); y < .98*x {
			t.Fatalf("TPOT is %v ms, and %v ms with drafts that are rejected", x, y)
		}
	}},
	{"longer outputs are more tokens and no less time", func(t *rapid.T) {
		s, n := plain(t), drawer{t}.whole(2, 150)
		a, b := summary(t, s.with("workload.output", n)), summary(t, s.with("workload.output", 2*n))
		if x, y := at(t, a, "tokens.output"), at(t, b, "tokens.output"); y != 2*x {
			t.Fatalf("%v tokens, and %v of outputs twice as long", x, y)
		}
		if x, y := at(t, a, "latency_ms.e2e.mean"), at(t, b, "latency_ms.e2e.mean"); y < x {
			t.Fatalf("E2E is %v ms, and %v ms of outputs twice as long", x, y)
		}
	}},
	{"a batch of everything at once keeps no seat empty", func(t *rapid.T) {
		d := drawer{t}
		seats := d.whole(1, 60)
		s := doc{"workload": law{"arrivals": law{"process": "all-at-once"}, "input": d.whole(1, 50), "output": 100},
			"engine": law{"max_num_seqs": seats}, "run": law{"requests": requests}}
		if n := at(t, summary(t, s), "concurrency.running.max"); n != float64(min(seats, requests)) {
			t.Fatalf("%v requests run at once in %d seats", n, seats)
		}
	}},
}

// lowRate is the path of the saturation.
const lowRate = "saturation.low_requests_per_s"

// find makes a run search for it.
const find = "--find-saturation"

// saturated is a light scenario.
func saturated(d drawer) doc {
	return doc{"workload": law{"arrivals": law{"process": "poisson", "rate": 2}, "input": d.whole(10, 500),
		"output": d.whole(5, 60)}, "engine": law{"max_num_seqs": d.whole(8, 64)},
		"step_time": law{"linear": law{"a_ms": 10, "b_us": 100}}, "run": law{"requests": requests}}
}

// seconds is a duration.
func seconds(v float64) string { return strconv.FormatFloat(v, 'f', 9, 64) + "s" }

// scaled says that a system that is slower by a factor, under arrivals that are slower by it, has latencies that are
// longer by it.
func scaled(name string, arrivals func(d drawer, slow float64) any) relation {
	return relation{"time scales with " + name, func(t *rapid.T) {
		d := drawer{t}
		s := doc{"workload": law{"input": 100, "output": law{"distribution": "uniform", "min": 1, "max": d.whole(2, 100)}},
			"engine": law{"max_num_seqs": d.whole(2, 50)},
			"run":    law{"requests": requests, "seed": d.whole(0, 1e6), "warmup": "none"}}
		if name != "a closed loop" && name != "arrivals at once" {
			s["lifecycle"] = law{}
		}
		ms, us := float64(d.whole(1, 20)), float64(d.whole(0, 300))
		at1 := func(slow float64) map[string]any {
			return summary(t, s.with("workload.arrivals", arrivals(d, slow), "step_time",
				law{"linear": law{"a_ms": slow * ms, "b_us": slow * us}}))
		}
		a, b := at1(1), at1(2)
		for _, path := range []string{"ttft.mean", "ttft.max", "e2e.mean", "e2e.p95", "queue.mean", "tpot.mean"} {
			x, xKnown := doc(a).get("latency_ms." + path).(float64)
			y, yKnown := doc(b).get("latency_ms." + path).(float64)
			if xKnown != yKnown || math.Abs(y-2*x) > 1e-6*y+1e-6 {
				t.Fatalf("%s is %v ms, and %v ms where all is half as fast", path, x, y)
			}
		}
	}}
}
