package policy

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

var mlfqPolicy = Policy{
	Name: "mlfq",
	Does: "skip-join multi-level feedback queue: requests go down a level with each quantum of tokens; lower levels " +
		"are paused, swapped or recomputed",
	Source: "Wu et al., FastServe, 2023",
	Section: &Section{"mlfq", "MLFQ holds the knobs of policy mlfq.", func() any {
		return &mlfq{Quantum: 256, Ratio: 2, Levels: 6, Starvation: unit.Duration(10 * clock.Second)}
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
	// Quantum is the number of tokens, of prompt and output, after which a request leaves the first level.
	Quantum int `json:"quantum" range:"[1,16777216]"`
	// Ratio is that of the quantum of a level to the one above it.
	Ratio int `json:"ratio" range:"[1,1000]"`
	// Levels is their number; the last one has no quantum.
	Levels int `json:"levels" range:"[1,64]"`
	// Starvation is the time without service after which a request returns to the first level; 0 is never.
	Starvation unit.Duration `json:"starvation"`
	// Batch is the most sequences that an iteration serves, while others are paused; null is max_num_seqs.
	Batch *int `json:"batch" range:"[1,1048576]"`
}
