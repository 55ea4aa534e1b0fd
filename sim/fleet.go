package sim

import (
	"errors"
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/sched"
)

// Fleet describes replicas behind routers.
type Fleet struct {
	// Replicas are the serving engines, each with its own scheduler. The network to the clients is the same for all.
	Replicas []engine.Config
	// Lockstep are the sizes of groups of consecutive replicas that iterate in lock step, like the data-parallel ranks
	// of a MoE model; nil is one each. The replicas of a group have equal configurations, and their step times assume
	// that all ranks of the group are equally loaded.
	Lockstep []int
	// Disaggregation assigns prefill and decode to different replicas; nil lets all replicas do both.
	Disaggregation *Disaggregation
	// Routers take the requests in turn, by request ID. One replica needs none.
	Routers []route.Router
	// Scrape is the interval, from 0 on, at which the routers read the metrics of the replicas; 0 is always.
	Scrape clock.Duration
	// Lifecycle says how replicas start, fail and stop; nil if all are always ready.
	Lifecycle *Lifecycle
}

// Validate reports every fault of the configuration.
func (f *Fleet) Validate() error {
	if len(f.Replicas) == 0 {
		return errors.New("no replicas")
	}
	var faults []error
	for i := range f.Replicas {
		c := &f.Replicas[i]
		if err := c.Validate(); err != nil {
			if len(f.Replicas) > 1 {
				err = fmt.Errorf("replica %d: %w", i, err)
			}
			faults = append(faults, err)
		}
		if first := &f.Replicas[0]; c.NetworkIn != first.NetworkIn || c.NetworkOut != first.NetworkOut {
			faults = append(faults, fmt.Errorf("replica %d: its network to the clients differs from replica 0's",
				i))
		}
	}
	if f.Lockstep != nil {
		faults = append(faults, f.validateLockstep()...)
		faults = append(faults, f.validatePipelines()...)
	}
	if f.Disaggregation != nil {
		faults = append(faults, f.Disaggregation.validate(f))
	}
	if len(f.Replicas) > 1 && len(f.Routers) == 0 {
		faults = append(faults, errors.New("no router"))
	}
	if f.Lifecycle != nil {
		faults = append(faults, f.Lifecycle.validate(f))
	}
	if f.Scrape < 0 {
		faults = append(faults, fmt.Errorf("scrape: %v is negative", f.Scrape))
	}
	return errors.Join(faults...)
}

// fleet is the replicas at the current instant, the sum of their levels, and a tournament that finds the next boundary.
type fleet struct {
	obs      *event.Fanout
	singly   bool // some observer wants every iteration, or every chunk
	replicas []*Replica
	now      clock.Time
	levels   event.Levels
	blocked  [sched.NumberOfCauses]int // replicas by the cause that blocks the head of their queue
	next     tournament                // of the replicas' next boundaries
	changed  *Replica                  // the one that the current event changes, if any
	caches   cacheIndex

	boundaryAt clock.Time // the instant of the last boundary
	boundaryOf int        // the highest number of a replica that had one then
}

func newFleet(f *Fleet, obs *event.Fanout) fleet {
	n := len(f.Replicas)
	all := fleet{obs: obs, singly: obs.WantsSteps() || obs.WantsChunks(), next: newTournament(n),
		caches: newCacheIndex(n, f.watchesCaches(), obs.WantsCaches())}
	all.blocked[sched.NotBlocked] = n
	return all
}

// sync updates the fleet's levels after a change of replica r.
func (f *fleet) sync(r *Replica) {
	if f.caches.followed() {
		f.caches.fallsBehind(r)
	}
	now, was := r.Levels(), &r.told
	now.Blocked = sched.NotBlocked
	if now.Waiting > 0 {
		now.Blocked = r.Blocked()
	}
	if len(f.replicas) == 1 && r.own == nil {
		l := &f.levels
		l.Waiting, l.Running, l.Decoding, l.Blocked = now.Waiting, now.Running, now.Decoding, now.Blocked
		return
	}
	f.next.set(r.Index(), r.Next())
	if now.Equal(was) {
		return
	}
	l := &f.levels
	l.Waiting += now.Waiting - was.Waiting
	l.Running += now.Running - was.Running
	l.Decoding += now.Decoding - was.Decoding
	if now.Blocked != was.Blocked {
		f.blocked[was.Blocked]--
		f.blocked[now.Blocked]++
		l.Blocked = f.mostBlocked()
	}
	*was = *now
	if r.own != nil {
		r.own.Levels(f.now, now)
	}
}

// mostBlocked is the cause that blocks the heads of the most queues.
func (f *fleet) mostBlocked() sched.Cause {
	most := int(sched.NotBlocked)
	for c := range f.blocked {
		if c != int(sched.NotBlocked) && f.blocked[c] > 0 &&
			(most == int(sched.NotBlocked) || f.blocked[c] > f.blocked[most]) {
			most = c
		}
	}
	return sched.Cause(most)
}

// boundaryNext is the next boundary and its replica. Of boundaries at one instant, the first replica's comes first.
func (f *fleet) boundaryNext() (clock.Time, *Replica) {
	if len(f.replicas) == 1 {
		return f.replicas[0].Next(), f.replicas[0]
	}
	at, i := f.next.min()
	return at, f.replicas[i]
}

// noteBoundary notes that replica i has its boundary now.
func (f *fleet) noteBoundary(i int) {
	if f.boundaryAt != f.now {
		f.boundaryAt, f.boundaryOf = f.now, i
	}
	f.boundaryOf = max(f.boundaryOf, i)
}

// passed reports whether replica i has no boundary left at the instant at. Boundaries of one instant come in the order
// of the replicas.
func (f *fleet) passed(i int, at clock.Time) bool { return f.boundaryAt == at && i < f.boundaryOf }
