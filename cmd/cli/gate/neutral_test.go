package gate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

// neutral are changes of a scenario that change no result.
var neutral = []relation{
	{"a name changes nothing", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		pair(t, s, s.with("name", "another"))
	}},
	{"the resolved scenario gives the same result", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		a := summary(t, s)
		resolved := doc(a["scenario"].(map[string]any))
		b := summary(t, resolved)
		same(t, a, b)
		if d := differences(map[string]any(resolved), b["scenario"]); len(d) > 0 {
			t.Fatalf("the resolved scenario is not resolved:\n%s", strings.Join(d, "\n"))
		}
	}},
	{"YAML and JSON say the same", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		text, err := yaml.Marshal(map[string]any(s))
		if err != nil {
			t.Fatalf("%v", err)
		}
		same(t, summary(t, s), result(t, "run", create("written.yaml", string(text)), "--quiet", "--format", "json"))
	}},
	{"--set says the same as the file", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		var flags []string
		for key, v := range s {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatalf("%v", err)
			}
			flags = append(flags, "--set", key+"="+string(text))
		}
		same(t, summary(t, s), summary(t, doc{"run": map[string]any{}}, flags...))
	}},
	{"--check changes nothing", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		same(t, summary(t, s), summary(t, s, "--check"))
	}},
	{"a second run gives the same bytes", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		args := []string{"run", s.file(t, "scenario"), "--quiet", "--format", "json"}
		if a, b := command(t, args...), command(t, args...); a != b {
			t.Fatalf("two runs differ")
		}
	}},
	{"the plan changes no run", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario").with("plan", nil)
		pair(t, s, s.with("plan", map[string]any{"peak_rate": 9.5, "spare": 1, "gpus": []string{"h100-sxm"}}))
	}},
	{"an SLO changes nothing but what is measured by it", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario").with("slo", nil)
		for _, key := range []string{"workload.classes", "workload.headcount"} {
			if s.get(key) != nil {
				t.Skip("classes have limits of their own")
			}
		}
		b := s.with("slo", map[string]any{"ttft_p95": "700ms", "tpot_p95": "60ms", "attainment": .9})
		pair(t, s, b, "goodput", "slo_hours", "tokens.output_good", "cost.usd_per_million_output_tokens_good", "warnings", "ci95",
			"tail_samples", "tokens", "replications", "cost")
	}},
	{"a price changes nothing but the cost", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		if s.get("pools") != nil {
			t.Skip("pools have prices of their own")
		}
		pair(t, s.with("cost", nil), s.with("cost.gpu_hour", 7.25), "cost", "ci95", "replications", "warnings")
	}},
	{"defaults may be written", func(t *rapid.T) {
		s := plain(t)
		pair(t, s, s.with("engine.scheduling_policy", "fcfs", "engine.preemption_threshold", 0,
			"engine.stream_interval", 1, "workload.sampling", "greedy", "engine.victim", "auto",
			"engine.admission", "auto", "engine.kv_allocation", "auto", "deployment.replicas", 1,
			"deployment.dtype", "auto", "deployment.kv_cache_dtype", "auto", "run.replications", 1, "clients.retries", 0))
	}},
	{"null is like no key", func(t *rapid.T) {
		s := plain(t)
		b := s.clone()
		e, _ := b["engine"].(map[string]any)
		if e == nil {
			e = map[string]any{}
			b["engine"] = e
		}
		e["version"], e["max_model_len"], e["speculative"], e["order"] = nil, nil, nil, nil
		b["clients"], b["slo"], b["offload"], b["lifecycle"] = nil, nil, nil, nil
		pair(t, s, b)
	}},
	{"sections may be empty", func(t *rapid.T) {
		s := plain(t)
		b := s.clone()
		for _, key := range []string{"engine", "deployment", "clients", "slo", "cost", "overheads", "plan"} {
			if b[key] == nil {
				b[key] = map[string]any{}
			}
		}
		pair(t, s, b)
	}},
	{"an empty lifecycle changes no latency", func(t *rapid.T) {
		s := plain(t)
		served(t, s, s.with("lifecycle", map[string]any{}))
	}},
	{"a failure after the end changes no latency", func(t *rapid.T) {
		s := plain(t)
		failure := map[string]any{"kind": "crash", "at": "2000h", "replica": 0, "for": "1s"}
		served(t, s, s.with("lifecycle", map[string]any{"failures": []any{failure}}))
	}},
	{"a class of all requests is no class", func(t *rapid.T) {
		s := plain(t).with("workload.input", 300, "workload.output", 40) // a class has random numbers of its own
		one := []any{map[string]any{"name": "x", "weight": 1}}
		pair(t, s, s.with("workload.classes", one), "classes")
	}},
	{"a class without weight changes nothing", func(t *rapid.T) {
		s := plain(t)
		a := map[string]any{"name": "x", "weight": 1}
		b := map[string]any{"name": "y", "weight": 0, "input": 5000, "output": 9}
		pair(t, s.with("workload.classes", []any{a}), s.with("workload.classes", []any{a, b}), "classes")
	}},
	{"priorities that are equal order nothing", func(t *rapid.T) {
		s := plain(t).with("engine", nil, "workload.input", 300) // long prompts arrive earlier than they are queued
		pair(t, s, s.with("engine.scheduling_policy", "priority"))
	}},
	{"first come first served is the usual order", func(t *rapid.T) {
		s := plain(t)
		if s.get("engine.policy") == "mlfq" {
			t.Skip("mlfq has an order of its own")
		}
		pair(t, s, valid(t, s.with("engine.order", "fcfs")))
	}},
	{"prefix caching changes nothing where nothing is shared", func(t *rapid.T) {
		s := plain(t).with("engine", nil, "workload.prefix", nil)
		on := s.with("engine.enable_prefix_caching", true)
		off := s.with("engine.enable_prefix_caching", false)
		pair(t, on, off, "system.prefix_hit_rate", "replicas", "warnings")
	}},
	{"shared prefixes of no tokens share nothing", func(t *rapid.T) {
		s := plain(t)
		p := map[string]any{"groups": 3, "prompts_per_group": 1000000, "shared_tokens": 0}
		sum := summary(t, s.with("workload.prefix", p))
		if v := at(t, sum, "tokens.cached_input"); v != 0 {
			t.Fatalf("%v tokens are cached", v)
		}
	}},
	{"an offload tier without reuse changes no latency", func(t *rapid.T) {
		s := plain(t).with("engine", nil)
		tier := map[string]any{"name": "dram", "size": "64GiB", "bandwidth": "25GB/s"}
		served(t, s, s.with("offload", map[string]any{"tiers": []any{tier}}))
	}},
}

