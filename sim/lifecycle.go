package sim

import (
	"errors"
	"fmt"

	"clifftop/internal/pq"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Lifecycle says how the replicas of a fleet start, fail and end. Without it all are always ready.
//
// What an engine was given by the instant at which it fails or is stopped is counted to its end, as GPU time; its
// tokens are dropped, its requests fail, and cache and queue are gone. It is not started again, or off, before that
// end.
type Lifecycle struct {
	// Groups are the sizes of groups of consecutive replicas, such as the data-parallel ranks of a deployment, that are
	// one replica here: they start, fail and end together, and Scalers count them as one. Nil is one each.
	Groups []int
	// Renew makes the engine of replica i anew, for another life: like that of the fleet, with a scheduler that is not
	// in use.
	Renew func(i int) engine.Config
	// ColdStart is how long it takes from the decision to start a replica until it is ready. Seed is that of its draws:
	// the k-th start of a replica takes the same time whatever else happens.
	ColdStart workload.Delay
	Seed      uint64
	// Grace is how long a replica that drains may take; then the requests that it still has fail. 0 is no limit.
	Grace clock.Duration
	// Probe is the period of the health checks, from 0 on, by which routers learn that a replica has failed, or is
	// ready; 0 is at once. Until then they send requests there, which fail. That one drains they know at once.
	Probe clock.Duration
	// RouterQueue is how many requests wait at the router, first come, first served, while no replica takes them;
	// others are rejected as [event.NotReady]. 0 is any number, less than 0 none.
	RouterQueue int
	// Failures happen at their instants.
	Failures []Failure
	// Scalers decide how many replicas there are.
	Scalers []Scaler
}

// FailureKind is what happens to a replica.
type FailureKind uint8

// The kinds of failure.
const (
	// Crash ends the replica at once. After For it starts again.
	Crash FailureKind = iota
	// Drain takes the replica out of service; when it has drained it stays off for For and starts again.
	Drain
	// Slow makes its iterations that are composed in the next For take Permille thousandths of their usual time.
	Slow
	// LinkLoss cuts it off from the routers for For. Requests that are sent to it fail. It goes on with those that it
	// has; what it says reaches their clients when the link is back, and what they say reaches it then.
	LinkLoss
	// Restart drains and starts again the replicas from Replica to Last, one after the other: the next one when the one
	// before is ready. Those that are not ready are passed over.
	Restart
)

// String is the kind in lower case.
func (k FailureKind) String() string {
	return [...]string{"crash", "drain", "slow", "link", "restart"}[k]
}

// Failure is something that happens to a replica. Crashes and drains of a replica that is not there have no effect.
type Failure struct {
	Kind FailureKind
	At   clock.Time
	// Engine is its number, or that of one of its group, and Last that of the last one that a Restart concerns.
	Replica, Last int
	// For is how long it lasts; 0 is without end, which slowdown and link loss do not allow.
	For clock.Duration
	// Permille is the factor of step times that Slow sets, in thousandths.
	Permille int64
}

// Scaler keeps the number of some replicas as a policy wants it. It starts off ones from the lowest number on. It
// removes first those that are not ready, then others, of each the one with the highest number, and lets it drain.
type Scaler struct {
	Policy autoscale.Policy
	// First and Last are the numbers of the replicas that there may be, whole groups, Least and Most how many.
	First, Last, Least, Most int
	// Initial is how many are ready at 0.
	Initial int
	// Metric is what is scraped, every Scrape from Phase on, and kept for Keep. Requests held at the router count as
	// waiting.
	Metric              autoscale.Metric
	Scrape, Phase, Keep clock.Duration
}

// leaders are, by replica, the first ones of the groups that live together.
func (l *Lifecycle) leaders(n int) (lead []int32, err error) {
	for _, size := range l.Groups {
		first := int32(len(lead))
		for range size {
			lead = append(lead, first)
		}
		if size < 1 {
			return nil, fmt.Errorf("lifecycle: groups of %v are not the %d replicas", l.Groups, n)
		}
	}
	for l.Groups == nil && len(lead) < n {
		lead = append(lead, int32(len(lead)))
	}
	if len(lead) != n {
		return nil, fmt.Errorf("lifecycle: groups of %v are not the %d replicas", l.Groups, n)
	}
	return lead, nil
}

// groupSize is the number of replicas that live together with the first one of them.
func groupSize(lead []int32, first int) int {
	size := 0
	for first+size < len(lead) && int(lead[first+size]) == first {
		size++
	}
	return size
}

// lifecycle is what an engine keeps of its replicas' lives. Those that live together have one life, which is that of
// the first one: where a replica is spoken of below, it is all of those.
type lifecycle struct {
	*Lifecycle
	*fleet
	*routing
	sim      *Simulation
	lead     []int32         // by replica
	of       []replicaStatus // by replica
	planned  pq.Queue[int32] // by instant, and kind and index; see control
	held     []int32         // requests at the router, in pending
	starts   *workload.RNG
	rollouts []rollout
	scaling  []scaling
}

// replicaStatus is that of one replica.
type replicaStatus struct {
	state    event.State
	instance int32 // of it; what was planned for an earlier one is void
	starts   uint64
	wanted   bool // it is to be there
	failed   bool // it failed for good
	listed   bool // routers send requests there
	back     clock.Duration
	// rollout is 1 more than the number of the rollout that waits for it.
	rollout int
}

// rollout is a rolling restart: the replicas next…last are to come.
type rollout struct{ next, last int }

// live lets the replicas of a fleet have lives.
func (e *Simulation) initLifecycle(f *Fleet) {
	l := &lifecycle{Lifecycle: f.Lifecycle, fleet: &e.fleet, routing: &e.routing, sim: e,
		of: make([]replicaStatus, len(f.Replicas)), starts: workload.NewRNG(f.Lifecycle.Seed, "cold start")}
	l.lead, _ = f.Lifecycle.leaders(len(f.Replicas))
	for i := range l.of {
		l.of[i] = replicaStatus{wanted: true, listed: true}
	}
	for k := range l.Scalers {
		s := &l.Scalers[k]
		for i, k := s.First, 0; i <= s.Last; i, k = l.after(i), k+1 {
			if k >= s.Initial {
				l.of[i] = replicaStatus{state: event.Off}
			}
		}
		l.scaling = append(l.scaling, scaling{Scaler: s, load: autoscale.NewHistory(s.Keep)})
		l.plan(clock.Time(s.Phase), plannedScrape, k, 0)
		l.plan(0, plannedScale, k, 0)
	}
	for k := range l.Failures {
		l.plan(l.Failures[k].At, plannedFailure, k, 0)
	}
	e.lifecycle, e.ready = l, e.ready[:0]
	for i := range l.of {
		switch first := int(l.lead[i]); {
		case l.of[first].listed:
			e.ready = append(e.ready, int32(i))
		case first == i:
			e.lifecycle.setState(i, event.Off)
		}
	}
}

// after is the number of the next replica that does not live together with replica i, the first one of its group.
func (l *lifecycle) after(i int) int { return i + groupSize(l.lead, i) }

// group is all that live together with replica i.
func (l *lifecycle) group(i int) []*Replica {
	first := int(l.lead[i])
	return l.replicas[first:l.after(first)]
}

// ErrStranded means that requests wait at the router, and no replica will come to take them.
var ErrStranded = errors.New("sim: requests wait at the router, and no replica will take them")

// enter puts replica i into a state.
func (l *lifecycle) setState(i int, s event.State) {
	l.of[i].state = s
	for _, r := range l.group(i) {
		l.obs.ReplicaState(l.now, r.Index(), s)
	}
}

// begin starts replica i, which is off or down.
func (l *lifecycle) begin(i int) {
	life := &l.of[i]
	l.setState(i, event.Starting)
	l.starts.Seek(uint64(i), life.starts)
	life.starts++
	l.plan(l.now.Add(l.ColdStart.Sample(l.starts)), plannedReady, i, life.instance)
}

// renew gives replica i, which has ended, engines that have seen nothing.
func (l *lifecycle) renew(i int) {
	group := l.group(i)
	locked := group[0].Group() != nil
	for k := range group {
		l.renewOne(group[k].Index())
	}
	if locked {
		engine.NewGroup(engines(group))
	}
	for _, r := range group {
		l.sync(r)
	}
}

// renewOne gives one of those that live together a new engine.
func (l *lifecycle) renewOne(i int) {
	cfg, old := l.Renew(i), l.replicas[i]
	fault := cfg.Validate()
	if fault != nil {
		fault, cfg = fmt.Errorf("sim: replica %d, made again: %w", i, fault), *old.Config()
	}
	r := l.sim.newReplica(cfg, i, old.own, old.Engine)
	r.Fail(fault)
	r.told = old.told
	l.replicas[i] = r
	if l.disaggregated != nil {
		l.disaggregated.assign(r)
	}
}

// drain lets replica i, which is ready, end. If it is still wanted it starts again after back.
func (l *lifecycle) drain(i int, back clock.Duration) {
	life := &l.of[i]
	life.back = back
	l.setState(i, event.Draining)
	l.setListed(i, false)
	for _, r := range l.group(i) {
		r.leaving = true
	}
	if l.Grace > 0 {
		l.plan(l.now.Add(l.Grace), plannedKill, i, life.instance)
	}
	if l.allDrained(i) {
		l.drained(i)
	}
}

// allDrained reports whether nothing is left to do for replica i, which drains.
func (l *lifecycle) allDrained(i int) bool {
	for _, r := range l.group(i) {
		if !r.Drained() {
			return false
		}
	}
	return true
}

// drained lets replica i, which has nothing left to do, go off when its GPU has ended what it was given.
func (l *lifecycle) drained(i int) {
	for _, r := range l.group(i) {
		r.Stop(l.now)
		r.Abandon(l.now)
	}
	l.renew(i)
	life := &l.of[i]
	life.instance++
	l.plan(max(l.now, l.idleFrom(i)), plannedOff, i, life.instance)
}

// off is when replica i has ended, and its GPU too. If it is still wanted it starts again.
func (l *lifecycle) off(i int) {
	life := &l.of[i]
	l.setState(i, event.Off)
	switch {
	case !life.wanted:
		l.rollOn(life)
	case life.back > 0:
		l.plan(l.now.Add(life.back), plannedBegin, i, life.instance)
	default:
		l.begin(i)
	}
}

// idleFrom is when none of the GPUs of replica i has anything more to do.
func (l *lifecycle) idleFrom(i int) (at clock.Time) {
	for _, r := range l.group(i) {
		at = max(at, r.IdleFrom())
	}
	return at
}

// reachable reports whether requests can be sent to replica i, which may be any one.
func (l *lifecycle) reachable(i int) bool {
	return l.of[l.lead[i]].state == event.Ready && !l.replicas[i].LinkLost(l.now)
}

// notice is when replica i can be reached, or cannot any more: the routers learn it at the next health check.
func (l *lifecycle) probe(i int) {
	if every := l.Probe; every > 0 {
		if late := clock.Duration(l.now) % every; late > 0 {
			l.plan(l.now.Add(every-late), plannedProbe, i, 0)
			return
		}
	}
	l.setListed(i, l.reachable(i))
}

// list says whether the routers send requests to replica i.
func (l *lifecycle) setListed(i int, listed bool) {
	life := &l.of[i]
	if life.listed == listed {
		return
	}
	life.listed = listed
	l.setReady(l.group(i), listed)
	if listed {
		l.sim.release()
		l.rollOn(life)
	}
}

// rollOn lets the rollout that waits for a replica go on, if there is one.
func (l *lifecycle) rollOn(life *replicaStatus) {
	if k := life.rollout - 1; k >= 0 {
		life.rollout = 0
		l.roll(k)
	}
}

// roll restarts the next replica of a rollout.
func (l *lifecycle) roll(k int) {
	for o := &l.rollouts[k]; o.next <= o.last; {
		i := int(l.lead[o.next])
		o.next = l.after(i)
		if life := &l.of[i]; life.state == event.Ready && life.listed && life.rollout == 0 {
			life.rollout = k + 1
			l.drain(i, 0)
			return
		}
	}
}
