package scenario

import (
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
)

// Lifecycle says how replicas start, fail and end, and how many there are. Without it all are always ready. Defaults
// are those of Kubernetes where it has one.
type Lifecycle struct {
	// ColdStart is the time from the decision to start a replica until it is ready.
	ColdStart ThinkTime `json:"cold_start"`
	// Grace is how long a draining replica may continue its requests before they fail; 0 is no limit.
	Grace yamldoc.Duration `json:"grace"`
	// Probe is the period of the health checks that tell the router whether a replica has failed or is ready; 0 is
	// immediate. Until then requests sent to a failed replica fail.
	Probe yamldoc.Duration `json:"probe"`
	// Hold is the number of requests that wait at the router while no replica is ready; further requests are
	// rejected. Null is no limit.
	Hold *int `json:"hold,omitempty" range:"[0,1000000000]"`
	// Failures happen to replicas at stated times.
	Failures []Failure `json:"failures,omitempty"`
	// RandomCrashes crashes all replicas at random times, independently.
	RandomCrashes *RandomCrashes `json:"random_crashes,omitempty"`
	// Autoscale sets the number of replicas by a policy: a map, or a list with one map for each pool.
	Autoscale *Autoscale `json:"autoscale,omitempty"`
}

func (l *Lifecycle) SetDefaults() {
	*l = Lifecycle{
		ColdStart: ThinkTime{Law: "fixed", Mean: yamldoc.Duration(2 * clock.Minute)},
		Grace:     yamldoc.Duration(30 * clock.Second),
		Probe:     yamldoc.Duration(10 * clock.Second),
	}
}

func (l *Lifecycle) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if l.ColdStart.Law == "lognormal" && l.ColdStart.Mean == 0 {
		d.Fault(n.Get("cold_start").At, yamldoc.Join(key, "cold_start.mean"),
			"0 is not possible for the lognormal distribution (want more than 0)", "")
	}
}
