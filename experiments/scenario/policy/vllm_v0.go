package policy

import "clifftop/sim/sched"

var vllmV0Policy = Policy{
	Name:     "vllm-v0",
	Does:     "whole prompts first, in iterations of their own, then decodes; the last admitted is recomputed, or swapped",
	Source:   "vLLM V0, the default until 2025",
	New:      func(e *Engine) sched.Scheduler { return &sched.VLLMV0{Watermark: e.Watermark, Swap: e.Swap} },
	Defaults: Defaults{Synchronous: true, NoPrefixCaching: true, WholePrompts: true, Watermark: 0.01},
}
