package policy

import (
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/kv"
	"clifftop/sim/sched"
)

var sglangPolicy = Policy{
	Name: "sglang",
	Does: "prompts first, in chunks and iterations of their own; admission by an estimate of outputs; retracts " +
		"when it was wrong; radix cache",
	Source: "SGLang (managers/schedule_policy, mem_cache/radix_cache)",
	New:    newSGLang,
	Defaults: Defaults{UnpredictedEnds: true, BlockSize: 1, Radix: true, AllReduce: model.ReduceCustom,
		TritonRecurrence: true, UnfusedRecurrence: sglangRecurrence, DenseShortPrefill: true,
		Frontend: sglangFrontend, FrontendPerToken: frontendPerToken},
	PoolMemory:   sglangPool,
	Sizes:        sglangSizes,
	Seats:        sglangSeats,
	Eviction:     sglangEviction,
	Idle:         sglangIdle,
	BySession:    sglangBySession,
	RecvInterval: func(options any) int { return options.(*sglang).SchedulerRecvInterval },
	Section: &Section{"sglang", "Options of policy sglang.", func() any {
		return &sglang{MaxPrefillTokens: 16_384, SchedulePolicy: "fcfs", ScheduleConservativeness: 1,
			RadixEvictionPolicy: "lru", SchedulerRecvInterval: 1}
	}},
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

// sglang are options under SGLang's names. max_num_seqs is its max_running_requests, and block_size its page_size.
type sglang struct {
	// Most prompt tokens of an iteration.
	ChunkedPrefillSize *int `json:"chunked_prefill_size" range:"[1,16777216]"`
	// Bounds them too, but cuts no prompt.
	MaxPrefillTokens int `json:"max_prefill_tokens" range:"[1,16777216]"`
	// Adds decodes to the iterations of prefills.
	EnableMixedChunk bool `json:"enable_mixed_chunk"`
	// Order in which waiting requests are tried.
	SchedulePolicy string `json:"schedule_policy" one:"fcfs lpm dfs-weight lof random routing-key"`
	// Scales what outputs reserve.
	ScheduleConservativeness float64 `json:"schedule_conservativeness" range:"(0,1000]"`
	// Difference that retracts.
	PriorityThreshold *int `json:"priority_scheduling_preemption_threshold" range:"[0,65535]"`
	// Part of free memory for weights and pool.
	MemFractionStatic *float64 `json:"mem_fraction_static" range:"(0,1]"`
	// Order of eviction.
	RadixEvictionPolicy string `json:"radix_eviction_policy" one:"lru fifo mru filo lfu slru priority"`
	// Decoding iterations between receipts.
	SchedulerRecvInterval int `json:"scheduler_recv_interval" range:"[1,1000]"`
	// Requests carry ignore_eos: SGLang looks ahead if nothing is cached.
	IgnoreEOS bool `json:"ignore_eos"`
}

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
func sglangSizes(c Card) Sizes {
	chunk, _ := sglangCard(c.Bytes)
	return Sizes{2048, chunk}
}

// sglangSeats is SGLang's rule for max_running_requests: 512 for each sequence of the longest length that the pool
// holds.
func sglangSeats(pool, longest int) int { return min(max(pool*512/longest, 2048), 4096) }

func newSGLang(e *Engine) sched.Scheduler {
	o := e.Options.(*sglang)
	p := &sched.SGLang{
		MaxPrefillTokens: limitInt32(o.MaxPrefillTokens),
		MixedChunk:       o.EnableMixedChunk,
		Conservativeness: o.ScheduleConservativeness,
		IgnoreEOS:        o.IgnoreEOS,
		QueueOrder:       yamldoc.ValueNamed(sched.QueueOrders(), o.SchedulePolicy),
		Seed:             e.Seed,
		Replica:          e.Replica,
	}
	if e.EnableChunkedPrefill {
		p.ChunkedPrefillSize = limitInt32(o.chunk(e))
	}
	if o.PriorityThreshold != nil {
		p.PreemptByPriority, p.PreemptionThreshold = true, limitInt32(*o.PriorityThreshold)
	}
	return p
}

// sglangEviction returns the order in which the radix cache evicts.
func sglangEviction(options any) kv.LeafOrder {
	return yamldoc.ValueNamed(kv.LeafOrders(), options.(*sglang).RadixEvictionPolicy)
}

// sglangIdle reports the options that depend on the radix cache.
func sglangIdle(options any, caching bool, report func(key, why string)) {
	o := options.(*sglang)
	if o.IgnoreEOS && caching {
		report("ignore_eos", "SGLang looks ahead only without a prefix cache (want enable_prefix_caching: false)")
	}
	if sglangEviction(o) != kv.LeastRecent && !caching {
		report("radix_eviction_policy", "there is no prefix cache")
	}
}

// sglangBySession returns the key of the queue order, if it goes by sessions.
func sglangBySession(options any) string {
	if options.(*sglang).SchedulePolicy == sched.RoutingKey.String() {
		return "schedule_policy"
	}
	return ""
}

// chunk is the most prompt tokens of an iteration.
func (o *sglang) chunk(e *Engine) int {
	if o.ChunkedPrefillSize != nil {
		return *o.ChunkedPrefillSize
	}
	return e.MaxNumBatchedTokens
}

// sglangPool is SGLang's rule: mem_fraction_static of the memory holds weights and pool; what it leaves is for
// activations and graphs. By default that is, in MB,
//
//	512 + 1.5·max(chunked_prefill_size, 2048) + 2·cuda_graph_max_bs + 128·tp·pp,
//	at least 10 GB on cards of more than 60 GB
//
// (SGLang, server_args.py).
func sglangPool(e *Engine, d *model.Deployment, b *model.KVBudget) float64 {
	const mb = 1 << 20
	o := e.Options.(*sglang)
	total := b.Total / mb
	_, graphs := sglangCard(float64(b.Total))
	reserved := 512 + 1.5*max(float64(o.chunk(e)), 2048) + 2*float64(graphs) +
		128*float64(d.TensorParallel*d.PipelineParallel)
	if total > 60_000 {
		reserved = max(reserved, 10*1024)
	}
	fraction := (total - reserved) / total
	if o.MemFractionStatic != nil {
		fraction = *o.MemFractionStatic
	}
	free := b.Total - b.Runtime
	return float64(free*fraction) - b.Weights
}
