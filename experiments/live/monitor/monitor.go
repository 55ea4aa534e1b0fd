package monitor

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report/export"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Driver runs the simulation.
type Driver interface {
	// Now returns the simulated instant that corresponds to the wall clock.
	Now() clock.Time
	// Lag returns how far the simulation is behind the wall clock, PeakLag how far it was since the last call.
	Lag() time.Duration
	PeakLag() time.Duration
}

// Options say what a monitor shows. The zero value is one for a scenario in real time.
type Options struct {
	// Speed is the number of simulated seconds per second of the wall clock; 0 is 1.
	Speed float64
	// Model is the name of the model that clients see; empty for that of the scenario.
	Model string
	// Log, if not nil, gets warnings. Each is one line without an end.
	Log func(text string)
	// Viewers is the largest number of pages that are open at the same time; 0 is 32.
	Viewers int
}

// Monitor shows what a server does. Create it with New, give its Observer to the driver, call Follow with the driver,
// and run Run.
type Monitor struct {
	options Options
	info    export.MetricsInfo
	about   about
	driver  Driver

	mu       sync.Mutex // guards all below
	totals   *export.Metrics
	replicas []replica
	requests map[int64]*request
	expected map[int64]Params // of requests that have not arrived
	arrived  int64            // IDs of requests that have arrived are below
	spare    []*request
	last     clock.Time // of the latest event
	window   window
	outcomes [outcomes]int64
	refusals [refusals]int64
	system   event.Levels
	events   ring[note]

	lag      lagWatch
	viewers  viewers
	tickTime time.Duration
}

const (
	outcomes = int(event.Failed) + 1
	refusals = int(event.NotReady) + 1
)

// New returns a monitor of a scenario.
func New(u *scenario.Setup, o Options) *Monitor {
	info := experiments.MetricsInfo(u)
	info.SGLang = u.Scenario.Engine.Policy == "sglang"
	info.End = 0
	info.Release = release(u)
	if o.Speed == 0 {
		o.Speed = 1
	}
	info.Speed = o.Speed
	for i := range info.Engines {
		info.Engines[i].Model = cmp.Or(o.Model, info.Engines[i].Model)
	}
	m := &Monitor{
		options: o, info: info, totals: export.NewTotals(info), replicas: make([]replica, len(info.Engines)),
		requests: make(map[int64]*request), expected: make(map[int64]Params), events: newRing[note](64),
		tickTime: tickTime,
	}
	m.window = newWindow(o.Speed)
	m.about = describe(u, info, o.Speed)
	m.viewers.init(cmp.Or(o.Viewers, 32))
	for i := range m.replicas {
		r := &m.replicas[i]
		r.watch = m.totals.OfReplica(i).(replicaWatch)
		r.window.slot = m.window.rates.slot
		r.running, r.waiting = sequences{replica: i, running: true}, sequences{replica: i}
	}
	return m
}

// release is the minor number of the release of vLLM 0.x that the scenario names; 0 if it names none.
func release(u *scenario.Setup) (minor int) {
	if v := u.Scenario.Engine.Version; v != nil && strings.HasPrefix(*v, "vllm-0.") {
		_, _ = fmt.Sscanf(u.Pools[0].Release(), "vllm-0.%d", &minor)
	}
	return minor
}

// Follow sets the driver. It must be called before the driver runs and before anything is shown.
func (m *Monitor) Follow(d Driver) { m.driver = d }

// now is the simulated instant that corresponds to the wall clock.
func (m *Monitor) now() clock.Time {
	if m.driver == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.last
	}
	return m.driver.Now()
}

// behind is how far the simulation is behind the wall clock.
func (m *Monitor) behind() lagState {
	if m.driver == nil {
		return lagState{}
	}
	return m.lag.state(m.driver.Lag())
}

// Params are the parameters of a request of the API.
type Params struct {
	// N is the number of outputs; 0 is 1.
	N int
	// MaxTokens is the limit of the output in tokens; 0 for none.
	MaxTokens int
	// Limited means that the output ends at that limit and not with an end-of-sequence token.
	Limited bool
}

// Expect gives the parameters of a request of the driver with an ID, right after it was submitted. IDs count from 0.
// Without it, outputs count as ended with an end-of-sequence token.
func (m *Monitor) Expect(id int64, p Params) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.requests[id]; r != nil {
		r.params, r.known = p, true
	} else if id >= m.arrived {
		m.expected[id] = p
	}
}
