package scenario

import (
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/sched"
)

// Engine holds the knobs of the serving engine. Those that differ between versions of vLLM are
// null or auto by default, and follow Version.
type Engine struct {
	// Policy composes the batches: one of clifftop catalog policies.
	Policy string `json:"policy"`
	// Version is a release to imitate, such as vllm-0.15; null is the current one. A release of SGLang or
	// TensorRT-LLM, such as sglang-0.5.9 or trtllm-1.1, selects the speed of its kernels on some GPUs.
	Version *string `json:"version"`
	// Kernels is the engine whose kernels, host and front end run under policy vllm, for pools that compute prompts and
	// outputs apart with another engine; auto is vLLM.
	Kernels string `json:"kernels" one:"auto vllm sglang trtllm"`
	// SchedulingPolicy orders the waiting requests: by arrival, or by priority and then arrival.
	SchedulingPolicy string `json:"scheduling_policy" one:"fcfs priority"`
	// Order sorts the waiting requests under any policy; null is as scheduling_policy says.
	Order Order `json:"order"`
	// MaxNumSeqs limits the number of requests that run at the same time; null is the engine's default for the GPU and
	// the release.
	MaxNumSeqs *int `json:"max_num_seqs" range:"[1,1048576]"`
	// MaxNumBatchedTokens is the token budget of one iteration; null is the engine's default for the GPU and the
	// release.
	MaxNumBatchedTokens *int `json:"max_num_batched_tokens" range:"[1,16777216]"`
	// MaxCudagraphCaptureSize is the largest iteration in tokens for which policy vllm captures CUDA graphs; null is
	// twice max_num_seqs, at most 512. The host launches the kernels of larger ones one by one.
	MaxCudagraphCaptureSize *int `json:"max_cudagraph_capture_size,omitempty" range:"[1,65536]"`
	// MaxModelLen is the longest sequence, prompt and output, in tokens; null is the model's limit, or less if the
	// KV cache is smaller.
	MaxModelLen *int `json:"max_model_len" range:"[2,1000000000]"`
	// BlockSize is the number of tokens in a KV block.
	BlockSize int `json:"block_size" range:"[1,4096]"`
	// GPUMemoryUtilization is the fraction of the GPU's memory that the engine uses.
	GPUMemoryUtilization *float64 `json:"gpu_memory_utilization" range:"(0,1]"`
	// NumGPUBlocksOverride sets the number of KV blocks that the engine logs; one of them is never used.
	NumGPUBlocksOverride *int `json:"num_gpu_blocks_override" range:"[2,1000000000]"`
	// EnablePrefixCaching lets requests with equal prompt prefixes share KV blocks.
	EnablePrefixCaching bool `json:"enable_prefix_caching"`
	// PrefixCacheRetentionInterval thins the prefix cache of layers with windows, under policy vllm: it keeps what hits
	// need that end at a multiple of this many tokens, besides the ends of prompts. 0 is no multiples, the block size
	// all blocks; null is the value of the engine's version.
	PrefixCacheRetentionInterval *int `json:"prefix_cache_retention_interval,omitempty" range:"[0,1000000000]"`
	// EnableChunkedPrefill allows a prompt to be computed in chunks.
	EnableChunkedPrefill bool `json:"enable_chunked_prefill"`
	// SchedulerReserveFullISL admits a request only if the KV cache has room for its whole prompt.
	SchedulerReserveFullISL Toggle `json:"scheduler_reserve_full_isl"`
	// LongPrefillTokenThreshold limits the prefill tokens of one request in an iteration; 0 is no limit.
	LongPrefillTokenThreshold int `json:"long_prefill_token_threshold" range:"[0,16777216]"`
	// MaxLoRAs limits the LoRA adapters that the requests of one iteration use, under policy vllm; null is 1 where
	// requests use adapters.
	MaxLoRAs *int `json:"max_loras,omitempty" range:"[1,1048576]"`
	// Watermark is the fraction of the KV cache that an admission leaves free; the default is the policy's: 0 for
	// vllm.
	Watermark float64 `json:"watermark" range:"[0,1)"`
	// AsyncScheduling schedules the next iteration while the current one runs.
	AsyncScheduling Toggle `json:"async_scheduling"`
	// FuseAllReduceRMS runs an all-reduce and the norm after it as one kernel; auto is as in the release.
	FuseAllReduceRMS Toggle `json:"fuse_allreduce_rms"`
	// StreamInterval is the number of tokens that the engine sends to a client at once. The first token and the end of
	// an output are sent at once.
	StreamInterval int `json:"stream_interval" range:"[1,1000000]"`
	// Admission is the KV that must be free when policy vllm admits a request: for its first chunk, its full prompt,
	// or its full length (prompt and longest output, reserved at once); auto follows scheduler_reserve_full_isl.
	Admission string `json:"admission" one:"auto first-chunk full-prompt full-length"`
	// Victim is the running sequence that policy vllm preempts; auto is last-admitted, or least-urgent with
	// scheduling_policy priority.
	Victim victimName `json:"victim"`
	// PreemptionThreshold is the least difference in urgency, in units of the order, at which policy preemptive
	// replaces a running request by a waiting one.
	PreemptionThreshold int `json:"preemption_threshold" range:"[0,1000000000]"`
	// Preemption says what happens to the KV of a preempted sequence: it is recomputed, or swapped to host memory by
	// policies that support it. With never, policy vllm admits by full length.
	Preemption string `json:"preemption" one:"recompute swap never"`
	// SwapSpace is the host memory for swapped KV, in GiB per GPU.
	SwapSpace float64 `json:"swap_space" range:"[0,1000000]"`
	// HostBandwidth is the bandwidth between a GPU and host memory, in GB/s; null is the GPU's.
	HostBandwidth *float64 `json:"host_gb_per_s" range:"(0,100000]"`
	// KVAllocation is how sequences get KV memory: paged, in blocks as they grow, or contiguous, one piece for the
	// longest possible sequence; auto is as in the engine of the policy.
	KVAllocation string `json:"kv_allocation" one:"auto paged contiguous"`
	// Options are the sections of policies with options of their own.
	Options PolicyOptions `json:"-"`
	// MaxNumQueuedReqs rejects a request if this many are in the engine, waiting or running; null is no limit.
	MaxNumQueuedReqs *int `json:"max_num_queued_reqs" range:"[1,1000000000]"`
	// MaxNumQueuedTokens rejects a request if this many prompt tokens are still to be computed; null is no limit.
	MaxNumQueuedTokens *int `json:"max_num_queued_tokens" range:"[1,1000000000000]"`
	// RetryAfter is the wait that a rejecting server asks of its clients; null sends none.
	RetryAfter *yamldoc.Duration `json:"retry_after" range:"(0,)"`
	// Speculative is speculative decoding; null is none.
	Speculative *Speculative `json:"speculative"`
}

