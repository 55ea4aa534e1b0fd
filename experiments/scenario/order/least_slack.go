package order

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/sched"
)

var leastSlackRule = Rule{
	Name:    "least-slack",
	Does:    "the least time between the expected end and the deadline first",
	Options: func() Options { return new(leastSlack) },
}

type leastSlack struct {
	size
	// Deadline after the arrival.
	Within *yamldoc.Duration `json:"within,omitempty" range:"[0,)" required:"yes"`
	// Time that a token of the size takes.
	TokenTime *yamldoc.Duration `json:"token_time,omitempty" range:"[0,1]" required:"yes"`
}

func (o *leastSlack) Order(seed uint64) sched.Order {
	return sched.LeastSlack{EDF: sched.EDF{Otherwise: optional.Value(o.Within).Clock()}, Size: o.sized(seed),
		PerUnit: optional.Value(o.TokenTime).Clock()}
}
