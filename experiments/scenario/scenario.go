package scenario

import (
	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// Scenario is an experiment: what is served, on what, by which engine, under which traffic, and what
// is asked of it. [Parse] and [Load] read one from YAML; [Default] is the one that an empty file
// gives. Keys are the json tags.
type Scenario struct {
	// Name stands over results.
	Name string `json:"name" empty:"allowed"`
	// Model is a name or alias of the catalogue, or the path of a Hugging Face config.json or of
	// its folder.
	Model string `json:"model"`
	// GPU is a name or alias of the catalogue, or the path of a GPU record.
	GPU string `json:"gpu"`
	// Deployment says how the model lies on its GPUs.
	Deployment Deployment `json:"deployment"`
	// Engine holds the knobs of the serving engine, under vLLM's names.
	Engine Engine `json:"engine"`
	// Overheads are the delays between the client and the engine.
	Overheads Overheads `json:"overheads"`
	// StepTime is the model of an iteration's length.
	StepTime StepTime `json:"step_time"`
	// Workload is the traffic.
	Workload Workload `json:"workload"`
	// Clients says how long clients wait, what they do then, and how fast they read.
	Clients Clients `json:"clients"`
	// SLO holds the limits on latency that make a request good.
	SLO SLO `json:"slo"`
	// Cost holds prices.
	Cost Cost `json:"cost"`
	// Run says how long to simulate and what to measure.
	Run RunSpec `json:"run"`
	// Pools are the parts of a fleet of unlike replicas; absent, all replicas are those of the deployment.
	Pools []Pool `json:"pools,omitempty"`
	// Disaggregation is how pools that compute prompts work together with pools that answer.
	Disaggregation *Disaggregation `json:"disaggregation,omitempty"`
	// Offload is memory beyond the KV pool that keeps KV; absent is none.
	Offload *Offload `json:"offload,omitempty"`
	// Lifecycle is how replicas start, fail and end, and how many there are; absent, all are ready for ever.
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
	// Plan says what clifftop plan chooses from; nil is all defaults.
	Plan *Planning `json:"plan,omitempty"`

	origin *origin  // where the keys stand; nil for a scenario made in Go
	own    []Policy // that are not built in
}

// Deployment says how one replica of the model lies on its GPUs, and how many replicas there are.
type Deployment struct {
	// TensorParallelSize splits every layer over this many GPUs.
	TensorParallelSize int `json:"tensor_parallel_size" range:"[1,1024]"`
	// PipelineParallelSize splits the layers into this many stages. With policy vllm each works on a batch of its own.
	PipelineParallelSize int `json:"pipeline_parallel_size" range:"[1,1024]"`
	// DataParallelSize is the number of ranks of a replica that serve requests side by side, each with a queue and a KV
	// pool of its own; those of a model with experts iterate in lock step. The router sees each of them.
	DataParallelSize int `json:"data_parallel_size" range:"[1,1024]"`
	// ExpertParallelSize spreads the experts of a mixture over this many GPUs.
	ExpertParallelSize int `json:"expert_parallel_size" range:"[1,1024]"`
	// Dtype is the number format of the weights; auto is the model's own.
	Dtype string `json:"dtype" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// MoEDtype is the number format of the experts' weights; auto is the model's own, or Dtype where that
	// is given.
	MoEDtype string `json:"moe_dtype" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// KVCacheDtype is the number format of the KV cache; auto is 16 bits.
	KVCacheDtype string `json:"kv_cache_dtype" one:"auto bf16 fp16 fp8"`
	// Replicas is the number of copies of the deployment behind a router.
	Replicas int `json:"replicas" range:"[1,4096]"`
	// Router spreads the requests over the replicas.
	Router Router `json:"router"`
}

// Engine holds the knobs of the serving engine. Those that differ between versions of vLLM are
// null or auto by default, and follow Version.
type Engine struct {
	// Policy composes the batches: one of clifftop catalog policies.
	Policy string `json:"policy"`
	// Version is a release to imitate, such as vllm-0.15; null is the current one.
	Version *string `json:"version"`
	// SchedulingPolicy orders the waiting requests: by arrival, or by priority and then arrival.
	SchedulingPolicy string `json:"scheduling_policy" one:"fcfs priority"`
	// Order ranks the waiting requests, whatever the policy; null is as scheduling_policy says.
	Order Order `json:"order"`
	// MaxNumSeqs limits the requests that run at once.
	MaxNumSeqs int `json:"max_num_seqs" range:"[1,1048576]"`
	// MaxNumBatchedTokens is the token budget of one iteration.
	MaxNumBatchedTokens int `json:"max_num_batched_tokens" range:"[1,16777216]"`
	// MaxModelLen is the longest sequence, prompt and answer, in tokens; null is the model's, or less where
	// the KV pool does not hold so much.
	MaxModelLen *int `json:"max_model_len" range:"[2,1000000000]"`
	// BlockSize is the number of tokens in a KV block.
	BlockSize int `json:"block_size" range:"[1,4096]"`
	// GPUMemoryUtilization is the part of the GPU's memory that the engine takes.
	GPUMemoryUtilization *float64 `json:"gpu_memory_utilization" range:"(0,1]"`
	// NumGPUBlocksOverride sets the number of KV blocks that the engine logs, one of which is never used.
	NumGPUBlocksOverride *int `json:"num_gpu_blocks_override" range:"[2,1000000000]"`
	// EnablePrefixCaching lets requests share the KV blocks of prompts that begin alike.
	EnablePrefixCaching bool `json:"enable_prefix_caching"`
	// EnableChunkedPrefill lets a prompt be computed in pieces.
	EnableChunkedPrefill bool `json:"enable_chunked_prefill"`
	// SchedulerReserveFullISL admits a request only when the pool has room for its whole prompt.
	SchedulerReserveFullISL Toggle `json:"scheduler_reserve_full_isl"`
	// LongPrefillTokenThreshold caps the tokens that one request gets in an iteration; 0 is no cap.
	LongPrefillTokenThreshold int `json:"long_prefill_token_threshold" range:"[0,16777216]"`
	// Watermark is the part of the KV pool that an admission leaves free; the default is the policy's: 0 for vllm.
	Watermark float64 `json:"watermark" range:"[0,1)"`
	// AsyncScheduling composes the next iteration while one runs.
	AsyncScheduling Toggle `json:"async_scheduling"`
	// Admission is what the pool must have room for when policy vllm admits a request: its first chunk, its full
	// prompt, or its full length, prompt and longest answer, which is then taken at once; auto is as
	// scheduler_reserve_full_isl says.
	Admission string `json:"admission" one:"auto first-chunk full-prompt full-length"`
	// Victim is the running sequence that policy vllm preempts; auto is last-admitted, or least-urgent under
	// scheduling_policy priority.
	Victim string `json:"victim" one:"auto last-admitted least-urgent most-remaining least-progress longest"`
	// PreemptionThreshold is by how much more urgent a waiting request must be for policy preemptive to take a running
	// one's place, in units of the order.
	PreemptionThreshold int `json:"preemption_threshold" range:"[0,1000000000]"`
	// Preemption is what becomes of a sequence's KV when it must make room: it is computed again, or, with policies
	// that can do so, swapped to the host's memory. With never, policy vllm admits by full length.
	Preemption string `json:"preemption" one:"recompute swap never"`
	// SwapSpace is the host's memory for KV that is swapped out, in GiB for each GPU.
	SwapSpace float64 `json:"swap_space" range:"[0,1000000]"`
	// HostBandwidth is how fast a GPU reaches its host's memory, in GB/s; null is the GPU's.
	HostBandwidth *float64 `json:"host_gb_per_s" range:"(0,100000]"`
	// KVAllocation is how sequences get their KV: in blocks, as they grow, or in one piece for all that they may
	// ever need, with policies that reserve it; auto is as the policy's engine did.
	KVAllocation string `json:"kv_allocation" one:"auto paged contiguous"`
	// SGLang holds the knobs of policy sglang.
	SGLang SGLang `json:"sglang"`
	// TRTLLM holds the knobs of the policies of TensorRT-LLM.
	TRTLLM TRTLLM `json:"trtllm"`
	// TGI holds the knobs of policy tgi.
	TGI TGI `json:"tgi"`
	// MLFQ holds the knobs of policy mlfq.
	MLFQ MLFQ `json:"mlfq"`
	// MaxNumQueuedReqs refuses a request when so many are in the engine, waiting or running; null is no limit.
	MaxNumQueuedReqs *int `json:"max_num_queued_reqs" range:"[1,1000000000]"`
	// MaxNumQueuedTokens refuses a request when so many prompt tokens are still to be computed; null is no limit.
	MaxNumQueuedTokens *int `json:"max_num_queued_tokens" range:"[1,1000000000000]"`
	// RetryAfter is how long a server that refuses a request asks its client to wait; null is that it does not say.
	RetryAfter *unit.Duration `json:"retry_after" range:"(0,)"`
	// Speculative is speculative decoding; null is none.
	Speculative *Speculative `json:"speculative"`
}

// Overheads are the delays between the client and the engine, and the host's work; null is that of the engine's
// version.
type Overheads struct {
	// Frontend delays every request on its way to the engine's queue.
	Frontend *unit.Duration `json:"frontend"`
	// FrontendPerToken delays a request for each token of its prompt.
	FrontendPerToken *unit.Duration `json:"frontend_per_token"`
	// NetworkIn delays requests, and the news that a client has left, on the way from the client to the front end, and
	// NetworkOut tokens on the way back; null is 0.
	NetworkIn  *unit.Duration `json:"network_in"`
	NetworkOut *unit.Duration `json:"network_out"`
	// StreamPerSequence delays the k-th sequence of a batch by k times this on the way to its client.
	StreamPerSequence *unit.Duration `json:"stream_per_sequence"`
	// CPU is the host's time for an iteration. It comes before the GPU's, or hides behind it under asynchronous
	// scheduling; null is 0.
	CPU *unit.Duration `json:"cpu"`
	// CPUPerSequence is added to it for every sequence in the iteration.
	CPUPerSequence *unit.Duration `json:"cpu_per_sequence"`
}

// Cost holds prices.
type Cost struct {
	// GPUHour is the price of one GPU for an hour, in US dollars; null is the middle of the catalogue's
	// range.
	GPUHour *float64 `json:"gpu_hour" range:"[0,1000000]"`
}

// Default is the scenario that an empty file gives.
func Default() *Scenario {
	return &Scenario{
		Model: "llama-3.1-8b",
		GPU:   "h100-sxm",
		Deployment: Deployment{
			TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1, ExpertParallelSize: 1,
			Dtype: "auto", MoEDtype: "auto", KVCacheDtype: "auto",
			Replicas: 1, Router: defaultRouter(),
		},
		Engine: Engine{
			Policy:               "vllm",
			SchedulingPolicy:     "fcfs",
			MaxNumSeqs:           256,
			MaxNumBatchedTokens:  8192,
			BlockSize:            16,
			Admission:            "auto",
			Victim:               "auto",
			Preemption:           "recompute",
			SwapSpace:            4,
			KVAllocation:         "auto",
			SGLang:               defaultSGLang(),
			TRTLLM:               defaultTRTLLM(),
			TGI:                  defaultTGI(),
			MLFQ:                 defaultMLFQ(),
			EnablePrefixCaching:  true,
			EnableChunkedPrefill: true,
		},
		StepTime: StepTime{Kind: "kernels", Roofline: defaultRoofline()},
		Workload: Workload{Sampling: "greedy", ClassWeights: workload.OfRequests},
		Clients:  defaultClients(),
		Run:      RunSpec{Warmup: Warmup{Auto: true}, Seed: 1, Replications: 1},
	}
}

func (e *Engine) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if e.Version == nil {
		return
	}
	if _, err := profileFor(*e.Version); err != nil {
		d.Fault(n.Get("version").At, yamldoc.Join(key, "version"), err.Error(), "")
	}
}
