package scenario

import (
	"math"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
)

// The engine's host: its memory, its CPU time, and the door at which requests come in.

// bytesPerGiB is what swap_space counts in.
const bytesPerGiB = 1 << 30

// frontend fills in what the engine does beside the GPU.
func (u engineResolver) frontend() error {
	s, c := u.Scenario, &u.Config
	e, o := &s.Engine, &s.Overheads
	c.MaxQueuedRequests = optional.Value(e.MaxNumQueuedReqs)
	c.MaxQueuedTokens = int64(optional.Value(e.MaxNumQueuedTokens))
	c.MaxTokens = limitInt32(optional.Value(s.Workload.MaxTokens))
	cpu, perSequence := u.hostTime()
	optional.Default(&o.CPU, yamldoc.Duration(cpu))
	optional.Default(&o.CPUPerSequence, yamldoc.Duration(perSequence))
	c.CPUStep, c.CPUPerSequence = o.CPU.Clock(), o.CPUPerSequence.Clock()
	c.Contiguous = e.KVAllocation == "contiguous"
	return u.swapSpace()
}

// hostTime returns the host's time for an iteration, and its part for each sequence. It is known for vLLM's V1 engine.
// Step times other than those of kernels have no host: a roofline is a bound, and the rest are whole iterations. With
// pipeline stages the asynchronous loop hides the host even from a single user (vLLM, pull request 32618).
func (u engineResolver) hostTime() (step, perSequence clock.Duration) {
	s := u.Scenario
	hidden := s.Engine.AsyncScheduling == On && s.Deployment.PipelineParallelSize > 1
	if s.StepTime.Kind != "kernels" || !u.Scenario.Engine.host(&u.policy).vllmHost || hidden {
		return 0, 0
	}
	return u.Profile.CPU, u.Profile.CPUPerSequence
}

// swapSpace sizes the host's memory for KV blocks, and the link to it.
func (u engineResolver) swapSpace() error {
	s := u.Scenario
	e := &s.Engine
	if e.Preemption != "swap" {
		return nil
	}
	if u.Memory == nil {
		return s.Fault("engine.preemption",
			"swap needs KV blocks, which a linear step time does not have (want recompute)")
	}
	link := optional.Value(e.HostBandwidth) * 1e9
	if e.HostBandwidth == nil {
		if link = u.Deployment.GPU.HostBytesPerSecond; link == 0 {
			return s.Fault("engine.preemption",
				"swap: the host memory bandwidth of %s is not known (set engine.host_gb_per_s)", u.Deployment.GPU.Name)
		}
		gb := link / 1e9
		e.HostBandwidth = &gb
	}
	if e.EnablePrefixCaching {
		return s.Fault("engine.preemption",
			"swap cannot be combined with prefix caching (want enable_prefix_caching: false, or recompute)")
	}
	block := float64(u.Memory.BlockBytes)
	u.Config.HostBlocks = int(min(e.SwapSpace*bytesPerGiB/block, math.MaxInt32))
	u.Config.HostFemtosPerBlock = int64(math.Round(block / link * 1e15))
	return nil
}
