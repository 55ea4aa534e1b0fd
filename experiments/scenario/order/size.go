package order

import (
	"clifftop/experiments/internal/optional"
	"clifftop/sim/sched"
)

var sjfRule = Rule{
	Name:    "sjf",
	Does:    "the shortest job first",
	Options: func() Options { return new(sjf) },
}

var srptRule = Rule{
	Name:    "srpt",
	Does:    "the shortest remaining processing time first",
	Options: func() Options { return new(srpt) },
}

var ljfRule = Rule{
	Name:    "ljf",
	Does:    "the longest job first",
	Options: func() Options { return new(ljf) },
}

type (
	sjf  struct{ bySize }
	srpt struct{ bySize }
	ljf  struct{ bySize }
)

func (o *sjf) Order(seed uint64) sched.Order  { return o.aged(sched.SJF{Size: o.sized(seed)}) }
func (o *srpt) Order(seed uint64) sched.Order { return o.aged(sched.SRPT{Size: o.sized(seed)}) }
func (o *ljf) Order(seed uint64) sched.Order  { return o.aged(sched.LJF{Size: o.sized(seed)}) }

// bySize are the options of orders by the size of a job alone.
type bySize struct {
	size
	ageing
}

// size is the measure of a job.
type size struct {
	// What counts as the size of a job.
	Size *string `json:"size,omitempty" one:"output prompt both" called:"answer=output"`
	// Weight of output tokens in both.
	OutputWeight *int `json:"output_weight,omitempty" range:"[1,1000000]" was:"answer_weight"`
	// Standard deviation of the log of predicted lengths; 0 is an oracle.
	Error *float64 `json:"error,omitempty" range:"[0,10]"`
}

// sized is the measure as the scheduler takes it.
func (o *size) sized(seed uint64) sched.Size {
	z := sched.Size{PerOutput: 1, Error: optional.Value(o.Error), Seed: seed}
	switch optional.Value(o.Size) {
	case "prompt":
		z.PerPrompt, z.PerOutput = 1, 0
	case "both":
		z.PerPrompt, z.PerOutput = 1, int64(max(1, optional.Value(o.OutputWeight)))
	}
	return z
}
