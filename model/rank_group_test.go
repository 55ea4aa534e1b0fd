package model_test

import (
	"testing"

	"clifftop/model"
)

// TestRankGroup checks that a batch without the numbers of its group is timed as one of ranks that are all alike, with
// and without a CUDA graph, and what the tokens of other ranks cost.
func TestRankGroup(t *testing.T) {
	d := deploy(t, "deepseek-r1", "h200", model.Options{DataParallel: 8, ExpertParallel: 8})
	k := kernels(t, d, model.KernelOptions{PadGraphs: true})
	time := func(b model.Batch) int64 {
		first, _, _ := k.Span(&b)
		return first
	}
	decode := model.Batch{Decodes: 20, Context: 20_000, Emit: 20}
	chunk := model.Batch{Chunks: []model.Chunk{{New: 1000}}, Emit: 1}
	for _, c := range []struct {
		alone        model.Batch
		all, busiest int64
	}{
		{decode, 8 * 24, 24}, // the graph of 24
		{chunk, 8 * 1000, 1000},
	} {
		group := c.alone
		group.GroupTokens, group.BusiestTokens = c.all, c.busiest
		if a, b := time(c.alone), time(group); a != b {
			t.Errorf("%+v: %d fs without the numbers of the group, %d with them", c.alone, a, b)
		}
		e := k.Explain(&c.alone)
		near(t, "sum of the terms", e.Seconds, float64(time(c.alone))/1e15, 1e-6)
	}
	// Seven ranks that idle send seven tokens, and not seven times as many as the one that computes a prompt.
	idle := chunk
	idle.GroupTokens, idle.BusiestTokens = 1007, 1000
	if a, b := time(idle), time(chunk); a >= b {
		t.Errorf("%d fs beside ranks that idle, %d beside ranks with as many tokens", a, b)
	}
	k = kernels(t, deploy(t, "deepseek-r1", "h200", model.Options{DataParallel: 8, ExpertParallel: 8,
		Exchange: model.ExchangeLowLatency}), model.KernelOptions{PadGraphs: true})
	busiest := decode
	busiest.GroupTokens, busiest.BusiestTokens = 1008, 1000
	beside := decode
	beside.GroupTokens, beside.BusiestTokens = 1008, 126
	if a, b := time(busiest), time(beside); a <= b {
		t.Errorf("%d fs where one rank sends 1000 tokens, %d where each sends 126", a, b)
	}
	dense := kernels(t, deploy(t, "llama-3.1-8b", "h200", model.Options{DataParallel: 8}), model.KernelOptions{})
	a, _, _ := dense.Span(&decode)
	decode.GroupTokens, decode.BusiestTokens = 1000, 1000
	if b, _, _ := dense.Span(&decode); a != b {
		t.Errorf("a dense model takes %d fs, and %d if other ranks have more tokens", a, b)
	}
}
