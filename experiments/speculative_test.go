package experiments_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
)

// drafted runs users in a closed loop with short prompts, with speculative decoding if it is not empty.
func drafted(t *testing.T, users int, speculative string) *report.Summary {
	t.Helper()
	return draftedUnder(t, "policy: vllm, async_scheduling: false", users, speculative)
}

// draftedUnder is drafted under another policy.
func draftedUnder(t *testing.T, policy string, users int, speculative string) *report.Summary {
	t.Helper()
	return mustRun(t, mustParse(t, fmt.Sprintf(`
engine: {%s, max_num_seqs: 1024, speculative: %s}
workload:
  arrivals: {process: closed, users: %d}
  input: {distribution: fixed, value: 100}
  output: {distribution: fixed, value: 200}
run: {requests: %d, warmup: none}
`, policy, speculative, users, 4*users)), experiments.RunOptions{Check: true}).Summary
}

// TestDraftsPayAtLowLoad: verifying drafts lets few users have their tokens sooner, because an iteration waits for the
// weights; with many it computes them, and drafts that are rejected take the place of other users' tokens.
func TestDraftsPayAtLowLoad(t *testing.T) {
	const eagle = "{method: eagle, num_speculative_tokens: 3, acceptance: 0.7}"
	gain := func(users int) float64 {
		without, with := drafted(t, users, "null"), drafted(t, users, eagle)
		gain := *without.Latency.TPOT.Mean / *with.Latency.TPOT.Mean
		p := with.System.Speculative
		if p == nil || without.System.Speculative != nil {
			t.Fatalf("%+v with drafts, %+v without", p, without.System.Speculative)
		}
		t.Logf("%d users: TPOT %.2f ms without, %.2f ms with, %.2f tokens in a step, %.3f accepted, %.1f GPU seconds of %.1f for rejected drafts",
			users, *without.Latency.TPOT.Mean, *with.Latency.TPOT.Mean, *p.TokensPerStep, *p.AcceptanceRate,
			*with.System.GPUSeconds.Rejected, *with.System.GPUSeconds.Useful)
		return gain
	}
	if g := gain(1); g < 1.5 || g > 2.533 {
		t.Errorf("one user has tokens %.2f times as fast", g)
	}
	if g := gain(1000); g > 1.05 {
		t.Errorf("1000 users have tokens %.2f times as fast", g)
	}
}

// TestMeanDrafts: policies that give each sequence one token in an iteration decode with the mean yield. They gain what
// vLLM gains with single drafts, to within chance and a few per cent.
func TestMeanDrafts(t *testing.T) {
	const mtp = "{method: mtp, num_speculative_tokens: 2, acceptance: [0.8, 0.6]}"
	for _, users := range []int{1, 64} {
		gain := func(policy string) float64 {
			tpot := func(speculative string) float64 {
				return *draftedUnder(t, policy, users, speculative).Latency.TPOT.Mean
			}
			return tpot("null") / tpot(mtp)
		}
		want := gain("policy: vllm, async_scheduling: false")
		for _, policy := range []string{"vllm-v0", "sarathi", "sglang", "trtllm-guaranteed-no-evict"} {
			got := gain("enable_prefix_caching: false, policy: " + policy)
			t.Logf("%s, %d users: %.2f times as fast, vllm %.2f", policy, users, got, want)
			if math.Abs(got/want-1) > 0.06 {
				t.Errorf("%s, %d users: drafts make tokens %.2f times as fast, and %.2f under vllm", policy, users, got, want)
			}
		}
	}
}

// TestSpeculativeFaults tells what scenarios must not ask for.
func TestSpeculativeFaults(t *testing.T) {
	for _, c := range [][2]string{
		{"{async_scheduling: true, speculative: {method: ngram, num_speculative_tokens: 3, acceptance: 0.7}}",
			"engine.async_scheduling: true is not possible with method ngram"},
		{"{speculative: {method: draft, model: llama-0b, num_speculative_tokens: 3, acceptance: 0.7}}",
			"engine.speculative.model:"},
		{"{speculative: {method: eagle, num_speculative_tokens: 3, acceptance: [0.7, 2]}}",
			"engine.speculative.acceptance.1: 2 is not allowed (want a number, 0 to 1)"},
		{"{speculative: {method: eagle, num_speculative_tokens: 3, acceptance: high}}",
			"(want a probability, or a list of them)"},
		{"{speculative: {method: eagle, num_speculative_tokens: 3}}", "acceptance is missing"},
		{"{speculative: {method: eagle, num_speculative_tokens: 3, acceptance: 1, match: 1}}", "match"},
		{"{speculative: {method: lookahead, num_speculative_tokens: 3, acceptance: 1}}", "engine.speculative.method"},
	} {
		s, err := scenario.Parse("s.yaml", []byte("engine: "+c[0]+"\n"))
		if err == nil {
			_, err = s.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", c[0], err, c[1])
		}
	}
	for _, c := range []struct {
		speculative string
		async       scenario.Toggle
	}{
		{"{method: ngram, num_speculative_tokens: 2, acceptance: [0.8, 0.4], match: 0.3}", scenario.Off},
		{"{method: ngram_gpu, num_speculative_tokens: 2, acceptance: [0.8, 0.4], match: 0.3}", scenario.On},
		{"{method: mtp, num_speculative_tokens: 1, acceptance: 0.9}", scenario.On},
		{"{method: mtp, num_speculative_tokens: 1, acceptance: 0.9}, version: vllm-0.13", scenario.Off},
		{"{method: draft, model: llama-3.2-1b, num_speculative_tokens: 4, acceptance: 0.6}", scenario.Off},
		{"{method: draft, model: llama-3.2-1b, num_speculative_tokens: 4, acceptance: 0.6}, async_scheduling: true",
			scenario.On},
	} {
		s, err := scenario.Parse("s.yaml", []byte("engine: {speculative: "+c.speculative+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if got := u.Scenario.Engine.AsyncScheduling; got != c.async ||
			u.Pools[0].Config.AsyncScheduling != (got == scenario.On) {
			t.Errorf("%s: async_scheduling is %v, want %v", c.speculative, got, c.async)
		}
	}
}
