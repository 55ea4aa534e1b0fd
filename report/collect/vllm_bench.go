package collect

import (
	"math"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// BenchInfo is what vLLM's benchmark repeats of its settings. Nil and infinite values are given as it gives
// them: null, and the text "inf".
type BenchInfo struct {
	Date          string // YYYYMMDD-HHMMSS
	Model         string
	Label         string
	RequestRate   float64 // requests per second, or +Inf
	Burstiness    float64
	MaxConcurrent *int64 // --max-concurrency
}

// VLLMBench gives the run under the keys of `vllm bench serve --save-result`, by its definitions: over all
// requests, from the start of the run until the last one ended, whatever the window; request_goodput is of
// the collector's SLO. Gaps are those of the GPU's iterations. max_output_tokens_per_s
// needs time buckets that divide a second and is null in runs of more than some minutes.
func (c *Collector) VLLMBench(info BenchInfo) map[string]any {
	c.settle()
	w := window{to: len(c.line.buckets), end: c.runEnd(), until: clock.Never}
	sum, detail := c.line.total(w.from, w.to)
	var s report.Summary
	summariser{c}.rates(&s, &w, &sum)
	summariser{c}.latencies(&s, &w, &sum, detail)
	completed := c.totals.outcomes[0]
	m := map[string]any{
		"date": info.Date, "backend": "clifftop", "endpoint_type": "clifftop", "label": nil,
		"model_id": info.Model, "tokenizer_id": info.Model, "num_prompts": c.totals.offered,
		"request_rate": info.RequestRate, "burstiness": info.Burstiness, "max_concurrency": info.MaxConcurrent,
		"duration": w.seconds(), "completed": completed, "failed": c.totals.offered - completed,
		"total_input_tokens": c.totals.completedPrompts, "total_output_tokens": c.totals.successful,
		"request_throughput":      stats.Ratio(float64(completed), w.seconds()),
		"request_goodput":         nil,
		"output_throughput":       stats.Ratio(float64(c.totals.successful), w.seconds()),
		"total_token_throughput":  stats.Ratio(float64(c.totals.completedPrompts+c.totals.successful), w.seconds()),
		"max_output_tokens_per_s": summariser{c}.busiestSecond(),
		"max_concurrent_requests": detail.levels[inSystem].Max(),
		"rtfx":                    0.0,
	}
	if info.Label != "" {
		m["label"] = info.Label
	}
	if math.IsInf(info.RequestRate, 0) {
		m["request_rate"] = "inf"
	}
	if c.opts.SLO != nil {
		m["request_goodput"] = stats.Ratio(float64(sum.good), w.seconds())
	}
	for name, d := range map[string]*report.Distribution{"ttft": &s.Latency.TTFT, "tpot": &s.Latency.TPOT,
		"itl": &s.Latency.ITL, "e2el": &s.Latency.E2E} {
		m["mean_"+name+"_ms"], m["median_"+name+"_ms"], m["std_"+name+"_ms"] = d.Mean, d.P50, d.SD
		m["p50_"+name+"_ms"], m["p90_"+name+"_ms"], m["p95_"+name+"_ms"] = d.P50, d.P90, d.P95
		m["p99_"+name+"_ms"], m["p99.9_"+name+"_ms"] = d.P99, d.P999
	}
	return m
}

// busiestSecond is the number of tokens in the second with most of them, if the buckets divide seconds.
func (c summariser) busiestSecond() *float64 {
	const second = 1e12
	each := int(second / c.line.width)
	if each < 1 {
		return nil
	}
	var most int64
	for i := 0; i < len(c.line.buckets); i += each {
		var n int64
		for _, b := range c.line.buckets[i:min(i+each, len(c.line.buckets))] {
			n += b.output
		}
		most = max(most, n)
	}
	// A second of buckets is a little short where they do not divide it.
	return stats.Finite(float64(most) * second / float64(int64(each)*c.line.width))
}
