package sched

import "fmt"

// Admission says what the KV pool must have room for when a request is admitted.
type Admission uint8

// The rules.
const (
	FullPrompt Admission = iota // all known tokens, although only the first chunk takes its blocks
	FirstChunk                  // the first chunk
	// prompt and longest output, which takes all blocks at once: no sequence is ever preempted for them
	FullLength
)

// obstacle returns the cause that prevents the admission of a waiting request with tokens and blocks; NotBlocked if
// there is none.
func obstacle(v View, tokens int32, blocks int) Cause {
	switch {
	case v.Seats() == 0:
		return LacksSeats
	case tokens > v.Budget() || v.Budget() == 0:
		return LacksBudget
	case blocks > v.LargestFree():
		return LacksKV
	}
	return NotBlocked
}

// fullLength returns the most tokens of a request that the pool may ever hold: its prompt and its longest declared
// output, except the last token, which is never computed.
func fullLength(p Progress) int32 { return p.Prompt + p.MaxTokens - 1 }

func fullBlocks(v View, w Waiting) int { return v.BlocksFor(fullLength(w.Progress)) - w.Held }

// admitFull admits w, the head of the queue, with tokens, and takes the blocks of its full length, so that it never
// needs more.
func admitFull(v View, w Waiting, tokens int32) {
	v.Reserve(v.Admit(0, tokens), fullLength(w.Progress))
}

// decodeReserved gives every decoding sequence its token. Each must have the blocks for it.
func decodeReserved(v View) {
	if v.DecodeFirst() {
		return
	}
	prefill := v.NextPrefill(None)
	for s := v.First(); s != None; s = v.Next(s) {
		switch {
		case s == prefill:
			prefill = v.NextPrefill(s)
		case v.Missing(s) > 0 && v.Grow(s, 1):
			v.Give(s, 1)
		}
	}
}

// continuePrefills gives the running prefills the rest of the budget, in order of admission. Each must have the blocks
// for it.
func continuePrefills(v View) {
	for s := v.NextPrefill(None); s != None && v.Budget() > 0; s = v.NextPrefill(s) {
		if n := min(v.Missing(s), v.Budget()); v.Grow(s, n) {
			v.Give(s, n)
		}
	}
}

// forever is the result of Repeats if nothing that the policy depends on changes by itself.
const forever = 1 << 30

// needsWholePrompts rejects a token budget that the longest prompt does not fit.
func needsWholePrompts(policy string, l Limits) error {
	if l.MaxNumBatchedTokens < int(l.MaxModelLen) {
		return fmt.Errorf("max_num_batched_tokens: %d is less than max_model_len %d, but policy %s does not divide "+
			"prompts",
			l.MaxNumBatchedTokens, l.MaxModelLen, policy)
	}
	return nil
}

// needsTokens rejects speculative decoding and KV connectors.
func needsTokens(policy string, l Limits) error {
	if l.Connector {
		return fmt.Errorf("policy %s: it does not support a KV connector (want policy vllm)", policy)
	}
	if l.Speculative {
		return fmt.Errorf("policy %s: it gives decoding sequences one token each, and no drafts (want policy vllm)",
			policy)
	}
	return nil
}

// needsPages rejects a contiguous pool.
func needsPages(policy string, l Limits) error {
	if l.Contiguous {
		return fmt.Errorf("policy %s: it works on a paged pool, not on a contiguous one", policy)
	}
	return nil
}
