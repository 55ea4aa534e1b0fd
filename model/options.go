package model

import (
	"math"

	"clifftop/internal/faults"
	"clifftop/sim/clock"
)

// KernelOptions configure the [Kernels] step timer. The zero value means all defaults.
type KernelOptions struct {
	// MaxNumBatchedTokens and MaxNumSeqs are the engine's limits. They size the tables and limit the batches for
	// which CUDA graphs are captured; larger batches can be timed too. 0 means 8192 and 256.
	MaxNumBatchedTokens int
	MaxNumSeqs          int
	// Drafts is the number of draft tokens per sequence and step. It determines the captured sizes of CUDA graphs.
	Drafts int
	// PadGraphs pads a step to the next size for which a CUDA graph was captured.
	PadGraphs bool
	// MaxCapture is the largest batch in tokens for which a CUDA graph is captured; 0 means twice MaxNumSeqs, at most
	// 512 (vLLM's default).
	MaxCapture int
	// HostLaunches bounds steps that are not a whole CUDA graph by the time in which the host launches their kernels:
	// steps with prefill, and steps beyond MaxCapture.
	HostLaunches bool
	// EqualContexts takes the KV lengths of decoding sequences as equal.
	EqualContexts bool
	// PadRanks pads data-parallel ranks to the tokens of the busiest one in steps without a CUDA graph too.
	PadRanks bool
	// TopP adds the sort of the vocabulary for sampling with top-p or top-k.
	TopP bool
	// Overheads are the times outside the kernels; nil means the calibrated ones.
	Overheads *Overheads
	// ExtraLayerTime is added per layer and step, for models that need more than their kernels.
	ExtraLayerTime clock.Duration
	// EagerLayerTime is the host's time to launch a layer without CUDA graphs. A step takes at least that for all
	// layers plus the step overhead. 0.25 to 0.35 ms are typical of engines without CUDA graphs.
	EagerLayerTime clock.Duration
	// MixedEfficiency is the fraction of the peak that mixed prefill and decode attention achieves on FA2 GPUs. 0
	// means the constant of the GPU.
	MixedEfficiency float64
	// AdditiveDecode adds the cost per sequence and the KV read of decode attention, as if they did not overlap.
	AdditiveDecode bool
	// RoutingConcentration is the fraction of the experts in use. 0 means 1.
	RoutingConcentration float64
	// RoutingDispersion describes how evenly routing uses experts; +Inf means uniform. 0 means the
	// model's, or 12 if that is not known.
	RoutingDispersion float64
	// ExpertImbalance is the load of the busiest expert-parallel rank over the mean; 1 means perfect balance. 0
	// means an estimate from RoutingDispersion.
	ExpertImbalance float64
	// AllReduce are the kernels of all-reduces that are not fused.
	AllReduce ReduceKernels
	// FuseAllReduce fuses an all-reduce with the norm after it, up to the message size that the GPU supports.
	FuseAllReduce bool
	// FuseLayerKernels omits the additional small kernels of layers (see [LLM.Unfused], UnfusedRecurrence
	// and UnfusedSparse).
	FuseLayerKernels bool
	// UnfusedRecurrence is the time of small kernels that an engine runs in every recurrent layer.
	UnfusedRecurrence UnfusedKernels
	// UnfusedSparse adds the small kernels of sparse attention and the slower kernel for KV in 16 bits that vLLM runs
	// in each decode layer.
	UnfusedSparse bool
	// TritonRecurrence runs the prefill of recurrent layers as a sequence of Triton kernels instead of a fused one.
	TritonRecurrence bool
	// PlainLayers computes recurrent layers without their recurrence, sparse and compressed attention without a
	// selection, and residual streams as one, to show the effect of these kinds of layers.
	PlainLayers bool
	// DenseShortPrefill runs sparse attention of prompts that have no more tokens than it selects as dense attention.
	DenseShortPrefill bool
	// Tables selects constants without corrections from served runs.
	Tables Tables
}

// Overheads are times on the GPU timeline outside the kernels.
type Overheads struct {
	Step     clock.Duration // per step
	Sequence clock.Duration // per sequence in the step
}

// resolve checks the options and fills in the defaults.
func (o KernelOptions) resolve(c *CommonConstants) (KernelOptions, error) {
	var f faults.List
	count := func(name string, v *int, byDefault int) {
		if *v == 0 {
			*v = byDefault
		}
		faults.Within(&f, name, *v, 1, math.MaxInt32)
	}
	number := func(name string, v *float64, byDefault, low, high float64) {
		if *v == 0 {
			*v = byDefault
		}
		faults.Within(&f, name, *v, low, high)
	}
	count("max_num_batched_tokens", &o.MaxNumBatchedTokens, 8192)
	count("max_num_seqs", &o.MaxNumSeqs, 256)
	faults.Within(&f, "drafts", o.Drafts, 0, 1<<10)
	faults.Within(&f, "max_capture", o.MaxCapture, 0, math.MaxInt32)
	number("routing concentration", &o.RoutingConcentration, 1, 1e-6, 1)
	number("routing dispersion", &o.RoutingDispersion, 12, 1e-3, math.Inf(1))
	if o.ExpertImbalance != 0 {
		number("expert imbalance", &o.ExpertImbalance, 0, 1, 1e6)
	}
	if o.MixedEfficiency != 0 {
		number("mixed attention efficiency", &o.MixedEfficiency, 0, 1e-6, 1)
	}
	faults.Within(&f, "all-reduce kernels", o.AllReduce, 0, reduceKernels-1)
	if o.Overheads == nil {
		o.Overheads = &Overheads{Step: clock.FromSeconds(c.StepOverhead),
			Sequence: clock.FromSeconds(c.SequenceOverhead)}
	}
	faults.Within(&f, "step overhead", o.Overheads.Step, 0, clock.Second)
	faults.Within(&f, "sequence overhead", o.Overheads.Sequence, 0, clock.Second)
	faults.Within(&f, "extra layer time", o.ExtraLayerTime, 0, clock.Second)
	faults.Within(&f, "eager layer time", o.EagerLayerTime, 0, clock.Second)
	return o, f.Err()
}
