package policy

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

var mlfqPolicy = Policy{
	Name: "mlfq",
	Does: "skip-join multi-level feedback queue: requests go down a level with each quantum of tokens; lower levels " +
		"are paused, swapped or recomputed",
	Source: "Wu et al., FastServe, 2023",
	Section: &Section{"mlfq", "Options of policy mlfq.", func() any {
		return &mlfq{Quantum: 256, Ratio: 2, Levels: 6, Starvation: yamldoc.Duration(10 * clock.Second)}
	}},
	New: func(e *Engine) sched.Scheduler {
		o := e.Options.(*mlfq)
		return &sched.MLFQ{Quantum: o.Quantum, Ratio: o.Ratio, Levels: o.Levels, Starvation: o.Starvation.Clock(),
			Batch: optional.Value(o.Batch)}
	},
	Defaults: Defaults{Synchronous: true, NoPrefixCaching: true},
}

// mlfq are the options of policy mlfq. Sequences that make room go to host memory with preemption swap.
type mlfq struct {
	// Tokens after which a request leaves the first level.
	Quantum int `json:"quantum" range:"[1,16777216]"`
	// Quantum of a level over that of the one above.
	Ratio int `json:"ratio" range:"[1,1000]"`
	// Number of levels; the last has no quantum.
	Levels int `json:"levels" range:"[1,64]"`
	// Time without service before it returns to the first; 0 is never.
	Starvation yamldoc.Duration `json:"starvation"`
	// Most sequences of an iteration; null is max_num_seqs.
	Batch *int `json:"batch" range:"[1,1048576]"`
}
