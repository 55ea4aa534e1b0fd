package policy

import "clifftop/sim/sched"

var orcaPolicy = Policy{
	Name:     "orca",
	Does:     "whole prompts beside decodes, iteration by iteration; room for the longest output taken on admission",
	Source:   "Yu et al., Orca, OSDI 2022",
	New:      func(*Engine) sched.Scheduler { return &sched.Orca{} },
	Defaults: Defaults{Synchronous: true, Reserves: true, NoPrefixCaching: true, WholePrompts: true, Contiguous: true},
}
