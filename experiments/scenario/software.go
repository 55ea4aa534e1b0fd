package scenario

import (
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// software is the serving engine around a policy: its kernels, its host and front end, and its rules for memory and
// sizes. The zero value has the kernels of vLLM's release, a host that takes no time, and vLLM's rule for memory.
type software struct {
	// vllmHost needs the time of vLLM's release for an iteration.
	vllmHost bool
	// frontend and frontendPerToken are the time from the arrival of a request until the engine knows it; 0 means the
	// times of vLLM's release.
	frontend, frontendPerToken clock.Duration
	// fp8KV keeps KV in 8 bits where weights have 8 bits, unless kv_cache_dtype says otherwise.
	fp8KV bool
	// rackExchange sends tokens to experts by an all-to-all over NVLink where it joins more than a node.
	rackExchange bool
	// allReduce are the kernels of all-reduces; 0 means the kernels of vLLM's release.
	allReduce model.ReduceKernels
	// tritonRecurrence runs the prefill of recurrent layers as a sequence of Triton kernels.
	tritonRecurrence bool
	// unfusedRecurrence is the time of small kernels in recurrent layers.
	unfusedRecurrence model.UnfusedKernels
	// denseShortPrefill runs short prompts of models with sparse attention as dense attention.
	denseShortPrefill bool
	// sizes are the engine's own defaults for a GPU; nil is 256 requests and 8,192 tokens.
	sizes func(c gpuSize) batchSizes
	// seats replaces the default of max_num_seqs when the pool and the longest sequence are known, in tokens.
	seats func(pool, longest int) int
	// pool is the memory of the KV pool on a GPU, in bytes, by the engine's own rule; nil is vLLM's.
	pool func(o sched.Options, k *sched.Keys, d *model.Deployment, b *model.KVBudget) float64
}

// gpuSize has the properties of a GPU on which an engine's defaults depend.
type gpuSize struct {
	// bytes is the memory of the GPU as the driver reports it.
	bytes float64
	// a100 means that the GPU is an A100; a100Small that the release counts it among the smaller GPUs.
	a100, a100Small bool
}

// batchSizes are the defaults of max_num_seqs and max_num_batched_tokens.
type batchSizes struct{ maxNumSeqs, maxNumBatchedTokens int }

// softwareNamed returns the engine of a name; the zero value if there is none.
func softwareNamed(name string) *software {
	switch name {
	case "vllm":
		return &software{vllmHost: true, sizes: vllmSizes}
	case "sglang":
		return &software{
			frontend: sglangFrontend, frontendPerToken: frontendPerToken, allReduce: model.ReduceCustom,
			tritonRecurrence: true, unfusedRecurrence: sglangRecurrence, denseShortPrefill: true,
			sizes: sglangSizes, seats: sglangSeats, pool: sglangPool,
		}
	case "trtllm":
		return &software{
			frontend: trtllmFrontend, frontendPerToken: frontendPerToken, allReduce: model.ReduceTRTLLM,
			fp8KV: true, rackExchange: true, pool: trtllmPool,
			sizes: func(gpuSize) batchSizes { return batchSizes{2048, 8192} }, // max_batch_size and max_num_tokens
		}
	}
	return new(software)
}

// vllmSizes is the rule of vLLM's API server (EngineArgs.get_batch_defaults): GPUs of 70 GiB and more take more.
func vllmSizes(c gpuSize) batchSizes {
	if c.bytes >= 70<<30 && !(c.a100 && c.a100Small) {
		return batchSizes{1024, 8192}
	}
	return batchSizes{256, 2048}
}

// sglangRecurrence is the time of small kernels around Gated DeltaNet: splitting, gating and norms. It was chosen from
// nine pairs on runs of Qwen3.5-397B on B200. Four of five cells (parallelism and format) improve; alone they ask for
// 30 to 55 us a layer. TP 4 in fp8 asks for none with few users and for more with many.
var sglangRecurrence = model.UnfusedKernels{LayerSeconds: 40e-6, TokenSeconds: 200e-9}

// The front ends of SGLang and TensorRT-LLM, with the host's share of the eager launches of a prefill. They were fitted
// on the time to first token of published closed loops, over cells (model, GPU, parallelism). With each cell left out
// in turn the medians ask for 48 ms + 8 µs a token, the means for 100 ms (SGLang: 16 cells), and for 48 ms + 8 µs and
// 28 ms (TensorRT-LLM: 22 cells).
const (
	sglangFrontend   = 56 * clock.Millisecond
	trtllmFrontend   = 32 * clock.Millisecond
	frontendPerToken = 4 * clock.Microsecond
)

// sglangCard returns SGLang's defaults for a GPU with so much memory: chunked_prefill_size, and the number of sequences
// up to which CUDA graphs are captured (cuda_graph_max_bs in server_args.py).
func sglangCard(bytes float64) (chunk, graphs int) {
	const gib = 1 << 30
	switch {
	case bytes < 35*gib:
		return 2048, 24
	case bytes < 60*gib:
		return 4096, 32
	case bytes < 160*gib:
		return 8192, 256
	}
	return 16384, 512
}

// sglangSizes is SGLang's rule for chunked_prefill_size, with the least max_running_requests (ServerArgs).
func sglangSizes(c gpuSize) batchSizes {
	chunk, _ := sglangCard(c.bytes)
	return batchSizes{2048, chunk}
}

// sglangSeats is SGLang's rule for max_running_requests: 512 for each sequence of the longest length that the pool
// holds.
func sglangSeats(pool, longest int) int { return min(max(pool*512/longest, 2048), 4096) }

// sglangPool is SGLang's rule: mem_fraction_static of the memory holds weights and pool; what it leaves is for
// activations and graphs. By default that is, in MB,
//
//	512 + 1.5·max(chunked_prefill_size, 2048) + 2·cuda_graph_max_bs + 128·tp·pp,
//	at least 10 GB on cards of more than 60 GB
//
// (SGLang, server_args.py).
func sglangPool(options sched.Options, k *sched.Keys, d *model.Deployment, b *model.KVBudget) float64 {
	const mb = 1 << 20
	o, ok := options.(*sched.SGLang)
	if !ok {
		o = new(sched.SGLang)
	}
	total := b.Total / mb
	_, graphs := sglangCard(float64(b.Total))
	reserved := 512 + 1.5*max(float64(o.Chunk(k)), 2048) + 2*float64(graphs) +
		128*float64(d.TensorParallel*d.PipelineParallel)
	if total > 60_000 {
		reserved = max(reserved, 10*1024)
	}
	fraction := (total - reserved) / total
	if o.MemFractionStatic > 0 {
		fraction = o.MemFractionStatic
	}
	free := b.Total - b.Runtime
	return float64(free*fraction) - b.Weights
}

// trtllmPool is TensorRT-LLM's rule: a part of the memory that loading and a full step leave.
func trtllmPool(options sched.Options, _ *sched.Keys, _ *model.Deployment, b *model.KVBudget) float64 {
	fraction := 0.9
	if o, ok := options.(*sched.TRTLLM); ok {
		fraction = o.FreeGPUMemory
	}
	return fraction * (b.Total - b.Weights - b.Runtime - b.Activations - b.Sampler - b.Graphs)
}
