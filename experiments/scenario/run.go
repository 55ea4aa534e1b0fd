package scenario

import (
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
)

// RunSpec says how long to simulate and what to measure.
type RunSpec struct {
	// Requests ends the arrivals after this many; null is 10,000, or all rows of a trace, or no limit if a duration
	// or phases end them.
	Requests *int `json:"requests" range:"[1,1000000000]"`
	// Duration ends the run.
	Duration *yamldoc.Duration `json:"duration" range:"(0,)"`
	// Warmup is excluded from the measurement: auto, none, or a duration.
	Warmup Warmup `json:"warmup"`
	// Seed initializes the random numbers.
	Seed uint64 `json:"seed" range:"[0,9007199254740991]"`
	// Replications is the number of runs, with the seeds seed, seed+1 and so on. With a precision it is the maximum
	// number, by default 100.
	Replications int `json:"replications" range:"[1,1000]"`
	// Precision is the wanted half width of confidence intervals, as a fraction of the value or in percent: runs are
	// added until throughput and the means of TTFT, TPOT and E2E are known that well. Null sets no precision.
	Precision *yamldoc.Share `json:"precision"`
}

// DefaultRequests ends a run that nothing else ends.
const DefaultRequests = 10_000

// LeastReplications is the number of runs after which sequential stopping first looks at the intervals.
const LeastReplications = 5

// MostReplications is the maximum number of runs with a precision where none is set.
const MostReplications = 100

func (r *RunSpec) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	given := n.Get("replications")
	switch {
	case r.Precision == nil:
	case given == nil || given.Kind == yamldoc.Null:
		r.Replications = MostReplications
	case r.Replications >= 1 && r.Replications < LeastReplications:
		d.Refuse(given, yamldoc.Join(key, "replications"),
			fmt.Sprintf("%d or more with a precision: the maximum number of runs", LeastReplications))
	}
}
