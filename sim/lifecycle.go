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

// Lifecycle says how the replicas of a fleet start, fail and stop. Without it all are always ready.
//
// The iterations that an engine launched before it fails or is stopped count to their end as GPU time. Their tokens are
// dropped, the requests fail, and the cache and the queue are lost. The replica is off, or starts again, only after
// that end.
type Lifecycle struct {
	// Groups are the sizes of groups of consecutive replicas, such as the data-parallel ranks of a deployment, that
	// start, fail and stop together; Scalers count a group as one replica. Nil is one each.
	Groups []int
	// Renew makes a new configuration for replica i when it starts again: that of the fleet, with a scheduler that is
	// not in use.
	Renew func(i int) engine.Config
	// ColdStart is the time from the decision to start a replica until it is ready. Seed seeds its draws: the k-th
	// start of a replica always takes the same time.
	ColdStart workload.Delay
	Seed      uint64
	// Grace is the longest time that a replica may drain. Then its remaining requests fail. 0 is no limit.
	Grace clock.Duration
	// Probe is the period of the health checks, from 0 on, by which routers learn that a replica has failed or is
	// ready; 0 is at once. Until then they send requests to it, which fail. Routers know at once that a replica drains.
	Probe clock.Duration
	// RouterQueue is how many requests may wait at the router, in order of arrival, while no replica takes them. More
	// are rejected as [event.NotReady]. 0 is no limit; a negative number rejects all.
	RouterQueue int
	// Failures are the planned failures.
	Failures []Failure
	// Scalers are the autoscalers.
	Scalers []Scaler
}

// FailureKind is a kind of failure of a replica.
type FailureKind uint8

// The kinds of failure.
const (
	// Crash stops the replica at once. It starts again after For.
	Crash FailureKind = iota
	// Drain takes the replica out of service. When it has drained it stays off for For and starts again.
	Drain
	// Slow multiplies the time of iterations that are composed in the next For by Permille thousandths.
	Slow
	// LinkLoss disconnects the replica from the routers and clients for For. Requests that are sent to it fail. It
	// continues with those that it has; messages in both directions arrive when the link is back.
	LinkLoss
	// Restart drains and restarts the replicas from Replica to Last one after the other, each when the one before is
	// ready. It skips replicas that are not ready.
	Restart
)

// String is the kind in lower case.
func (k FailureKind) String() string {
	return [...]string{"crash", "drain", "slow", "link", "restart"}[k]
}

// Failure is a planned failure of a replica. Crashes and drains of a replica that is not running have no effect.
type Failure struct {
	Kind FailureKind
	At   clock.Time
	// Replica is the replica's number, or that of a member of its group. Last is the last one of a Restart.
	Replica, Last int
	// For is how long it lasts. 0 is without end, which slowdown and link loss do not allow.
	For clock.Duration
	// Permille is the factor of step times of Slow, in thousandths.
	Permille int64
}

// Scaler sets the number of running replicas as a policy wants it. It starts replicas from the lowest number on. It
// removes first those that are not ready, then others, from the highest number on, and lets them drain.
type Scaler struct {
	Policy autoscale.Policy
	// First and Last are the range of replicas, whole groups. Least and Most limit how many of them run.
	First, Last, Least, Most int
	// Initial is how many are ready at 0.
	Initial int
	// Metric is read every Scrape from Phase on, and kept for Keep. Requests that wait at the router count as waiting.
	Metric              autoscale.Metric
	Scrape, Phase, Keep clock.Duration
}

// leaders returns, by replica, the first replica of its group.
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

// groupSize is the number of replicas in the group whose first replica is given.
func groupSize(lead []int32, first int) int {
	size := 0
	for first+size < len(lead) && int(lead[first+size]) == first {
		size++
	}
	return size
}

// lifecycle is the state of all replicas and what is planned for them. A group has one state, that of its first
// replica: "replica i" below is the whole group.
type lifecycle struct {
	*Lifecycle
	*fleet
	*routing
	sim      *Simulation
	lead     []int32         // by replica
	of       []replicaStatus // by replica
	planned  pq.Queue[int32] // by instant, kind and index; see runPlanned
	held     []int32         // requests at the router, by their numbers in the front end
	starts   *workload.RNG
	rollouts []rollout
	scaling  []scaling
}

// replicaStatus is the state of one replica.
type replicaStatus struct {
	state    event.State
	instance int32 // counts its engines; plans for an earlier one are void
	starts   uint64
	wanted   bool // it shall run
	failed   bool // it failed and does not start again
	listed   bool // routers send requests there
	back     clock.Duration
	// rollout is 1 + the number of the rollout that waits for it.
	rollout int
}

// rollout is a rolling restart: the replicas next…last are still to restart.
type rollout struct{ next, last int }

// initLifecycle enables start, stop and failure of replicas.
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

// after is the first replica of the group that follows the group of replica i.
func (l *lifecycle) after(i int) int { return i + groupSize(l.lead, i) }

