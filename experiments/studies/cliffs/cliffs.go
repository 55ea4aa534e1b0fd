package main

import (
	"fmt"

	"clifftop/report"
)

// published are the tokens per second of the published example.
var published = []float64{5000, 25000, 35000, 30000}

// all returns the cliffs in the order of the results.
func all() ([]*cliff, error) {
	list := []*cliff{literal(), preempt(), retries(), fleet()}
	for _, c := range list {
		s, err := read(c.name)
		if err != nil {
			return nil, err
		}
		c.scenario = s
	}
	return list, nil
}

func literal() *cliff {
	return &cliff{
		name: "literal", unit: "tokens/s, prompts and outputs, cached or not",
		measure: func(s *report.Summary) float64 { return *s.Throughput.TotalTokensPerS }, copies: 1,
		published: published, least: 1. / 7,
		drawn:  []int{10, 25, 50, 75, 100, 125, 150, 200},
		thinks: "{distribution: lognormal, mean: 11s, cv: 2}",
		cause:  "Hit rate", causeTitle: "Prompt tokens found in the prefix cache",
		controls: []variant{
			set("four times the KV cache", "engine.num_gpu_blocks_override=113360"),
			set("KV in FP8", "deployment.kv_cache_dtype=fp8"),
			set("an H200", "gpu=h200-sxm"),
			set("no prefix cache", "engine.enable_prefix_caching=false"),
		},
		search: search{
			axes: []axis{
				{"think time, s", []float64{8, 9, 10, 11}},
				{"document", []float64{4000, 4400, 4800, 5200, 5600}},
				{"question", []float64{200, 400, 600, 800}},
				{"output", []float64{120, 180, 240}},
			},
			settings: func(v []float64) []string {
				return []string{
					fmt.Sprintf("workload.arrivals.think_time.mean=%gs", v[0]),
					fmt.Sprintf("workload.prefix.shared_tokens=%g", v[1]),
					fmt.Sprintf("workload.input.value=%g", v[1]+v[2]),
					fmt.Sprintf("workload.output.value=%g", v[3]),
				}
			},
		},
	}
}

func preempt() *cliff {
	return &cliff{
		name: "preempt", unit: "output tokens/s",
		measure: func(s *report.Summary) float64 { return *s.Throughput.OutputTokensPerS }, copies: 1,
		published: published, shape: true, least: 1. / 7,
		drawn:  []int{10, 25, 50, 75, 100, 125, 150, 200},
		thinks: "{distribution: lognormal, mean: 60s, cv: 2}",
		cause:  "Recomputed", causeTitle: "Fraction of tokens that are recomputed",
		controls: []variant{
			set("memory reserved", "engine.admission=full-length"),
			set("memory for the whole prompt", "engine.admission=full-prompt"),
			set("a prefix cache", "engine.enable_prefix_caching=true"),
			set("four times the KV cache", "engine.num_gpu_blocks_override=26280"),
		},
		search: search{
			axes: []axis{
				{"think time, s", []float64{30, 40, 50, 60, 80, 100}},
				{"prompt", []float64{1500, 2000, 3000, 4000}},
				{"its cv", []float64{0.5, 1}},
				{"output", []float64{150, 250, 500}},
			},
			settings: func(v []float64) []string {
				return []string{
					fmt.Sprintf("workload.arrivals.think_time.mean=%gs", v[0]),
					fmt.Sprintf("workload.arrivals.ramp=%gs", v[0]),
					fmt.Sprintf("workload.input.mean=%g", v[1]),
					fmt.Sprintf("workload.input.cv=%g", v[2]),
					fmt.Sprintf("workload.output.value=%g", v[3]),
				}
			},
		},
	}
}

func retries() *cliff {
	told, bounded, short := "clients.cancel_on_timeout=true", "clients.retry_budget=0.1",
		"engine.max_num_queued_reqs=96"
	return &cliff{
		name: "retries", unit: "output tokens/s received by clients",
		measure: func(s *report.Summary) float64 { return *s.Throughput.SuccessfulOutputTokensPerS }, copies: 1,
		drawn:   []int{10, 25, 50, 75, 100, 125, 150, 200},
		thinks:  "{distribution: fixed, mean: 1s}",
		subject: "useful output",
		cause:   "Received by clients", causeTitle: "Fraction of output tokens in complete outputs",
		also: &column{"base, all output", func(s *report.Summary) float64 {
			return *s.Throughput.OutputTokensPerS
		}, 0, false},
		controls: []variant{
			set("all cures", told, bounded, short),
			set("server told", told),
			set("few retries", bounded),
			set("short queue", short),
			set("no retries", "clients.retries=0"),
			set("no timeout", "clients.timeout=null"),
		},
	}
}

func fleet() *cliff {
	return &cliff{
		name: "fleet", unit: "output tokens/s of all servers",
		measure: func(s *report.Summary) float64 { return *s.Throughput.OutputTokensPerS }, copies: 24,
		published: published, shape: true, least: 1. / 10,
		drawn:  []int{10, 25, 50, 75, 100, 125, 150, 200},
		thinks: "{distribution: lognormal, mean: 20s, cv: 2}",
		cause:  "Recomputed", causeTitle: "Fraction of tokens that are recomputed",
		controls: []variant{
			set("four times the KV cache", "engine.num_gpu_blocks_override=25696"),
			set("memory reserved", "engine.admission=full-length"),
			set("an H200", "gpu=h200-sxm"),
		},
		search: search{
			axes: []axis{
				{"think time, s", []float64{4, 10, 20, 40}},
				{"prompt", []float64{150, 500, 1000}},
				{"output", []float64{600, 1000, 1500}},
				{"its cv", []float64{0.1, 0.5}},
			},
			settings: func(v []float64) []string {
				return []string{
					fmt.Sprintf("workload.arrivals.think_time.mean=%gs", v[0]),
					fmt.Sprintf("workload.arrivals.ramp=%gs", v[0]),
					fmt.Sprintf("workload.input.value=%g", v[1]),
					fmt.Sprintf("workload.output.mean=%g", v[2]),
					fmt.Sprintf("workload.output.cv=%g", v[3]),
				}
			},
		},
	}
}
