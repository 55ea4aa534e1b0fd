package policy

import "clifftop/sim/sched"

var sarathiPolicy = Policy{
	Name:     "sarathi",
	Does:     "a small token budget: decodes first, then chunks of prompts; KV of whole prompts taken on admission",
	Source:   "Agrawal et al., Sarathi-Serve, OSDI 2024",
	New:      func(e *Engine) sched.Scheduler { return &sched.Sarathi{Watermark: e.Watermark} },
	Defaults: Defaults{Synchronous: true, NoPrefixCaching: true, TokenBudget: 512, Watermark: 0.01},
}
