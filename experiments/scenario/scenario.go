package scenario

import (
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/collect"
	"clifftop/workload"
)

// Scenario is an experiment: what is served, on what, by which engine, under which traffic, and what
// is asked of it. [Parse] and [Load] read one from YAML; [Default] is the one that an empty file
// gives. Keys are the json tags.
type Scenario struct {
	// Name is the title of the results.
	Name string `json:"name" empty:"allowed"`
	// Model is a name or alias from the catalog, or the path of a Hugging Face config.json or of its folder.
	Model string `json:"model"`
	// AllowUnknown accepts a config.json with an unknown model_type or unknown kinds of layers. They count as full
	// attention, and every result has a warning that names them.
	AllowUnknown bool `json:"allow_unknown,omitempty"`
	// GPU is a name or alias from the catalog, or the path of a GPU record.
	GPU string `json:"gpu"`
	// Deployment places the model on its GPUs.
	Deployment Deployment `json:"deployment"`
	// Engine holds the parameters of the serving engine, under vLLM's names.
	Engine Engine `json:"engine"`
	// Overheads are the delays between client and engine, and the CPU time of the host.
	Overheads Overheads `json:"overheads"`
	// StepTime is the model of the duration of one iteration.
	StepTime StepTime `json:"step_time"`
	// Workload is the traffic.
	Workload Workload `json:"workload"`
	// Clients sets timeouts, retries and the reading speed of clients.
	Clients Clients `json:"clients"`
	// SLO holds the latency limits that a request must meet.
	SLO SLO `json:"slo"`
	// Cost holds prices.
	Cost Cost `json:"cost"`
	// Energy says what GPUs need around them, and what electricity costs and emits.
	Energy Energy `json:"energy"`
	// Run sets the length of the simulation and what is measured.
	Run RunSpec `json:"run"`
	// Pools are groups of equal replicas in a mixed fleet; without it all replicas are those of the deployment.
	Pools []Pool `json:"pools,omitempty"`
	// Disaggregation sets how prefill pools and decode pools work together.
	Disaggregation *Disaggregation `json:"disaggregation,omitempty"`
	// Offload is storage for KV beyond GPU memory; without it there is none.
	Offload *Offload `json:"offload,omitempty"`
	// Lifecycle sets how replicas start, fail, stop and scale; without it all replicas are always ready.
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
	// Accuracy is a file of own measured runs, written by clifftop validate --write. They update the error bars.
	Accuracy string `json:"accuracy,omitempty" empty:"allowed"`
	// Plan sets what clifftop plan chooses from; null is all defaults.
	Plan *Planning `json:"plan,omitempty"`

	origin *origin        // where the keys stand; nil for a scenario made in Go
	role   string         // of the pool that the scenario is of; empty for the whole
	shares map[string]int // parts of replicas of which one is simulated, by role
}

