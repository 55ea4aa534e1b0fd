package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
)

// release has the defaults of a release of vLLM, where releases differ.
type release struct {
	// Name is the release, such as vllm-0.15.
	Name string
	// GPUMemoryUtilization is the default part of the memory taken.
	GPUMemoryUtilization float64
	// GraphsInBudget counts the CUDA graphs' memory in that part; before, they lay beside it.
	GraphsInBudget bool
	// AsyncScheduling composes the next iteration while one runs.
	AsyncScheduling bool
	// SchedulerReserveFullISL admits a request only when its whole prompt fits.
	SchedulerReserveFullISL bool
	// PadRanks pads data-parallel ranks to the busiest one in all iterations, not only in those of CUDA graphs.
	PadRanks bool
	// FuseAllReduce runs all-reduces and norms as one kernel.
	FuseAllReduce bool
	// AllReduce are the kernels of all-reduces.
	AllReduce model.ReduceKernels
	// TritonRecurrence runs the prefill of recurrent layers as a sequence of Triton kernels.
	TritonRecurrence bool
	// Frontend and FrontendPerToken are the time from a request's arrival to the engine's sight of it.
	Frontend, FrontendPerToken clock.Duration
	// CPU and CPUPerSequence are the host's time for an iteration: scheduling, preparing the inputs and processing the
	// outputs.
	CPU, CPUPerSequence clock.Duration
	// A100Small gives A100s the defaults of max_num_seqs and max_num_batched_tokens of smaller GPUs.
	A100Small bool
	// AppendUnkeyed returns freed blocks that hold no cached prefix to the back of the free list.
	AppendUnkeyed bool
	// LookaheadAtAdmission allocates slots for drafts also when a request is admitted.
	LookaheadAtAdmission bool
	// PadAdmissions admits a request that misses one token with dummy drafts, if the others decode.
	PadAdmissions bool
	// RetentionInterval is prefix_cache_retention_interval: see [engine.Hybrid].
	RetentionInterval int
	// ChunkedGroups gives chunked local attention KV cache groups. Before, these layers kept the KV of all tokens.
	ChunkedGroups bool
}

// change is a difference between a release and those before it.
type change struct {
	minor int // of release 0.minor
	what  string
	apply func(*release)
}

// The host's time for an iteration of vLLM's V1 engine, as two published comparisons and a profile show it:
//
//   - Llama-3.1-8B with EAGLE3 on an L20, one user: 28.14 ms between chunks with the synchronous loop, 27.17 ms with
//     the asynchronous one (vLLM, pull request 25872, September 2025).
//   - Llama-3.2-1B on one GPU, one user, synchronous loop: 2.73 ms per token (pull request 17866, May 2025), where the
//     GPU needs 1.78 ms on an H100.
//   - Processing the outputs takes 0.287 ms for 256 sequences (pull request 46112, June 2026). This is the only part
//     whose growth with the batch has been published, so that the time per sequence is a lower bound.
const (
	hostStep        = 950 * clock.Microsecond
	hostPerSequence = 1100 * clock.Nanosecond
)

