package sched

import (
	"clifftop/sim/rule"
)

// Options make batching policies: a policy with its parameters, or the parameters alone.
type Options interface {
	// Make returns the scheduler of a replica whose engine has the keys.
	Make(k *Keys) Scheduler
	// Defaults returns how the engine around the policy differs from vLLM's.
	Defaults() Defaults
}

// Keys are the values of an engine's own keys that policies read, with all defaults filled in. They are vLLM's, and
// mean the same for every policy that knows them.
type Keys struct {
	MaxNumBatchedTokens       int32
	BlockSize                 int32
	LongPrefillTokenThreshold int32
	PreemptionThreshold       int
	MaxLoRAs                  int // 0 is no limit
	PadAdmissions             bool
	EnableChunkedPrefill      bool
	Swap                      bool // preemption: swap
	Watermark                 float64
	Victim                    Victim
	Admission                 Admission
	// Seed and Replica are for policies that draw random numbers: the seed of the run, and the number of the replica.
	Seed    uint64
	Replica int
}

// Defaults are defaults of an engine where a scenario does not say otherwise. The zero value is vLLM's.
type Defaults struct {
	// Software is the engine whose kernels, host and memory rule run: vllm, sglang or trtllm; empty is vLLM's kernels
	// with a host that takes no time, and one rule for all GPUs.
	Software string
	// Synchronous engines compose an iteration when the one before it has ended.
	Synchronous bool
	// UnpredictedEnds is for engines whose asynchronous loop foresees no end, not even at the declared length.
	UnpredictedEnds bool
	// NoPrefixCaching is for engines that cannot share KV between requests.
	NoPrefixCaching bool
	// WholePrompts is for policies that never divide a prompt. The token budget is then at least the longest sequence.
	WholePrompts bool
	// WholeByDefault is for those that divide them only when enable_chunked_prefill is given.
	WholeByDefault bool
	// LongOutputs is for policies that divide no prompt, and compute none again: a sequence may be longer than the
	// token budget, but not its prompt.
	LongOutputs bool
	// BlockSize is the number of tokens in a KV block; 0 is 16.
	BlockSize int
	// TokenBudget is max_num_batched_tokens; 0 is 8192.
	TokenBudget int
	// Watermark is the part of the pool that admission leaves free.
	Watermark float64
	// Contiguous gives each sequence its KV in one piece.
	Contiguous bool
	// Reserves is for policies that reserve KV for the longest output.
	Reserves bool
	// Radix keeps the prefix cache by the token, in a radix tree, which evicts in the order RadixEviction.
	Radix         bool
	RadixEviction string
	// RecvInterval is the number of decoding iterations from one receipt of requests to the next; 0 is 1.
	RecvInterval int
}

// IdleOptions are [Options] some of which have no effect on some engines or traffic.
type IdleOptions interface {
	Options
	// Idle reports the keys of options without effect, with the reason; caching means that there is a prefix cache.
	Idle(caching bool, report func(key, why string))
	// BySession returns the key of the option that has an effect only on requests with sessions, or nothing.
	BySession() (key string)
}

// Rule is a batching policy under the name that scenarios give it.
type Rule = rule.Rule[Options]

// Policies lists the batching policies.
func Policies() rule.List[Options] {
	return rule.List[Options]{
		vllmRule,
		preemptiveRule,
		vllmV0Rule,
		sarathiRule,
		orcaRule,
		staticRule,
		sglangRule,
		trtllmGuaranteedNoEvictRule,
		trtllmMaxUtilizationRule,
		trtllmStaticRule,
		tgiRule,
		mlfqRule,
	}
}