// group returns the replicas of the group of replica i.
func (l *lifecycle) group(i int) []*Replica {
	first := int(l.lead[i])
	return l.replicas[first:l.after(first)]
}

// ErrStranded means that requests wait at the router and no replica will become ready.
var ErrStranded = errors.New("sim: requests wait at the router, and no replica will become ready")

// setState sets the state of replica i and reports it.
func (l *lifecycle) setState(i int, s event.State) {
	l.of[i].state = s
	for _, r := range l.group(i) {
		l.obs.ReplicaState(l.now, r.Index(), s)
	}
}

// begin starts replica i, which is off or down.
func (l *lifecycle) begin(i int) {
	status := &l.of[i]
	l.setState(i, event.Starting)
	l.starts.Seek(uint64(i), status.starts)
	status.starts++
	l.plan(l.now.Add(l.ColdStart.Sample(l.starts)), plannedReady, i, status.instance)
}

// renew gives replica i, which has stopped, new engines.
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

// renewOne gives one member of a group a new engine.
func (l *lifecycle) renewOne(i int) {
	cfg, old := l.Renew(i), l.replicas[i]
	fault := cfg.Validate()
	if fault != nil {
		fault, cfg = fmt.Errorf("sim: new engine of replica %d: %w", i, fault), *old.Config()
	}
	l.sim.frontEnd.surelyFits = min(l.sim.frontEnd.surelyFits, cfg.SurelyFits())
	r := l.sim.newReplica(cfg, i, old.own, old.Engine)
	r.Fail(fault)
	r.told = old.told
	l.replicas[i] = r
	if l.disaggregated != nil {
		l.disaggregated.assign(r)
	}
}

// drain takes replica i, which is ready, out of service. If it is still wanted it starts again after back.
func (l *lifecycle) drain(i int, back clock.Duration) {
	status := &l.of[i]
	status.back = back
	l.setState(i, event.Draining)
	l.setListed(i, false)
	for _, r := range l.group(i) {
		r.leaving = true
	}
	if l.Grace > 0 {
		l.plan(l.now.Add(l.Grace), plannedKill, i, status.instance)
	}
	if l.allDrained(i) {
		l.drained(i)
	}
}

// allDrained reports whether replica i, which drains, has nothing left to do.
func (l *lifecycle) allDrained(i int) bool {
	for _, r := range l.group(i) {
		if !r.Drained() {
			return false
		}
	}
	return true
}

// drained stops replica i, which has nothing left to do. It is off when its GPU has finished its iterations.
func (l *lifecycle) drained(i int) {
	for _, r := range l.group(i) {
		r.Stop(l.now)
		abandon(l.now, r, &l.sim.fleet)
	}
	l.renew(i)
	status := &l.of[i]
	status.instance++
	l.plan(max(l.now, l.idleFrom(i)), plannedOff, i, status.instance)
}

// off sets replica i to off. If it is still wanted it starts again.
func (l *lifecycle) off(i int) {
	status := &l.of[i]
	l.setState(i, event.Off)
	switch {
	case !status.wanted:
		l.rollOn(status)
	case status.back > 0:
		l.plan(l.now.Add(status.back), plannedBegin, i, status.instance)
	default:
		l.begin(i)
	}
}

// idleFrom is the instant from which on all GPUs of replica i are idle.
func (l *lifecycle) idleFrom(i int) (at clock.Time) {
	for _, r := range l.group(i) {
		at = max(at, r.IdleFrom())
	}
	return at
}

// reachable reports whether requests can be sent to replica i, which need not be the first of its group.
func (l *lifecycle) reachable(i int) bool {
	return l.of[l.lead[i]].state == event.Ready && !l.replicas[i].LinkLost(l.now)
}

// probe tells the routers whether replica i can be reached, at the next health check.
func (l *lifecycle) probe(i int) {
	if every := l.Probe; every > 0 {
		if late := clock.Duration(l.now) % every; late > 0 {
			l.plan(l.now.Add(every-late), plannedProbe, i, 0)
			return
		}
	}
	l.setListed(i, l.reachable(i))
}

// setListed sets whether the routers send requests to replica i.
func (l *lifecycle) setListed(i int, listed bool) {
	status := &l.of[i]
	if status.listed == listed {
		return
	}
	status.listed = listed
	l.setReady(l.group(i), listed)
	if listed {
		l.sim.release()
		l.rollOn(status)
	}
}

// rollOn continues the rollout that waits for a replica, if there is one.
func (l *lifecycle) rollOn(status *replicaStatus) {
	if k := status.rollout - 1; k >= 0 {
		status.rollout = 0
		l.roll(k)
	}
}

// roll restarts the next replica of a rollout.
func (l *lifecycle) roll(k int) {
	for o := &l.rollouts[k]; o.next <= o.last; {
		i := int(l.lead[o.next])
		o.next = l.after(i)
		if status := &l.of[i]; status.state == event.Ready && status.listed && status.rollout == 0 {
			status.rollout = k + 1
			l.drain(i, 0)
			return
		}
	}
}
