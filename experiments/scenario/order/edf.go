package order

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/sched"
)

var edfRule = Rule{
	Name:    "edf",
	Does:    "the earliest deadline first",
	Options: func() Options { return new(edf) },
}

type edf struct {
	// Deadline after the arrival.
	Within *yamldoc.Duration `json:"within,omitempty" range:"[0,)" required:"yes"`
}

func (o *edf) Order(uint64) sched.Order {
	return sched.EDF{Otherwise: optional.Value(o.Within).Clock()}
}
