package sim

import (
	"errors"
	"fmt"
	"slices"

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
	lead     []int32         // by replica
	of       []replicaLife   // by replica
	planned  pq.Queue[int32] // by instant, and kind and index; see control
	held     []int32         // requests at the router, in pending
	starts   *workload.RNG
	rollouts []rollout
	scaling  []scaling
}

// replicaLife is that of one replica.
type replicaLife struct {
	state  event.State
	number int32 // of it; what was planned for an earlier one is void
	starts uint64
	wanted bool // it is to be there
	failed bool // it failed for good
	listed bool // routers send requests there
	back   clock.Duration
	// rollout is 1 more than the number of the rollout that waits for it.
	rollout int
}

// rollout is a rolling restart: the replicas next…last are to come.
type rollout struct{ next, last int }

// live lets the replicas of a fleet have lives.
func (e *Simulation) initLifecycle(f *Fleet) {
	l := &lifecycle{Lifecycle: f.Lifecycle, of: make([]replicaLife, len(f.Replicas)),
		starts: workload.NewRNG(f.Lifecycle.Seed, "cold start")}
	l.lead, _ = f.Lifecycle.leaders(len(f.Replicas))
	for i := range l.of {
		l.of[i] = replicaLife{wanted: true, listed: true}
	}
	for k := range l.Scalers {
		s := &l.Scalers[k]
		for i, k := s.First, 0; i <= s.Last; i, k = l.after(i), k+1 {
			if k >= s.Initial {
				l.of[i] = replicaLife{state: event.Off}
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
			e.setState(i, event.Off)
		}
	}
}

// after is the number of the next replica that does not live together with replica i, the first one of its group.
func (l *lifecycle) after(i int) int { return i + groupSize(l.lead, i) }

// group is all that live together with replica i.
func (e *Simulation) group(i int) []*Replica {
	first := int(e.lifecycle.lead[i])
	return e.replicas[first:e.lifecycle.after(first)]
}

// ErrStranded means that requests wait at the router, and no replica will come to take them.
var ErrStranded = errors.New("sim: requests wait at the router, and no replica will take them")

// enter puts replica i into a state.
func (e *Simulation) setState(i int, s event.State) {
	e.lifecycle.of[i].state = s
	for _, r := range e.group(i) {
		e.obs.ReplicaState(e.now, r.Index(), s)
	}
}

// begin starts replica i, which is off or down.
func (e *Simulation) begin(i int) {
	l := &e.lifecycle.of[i]
	e.setState(i, event.Starting)
	e.lifecycle.starts.Seek(uint64(i), l.starts)
	l.starts++
	e.lifecycle.plan(e.now.Add(e.lifecycle.ColdStart.Sample(e.lifecycle.starts)), plannedReady, i, l.number)
}

// renew gives replica i, which has ended, engines that have seen nothing.
func (e *Simulation) renew(i int) {
	group := e.group(i)
	locked := group[0].Group() != nil
	for k := range group {
		e.renewOne(group[k].Index())
	}
	if locked {
		engine.NewGroup(engines(group))
	}
	for _, r := range group {
		e.sync(r)
	}
}

// renewOne gives one of those that live together a new engine.
func (e *Simulation) renewOne(i int) {
	cfg, old := e.lifecycle.Renew(i), e.replicas[i]
	fault := cfg.Validate()
	if fault != nil {
		fault, cfg = fmt.Errorf("sim: replica %d, made again: %w", i, fault), *old.Config()
	}
	r := e.newReplica(cfg, i, old.own, old.Engine)
	r.Fail(fault)
	r.told = old.told
	e.replicas[i], e.hashed[i] = r, r.HashedBlocks()
	if e.disaggregated != nil {
		e.disaggregated.assign(r)
	}
}

// drain lets replica i, which is ready, end. If it is still wanted it starts again after back.
func (e *Simulation) drain(i int, back clock.Duration) {
	l := &e.lifecycle.of[i]
	l.back = back
	e.setState(i, event.Draining)
	e.setListed(i, false)
	for _, r := range e.group(i) {
		r.leaving = true
	}
	if e.lifecycle.Grace > 0 {
		e.lifecycle.plan(e.now.Add(e.lifecycle.Grace), plannedKill, i, l.number)
	}
	if e.allDrained(i) {
		e.drained(i)
	}
}

// allDrained reports whether nothing is left to do for replica i, which drains.
func (e *Simulation) allDrained(i int) bool {
	for _, r := range e.group(i) {
		if !r.Drained() {
			return false
		}
	}
	return true
}

// drained lets replica i, which has nothing left to do, go off when its GPU has ended what it was given.
func (e *Simulation) drained(i int) {
	for _, r := range e.group(i) {
		r.Stop(e.now)
		r.Abandon(e.now)
	}
	e.renew(i)
	l := &e.lifecycle.of[i]
	l.number++
	e.lifecycle.plan(max(e.now, e.idleFrom(i)), plannedOff, i, l.number)
}

// off is when replica i has ended, and its GPU too. If it is still wanted it starts again.
func (e *Simulation) off(i int) {
	l := &e.lifecycle.of[i]
	e.setState(i, event.Off)
	switch {
	case !l.wanted:
		e.rollOn(l)
	case l.back > 0:
		e.lifecycle.plan(e.now.Add(l.back), plannedBegin, i, l.number)
	default:
		e.begin(i)
	}
}

// idleFrom is when none of the GPUs of replica i has anything more to do.
func (e *Simulation) idleFrom(i int) (at clock.Time) {
	for _, r := range e.group(i) {
		at = max(at, r.IdleFrom())
	}
	return at
}

// reachable reports whether requests can be sent to replica i, which may be any one.
func (e *Simulation) reachable(i int) bool {
	return e.lifecycle.of[e.lifecycle.lead[i]].state == event.Ready && !e.replicas[i].LinkLost(e.now)
}

// notice is when replica i can be reached, or cannot any more: the routers learn it at the next health check.
func (e *Simulation) probe(i int) {
	if every := e.lifecycle.Probe; every > 0 {
		if late := clock.Duration(e.now) % every; late > 0 {
			e.lifecycle.plan(e.now.Add(every-late), plannedProbe, i, 0)
			return
		}
	}
	e.setListed(i, e.reachable(i))
}

// list says whether the routers send requests to replica i.
func (e *Simulation) setListed(i int, listed bool) {
	l := &e.lifecycle.of[i]
	if l.listed == listed {
		return
	}
	l.listed = listed
	e.generation++
	group := e.group(i)
	k, _ := slices.BinarySearch(e.ready, int32(i))
	if !listed {
		e.ready = slices.Delete(e.ready, k, k+len(group))
		return
	}
	for n, r := range group {
		e.ready = slices.Insert(e.ready, k+n, int32(r.Index()))
		if e.heard != nil {
			e.heard[r.Index()] = r.metrics(e.now, e.now)
		}
	}
	e.release()
	e.rollOn(l)
}

// rollOn lets the rollout that waits for a replica go on, if there is one.
func (e *Simulation) rollOn(l *replicaLife) {
	if k := l.rollout - 1; k >= 0 {
		l.rollout = 0
		e.roll(k)
	}
}

// roll restarts the next replica of a rollout.
func (e *Simulation) roll(k int) {
	for o := &e.lifecycle.rollouts[k]; o.next <= o.last; {
		i := int(e.lifecycle.lead[o.next])
		o.next = e.lifecycle.after(i)
		if l := &e.lifecycle.of[i]; l.state == event.Ready && l.listed && l.rollout == 0 {
			l.rollout = k + 1
			e.drain(i, 0)
			return
		}
	}
}
