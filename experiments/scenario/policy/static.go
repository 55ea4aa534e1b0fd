package policy

import "clifftop/sim/sched"

var staticPolicy = Policy{
	Name:   "static",
	Does:   "batches padded to the longest prompt that run until the longest output has ended",
	Source: "FasterTransformer",
	New:    func(*Engine) sched.Scheduler { return &sched.Static{} },
	Defaults: Defaults{Synchronous: true, Reserves: true, NoPrefixCaching: true, WholePrompts: true,
		TokenBudget: 65_536, Contiguous: true},
}
