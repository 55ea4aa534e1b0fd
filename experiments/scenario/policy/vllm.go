package policy

import "clifftop/sim/sched"

var vllmPolicy = Policy{
	Name: "vllm",
	Does: "one token budget for decodes and prefill chunks; running requests first; the last admitted is preempted " +
		"and recomputed",
	Source:   "vLLM V1 (v1/core/sched)",
	Defaults: Defaults{VLLMHost: true},
	New: func(e *Engine) sched.Scheduler {
		p := vllmOf(e)
		return &p
	},
}

var preemptivePolicy = Policy{
	Name:     "preemptive",
	Does:     "vLLM's, where a waiting request takes the place of running ones that are less urgent by the order",
	Source:   "preemptive priority and SRPT, with recomputation",
	Defaults: Defaults{VLLMHost: true},
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