// units are two ways to write the same quantity or the same law.
var units = []relation{
	{"durations have many units", func(t *rapid.T) {
		s := plain(t)
		n := drawer{t}.whole(200, 30000)
		for _, text := range []string{fmt.Sprintf("%dus", n*1000), fmt.Sprintf("%.3fs", float64(n)/1e3),
			fmt.Sprintf("%dns", n*1000000)} {
			pair(t, s.with("clients.timeout", fmt.Sprintf("%dms", n)), s.with("clients.timeout", text))
		}
	}},
	{"names have no case", func(t *rapid.T) {
		s := plain(t)
		m, g := one(drawer{t}, "llama-3.1-8b", "llama-3.2-1b"), one(drawer{t}, "h100-sxm", "h200-sxm")
		pair(t, s.with("model", m, "gpu", g), s.with("model", strings.ToUpper(m), "gpu", strings.ToUpper(g)))
	}},
	{"aliases are names", func(t *rapid.T) {
		s := plain(t)
		pair(t, s.with("model", "llama-3.1-8b", "gpu", "h100-sxm"),
			s.with("model", "meta-llama/Llama-3.1-8B-Instruct", "gpu", "H100"))
	}},
	{"the model's own format is auto", func(t *rapid.T) {
		s := plain(t).with("model", "llama-3.1-8b")
		pair(t, s, s.with("deployment.dtype", "bf16", "deployment.kv_cache_dtype", "bf16"))
	}},
	lengths("a length is a fixed law", 77, law{"distribution": "fixed", "value": 77}),
	lengths("a uniform law between equal ends is fixed", 77, law{"distribution": "uniform", "min": 77, "max": 77}),
	lengths("a law clipped to one length is fixed", 77,
		law{"distribution": "gamma", "mean": 50, "cv": 1, "min": 77, "max": 77}),
	lengths("quantiles of one length are fixed", 77,
		law{"distribution": "quantiles", "p": []any{0, 1}, "q": []any{77, 77}}),
	lengths("a mixture of one law is the law", 77,
		law{"distribution": "mixture", "parts": []any{law{"distribution": "fixed", "value": 77, "weight": 2.5}}}),
	{"a lognormal law has two ways to be written", func(t *rapid.T) {
		s, d := plain(t), drawer{t}
		mean, cv := d.between(20, 300), d.between(.2, 2)
		sigma := math.Sqrt(math.Log1p(cv * cv))
		mu := math.Log(mean) - sigma*sigma/2
		a := summary(t, s.with("workload.output", law{"distribution": "lognormal", "mean": mean, "cv": cv}))
		b := summary(t, s.with("workload.output", law{"distribution": "lognormal", "mu": mu, "sigma": sigma}))
		if x, y := at(t, a, "tokens.output"), at(t, b, "tokens.output"); math.Abs(x-y) > requests {
			t.Fatalf("%v and %v output tokens", x, y) // roundings differ
		}
	}},
	{"a think time is a fixed law", func(t *rapid.T) {
		s, d := plain(t), drawer{t}
		v := d.duration(.01, 3)
		closed := func(think any) doc {
			return s.with("workload.arrivals", law{"process": "closed", "users": 9, "think_time": think})
		}
		pair(t, closed(v), closed(law{"distribution": "fixed", "mean": v}))
	}},
	{"one stage is a process with an end", func(t *rapid.T) {
		s := plain(t).with("run.requests", nil, "run.duration", nil)
		stage := law{"process": "constant", "rate": drawer{t}.whole(1, 20)}
		staged := s.with("workload.arrivals", []any{stage, law{"process": "constant", "rate": 5, "duration": "2s"}})
		first := staged.clone()
		first["workload"].(map[string]any)["arrivals"].([]any)[0].(map[string]any)["duration"] = "3s"
		twice := staged.clone()
		list := twice["workload"].(map[string]any)["arrivals"].([]any)
		list[0].(map[string]any)["duration"] = "3000ms"
		pair(t, first, twice)
	}},
}

// law is a map of a scenario.
type law = map[string]any

// lengths says that two laws of the output are the same.
func lengths(name string, a, b any) relation {
	return relation{name, func(t *rapid.T) {
		s := plain(t)
		key := one(drawer{t}, "workload.output", "workload.input")
		pair(t, s.with(key, a), s.with(key, b))
	}}
}
