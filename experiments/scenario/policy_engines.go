package scenario

import (
	"clifftop/experiments/scenario/unit"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// SGLang holds the knobs of policy sglang, under SGLang's names. max_num_seqs is its max_running_requests, and
// block_size its page_size.
type SGLang struct {
	// ChunkedPrefillSize is the most prompt tokens of an iteration; null is max_num_batched_tokens.
	ChunkedPrefillSize *int `json:"chunked_prefill_size" range:"[1,16777216]"`
	// MaxPrefillTokens bounds them too, but cuts no prompt.
	MaxPrefillTokens int `json:"max_prefill_tokens" range:"[1,16777216]"`
	// EnableMixedChunk lets decodes ride along with prefills.
	EnableMixedChunk bool `json:"enable_mixed_chunk"`
	// SchedulePolicy is the order in which waiting requests are tried.
	SchedulePolicy string `json:"schedule_policy" one:"fcfs lpm dfs-weight"`
	// ScheduleConservativeness scales what is reserved for the answers of running requests.
	ScheduleConservativeness float64 `json:"schedule_conservativeness" range:"(0,1000]"`
	// PriorityThreshold lets a waiting request retract running ones whose priority is worse by more; null never does.
	// It needs scheduling_policy priority.
	PriorityThreshold *int `json:"priority_scheduling_preemption_threshold" range:"[0,65535]"`
	// MemFractionStatic is the part of the memory free before loading that weights and KV pool take; null is by
	// SGLang's rule.
	MemFractionStatic *float64 `json:"mem_fraction_static" range:"(0,1]"`
}

func defaultSGLang() SGLang {
	return SGLang{MaxPrefillTokens: 16_384, SchedulePolicy: "fcfs", ScheduleConservativeness: 1}
}

// chunk is the most prompt tokens of an iteration.
func (e *Engine) chunk() int {
	if c := e.SGLang.ChunkedPrefillSize; c != nil {
		return *c
	}
	return e.MaxNumBatchedTokens
}

func sglangPolicy() Policy {
	return Policy{
		Name:   "sglang",
		Does:   "prompts first, in chunks and iterations of their own; admission by an estimate of answers; retracts when it was wrong; radix cache",
		Source: "SGLang (managers/schedule_policy, mem_cache/radix_cache)",
		New: func(e *Engine) sched.Scheduler {
			k := &e.SGLang
			p := &sched.SGLang{
				MaxPrefillTokens: limitInt32(k.MaxPrefillTokens),
				MixedChunk:       k.EnableMixedChunk,
				Conservativeness: k.ScheduleConservativeness,
			}
			if e.EnableChunkedPrefill {
				p.ChunkedPrefillSize = limitInt32(e.chunk())
			}
			if k.PriorityThreshold != nil {
				p.PreemptByPriority, p.PreemptionThreshold = true, limitInt32(*k.PriorityThreshold)
			}
			for _, o := range []sched.QueueOrder{sched.FirstCome, sched.LongestPrefix, sched.DFSWeight} {
				if o.String() == k.SchedulePolicy {
					p.QueueOrder = o
				}
			}
			return p
		},
		Engine: EngineDefaults{BlockSize: 1, Radix: true, PoolMemory: sglangPool},
	}
}

// sglangPool is SGLang's rule: mem_fraction_static of the memory holds weights and pool; what it leaves is for
// activations and graphs. By default that is, in MB,
//
//	512 + 1.5·max(chunked_prefill_size, 2048) + 2·cuda_graph_max_bs + 128·tp·pp, at least 10 GB on cards of more than 60 GB
//
// with graphs for 256 sequences, 512 on cards of 160 GB and more (SGLang, server_args.py).
func sglangPool(e *Engine, d *model.Deployment, b *model.KVBudget) float64 {
	const mb, graphs, largeGraphs = 1 << 20, 256, 512
	total := b.Total / mb
	batch := float64(graphs)
	if total >= 160_000 {
		batch = largeGraphs
	}
	reserved := 512 + 1.5*max(float64(e.chunk()), 2048) + 2*batch + 128*float64(d.TensorParallel*d.PipelineParallel)
	if total > 60_000 {
		reserved = max(reserved, 10*1024)
	}
	fraction := (total - reserved) / total
	if e.SGLang.MemFractionStatic != nil {
		fraction = *e.SGLang.MemFractionStatic
	}
	free := b.Total - b.Runtime
	return float64(free*fraction) - b.Weights
}

// TRTLLM holds the knobs of the TensorRT-LLM policies, under its names. max_num_seqs is its max_batch_size,
// max_num_batched_tokens its max_num_tokens, and block_size its tokens_per_block.
type TRTLLM struct {
	// ContextChunkingPolicy shares the token budget among prompts, with enable_chunked_prefill.
	ContextChunkingPolicy string `json:"context_chunking_policy" one:"FIRST_COME_FIRST_SERVED EQUAL_PROGRESS"`
	// ContextChunkSize is what chunks are multiples of; null is block_size.
	ContextChunkSize *int `json:"context_chunk_size" range:"[1,16777216]"`
	// FreeGPUMemoryFraction is the part of the memory left after loading that the KV pool takes.
	FreeGPUMemoryFraction float64 `json:"free_gpu_memory_fraction" range:"(0,1]"`
}

func defaultTRTLLM() TRTLLM {
	return TRTLLM{ContextChunkingPolicy: "FIRST_COME_FIRST_SERVED", FreeGPUMemoryFraction: 0.9}
}

func trtllmPolicy(name string, capacity sched.Capacity, does string) Policy {
	return Policy{
		Name: name,
		New: func(e *Engine) sched.Scheduler {
			p := &sched.TRTLLM{Capacity: capacity, ChunkedContext: e.EnableChunkedPrefill,
				ChunkUnit: limitInt32(e.BlockSize)}
			if e.TRTLLM.ContextChunkSize != nil {
				p.ChunkUnit = limitInt32(*e.TRTLLM.ContextChunkSize)
			}
			if e.TRTLLM.ContextChunkingPolicy == sched.EqualProgress.String() {
				p.Chunking = sched.EqualProgress
			}
			return p
		},
		Does:   does,
		Source: "TensorRT-LLM (batch_manager/capacityScheduler, microBatchScheduler)",
		Engine: EngineDefaults{
			Synchronous: true, WholeByDefault: true, BlockSize: 32, PoolMemory: trtllmPool,
			Reserves: capacity != sched.MaxUtilization,
		},
	}
}

// trtllmPool is TensorRT-LLM's rule: a part of what loading and a full step leave.
func trtllmPool(e *Engine, _ *model.Deployment, b *model.KVBudget) float64 {
	return e.TRTLLM.FreeGPUMemoryFraction * (b.Total - b.Weights - b.Runtime - b.Activations - b.Sampler - b.Graphs)
}

// TGI holds the knobs of text-generation-inference's scheduler. With chunked prefill they have no effect.
type TGI struct {
	// WaitingServedRatio is how many requests have to wait, for each one that decodes, to be worth a pause.
	WaitingServedRatio float64 `json:"waiting_served_ratio" range:"[0,1000000]"`
	// MaxWaitingTokens is the number of iterations after which any waiting request is.
	MaxWaitingTokens int `json:"max_waiting_tokens" range:"[1,1000000000]"`
}

func defaultTGI() TGI { return TGI{WaitingServedRatio: 0.3, MaxWaitingTokens: 20} }

func tgiPolicy() Policy {
	return Policy{
		Name:   "tgi",
		Does:   "room for prompt and answer taken on admission; prompts in chunks beside decodes, or whole when enough of them wait",
		Source: "text-generation-inference, backends/v3",
		New: func(e *Engine) sched.Scheduler {
			return &sched.TGI{
				WaitingServedRatio: e.TGI.WaitingServedRatio, MaxWaitingTokens: e.TGI.MaxWaitingTokens,
				Chunking: e.EnableChunkedPrefill,
			}
		},
		Engine: EngineDefaults{Synchronous: true, Reserves: true, TokenBudget: 4096},
	}
}

// MLFQ holds the knobs of policy mlfq. Sequences that make room go to host memory with preemption swap.
type MLFQ struct {
	// Quantum is the number of tokens, of the prompt and of the answer, after which a request leaves the first level.
	Quantum int `json:"quantum" range:"[1,16777216]"`
	// Ratio is that of the quantum of a level to the one above it.
	Ratio int `json:"ratio" range:"[1,1000]"`
	// Levels is their number; the last one has no quantum.
	Levels int `json:"levels" range:"[1,64]"`
	// Starvation is the time without service after which a request returns to the first level; 0 is never.
	Starvation unit.Duration `json:"starvation"`
	// Batch is the most sequences that an iteration serves, while others are paused; null is max_num_seqs.
	Batch *int `json:"batch" range:"[1,1048576]"`
}

func defaultMLFQ() MLFQ {
	return MLFQ{Quantum: 256, Ratio: 2, Levels: 6, Starvation: unit.Duration(10 * clock.Second)}
}

func mlfqPolicy() Policy {
	return Policy{
		Name:   "mlfq",
		Does:   "skip-join multi-level feedback queue: requests go down a level with each quantum of tokens; lower levels are paused, swapped or recomputed",
		Source: "Wu et al., FastServe, 2023",
		New: func(e *Engine) sched.Scheduler {
			k := &e.MLFQ
			p := &sched.MLFQ{Quantum: k.Quantum, Ratio: k.Ratio, Levels: k.Levels, Starvation: k.Starvation.Clock()}
			if k.Batch != nil {
				p.Batch = *k.Batch
			}
			return p
		},
		Engine: EngineDefaults{Synchronous: true, NoPrefixCaching: true},
	}
}