// changes are the releases of vLLM that changed behaviour, in order. The utilisation's default is 0.90 in all
// documented releases but the current one.
var changes = []change{
	{9, "an A100 has the max_num_seqs and max_num_batched_tokens of GPUs below 70 GiB: 256 and 2048",
		func(p *release) { p.A100Small = true }},
	// PR 22317 of August 2025; 0.11 is the first minor release after it.
	{11, "an admission allocates no slots for drafts", func(p *release) { p.LookaheadAtAdmission = false }},
	{14, "async_scheduling is on", func(p *release) { p.AsyncScheduling = true }},
	{16, "the front end takes longer", func(p *release) {
		p.Frontend, p.FrontendPerToken = 12*clock.Millisecond, 4*clock.Microsecond
	}},
	// PR 34102 of February 2026; the first release surely after it is 0.17.
	{17, "data-parallel ranks are padded only in CUDA graphs", func(p *release) { p.PadRanks = false }},
	{18, "all-reduces are fused with the norm after them", func(p *release) { p.FuseAllReduce = true }},
	{18, "all-reduces of medium messages go through symmetric memory",
		func(p *release) { p.AllReduce = model.ReduceVLLM }},
	{19, "scheduler_reserve_full_isl is on", func(p *release) { p.SchedulerReserveFullISL = true }},
	{21, "CUDA graphs count against gpu_memory_utilization", func(p *release) { p.GraphsInBudget = true }},
	// Timelines of 0.20.1 have eight kernels a layer, kernel tables of 0.24 one (aiconfigurator).
	{24, "a fused kernel runs the prefill of Gated DeltaNet and KDA", func(p *release) { p.TritonRecurrence = false }},
	// PR 43733, merged on 27 May 2026. 0.22 was released in the same days; the first release surely after it is 0.23,
	// of 13 June.
	{23, "an admission allocates slots for drafts", func(p *release) { p.LookaheadAtAdmission = true }},
	// PR 45237, merged on 25 June 2026. 0.24 was released on 30 June from an earlier commit; 0.25 has the change.
	{25, "an admission of one token is padded with drafts", func(p *release) { p.PadAdmissions = true }},
	{28, "freed blocks without a cached prefix are reused first", func(p *release) { p.AppendUnkeyed = false }},
	// The releases of the next two are not known: they hold for main on 2026-08-20.
	{currentMinor, "the prefix cache of windows has the ends of prompts only", func(p *release) {
		p.RetentionInterval = 0
	}},
	{currentMinor, "chunked local attention frees earlier chunks", func(p *release) { p.ChunkedGroups = true }},
	{currentMinor, "gpu_memory_utilization is 0.92, before 0.90", func(p *release) { p.GPUMemoryUtilization = 0.92 }},
}

// The releases between which a scenario may choose. The engine that is simulated is V1, which
// became the default in the oldest.
const (
	oldestMinor  = 8
	currentMinor = 32
)

// otherRelease matches releases of engines that are not told apart but by the speed of their kernels on some GPUs: see
// [model.GPU.ForRelease].
var otherRelease = pattern.New(`^(sglang|trtllm)-[0-9]+\.[0-9]+(\.[0-9]+)?$`)

// ofPolicy reports whether a release is one of the engine that a policy imitates.
func ofPolicy(version, policy string) bool {
	engine, _, _ := strings.Cut(version, "-")
	return strings.HasPrefix(policy+"-", engine+"-")
}

// releaseFor is the profile of a version such as vllm-0.15 or vllm-0.15.1. An empty version is the
// current one, and so is one of another engine.
func releaseFor(version string) (release, error) {
	minor := currentMinor
	if version != "" && !otherRelease.Get().MatchString(version) {
		parts := strings.Split(strings.TrimPrefix(version, "vllm-"), ".")
		m, err := strconv.Atoi(parts[min(1, len(parts)-1)])
		if err != nil || len(parts) < 2 || len(parts) > 3 || parts[0] != "0" || !strings.HasPrefix(version, "vllm-") ||
			m < oldestMinor || m > 999 {
			return release{}, fmt.Errorf("%q is not known (want vllm-0.%d or a later release, or one such as "+
				"sglang-0.5.9)",
				yamldoc.Short(version), oldestMinor)
		}
		minor = m
	}
	p := release{
		Name: fmt.Sprintf("vllm-0.%d", minor), GPUMemoryUtilization: 0.90, AppendUnkeyed: true,
		LookaheadAtAdmission: true,
		AllReduce:            model.ReduceCustom, TritonRecurrence: true, PadRanks: true,
		Frontend: 4200 * clock.Microsecond, FrontendPerToken: 2800 * clock.Nanosecond,
		CPU: hostStep, CPUPerSequence: hostPerSequence, RetentionInterval: engine.DenseRetention,
	}
	for _, c := range changes {
		if minor >= c.minor {
			c.apply(&p)
		}
	}
	return p, nil
}

// Landmark is a release and what changed with it.
type Landmark struct{ Version, Change string }

// Landmarks lists what engine.version switches, oldest first.
func Landmarks() []Landmark {
	marks := []Landmark{{fmt.Sprintf("vllm-0.%d", oldestMinor),
		"the V1 scheduler: one token budget, recompute on preemption"}}
	for _, c := range changes {
		marks = append(marks, Landmark{fmt.Sprintf("vllm-0.%d", c.minor), c.what})
	}
	return marks
}

// Release is the version of the program.
const Release = "0.1.0"
