package model

// Single operations, in seconds, for tests.

// newTestOps returns operations with the constants of the kernel tables, which the vectors use.
func newTestOps(d *Deployment) *ops {
	o, err := KernelOptions{Tables: Tables{GEMM: true, MixedAttention: true, MoE: true, AllReduce: true}}.resolve(&d.GPU.Kernels.Common)
	if err != nil {
		panic(err)
	}
	return newOps(d, o)
}

// GEMM returns the time of one matrix product, in seconds.
func GEMM(d *Deployment, m, n, k float64, w Precision) float64 {
	return newTestOps(d).gemm(m, n, k, w).seconds
}

// Experts returns the time of the grouped product of one layer, in seconds, and the number of experts that it
// activates.
func Experts(d *Deployment, tokens float64) (seconds, active float64) {
	o := newTestOps(d)
	return o.experts(tokens).seconds, o.activeExperts(tokens)
}

// AllReduce returns the time of one all-reduce, in seconds.
func AllReduce(d *Deployment, bytes float64) float64 {
	return newTestOps(d).comm.allReduce(bytes, d.TensorParallel).seconds
}

// Projections returns the time of the attention projections of all layers.
func Projections(d *Deployment, m float64) float64 {
	o, sum := newTestOps(d), 0.0
	for i := range o.classes {
		sum += o.projections(&o.classes[i], m).seconds
	}
	return sum
}

// DenseLayers returns the time of the MLPs and elementwise kernels of the dense layers.
func DenseLayers(d *Deployment, m float64) float64 {
	o := newTestOps(d)
	width := float64(d.LLM.Intermediate) / o.tp
	dense, _ := d.LLM.floatMLPLayers()
	small := o.mlpElementwise(m, width).seconds + o.mixerElementwise(&o.classes[0], m).seconds
	return (o.mlp(m, width).seconds + small) * dense
}

// Head returns the time of the output head with its all-reduce and the sampler.
func Head(d *Deployment, emit float64) float64 {
	o := newTestOps(d)
	return total(func(v termFunc) { o.emitTerms(emit, v) })
}

// DecodePieces returns the number of straight pieces in the curve of decode attention.
func DecodePieces(k *Kernels) int { return len(k.decode.pieces) }

// CurveError returns the greatest relative error of a curve over the given points, and whether its pieces join.
func CurveError(f func(x float64) float64, kinks []int64, bias bool, points []int64) (worst float64, joined bool) {
	c := newCurve(f, 0, kinks, bias)
	for _, x := range points {
		e := float64(c.at(x))/(f(float64(x))*femtosPerSecond) - 1
		worst = max(worst, e, -e)
	}
	joined = true
	for i, p := range c.pieces[1:] {
		before := c.pieces[i]
		joined = joined && before.end == p.start &&
			saturate(before.value, p.start-before.start, before.slope) == p.value
	}
	return worst, joined
}
