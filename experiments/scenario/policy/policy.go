// Package policy holds the batching policies that a scenario can name at engine.policy.
//
// Each policy is one file: what the catalog says of it, how the engine around it differs from vLLM's, its options with
// their keys and defaults, and how a scheduler of sim/sched is made from them. To add a policy, write such a file and
// add its variable to [All]; the keys, the JSON Schema, error messages and the catalog follow from it. orca.go is a
// short example, tgi.go one with options.
//
// Options that belong to one engine are a [Section] of the keys at engine, such as engine.tgi, and may be shared by
// several policies. Keys that stand at engine itself are vLLM's own, and mean the same for every policy that knows
// them; policies read them as an [Engine].
package policy

import (
	"math"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/kv"
	"clifftop/sim/sched"
)

// Policy is a batching policy under the name that scenarios give it, together with what else is different in the
// engine that it comes from.
type Policy struct {
	// Name stands at engine.policy.
	Name string
	// Does says in one line what the policy does, and Source where that is taken from.
	Does, Source string
	// Section holds its options; nil if it has none of its own.
	Section *Section
	// New makes the scheduler of a replica.
	New func(e *Engine) sched.Scheduler
	// Defaults says how the engine around it differs from vLLM's, where a scenario does not say otherwise.
	Defaults Defaults
	// Sizes are the engine's own defaults for a GPU; nil is 256 requests and 8,192 tokens.
	Sizes func(c Card) Sizes
	// Seats replaces the default of max_num_seqs when the pool and the longest sequence are known, in tokens.
	Seats func(pool, longest int) int
	// PoolMemory is the memory of the KV pool on a GPU, in bytes, by the engine's own rule; nil is vLLM's.
	PoolMemory func(e *Engine, d *model.Deployment, b *model.KVBudget) float64
	// Eviction returns, from the options, the order in which a radix cache evicts; nil is the least recently used.
	Eviction func(options any) kv.LeafOrder
	// RecvInterval returns, from the options, [engine.Config.RecvInterval]; nil is 1.
	RecvInterval func(options any) int
	// Idle reports the options that have no effect, by key, with the reason; caching means that there is a prefix cache.
	// nil is none.
	Idle func(options any, caching bool, report func(key, why string))
	// BySession returns the key of the option that has an effect only on requests with sessions, or nothing; nil is none.
	BySession func(options any) (key string)
}

// Card is what an engine's defaults depend on.
type Card struct {
	// Bytes is the memory of the GPU as the driver reports it.
	Bytes float64
	// A100 means that the GPU is an A100; A100Small that the release counts it among the smaller GPUs.
	A100, A100Small bool
}

// Sizes are the defaults of max_num_seqs and max_num_batched_tokens.
type Sizes struct{ MaxNumSeqs, MaxNumBatchedTokens int }

// Defaults are defaults of keys that differ between engines. The zero value is those of vLLM's versions.
type Defaults struct {
	// Synchronous engines compose an iteration when the one before it has ended.
	Synchronous bool
	// UnpredictedEnds is for engines whose asynchronous loop foresees no end, not even at the declared length.
	UnpredictedEnds bool
	// Frontend and FrontendPerToken are the time from a request's arrival to the engine's sight of it; 0 are those of
	// vLLM's release.
	Frontend, FrontendPerToken clock.Duration
	// VLLMHost is for policies of vLLM's own engine, whose host needs the time of its release for an iteration.
	VLLMHost bool
	// NoPrefixCaching is for engines that cannot share KV between requests.
	NoPrefixCaching bool
	// WholePrompts is for policies that never divide a prompt. The token budget is then at least the longest sequence.
	WholePrompts bool
	// WholeByDefault is for those that divide them only when enable_chunked_prefill is given.
	WholeByDefault bool
	// LongOutputs is for policies that divide no prompt, and compute none again: a sequence may be longer than the token
	// budget, but not its prompt.
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
	// FP8KV keeps KV in 8 bits where weights have 8 bits, unless kv_cache_dtype says otherwise.
	FP8KV bool
	// Radix keeps the prefix cache by the token, in a radix tree.
	Radix bool
	// RackExchange sends tokens to experts by an all-to-all over NVLink where it joins more than a node.
	RackExchange bool
	// AllReduce are the kernels of all-reduces; 0 are those of vLLM's release.
	AllReduce model.ReduceKernels
	// TritonRecurrence runs the prefill of recurrent layers as a sequence of Triton kernels.
	TritonRecurrence bool
	// UnfusedRecurrence is the time of small kernels in recurrent layers.
	UnfusedRecurrence model.UnfusedKernels
	// DenseShortPrefill runs short prompts of models with sparse attention as dense attention.
	DenseShortPrefill bool
}

// Engine is what a policy reads of the engine: the values of its keys, with all defaults filled in.
type Engine struct {
	MaxNumBatchedTokens       int
	BlockSize                 int
	LongPrefillTokenThreshold int
	PreemptionThreshold       int
	MaxLoRAs                  int // 0 is no limit
	PadAdmissions             bool
	EnableChunkedPrefill      bool
	Swap                      bool // preemption: swap
	Watermark                 float64
	Victim                    sched.Victim
	Admission                 sched.Admission
	// Seed and Replica are for policies that draw random numbers: the seed of the run, and the number of the replica.
	Seed    uint64
	Replica int
	// Options is the section of the policy, a pointer; nil if it has none.
	Options any
}

// All lists the policies.
func All() []Policy {
	return []Policy{
		vllmPolicy, preemptivePolicy, vllmV0Policy, sarathiPolicy, orcaPolicy, staticPolicy, sglangPolicy,
		trtllmGuaranteedNoEvict, trtllmMaxUtilization, trtllmStatic, tgiPolicy, mlfqPolicy,
	}
}

// DefaultsOf are the defaults of an engine by its name: vllm, sglang or trtllm.
func DefaultsOf(engine string) *Defaults {
	switch engine {
	case "sglang":
		return &sglangPolicy.Defaults
	case "trtllm":
		return &trtllmGuaranteedNoEvict.Defaults
	}
	return &vllmPolicy.Defaults
}

// limitInt32 is n, or the largest int32 if that is less.
func limitInt32(n int) int32 { return int32(min(n, math.MaxInt32)) }
