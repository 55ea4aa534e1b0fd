package model

import "math"

// launches is the time in which the host launches the kernels of a step that is not a whole CUDA graph. The GPU waits
// for the host if its kernels are shorter.
type launches struct {
	captured  int64 // largest step in tokens that runs in CUDA graphs
	piecewise int64 // minimum time of a step with prefill in piecewise graphs, which leave out attention
	eager     int64 // minimum time of a larger step
}

// prepareLaunches computes the times of the host.
func (k *Kernels) prepareLaunches() {
	p := k.ops
	k.launches.captured = math.MaxInt64
	k.launches.piecewise, k.launches.eager = k.eagerFloor, k.eagerFloor
	if !p.o.HostLaunches {
		return
	}
	k.launches.captured = 0
	if p.o.PadGraphs {
		k.launches.captured = int64(k.padLimit())
	}
	piecewise, eager := p.launchSeconds()
	k.launches.piecewise = max(k.eagerFloor, k.fixed+roundFemtos(piecewise*femtosPerSecond))
	k.launches.eager = max(k.eagerFloor, k.fixed+roundFemtos(eager*femtosPerSecond))
}

// launchSeconds returns the time to launch the parts that piecewise graphs leave out, and all kernels.
func (o *ops) launchSeconds() (piecewise, eager float64) {
	c, d := &o.c.Common.Launch, o.d
	kernels := 0.0
	for i := range o.classes {
		x := &o.classes[i]
		switch {
		case x.Kind.Recurrent():
			kernels += float64(c.Recurrent * x.layers)
			piecewise += float64(c.PiecewiseRecurrent * x.layers)
			continue
		case d.LLM.UsesMLA():
			kernels += float64(c.LatentAttention * x.layers)
		default:
			kernels += float64(c.Attention * x.layers)
		}
		piecewise += float64(c.PiecewiseAttention * x.layers)
	}
	dense, moe := d.LLM.mlpLayers()
	kernels += float64(c.MLP*float64(dense)) + float64(c.Experts*float64(moe))
	if d.TensorParallel > 1 {
		kernels += float64(d.LLM.Layers + dense + moe) // all-reduces
	}
	return piecewise, kernels * c.Eager
}

// floor returns the minimum time of a step of the given number of tokens.
func (k *Kernels) floor(tokens int64, prefill bool) int64 {
	switch {
	case tokens > k.launches.captured:
		return k.launches.eager
	case prefill:
		return k.launches.piecewise
	}
	return k.eagerFloor
}
