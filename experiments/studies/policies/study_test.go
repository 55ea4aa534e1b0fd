package main

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/report"
)

// TestOrderings runs the mixed traffic on a small scale, and asserts the claims of the study.
func TestOrderings(t *testing.T) {
	list, err := readTraffics()
	if err != nil {
		t.Fatal(err)
	}
	mixed := list[len(list)-1]
	if mixed.name != "mixed" || len(list) != 4 {
		t.Fatalf("%d traffics, the last is %s", len(list), mixed.name)
	}
	if err := mixed.run(context.Background(), policies, 1200); err != nil {
		t.Fatal(err)
	}
	const light, over = 1, 3 // 80 % and 120 % of saturation
	at := func(name string, load int) *report.Summary { return mixed.results[slices.Index(policies, name)][load] }
	tokens := func(name string) float64 { return *at(name, over).Throughput.OutputTokensPerS }
	ttft := func(name string) float64 { return *at(name, light).Latency.TTFT.P50 }
	itl := func(name string) float64 { return *at(name, light).Latency.ITL.P99 }

	const chance = 1.02 // of runs as short as these
	if !(tokens("static") < tokens("orca") && tokens("orca") < chance*tokens("vllm")) {
		t.Errorf("beyond saturation static has %.0f tokens/s, orca %.0f, vllm %.0f", tokens("static"), tokens("orca"),
			tokens("vllm"))
	}
	for _, first := range []string{"vllm-v0", "sglang"} {
		if !(ttft(first) < ttft("vllm") && itl(first) > 1.5*itl("vllm")) {
			t.Errorf("%s, prompts first: TTFT p50 %.0f ms and ITL p99 %.0f ms, vllm %.0f and %.0f", first, ttft(first),
				itl(first), ttft("vllm"), itl("vllm"))
		}
	}
	for _, other := range policies {
		if keepsUp(at(other, light)) && other != "sarathi" &&
			(itl(other) <= itl("sarathi") || ttft(other) >= ttft("sarathi")) {
			t.Errorf("sarathi, small chunks: ITL p99 %.1f ms and TTFT p50 %.0f ms, %s %.1f and %.0f", itl("sarathi"),
				ttft("sarathi"), other, itl(other), ttft(other))
		}
	}
	for load := range loads {
		for _, reserves := range []string{"trtllm-guaranteed-no-evict", "trtllm-static", "tgi", "orca", "static"} {
			if n := at(reserves, load).System.Preemptions; n != 0 {
				t.Errorf("%s, which reserves, preempts %d times", reserves, n)
			}
		}
	}
	for _, greedy := range []string{"vllm", "trtllm-max-utilization"} {
		if at(greedy, over).System.Preemptions == 0 {
			t.Errorf("%s, which admits on the prompt alone, never preempts", greedy)
		}
	}

	var text strings.Builder
	mixed.table(&text, policies)
	if n := strings.Count(text.String(), "| vllm |"); n != len(loads) {
		t.Errorf("vllm has %d rows, want %d", n, len(loads))
	}
	if v := recomputed(at("vllm", over)); v == nil || !(*v > 0) || math.IsNaN(*v) {
		t.Errorf("vllm preempts, but recomputes %v %%", v)
	}
	if !strings.Contains(title(mixed, policies), "under sarathi") {
		t.Error(title(mixed, policies))
	}
}
