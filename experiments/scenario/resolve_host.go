package scenario

import (
	"math"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/clock"
)

// bytesPerGiB is the unit of swap_space.
const bytesPerGiB = 1 << 30

// resolveOverheads fills in the overheads of the calibration, or none beside a linear step time.
func resolveOverheads(s *Scenario, e *Engine, p *policy, gpu *model.GPU) Overheads {
	o := s.Overheads
	frontend, perToken, stream := p.release.Frontend, p.release.FrontendPerToken, 48*clock.Microsecond
	if d := e.host(p); d.frontend > 0 {
		frontend, perToken = d.frontend, d.frontendPerToken
	}
	if own := clock.FromSeconds(gpu.FrontendSeconds); own > 0 { // what calibration found of the machine
		frontend = own
	}
	if s.StepTime.Kind == "linear" {
		frontend, perToken, stream = 0, 0, 0
	}
	cpu, perSequence := hostTime(s, e, p)
	optional.Default(&o.Frontend, yamldoc.Duration(frontend))
	optional.Default(&o.FrontendPerToken, yamldoc.Duration(perToken))
	optional.Default(&o.StreamPerSequence, yamldoc.Duration(stream))
	optional.Default(&o.NetworkIn, 0)
	optional.Default(&o.NetworkOut, 0)
	optional.Default(&o.CPU, yamldoc.Duration(cpu))
	optional.Default(&o.CPUPerSequence, yamldoc.Duration(perSequence))
	return o
}

// hostTime returns the host's time for an iteration, and its part for each sequence. It is known for vLLM's V1 engine.
// Only step times by kernels have a host: a roofline is a bound, and the rest are whole iterations. With
// pipeline stages the asynchronous loop hides the host even from a single user (vLLM, pull request 32618).
func hostTime(s *Scenario, e *Engine, p *policy) (step, perSequence clock.Duration) {
	hidden := e.AsyncScheduling == On && s.Deployment.PipelineParallelSize > 1
	if s.StepTime.Kind != "kernels" || !e.host(p).vllmHost || hidden {
		return 0, 0
	}
	return p.release.CPU, p.release.CPUPerSequence
}

// swap is the host's memory for KV blocks of preempted sequences, and the link to it.
type swap struct {
	blocks         int
	femtosPerBlock int64
}

// resolveSwap sizes the host's memory for KV blocks, and fills in the bandwidth of the link to it.
func resolveSwap(s *Scenario, e Engine, gpu *model.GPU, budget *model.KVBudget) (w swap, _ Engine, found findings) {
	if e.Preemption != "swap" {
		return w, e, found
	}
	link := gpu.HostBytesPerSecond
	if e.HostBandwidth != nil {
		link = *e.HostBandwidth * 1e9
	}
	switch {
	case budget == nil:
		return w, e, s.refuse("engine.preemption",
			"swap needs KV blocks, which a linear step time does not have (want recompute)")
	case e.HostBandwidth == nil && link == 0:
		return w, e, s.refuse("engine.preemption",
			"swap: the host memory bandwidth of %s is not known (set engine.host_gb_per_s)", gpu.Name)
	case e.EnablePrefixCaching:
		return w, e, s.refuse("engine.preemption",
			"swap cannot be combined with prefix caching (want enable_prefix_caching: false, or recompute)")
	}
	optional.Default(&e.HostBandwidth, link/1e9)
	block := float64(budget.BlockBytes)
	w.blocks = int(min(e.SwapSpace*bytesPerGiB/block, math.MaxInt32))
	w.femtosPerBlock = int64(math.Round(block / link * 1e15))
	return w, e, found
}