func defaultEngine() Engine {
	return Engine{
		Policy:               "vllm",
		Kernels:              "auto",
		SchedulingPolicy:     "fcfs",
		BlockSize:            16,
		Admission:            "auto",
		Victim:               "auto",
		Preemption:           "recompute",
		SwapSpace:            4,
		KVAllocation:         "auto",
		EnablePrefixCaching:  true,
		EnableChunkedPrefill: true,
		StreamInterval:       1,
	}
}

// MarshalJSON writes the keys, with the options of policies among them.
func (e Engine) MarshalJSON() ([]byte, error) { return yamldoc.MarshalFields(&e) }

func (e *Engine) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if e.Version == nil {
		return
	}
	if _, err := releaseFor(*e.Version); err != nil {
		d.Fault(n.Get("version").At, yamldoc.Join(key, "version"), err.Error(), "")
	} else if otherRelease.Get().MatchString(*e.Version) && !ofPolicy(*e.Version, e.Policy) {
		d.Fault(n.Get("version").At, yamldoc.Join(key, "version"), fmt.Sprintf("%q is not a release of policy %s",
			*e.Version, e.Policy), "")
	}
}

// victimName is auto, or the name of a rule that picks the sequence to preempt.
type victimName string

// Names implements [yamldoc.Named].
func (victimName) Names() []string {
	return append([]string{"auto"}, yamldoc.NamesOfAll(sched.Victims())...)
}

// Overheads are the delays between the client and the engine, and the host's work; null is the value of the
// engine's version.
type Overheads struct {
	// Frontend delays every request before it enters the queue of the engine.
	Frontend *yamldoc.Duration `json:"frontend"`
	// FrontendPerToken delays a request for each token of its prompt.
	FrontendPerToken *yamldoc.Duration `json:"frontend_per_token"`
	// NetworkIn delays requests and cancellations from client to server, NetworkOut delays tokens on the way back;
	// null is 0.
	NetworkIn  *yamldoc.Duration `json:"network_in"`
	NetworkOut *yamldoc.Duration `json:"network_out"`
	// StreamPerSequence is the time of the front end to send a chunk to a client. It sends the output of an iteration
	// in batch order. If it is behind, the tokens of a sequence that wait are one chunk.
	StreamPerSequence *yamldoc.Duration `json:"stream_per_sequence"`
	// CPU is the host time of an iteration. It precedes the GPU time, or overlaps with it under asynchronous
	// scheduling; null is 950 us on vLLM's engine, else 0.
	CPU *yamldoc.Duration `json:"cpu"`
	// CPUPerSequence is added to it for each sequence in the iteration; null is 1.1 us on vLLM's engine, else 0.
	CPUPerSequence *yamldoc.Duration `json:"cpu_per_sequence"`
}
