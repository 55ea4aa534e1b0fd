package sched

import "fmt"

// Admission is a rule of what the KV pool must have room for when a request is admitted.
type Admission uint8

// The rules.
const (
	FullPrompt Admission = iota // all known tokens, although only the first chunk takes its blocks
	FirstChunk                  // the first chunk
	// prompt and longest answer, which takes all blocks at once: nobody is ever preempted for them
	FullLength
)

// obstacle says what keeps a waiting request out that would be given so many tokens and take so many
// blocks; NotBlocked if nothing does.
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

// fullLength is the most tokens of a request that the pool may ever hold: its prompt and the longest answer that
// was declared, but for the last token, which is never computed.
func fullLength(p Progress) int32 { return p.Prompt + p.MaxTokens - 1 }

// fullBlocks is the number of free blocks that w takes at its full length.
func fullBlocks(v View, w Waiting) int { return v.BlocksFor(fullLength(w.Progress)) - w.Held }

// admitFull admits w, the head of the queue, with so many tokens, and takes the blocks of its full length, so
// that it never needs more.
func admitFull(v View, w Waiting, tokens int32) {
	v.Reserve(v.Admit(0, tokens), fullLength(w.Progress))
}

// decodeReserved gives every decoding sequence its token, where each has the blocks for it.
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

// continuePrefills gives the running prefills what is left of the budget, in order of admission, where each
// has the blocks for it.
func continuePrefills(v View) {
	for s := v.NextPrefill(None); s != None && v.Budget() > 0; s = v.NextPrefill(s) {
		if n := min(v.Missing(s), v.Budget()); v.Grow(s, n) {
			v.Give(s, n)
		}
	}
}

// forever answers Repeats where nothing that the policy looks at changes by itself.
const forever = 1 << 30

// needsWholePrompts refuses a token budget that the longest prompt does not fit.
func needsWholePrompts(policy string, l Limits) error {
	if l.MaxNumBatchedTokens < int(l.MaxModelLen) {
		return fmt.Errorf("max_num_batched_tokens: %d is less than max_model_len %d, but policy %s does not divide prompts",
			l.MaxNumBatchedTokens, l.MaxModelLen, policy)
	}
	return nil
}

// needsTokens refuses speculative decoding, and KV to be loaded.
func needsTokens(policy string, l Limits) error {
	if l.Connector {
		return fmt.Errorf("policy %s: it loads no KV from elsewhere (want policy vllm)", policy)
	}
	if l.Speculative {
		return fmt.Errorf("policy %s: it gives decoding sequences one token each, and no drafts (want policy vllm)",
			policy)
	}
	return nil
}

// needsPages refuses a contiguous pool.
func needsPages(policy string, l Limits) error {
	if l.Contiguous {
		return fmt.Errorf("policy %s: it works on a paged pool, not on a contiguous one", policy)
	}
	return nil
}