// Deployment says how one replica of the model lies on its GPUs, and how many replicas there are.
type Deployment struct {
	// TensorParallelSize splits every layer over this many GPUs.
	TensorParallelSize int `json:"tensor_parallel_size" range:"[1,1024]"`
	// PipelineParallelSize splits the layers into this many stages. With policy vllm each stage works on its own
	// batch.
	PipelineParallelSize int `json:"pipeline_parallel_size" range:"[1,1024]"`
	// DataParallelSize is the number of data-parallel ranks of a replica. Each rank has its own queue and KV cache
	// and is visible to the router. Ranks of a mixture-of-experts model iterate in lockstep.
	DataParallelSize int `json:"data_parallel_size" range:"[1,1024]"`
	// ExpertParallelSize spreads the experts of a mixture-of-experts model over this many GPUs.
	ExpertParallelSize int `json:"expert_parallel_size" range:"[1,1024]"`
	// All2AllBackend is how data-parallel ranks exchange tokens with experts. auto is the engine's default:
	// TensorRT-LLM uses flashinfer_all2allv in racks joined by NVLink; all else is allgather_reducescatter. deepep
	// takes the faster of DeepEP's two kernels, as SGLang does by phase.
	All2AllBackend string `json:"all2all_backend" one:"auto allgather_reducescatter deepep_low_latency deepep_high_throughput deepep flashinfer_all2allv"`
	// NumRedundantExperts is the number of copies of popular experts, which balance the ranks (EPLB).
	NumRedundantExperts int `json:"num_redundant_experts" range:"[0,65536]"`
	// EnableDBO divides an iteration into two batches, each of which exchanges tokens while the other one computes.
	EnableDBO bool `json:"enable_dbo"`
	// Dtype is the number format of the weights; auto is the model's own.
	Dtype string `json:"dtype" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// AttentionDtype is the number format of the weights around attention; auto is Dtype, but 16
	// bits in a mixture of experts in nvfp4, as published checkpoints have it.
	AttentionDtype string `json:"attention_dtype,omitempty" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// MoEDtype is the number format of the experts' weights; auto is the model's own, or Dtype where that
	// is given.
	MoEDtype string `json:"moe_dtype" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// KVCacheDtype is the number format of the KV cache; auto is 16 bits.
	KVCacheDtype string `json:"kv_cache_dtype" one:"auto bf16 fp16 fp8"`
	// MambaSSMCacheDtype is the number format of the states of recurrent layers; auto is the model's own.
	MambaSSMCacheDtype string `json:"mamba_ssm_cache_dtype,omitempty" one:"auto float32 bfloat16 float16"`
	// PowerLimit caps the power of each GPU in watts, below its design power: its clock slows down; null is no cap.
	PowerLimit *float64 `json:"power_limit" range:"(0,100000]"`
	// Replicas is the number of replicas behind the router.
	Replicas int `json:"replicas" range:"[1,4096]"`
	// Router chooses a replica for each request.
	Router Router `json:"router"`
}

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
	// MaxNumBatchedTokens is the token budget of one iteration; null is the engine's default for the GPU and the release.
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
	// all blocks; null is that of the engine's version.
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
	// StreamInterval is the number of tokens that the engine sends to a client at once. The first token and the end of an
	// output are sent at once.
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

// Overheads are the delays between the client and the engine, and the host's work; null is that of the engine's
// version.
type Overheads struct {
	// Frontend delays every request before it enters the queue of the engine.
	Frontend *yamldoc.Duration `json:"frontend"`
	// FrontendPerToken delays a request for each token of its prompt.
	FrontendPerToken *yamldoc.Duration `json:"frontend_per_token"`
	// NetworkIn delays requests and cancellations from client to server, NetworkOut delays tokens on the way back;
	// null is 0.
	NetworkIn  *yamldoc.Duration `json:"network_in"`
	NetworkOut *yamldoc.Duration `json:"network_out"`
	// StreamPerSequence is the time of the front end to send a chunk to a client. It sends the output of an iteration in
	// batch order. If it is behind, the tokens of a sequence that wait are one chunk.
	StreamPerSequence *yamldoc.Duration `json:"stream_per_sequence"`
	// CPU is the host time of an iteration. It precedes the GPU time, or overlaps with it under asynchronous
	// scheduling; null is 950 us on vLLM's engine, else 0.
	CPU *yamldoc.Duration `json:"cpu"`
	// CPUPerSequence is added to it for each sequence in the iteration; null is 1.1 us on vLLM's engine, else 0.
	CPUPerSequence *yamldoc.Duration `json:"cpu_per_sequence"`
}

// Cost holds prices.
type Cost struct {
	// GPUHour is the price of one GPU for one hour, in US dollars; null is the middle of the catalog's range.
	GPUHour *float64 `json:"gpu_hour" range:"[0,1000000]"`
}

// Energy says what GPUs need around them, and what electricity costs and emits.
type Energy struct {
	// ServerPower is the power of a server as a multiple of that of its GPUs.
	ServerPower float64 `json:"server_power" range:"[1,10]"`
	// PUE is the power of the data centre as a multiple of that of the servers.
	PUE float64 `json:"pue" range:"[1,10]"`
	// CarbonGPerKWh is the carbon intensity of electricity in grams of CO2 equivalent per kWh; null is unknown.
	CarbonGPerKWh *float64 `json:"carbon_g_per_kwh" range:"[0,100000]"`
	// USDPerKWh is the price of electricity; null is unknown.
	USDPerKWh *float64 `json:"usd_per_kwh" range:"[0,100]"`
}

// facility is what the report takes from it.
func (e *Energy) facility() collect.Facility {
	return collect.Facility{ServerPower: e.ServerPower, PUE: e.PUE, CarbonGPerKWh: e.CarbonGPerKWh,
		USDPerKWh: e.USDPerKWh}
}

// Default is the scenario that an empty file gives.
func Default() *Scenario {
	return &Scenario{
		Model: "llama-3.1-8b",
		GPU:   "h100-sxm",
		Deployment: Deployment{
			TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1, ExpertParallelSize: 1,
			All2AllBackend: "auto",
			Dtype:          "auto", MoEDtype: "auto", KVCacheDtype: "auto",
			Replicas: 1, Router: defaultRouter(),
		},
		Engine: Engine{
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
		},
		StepTime: StepTime{Kind: "kernels", Roofline: defaultRoofline()},
		Workload: Workload{Sampling: "greedy", ClassWeights: workload.OfRequests},
		Clients:  defaultClients(),
		Energy:   Energy{ServerPower: 1.45, PUE: 1},
		Run:      RunSpec{Warmup: Warmup{Auto: true}, Seed: 1, Replications: 1},
	}
}

// apart reports whether a replica computes only prompts, or only outputs.
func (s *Scenario) apart() bool { return s.role == "prefill" || s.role == "decode" }

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

// Replicated reports whether the scenario asks for more than one run of each kind.
func (s *Scenario) Replicated() bool { return s.Run.Replications > 1 || s.Run.Precision != nil }

// Endless reports whether nothing in the scenario says when the run ends.
func (s *Scenario) Endless() bool {
	a := s.Workload.Arrivals
	return s.Run.Requests == nil && s.Run.Duration == nil && s.Workload.Trace == nil && (a == nil || !a.Listed)
}

// Lasting refuses what runs several loads of a lifecycle for as long as their requests take: each would meet another
// part of it.
func (s *Scenario) Lasting(what string) error {
	if s.Lifecycle == nil || s.Run.Duration != nil {
		return nil
	}
	return yamldoc.Faults{s.Fault("lifecycle",
		"%s runs several loads: with a lifecycle all runs must have the same length (set run.duration)", what)}
}
