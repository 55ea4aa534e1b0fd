package policy

import "clifftop/sim/sched"

var vllmPolicy = Policy{
	Name: "vllm",
	Does: "one token budget for decodes and prefill chunks; running requests first; the last admitted is preempted " +
		"and recomputed",
	Source:   "vLLM V1 (v1/core/sched)",
	Defaults: Defaults{VLLMHost: true},
	Sizes:    vllmSizes,
	New: func(e *Engine) sched.Scheduler {
		p := vllmOf(e)
		return &p
	},
}

// vllmSizes is the rule of vLLM's API server (EngineArgs.get_batch_defaults): GPUs of 70 GiB and more take more.
func vllmSizes(c Card) Sizes {
	if c.Bytes >= 70<<30 && !(c.A100 && c.A100Small) {
		return Sizes{1024, 8192}
	}
	return Sizes{256, 2048}
}

var preemptivePolicy = Policy{
	Name:     "preemptive",
	Does:     "vLLM's, where a waiting request takes the place of running ones that are less urgent by the order",
	Source:   "preemptive priority and SRPT, with recomputation",
	Defaults: Defaults{VLLMHost: true},
	Sizes:    vllmSizes,
	New: func(e *Engine) sched.Scheduler {
		p := &sched.Preemptive{VLLM: vllmOf(e), Threshold: int64(e.PreemptionThreshold)}
		p.Victim = sched.LeastUrgent
		return p
	},
}

// vllmOf is vLLM's policy with the keys of the engine.
func vllmOf(e *Engine) sched.VLLM {
	return sched.VLLM{
		Victim:                    e.Victim,
		DisableChunkedPrefill:     !e.EnableChunkedPrefill,
		LongPrefillTokenThreshold: limitInt32(e.LongPrefillTokenThreshold),
		Admission:                 e.Admission,
		Watermark:                 e.Watermark,
		Swap:                      e.Swap,
		MaxLoRAs:                  e.MaxLoRAs,
		PadAdmissions:             e.PadAdmissions,
	}
}
