package scenario

import (
	"fmt"
	"slices"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
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

// lifecycle checks what happens to the replicas, and fills in what is left open.
func (u fleetResolver) lifecycle() error {
	s := u.Scenario
	if s.Lifecycle == nil || len(u.Pools) == 0 {
		return nil
	}
	if u.oneRank {
		return s.Fault("lifecycle", "a single attention rank cannot fail or scale alone")
	}
	faults, err := u.take(u.autoscale, u.failures)
	return asError(faults, err)
}

// lives are the lives of the replicas of a run.
func (u fleetBuilder) lives(check bool) *sim.Lifecycle {
	l := u.Scenario.Lifecycle
	if l == nil {
		return nil
	}
	hold := 0 // any number
	if l.Hold != nil {
		if hold = *l.Hold; hold == 0 {
			hold = -1
		}
	}
	return &sim.Lifecycle{
		Renew:     func(i int) engine.Config { return u.engineOf(u.poolWith(i), i, check) },
		ColdStart: l.ColdStart.delay(), Seed: u.Scenario.Run.Seed,
		Grace: l.Grace.Clock(), Probe: l.Probe.Clock(), RouterQueue: hold,
		Failures: u.Failures, Scalers: u.scalers(), Groups: u.together(),
	}
}

// together are the numbers of ranks of all replicas, which start, fail and end together; nil if that is one each.
func (u fleetBuilder) together() (sizes []int) {
	several := false
	for _, p := range u.Pools {
		sizes = append(sizes, slices.Repeat([]int{p.Ranks}, p.replicas)...)
		several = several || p.Ranks > 1
	}
	if !several {
		return nil
	}
	return sizes
}

// firsts are the numbers of the first ranks of all replicas.
func (u *Setup) firsts() (list []int) {
	next := 0
	for _, p := range u.Pools {
		for range p.replicas {
			list = append(list, next)
			next += p.Ranks
		}
	}
	return list
}

// poolWith is the pool of an engine, by its number.
func (u *Setup) poolWith(engine int) *PoolSetup {
	k := 0
	for engine >= u.Pools[k].Engines() {
		engine -= u.Pools[k].Engines()
		k++
	}
	return &u.Pools[k]
}

// members are the numbers of the first and the last replica of a pool, or of the whole fleet where none is named. why
// says why there are none.
func (u *Setup) members(name *string) (first, last int, why string) {
	if name == nil {
		return 0, u.replicas() - 1, ""
	}
	var names []string
	for _, p := range u.Pools {
		if p.Name == *name && len(u.Scenario.Pools) > 0 {
			return first, first + p.Engines() - 1, ""
		}
		first += p.Engines()
		names = append(names, p.Name)
	}
	if len(u.Scenario.Pools) == 0 {
		return 0, 0, "there are no pools"
	}
	return 0, 0, fmt.Sprintf("%q is not the name of a pool (want %s)", yamldoc.Short(*name), yamldoc.OneOf(names))
}

// FailuresFrom counts the failures that were planned for an instant or after it.
func (u *Setup) FailuresFrom(at clock.Time) int {
	n := 0
	for i := range u.Failures {
		if u.Failures[i].At >= at {
			n++
		}
	}
	return n
}

// Lasting refuses what runs several loads of a lifecycle for as long as their requests take: each would meet another
// part of it.
func (s *Scenario) Lasting(what string) error {
	if s.Lifecycle == nil || s.Run.Duration != nil {
		return nil
	}
	return yamldoc.Faults{s.Fault("lifecycle",
		"%s runs several loads: with a lifecycle all runs must have the same length (set run.duration)", what)}
}

// ownLifecycle gives the scenario a copy that can be changed.
func (s *Scenario) ownLifecycle() {
	if s.Lifecycle == nil {
		return
	}
	l := *s.Lifecycle
	if l.Autoscale != nil {
		a := *l.Autoscale
		a.Scalers = slices.Clone(a.Scalers)
		l.Autoscale = &a
	}
	s.Lifecycle = &l
}
