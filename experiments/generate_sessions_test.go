package experiments_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/traces"
	"clifftop/internal/testenv"
	"clifftop/report"
	"clifftop/report/inspect"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// generated inspects the traffic of a workload, and counts its lengths.
func generated(t *testing.T, traffic string, n int) (*inspect.Result, *counting) {
	t.Helper()
	s, err := scenario.Parse("generated", fmt.Appendf(nil, "workload: %s\nrun: {requests: %d, seed: 5}\n", traffic, n))
	if err != nil {
		t.Fatal(err)
	}
	setup, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if rows, err := traces.Generate(context.Background(), setup, &b, false); err != nil || rows != int64(n) {
		t.Fatalf("%d rows, %v", rows, err)
	}
	f, err := trace.Open(&b, "generated", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{f, map[int32]int{}, map[int32]int{}}
	x, err := inspect.Trace(c, 0, f.Classes)
	if err != nil {
		t.Fatal(err)
	}
	return x, c
}

// TestGeneratedConversationsMatchTheirPreset: nothing but turns, first prompts and what users add is drawn, yet the
// lengths of whole prompts, and what caches of all sizes find again, come near those of the data.
func TestGeneratedConversationsMatchTheirPreset(t *testing.T) {
	testenv.NeedsLong(t, "many conversations, 1 s")
	near := func(what string, v *float64, want, by float64) {
		t.Helper()
		if v == nil || math.Abs(*v-want) > by {
			t.Errorf("%s %v, want %v ± %v", what, *v, want, by)
		}
	}
	lengths := func(preset string, c *counting, n int, input, output float64) {
		t.Helper()
		p, err := workload.FindPreset(preset)
		if err != nil {
			t.Fatal(err)
		}
		prompts, _ := p.Spec.Input.Lengths("prompts")
		answers, _ := p.Independent.Lengths("answers")
		a, b := distance(c.inputs, float64(n), prompts), distance(c.outputs, float64(n), answers)
		t.Logf("%s: prompts are %.4f and answers %.4f from the law of the data", preset, a, b)
		if a > input || b > output {
			t.Errorf("%s: prompts are %.4f and answers %.4f from the law of the data, want at most %v and %v", preset,
				a, b, input, output)
		}
	}

	// The hour of the Mooncake conversation trace: 36.6 % of the blocks and 37.4 % of the tokens were there before;
	// 12,035 tokens.
	const hour = 12031
	x, c := generated(t, "{preset: chat-longctx-kimi, sessions: {}}", hour)
	lengths("chat-longctx-kimi", c, hour, 0.04, 0.04)
	near("mean prompt", x.InputTokens.Mean, 12035, 1000)
	near("hit ratio of blocks", x.Prefix.HitBlocks, 0.366, 0.04)
	near("hit ratio of tokens", x.Prefix.HitTokens, 0.374, 0.04)
	near("hit ratio of the last quarter", x.Prefix.WarmHitBlocks, 0.409, 0.05)
	lru := map[int64]float64{100: 0.0404, 300: 0.0419, 1000: 0.0445, 3000: 0.065, 10000: 0.2112, 30000: 0.3257,
		100000: 0.3637}
	compared := 0
	for _, p := range x.Prefix.LRU {
		if want, ok := lru[p.Blocks]; ok {
			near(fmt.Sprintf("hit ratio with %d blocks", p.Blocks), p.Hit, want, 0.06)
			compared++
		}
	}
	if compared < 6 {
		t.Errorf("%d sizes of the cache compared", compared)
	}
	near("median gap between turns", x.Sessions.Gaps.P50, 126, 12)

	// ShareGPT, whose conversations are cut at 8,192 tokens: 5.41 turns, prompts of 2,340 tokens.
	const turns = 30_000
	x, c = generated(t, "{preset: chat-sharegpt, sessions: {turn_gap: 3m}}", turns)
	lengths("chat-sharegpt", c, turns, 0.025, 0.025)
	near("mean prompt", x.InputTokens.Mean, 2340, 120)
	near("turns", x.Sessions.MeanTurns, 5.41, 0.35)

	// The tool and agent trace: published means of 8,596 and 182 tokens, medians of 6,346 and 30, 59 % of the tokens
	// cached.
	const calls = 23_608
	x, _ = generated(t, "{preset: tool-agent}", calls)
	near("mean prompt", x.InputTokens.Mean, 8596, 700)
	near("median prompt", x.InputTokens.P50, 6346, 300)
	near("mean answer", x.OutputTokens.Mean, 182, 15)
	near("median answer", x.OutputTokens.P50, 30, 6)
	near("hit ratio of tokens", x.Prefix.HitTokens, 0.59, 0.05)
	for _, k := range x.Classes {
		share := float64(k.Requests) / calls
		near("share of "+k.Name, &share, map[string]float64{"agent-a": 0.38, "agent-b": 0.14, "chat": 0.48}[k.Name],
			0.02)
	}
}

// TestConversationsAsATrace: conversations that wait for answers, written as a trace and replayed, are the same
// traffic.
func TestConversationsAsATrace(t *testing.T) {
	const traffic = `
workload:
  arrivals: {process: poisson, rate: 3}
  classes:
    - {name: talk, weight: 3, priority: 2, output: 150, sessions: {turns: {distribution: geometric, mean: 4}, system_prompt: 1000, first_prompt: {distribution: lognormal, mean: 200, cv: 1}, later_user_tokens: 90, edited_history: 0.2, reasoning: [{weight: 1, alpha: 2, beta: 2}], think_time: {distribution: exponential, mean: 20s}}}
    - {name: single, weight: 1}
run: {duration: 300s}
`
	run := func(s *scenario.Scenario) *report.Summary {
		t.Helper()
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		return r.Summary
	}
	s, err := scenario.Parse("talk.yaml", []byte(traffic))
	if err != nil {
		t.Fatal(err)
	}
	a := run(s)
	setup, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "talk.csv.gz")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := traces.Generate(context.Background(), setup, f, true)
	if err != nil || f.Close() != nil || rows < a.Requests.Offered {
		t.Fatalf("%d rows for %d requests, %v", rows, a.Requests.Offered, err)
	}
	replay, err := scenario.Parse("replay",
		fmt.Appendf(nil, "workload: {trace: {file: %s}}\nrun: {duration: 300s}\n", file))
	if err != nil {
		t.Fatal(err)
	}
	b := run(replay)
	if a.Requests != b.Requests || a.Tokens.CachedInput != b.Tokens.CachedInput ||
		*a.Latency.E2E.Mean != *b.Latency.E2E.Mean || *a.Latency.TTFT.Max != *b.Latency.TTFT.Max {
		t.Errorf("%+v with %d cached tokens and %v ms, as a trace %+v with %d and %v ms",
			a.Requests, a.Tokens.CachedInput, *a.Latency.E2E.Mean, b.Requests, b.Tokens.CachedInput,
			*b.Latency.E2E.Mean)
	}
	if len(a.Classes) != 2 || len(b.Classes) != 2 || a.Sessions == nil {
		t.Errorf("%d and %d classes", len(a.Classes), len(b.Classes))
	}
}
