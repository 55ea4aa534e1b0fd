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

// Failure is something that happens to a replica. Replicas that are not there are spared.
type Failure struct {
	// Kind is the kind of event. A crash ends the replica with its requests and its cache. A drain accepts no new
	// requests and ends when the others are complete. Slow makes iterations longer. Link-loss makes the replica
	// unreachable while it continues; its output arrives when the link returns. A rolling-restart drains and
	// restarts one replica after the other.
	Kind string `json:"kind" one:"crash drain slow link-loss rolling-restart"`
	// At is when it happens.
	At yamldoc.Duration `json:"at"`
	// Pool is the pool of the replica, which is then counted within it.
	Pool *string `json:"pool,omitempty"`
	// Replica is its number, from 0 on, as results have it; for a rolling restart the number of the first one, by
	// default 0. What happens to a data-parallel rank happens to all ranks of its deployment.
	Replica *int `json:"replica,omitempty" range:"[0,4095]"`
	// Last is the number of the last replica of a rolling-restart, by default the last one that there is.
	Last *int `json:"last,omitempty" range:"[0,4095]"`
	// For is the duration, after which a stopped replica starts again; null is no end.
	For *yamldoc.Duration `json:"for,omitempty" range:"(0,)"`
	// Factor multiplies the iteration time of a slow replica.
	Factor *float64 `json:"factor,omitempty" range:"[1,1000]"`
}

func (*Failure) Variants() (string, map[string]yamldoc.VariantKeys) {
	ends := yamldoc.VariantKeys{Required: []string{"at", "replica"}, Optional: []string{"for"}}
	return "kind", map[string]yamldoc.VariantKeys{
		"":                {Required: []string{"kind"}, Optional: []string{"at", "replica", "last", "for", "factor"}},
		"crash":           ends,
		"drain":           ends,
		"slow":            {Required: []string{"at", "replica", "for", "factor"}},
		"link-loss":       {Required: []string{"at", "replica", "for"}},
		"rolling-restart": {Required: []string{"at"}, Optional: []string{"replica", "last"}},
		"*":               {Optional: []string{"pool"}},
	}
}

// RandomCrashes has every replica crash after an exponential time, and start again after another one. It needs a
// run.duration.
type RandomCrashes struct {
	// MTBF is the mean time from the end of a repair to the next crash.
	MTBF yamldoc.Duration `json:"mtbf" range:"(0,)"`
	// MTTR is the mean time to repair, until the replica starts again; its cold start comes on top.
	MTTR yamldoc.Duration `json:"mttr" range:"(0,)"`
}

func (c *RandomCrashes) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "want {mtbf: 6h, mttr: 5m}", "mtbf", "mttr")
}
