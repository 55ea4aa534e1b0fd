package model

import (
	"math"

	"clifftop/internal/faults"
	"clifftop/sim/clock"
)

// KernelOptions tune the [Kernels] step timer. The zero value takes every default.
type KernelOptions struct {
	// MaxNumBatchedTokens and MaxNumSeqs are the engine's limits. They size the tables, and bound the
	// batches that CUDA graphs are captured for; larger batches are still timed. 0 means 8192 and 256.
	MaxNumBatchedTokens int
	MaxNumSeqs          int
	// Drafts is the number of tokens that speculative decoding proposes for a sequence in a step. It decides which
	// sizes of CUDA graphs are captured.
	Drafts int
	// PadGraphs runs a step of few tokens as long as one of the next size that a CUDA graph was
	// captured for.
	PadGraphs bool
	// TopP adds the sorting of the vocabulary that sampling with top-p or top-k needs.
	TopP bool
	// Overheads are those outside the kernels; nil takes the calibrated ones.
	Overheads *Overheads
	// ExtraLayerTime is added for every layer of every step, for models known to need more than their
	// kernels.
	ExtraLayerTime clock.Duration
	// EagerLayerTime is what the host needs to launch a layer without CUDA graphs: no step is shorter
	// than that for all layers, plus the step overhead. 0.25 to 0.35 ms are typical of engines that
	// do not capture graphs.
	EagerLayerTime clock.Duration
	// MixedEfficiency is the fraction of the peak that mixed prefill and decode attention reaches on
	// FA2 GPUs. 0 takes the constant of the GPU.
	MixedEfficiency float64
	// AdditiveDecode adds up a sequence's own cost in decode attention and the reading of its cache, as if they
	// did not overlap.
	AdditiveDecode bool
	// RoutingConcentration is the fraction of the experts that routing uses. 0 means 1.
	RoutingConcentration float64
	// RoutingDispersion says how evenly routing uses experts: +Inf is uniform. 0 means 12.
	RoutingDispersion float64
	// ExpertImbalance is the load of the busiest expert-parallel rank over the mean; 1 is perfect
	// balance. 0 expects it from chance and from the routing's dispersion.
	ExpertImbalance float64
	// FuseAllReduce runs an all-reduce and the norm after it as one kernel, up to the message size for
	// which the GPU has one.
	FuseAllReduce bool
	// FuseLayerKernels leaves out the small kernels that a model's layers have beyond the usual ones
	// (see [LLM.Unfused]).
	FuseLayerKernels bool
	// Tables takes groups of constants from the kernel tables alone.
	Tables Tables
}

// Overheads are GPU-timeline time outside the kernels.
type Overheads struct {
	Step     clock.Duration // of every step
	Sequence clock.Duration // of every sequence in it
}

// resolve checks the options and fills the defaults in.
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
	number("routing concentration", &o.RoutingConcentration, 1, 1e-6, 1)
	number("routing dispersion", &o.RoutingDispersion, 12, 1e-3, math.Inf(1))
	if o.ExpertImbalance != 0 {
		number("expert imbalance", &o.ExpertImbalance, 0, 1, 1e6)
	}
	if o.MixedEfficiency != 0 {
		number("mixed attention efficiency", &o.MixedEfficiency, 0, 1e-6, 1)
	}
	if o.Overheads == nil {
		o.Overheads = &Overheads{Step: clock.FromSeconds(c.StepOverhead), Sequence: clock.FromSeconds(c.SequenceOverhead)}
	}
	faults.Within(&f, "step overhead", o.Overheads.Step, 0, clock.Second)
	faults.Within(&f, "sequence overhead", o.Overheads.Sequence, 0, clock.Second)
	faults.Within(&f, "extra layer time", o.ExtraLayerTime, 0, clock.Second)
	faults.Within(&f, "eager layer time", o.EagerLayerTime, 0, clock.Second)
	return o, f.Err()
}
