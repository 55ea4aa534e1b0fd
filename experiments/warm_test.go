package experiments_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// TestWarmPrefix: what came before a slice is in the cache when it begins, as far as the pool has room, and costs
// nothing.
func TestWarmPrefix(t *testing.T) {
	var b strings.Builder
	b.WriteString("arrival_s,input_tokens,output_tokens,session,content\n")
	for i := range 40 { // two turns of each conversation, 100 s apart
		fmt.Fprintf(&b, "%d,1600,33,s%d,doc%d:1600\n", i, i, i)
	}
	for i := range 40 {
		fmt.Fprintf(&b, "%d,1664,10,s%d,doc%d:1600|@out:33\n", 100+i, i, i)
	}
	file := filepath.Join(t.TempDir(), "turns.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cached := func(text string) (tokens, requests int64) {
		t.Helper()
		s, err := scenario.Parse("warm.yaml",
			fmt.Appendf(nil, "workload: {trace: {file: %s, %s}}\n%s", file, text, "run: {warmup: none}\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range []string{"vllm", "sglang"} {
			p, err := s.With(scenario.Setting{Key: "engine.policy", Value: policy})
			if err != nil {
				t.Fatal(err)
			}
			r, err := experiments.Run(context.Background(), p, experiments.RunOptions{Check: true})
			if err != nil {
				t.Fatal(err)
			}
			if policy == "sglang" && r.Summary.Tokens.CachedInput < tokens {
				t.Errorf("%s: %d cached tokens with a radix cache, %d with blocks", text, r.Summary.Tokens.CachedInput,
					tokens)
			}
			tokens, requests = r.Summary.Tokens.CachedInput, r.Summary.Requests.Offered
		}
		return tokens, requests
	}
	if n, requests := cached("from: 100s"); n != 0 || requests != 40 {
		t.Errorf("a cold slice finds %d tokens in %d requests", n, requests)
	}
	// 1,632 of the 1,633 tokens that the first turn left are whole blocks, and the last one of the answer is not
	// computed.
	if n, requests := cached("from: 100s, warm_prefix: true"); n != 40*1632 || requests != 40 {
		t.Errorf("a warm slice finds %d tokens in %d requests, want %d in 40", n, requests, 40*1632)
	}
	if n, _ := cached("from: 100s, warm_prefix: true, scale: 0.5"); n == 0 || n >= 40*1632 {
		t.Errorf("half of the sessions find %d tokens", n)
	}
	if n, requests := cached("from: 100s, warm_prefix: true, scale: 2"); n != 80*1632 || requests != 80 {
		t.Errorf("two copies find %d tokens in %d requests", n, requests)
	}
	s, err := scenario.Parse("warm.yaml",
		fmt.Appendf(nil, "workload: {trace: {file: %s, from: 100s, warm_prefix: true}}\nengine: {num_gpu_blocks_override: "+
			"1025, max_model_len: 2000}\n", file))
	if err != nil {
		t.Fatal(err)
	}
	r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Summary.Tokens.CachedInput; n >= 11*1632 { // the pool holds ten of them
		t.Errorf("a small pool finds %d tokens", n)
	}
	s, err = scenario.Parse("warm.yaml", fmt.Appendf(nil, "workload: {trace: {file: %s, warm_prefix: true}}\n", file))
	if err == nil {
		_, err = s.Resolve()
	}
	if err == nil || !strings.Contains(err.Error(),
		"workload.trace.warm_prefix: needs rows before the slice (want from)") {
		t.Errorf("got %v", err)
	}
}
