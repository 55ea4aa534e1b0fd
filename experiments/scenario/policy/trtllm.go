package policy

import (
	"clifftop/model"
	"clifftop/sim/sched"
)

var (
	trtllmGuaranteedNoEvict = trtllmPolicy("trtllm-guaranteed-no-evict", sched.GuaranteedNoEvict,
		"starts a request when the longest outputs of all fit; never pauses a request")
	trtllmMaxUtilization = trtllmPolicy("trtllm-max-utilization", sched.MaxUtilization,
		"starts a request when its prompt fits; the last started is paused when the pool runs out")
	trtllmStatic = trtllmPolicy("trtllm-static", sched.StaticBatch, "starts requests only when the batch is empty")
)

const trtllmDoc = "Options of policy trtllm-guaranteed-no-evict, trtllm-max-utilization or trtllm-static."

var trtllmSection = &Section{"trtllm", trtllmDoc, func() any {
	return &trtllm{ContextChunkingPolicy: "FIRST_COME_FIRST_SERVED", FreeGPUMemoryFraction: 0.9,
		AttentionDPTimeoutIters: 50, AttentionDPBatchingWaitIters: 10}
}}

// trtllm are options under TensorRT-LLM's names. max_num_seqs is its max_batch_size, max_num_batched_tokens its
// max_num_tokens, and block_size its tokens_per_block.
type trtllm struct {
	// How prompts share the token budget.
	ContextChunkingPolicy string `json:"context_chunking_policy" one:"FIRST_COME_FIRST_SERVED EQUAL_PROGRESS"`
	// Unit of chunks, in tokens; null is block_size.
	ContextChunkSize *int `json:"context_chunk_size" range:"[1,16777216]"`
	// Part of the memory left after loading.
	FreeGPUMemoryFraction float64 `json:"free_gpu_memory_fraction" range:"(0,1]"`
	// Data-parallel ranks wait until all have prompts.
	AttentionDPEnableBalance bool `json:"attention_dp_enable_balance"`
	// Iterations after which they wait no longer.
	AttentionDPTimeoutIters int `json:"attention_dp_timeout_iters" range:"[1,1000000]"`
	// Iterations that prompts wait for more.
	AttentionDPBatchingWaitIters int `json:"attention_dp_batching_wait_iters" range:"[0,1000000]"`
}

func trtllmPolicy(name string, capacity sched.Capacity, does string) Policy {
	return Policy{
		Name:    name,
		Does:    does,
		Source:  "TensorRT-LLM (batch_manager/capacityScheduler, microBatchScheduler)",
		Section: trtllmSection,
		New: func(e *Engine) sched.Scheduler {
			o := e.Options.(*trtllm)
			p := &sched.TRTLLM{Capacity: capacity, ChunkedContext: e.EnableChunkedPrefill,
				ChunkUnit: limitInt32(e.BlockSize)}
			if o.ContextChunkSize != nil {
				p.ChunkUnit = limitInt32(*o.ContextChunkSize)
			}
			if o.ContextChunkingPolicy == sched.EqualProgress.String() {
				p.Chunking = sched.EqualProgress
			}
			if o.AttentionDPEnableBalance {
				p.Waits = sched.ContextWaits{Timeout: o.AttentionDPTimeoutIters, Batching: o.AttentionDPBatchingWaitIters}
			}
			return p
		},
		Defaults: Defaults{Synchronous: true, WholeByDefault: true, BlockSize: 32, FP8KV: true, AllReduce: model.ReduceTRTLLM,
			RackExchange: true, Frontend: trtllmFrontend, FrontendPerToken: frontendPerToken,
			Reserves: capacity != sched.MaxUtilization, LongOutputs: capacity != sched.MaxUtilization},
		Sizes:      func(Card) Sizes { return Sizes{2048, 8192} }, // max_batch_size and max_num_tokens
		PoolMemory: trtllmPool,
	}
}

// trtllmPool is TensorRT-LLM's rule: a part of what loading and a full step leave.
func trtllmPool(e *Engine, _ *model.Deployment, b *model.KVBudget) float64 {
	fraction := e.Options.(*trtllm).FreeGPUMemoryFraction
	return fraction * (b.Total - b.Weights - b.Runtime - b.Activations - b.Sampler - b.Graphs)
}
