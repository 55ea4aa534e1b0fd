package export

import (
	"slices"
	"strconv"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Fleets with a lifecycle are exported under three kinds of names: those of kube-state-metrics for deployments, a
// pool being a deployment; that of the router of vLLM's production stack for replicas that are ready; and names of our
// own where neither has one.

var _ event.LifecycleObserver = (*Metrics)(nil)

// namespace is the label that distinguishes simulated deployments from real ones.
const namespace = "clifftop"

// What the GPUs of a replica that is paid for do.
const (
	gpuBusy = iota
	gpuIdle // while the replica serves
	gpuStarting
	gpuDown
	gpuModes
)

var gpuModeNames = [gpuModes]string{"busy", "idle", "starting", "down"}

// replicaFamilies are the gauges of a deployment: the states of the replicas that each counts.
var replicaFamilies = []struct {
	family
	states []event.State
}{
	{family{name: "kube_deployment_status_replicas", help: "The number of replicas per deployment."},
		[]event.State{event.Ready, event.Starting, event.Down}},
	{family{name: "kube_deployment_status_replicas_ready", help: "The number of ready replicas per deployment."},
		[]event.State{event.Ready}},
	{family{name: "kube_deployment_status_replicas_available",
		help: "The number of available replicas per deployment."}, []event.State{event.Ready}},
	{family{name: "kube_deployment_status_replicas_unavailable",
		help: "The number of unavailable replicas per deployment."}, []event.State{event.Starting, event.Down}},
	{family{name: "kube_deployment_status_replicas_terminating",
		help: "The number of terminating replicas per deployment."}, []event.State{event.Draining}},
}

var (
	stateFamily   = family{name: "clifftop_replicas", help: "Number of replicas by state."}
	healthyFamily = family{name: "vllm:healthy_pods_total", help: "Number of healthy vLLM pods"}
	gpuFamily     = family{kind: counter, name: "clifftop_gpu_seconds",
		help: "GPU seconds paid for, by what the GPUs did."}
)

// life is where a replica stands.
type life struct {
	first, state event.State // first is that at 0
	since        clock.Time  // up to there its time is accounted for
	busyTo       clock.Time  // the end of its last iteration
}

// stateTimes holds the time of a replica in each state within a slot, and the state that it entered last.
type stateTimes struct {
	state   event.State
	entered bool
	modes   [gpuModes]clock.Duration
}

func (l *stateTimes) merge(later *stateTimes) {
	if later.entered {
		l.state, l.entered = later.state, true
	}
	for i, d := range later.modes {
		l.modes[i] += d
	}
}

// ReplicaState notes that a replica is in another state.
func (m *Metrics) ReplicaState(at clock.Time, replica int, s event.State) {
	if !m.info.Lifecycle {
		return
	}
	m.liveUntil(replica, at)
	l := &m.engines[replica].life
	l.state = s
	if s == event.Down || s == event.Off { // its KV is gone, though an iteration may still be on its way
		over := max(at, l.busyTo)
		m.at(replica, over).gauges[kvUsage].read(over, 0)
	}
	if at == 0 {
		l.first = s
		return
	}
	in := &m.at(replica, at).stateTimes
	in.state, in.entered = s, true
}

// liveUntil accounts for the time of a replica up to an instant. A replica that failed is busy until the iteration ends
// that its GPUs were given. Time in which it serves counts as idle; what iterations take of that is moved from there.
func (m *Metrics) liveUntil(replica int, to clock.Time) {
	l := &m.engines[replica].life
	from := l.since
	if to <= from {
		return
	}
	l.since = to
	switch l.state {
	case event.Starting:
		m.spread(replica, gpuStarting, from, to, 1)
	case event.Down:
		m.spread(replica, gpuIdle, from, min(to, l.busyTo), 1)
		m.spread(replica, gpuDown, max(from, l.busyTo), to, 1)
	case event.Ready, event.Draining:
		m.spread(replica, gpuIdle, from, to, 1)
	}
}

// works moves the time of an iteration from idle to busy.
func (m *Metrics) works(replica int, from, to clock.Time) {
	if !m.info.Lifecycle {
		return
	}
	l := &m.engines[replica].life
	l.busyTo = max(l.busyTo, to)
	to = min(to, m.info.end())
	m.spread(replica, gpuBusy, from, to, 1)
	m.spread(replica, gpuIdle, from, to, -1)
}

// spread adds the time between two instants to a mode, or takes it away, in the slots in which it lies.
func (m *Metrics) spread(replica, mode int, from, to clock.Time, sign clock.Duration) {
	if from >= to {
		return
	}
	m.at(replica, to) // makes room once, so that the interval stays
	for from < to {
		end := min(clock.Time(m.index(from+1)+1)*clock.Time(m.step), to)
		m.at(replica, end).stateTimes.modes[mode] += sign * end.Sub(from)
		from = end
	}
}

// end is the instant at which a run is stopped, if it is.
func (i *MetricsInfo) end() clock.Time {
	if i.End == 0 {
		return clock.Never
	}
	return i.End
}

// closeLifecycles accounts for the time of all replicas up to the end of the run.
func (m *Metrics) closeLifecycles() {
	if !m.info.Lifecycle {
		return
	}
	end := m.info.end()
	if end == clock.Never {
		end = m.last
	}
	for i := range m.engines {
		m.liveUntil(i, end)
	}
}

// deployments are the pools, in order.
func (m *Metrics) deployments() (names []string) {
	for i := range m.info.Engines {
		if name := m.info.Engines[i].Deployment; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// lifecycle writes the metrics of replicas that start and stop.
func (x *exposition) lifecycle(m *Metrics) {
	for i := range replicaFamilies {
		f := &replicaFamilies[i]
		x.head(&f.family)
		x.deployments(m, func(engines []*engine, labels string) { x.inStates(m, f.name, labels, engines, f.states...) })
	}
	x.head(&healthyFamily)
	m.each(func(e *engine, labels string) {
		x.inStates(m, healthyFamily.name, labels+`,server="replica `+strconv.Itoa(e.number)+`"`, []*engine{e},
			event.Ready)
	})
	x.head(&stateFamily)
	x.deployments(m, func(engines []*engine, labels string) {
		for s := range event.States {
			x.inStates(m, stateFamily.name, labels+`,state="`+s.String()+`"`, engines, s)
		}
	})
	x.head(&gpuFamily)
	x.deployments(m, func(engines []*engine, labels string) {
		for mode, name := range gpuModeNames {
			x.gpuSeconds(m, labels+`,mode="`+name+`"`, engines, mode)
		}
	})
}

func (x *exposition) deployments(m *Metrics, f func(engines []*engine, labels string)) {
	for _, name := range m.deployments() {
		var engines []*engine
		for i := range m.engines {
			if m.info.Engines[i].Deployment == name {
				engines = append(engines, &m.engines[i])
			}
		}
		f(engines, `deployment=`+quote(name)+`,namespace="`+namespace+`"`)
	}
}

// inStates writes how many replicas are in some states.
func (x *exposition) inStates(m *Metrics, name, labels string, engines []*engine, states ...event.State) {
	now := make([]event.State, len(engines))
	count := func() (n float64) {
		for _, s := range now {
			if slices.Contains(states, s) {
				n++
			}
		}
		return n
	}
	for i, e := range engines {
		now[i] = e.life.first
	}
	x.samples(m, name, labels, count(), func(k int) float64 {
		for i, e := range engines {
			if s := e.slot(k); s != nil && s.stateTimes.entered {
				now[i] = s.stateTimes.state
			}
		}
		return count()
	})
}

// gpuSeconds writes how long GPUs were paid for in a mode.
func (x *exposition) gpuSeconds(m *Metrics, labels string, engines []*engine, mode int) {
	var sum clock.Uint128
	x.samples(m, gpuFamily.name+"_total", labels, 0, func(k int) float64 {
		for _, e := range engines {
			if s := e.slot(k); s != nil {
				sum = sum.Add(clock.Mul64(uint64(s.stateTimes.modes[mode]), uint64(e.gpus)))
			}
		}
		return sum.Float64() / picos
	})
}
