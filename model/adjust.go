package model

import (
	"math"
	"strconv"
	"strings"
)

// Adjustment corrects the constants of a GPU by the user's measurements. Factors multiply the achieved fraction of
// peak or bandwidth; 0 means 1. No factor raises a fraction above its limit.
type Adjustment struct {
	GEMMCompute, GEMMMemory float64 // dense products
	AttentionCompute        float64 // of prefill chunks
	AttentionMemory         float64 // of decoding sequences
	MoECompute              float64 // grouped products over experts
	// StepSeconds and SequenceSeconds are added to the overhead of a step and of each sequence in it.
	StepSeconds, SequenceSeconds float64
}

// Adjusted returns the constants with an adjustment applied. Overheads do not become negative.
func (k KernelConstants) Adjusted(a Adjustment) KernelConstants {
	scale := func(v *float64, factor, most float64) {
		if factor > 0 {
			*v = min(*v*factor, math.Max(*v, most))
		}
	}
	for _, p := range []Precision{BF16, FP16, FP8, INT4, NVFP4, MXFP4} {
		scale(&k.GEMM[p].Compute, a.GEMMCompute, 1)
		scale(&k.GEMM[p].Memory, a.GEMMMemory, 1)
		scale(&k.MoE[p].Compute, a.MoECompute, 1)
	}
	for _, p := range []Precision{BF16, FP8} {
		scale(&k.Decode[p].Memory, a.AttentionMemory, 1)
	}
	scale(&k.Prefill.Compute, a.AttentionCompute, 1)
	scale(&k.Mixed.Compute, a.AttentionCompute, 1)
	k.Common.StepOverhead = max(0, k.Common.StepOverhead+a.StepSeconds)
	k.Common.SequenceOverhead = max(0, k.Common.SequenceOverhead+a.SequenceSeconds)
	return k
}

// Release says how fast the kernels of an engine's release are on a GPU.
type Release struct {
	Name string // first release, such as sglang-0.5.9
	// Time is the time of all kernels relative to the constants of the GPU.
	Time float64
	// Latent limits it to models with latent attention.
	Latent bool
}

// ForRelease returns the GPU with the kernels of an engine's release, such as sglang-0.5.9, for models with or without
// latent attention. A release that is not listed has the kernels of the one before it, or of the first one.
func (g GPU) ForRelease(name string, latent bool) GPU {
	engine, version := cutRelease(name)
	time := 0.0
	for _, r := range g.Releases {
		e, v := cutRelease(r.Name)
		if e == engine && (latent || !r.Latent) && (time == 0 || !older(version, v)) {
			time = r.Time
		}
	}
	if time > 0 {
		g.Kernels, g.Tables = g.Kernels.slowed(time), g.Tables.slowed(time)
	}
	return g
}

// cutRelease divides "sglang-0.5.9" into its engine and its version.
func cutRelease(name string) (engine string, version [3]int) {
	engine, numbers, _ := strings.Cut(name, "-")
	for i, part := range strings.SplitN(numbers, ".", len(version)) {
		digits := len(part) - len(strings.TrimLeft(part, "0123456789"))
		version[i], _ = strconv.Atoi(part[:digits])
	}
	return engine, version
}

func older(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// slowed returns the constants of kernels that take the given multiple of the time. No kernel becomes faster than the
// hardware.
func (k KernelConstants) slowed(time float64) KernelConstants {
	if k.isZero() {
		return k
	}
	rate := func(limit float64, rates ...*float64) {
		for _, v := range rates {
			*v = min(*v/time, max(*v, limit))
		}
	}
	longer := func(times ...*float64) {
		for _, v := range times {
			*v *= time
		}
	}
	for p := range precisions {
		g, m, d := &k.GEMM[p], &k.MoE[p], &k.Decode[p]
		rate(1, &g.Compute, &g.Memory, &m.Compute, &d.Memory)
		rate(moeMemoryLimit, &m.Memory)
		longer(&g.Launch, &m.Launch, &d.Launch, &d.Sequence)
	}
	c := &k.Common
	rate(1, &k.Prefill.Compute, &k.Mixed.Compute, &c.ElementwiseMemory, &c.MLADecodeCompute, &c.MLADecodeMemory,
		&c.MLADecode32Heads, &c.MLAPrefillCompute)
	longer(&k.Prefill.Launch, &c.ElementwiseLaunch, &c.SamplerLaunch, &c.MLADecodeLaunch, &c.MLADecodeSequence,
		&c.MLAPrefillLaunch, &c.StepOverhead, &c.SequenceOverhead)
	for i := range k.AllReduce.Latency {
		longer(&k.AllReduce.Latency[i])
	}
	return k
}
