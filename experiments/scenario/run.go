package scenario

import (
	"fmt"

	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// ProbeLoad is one load for a probe: a rate of Poisson arrivals, or a number of users.
type ProbeLoad struct {
	Rate     float64
	Users    int
	Requests int64   // 0 for no limit
	Seconds  float64 // 0 for no limit
}

// SourceAt is the scenario's traffic at another load, and without bursts where it is synthetic.
func (u *Setup) SourceAt(l ProbeLoad) (workload.Source, error) {
	if t := u.Traffic.Recording; t != nil {
		return t.probe(l)
	}
	spec := u.Traffic.Spec
	stage := workload.Phase{Process: "poisson", Rate: l.Rate}
	if l.Users > 0 {
		stage = workload.Phase{Process: "closed", Users: int32(l.Users), Ramp: clock.FromSeconds(l.Seconds / 20)}
		if spec.Closed() {
			stage.ThinkTime = spec.Arrivals[0].ThinkTime
		}
	}
	spec.Arrivals = []workload.Phase{stage}
	spec.Requests, spec.Duration = l.Requests, clock.FromSeconds(l.Seconds)
	return workload.New(spec, u.Scenario.Run.Seed)
}

// LeastReplications is the number of runs after which sequential stopping first looks at the intervals.
const LeastReplications = 5

// Replicated reports whether the scenario asks for more than one run of each kind.
func (s *Scenario) Replicated() bool { return s.Run.Replications > 1 || s.Run.Precision != nil }

func (r *RunSpec) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	given := n.Get("replications")
	if r.Precision != nil && given != nil && given.Kind != yamldoc.Null && r.Replications >= 1 &&
		r.Replications < LeastReplications {
		d.Refuse(given, yamldoc.Join(key, "replications"),
			fmt.Sprintf("%d or more with a precision: the maximum number of runs", LeastReplications))
	}
}

// Reseeded is the setup with other random numbers, those of a later seed.
func (u *Setup) Reseeded(k int) (*Setup, error) {
	if k == 0 {
		return u, nil
	}
	s := *u.from
	s.Run.Seed += uint64(k)
	return s.resolve(u.oneRank)
}

// RunSpec says how long to simulate and what to measure.
type RunSpec struct {
	// Requests ends the arrivals after this many; null is 10,000, or all rows of a trace, or no limit if a duration
	// or phases end them.
	Requests *int `json:"requests" range:"[1,1000000000]"`
	// Duration ends the run.
	Duration *unit.Duration `json:"duration" range:"(0,)"`
	// Warmup is excluded from the measurement: auto, none, or a duration.
	Warmup Warmup `json:"warmup"`
	// Seed initializes the random numbers.
	Seed uint64 `json:"seed" range:"[0,9007199254740991]"`
	// Replications is the number of runs, with the seeds seed, seed+1 and so on. With a precision it is the maximum
	// number, by default 100.
	Replications int `json:"replications" range:"[1,1000]"`
	// Precision is the wanted half width of confidence intervals, as a fraction of the value or in percent: runs are
	// added until throughput and the means of TTFT, TPOT and E2E are known that well. Null sets no precision.
	Precision *unit.Share `json:"precision"`
}

// Endless reports whether nothing in the scenario says when the run ends.
func (s *Scenario) Endless() bool {
	a := s.Workload.Arrivals
	return s.Run.Requests == nil && s.Run.Duration == nil && s.Workload.Trace == nil && (a == nil || !a.Listed)
}

// DefaultRequests ends a run that nothing else ends.
const DefaultRequests = 10_000
