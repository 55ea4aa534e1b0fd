package sched

import (
	"strings"
	"testing"
)

// TestValidate checks which engines policies reject, with the messages.
func TestValidate(t *testing.T) {
	engine := Limits{MaxNumSeqs: 8, MaxNumBatchedTokens: 512, MaxModelLen: 512, BlockSize: 16, NumGPUBlocks: 100,
		HostBlocks: 10}
	with := func(change func(l *Limits)) Limits {
		l := engine
		change(&l)
		return l
	}
	short := with(func(l *Limits) { l.MaxNumBatchedTokens = 511 })
	contiguous := with(func(l *Limits) { l.Contiguous = true })
	drafts := with(func(l *Limits) { l.Speculative = true })
	ordered := with(func(l *Limits) { l.Ordered = true })
	for _, c := range []struct {
		policy Scheduler
		limits Limits
		want   string // part of the message; empty if the engine is accepted
	}{
		{&VLLMV0{Watermark: 0.01}, engine, ""},
		{&VLLMV0{Swap: true}, engine, ""},
		{&VLLMV0{}, short, "max_num_batched_tokens: 511 is less than max_model_len 512"},
		{&VLLMV0{}, contiguous, "paged pool"},
		{&VLLMV0{}, ordered, ""},
		{&VLLMV0{Watermark: 1}, engine, "watermark: 1 is not allowed"},
		{&VLLMV0{Swap: true}, with(func(l *Limits) { l.HostBlocks = 0 }), "preemption: swap needs"},
		{&VLLMV0{Swap: true}, with(func(l *Limits) { l.PrefixCaching = true }), "prefix caching"},
		{&VLLMV0{Swap: true}, ordered, "swap needs first come, first served"},
		{&Sarathi{Watermark: 0.01}, short, ""},
		{&Sarathi{Watermark: -0.01}, engine, "watermark: -0.01 is not allowed"},
		{&Sarathi{}, contiguous, "paged pool"},
		{&Orca{}, contiguous, ""},
		{&Orca{}, short, "policy orca does not divide prompts"},
		{&Static{}, contiguous, ""},
		{&Static{}, short, "policy static does not divide prompts"},
		{&TGI{WaitingServedRatio: 0.3, MaxWaitingTokens: 20}, engine, ""},
		{&TGI{}, short, "policy tgi does not divide prompts"},
		{&TGI{}, ordered, "first in, first out"},
		{&TGI{}, contiguous, "paged pool"},
		{&TGI{Chunking: true}, short, ""},
		{&TGI{Chunking: true}, ordered, ""},
		{&TGI{WaitingServedRatio: -1}, engine, "waiting_served_ratio: -1"},
		{new(VLLM), drafts, ""},
		{&VLLM{Admission: FullLength}, drafts, "full length"},
		{new(VLLMV0), drafts, "policy vllm-v0: it gives decoding sequences one token each, and no drafts"},
		{new(Sarathi), drafts, "no drafts"},
		{new(Orca), drafts, "no drafts"},
		{new(Static), drafts, "no drafts"},
		{&TGI{Chunking: true}, drafts, "no drafts"},
		{new(SGLang), drafts, "no drafts"},
		{new(TRTLLM), drafts, "no drafts"},
		{&MLFQ{Quantum: 1, Ratio: 1, Levels: 1}, short, ""},
		{&MLFQ{Quantum: 1, Ratio: 1, Levels: 1}, contiguous, "paged pool"},
		{&MLFQ{Quantum: 1, Ratio: 1, Levels: 1}, ordered, "first in, first out"},
		{&MLFQ{Quantum: 1, Ratio: 1, Levels: 1}, with(func(l *Limits) { l.Speculative = true }), "no drafts"},
		{&MLFQ{Quantum: 1, Ratio: 1}, engine, "levels 0 are not allowed"},
		{&MLFQ{Quantum: 1, Ratio: 1, Levels: 1, Batch: -1}, engine, "the batch is negative"},
		{&TGI{MaxWaitingTokens: -1}, engine, "max_waiting_tokens: -1"},
	} {
		err := c.policy.Validate(c.limits)
		switch {
		case err == nil && c.want != "":
			t.Errorf("%T%+v: accepted, want %q", c.policy, c.policy, c.want)
		case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%T%+v: %q, want %q", c.policy, c.policy, err, c.want)
		}
	}
}
