package model

import (
	"strconv"
	"strings"
)

// Release says how fast the kernels of an engine's release are on a GPU.
type Release struct {
	Name string // first release, such as sglang-0.5.9
	// Time is the time of all kernels relative to the constants of the GPU.
	Time float64
}

// ForRelease returns the GPU with the kernels of an engine's release, such as sglang-0.5.9. A release that is not
// listed has the kernels of the one before it, or of the first one.
func (g GPU) ForRelease(name string) GPU {
	engine, version := cutRelease(name)
	time := 0.0
	for _, r := range g.Releases {
		e, v := cutRelease(r.Name)
		if e == engine && (time == 0 || !older(version, v)) {
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
		&c.MLAPrefillCompute)
	longer(&k.Prefill.Launch, &c.ElementwiseLaunch, &c.SamplerLaunch, &c.MLADecodeLaunch, &c.MLADecodeSequence,
		&c.MLAPrefillLaunch, &c.StepOverhead, &c.SequenceOverhead)
	for i := range k.AllReduce.Latency {
		longer(&k.AllReduce.Latency[i])
	}
	return k
}
