package experiments_test

import (
	"context"
	"fmt"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/internal/testenv"
)

// run runs a scenario and reports requests per second of wall time.
func benchmark(b *testing.B, text string) {
	b.Helper()
	var requests, attempts int64
	for b.Loop() {
		s, err := scenario.Parse("benchmark", []byte(text))
		if err != nil {
			b.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			b.Fatal(err)
		}
		requests += r.Summary.Requests.Offered
		attempts += r.Summary.Requests.Attempts
	}
	b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
	if attempts > requests {
		b.ReportMetric(float64(attempts)/b.Elapsed().Seconds(), "attempts/s")
	}
}

// BenchmarkRun is a whole run with all metrics, of Llama-3.1-8B on one H100: below, near and
// beyond saturation.
func BenchmarkRun(b *testing.B) {
	for _, rate := range []int{10, 27, 50} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			benchmark(b, fmt.Sprintf(`
model: llama-3.1-8b
gpu: h100-sxm
engine: {max_num_seqs: 256, enable_prefix_caching: false}
workload:
  arrivals: {process: poisson, rate: %d}
  input: {distribution: lognormal, mean: 512, cv: 0.8}
  output: {distribution: lognormal, mean: 256, cv: 0.8}
run: {requests: 1000000}
`, rate))
		})
	}
}

// BenchmarkOverload is a whole run with all metrics of conversations in twofold overload, whose clients give up and try
// again.
func BenchmarkOverload(b *testing.B) {
	benchmark(b, `
model: llama-3.1-8b
gpu: h100-sxm
engine: {max_num_seqs: 256}
workload:
  arrivals: {process: poisson, rate: 50}
  sessions:
    turns: 4
    first_prompt: {distribution: lognormal, mean: 512, cv: 0.8}
    later_user_tokens: 60
    think_time: {distribution: exponential, mean: 10s}
  output: {distribution: lognormal, mean: 256, cv: 0.8}
clients: {ttft_timeout: 5s, timeout: 20s, retries: 3, retry_on: [timeout], backoff: {base: 500ms, cap: 8s}}
run: {requests: 300000}
`)
}

// BenchmarkPrefixCache replays Mooncake's conversation trace, whose prompts are 752 blocks of 16 tokens
// long on average. CLIFFTOP_TRACES names the directory that holds it.
func BenchmarkPrefixCache(b *testing.B) {
	file := testenv.Traces(b, "mooncake_fast25_conversation_trace.jsonl.gz")
	for _, size := range []int{16, 512} {
		b.Run(fmt.Sprintf("block=%d", size), func(b *testing.B) {
			benchmark(b, fmt.Sprintf("workload: {trace: {file: %q}}\nengine: {block_size: %d}\n", file, size))
		})
	}
}
