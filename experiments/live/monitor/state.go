package monitor

import (
	"cmp"
	"fmt"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report/export"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// about has the data that do not change while a server runs.
type about struct {
	Title    string         `json:"title"`
	Version  string         `json:"version"`
	Policy   string         `json:"policy"`
	Speed    float64        `json:"speed"`
	Replicas []aboutReplica `json:"replicas"`
}

// aboutReplica has the data of a replica that do not change. Blocks is 0 for an unlimited KV pool.
type aboutReplica struct {
	Name   string `json:"name"`
	Blocks int    `json:"blocks"`
	Seats  int    `json:"seats"`
}

func describe(u *scenario.Setup, info export.MetricsInfo, speed float64) about {
	a := about{Title: cmp.Or(u.Scenario.Name, u.Pools[0].Deployment.String()), Version: experiments.Version,
		Policy: u.Scenario.Engine.Policy, Speed: speed}
	for _, p := range u.Pools {
		for k := range p.Engines() {
			name := fmt.Sprintf("replica %d", k+1)
			if len(u.Pools) > 1 {
				name = fmt.Sprintf("%s %d", p.Name, k+1)
			}
			a.Replicas = append(a.Replicas, aboutReplica{Name: name,
				Blocks: info.Engines[len(a.Replicas)].UsableBlocks, Seats: int(p.Config.MaxNumSeqs)})
		}
	}
	return a
}

// state has the data of an instant for pages and the terminal. Times are in seconds.
type state struct {
	At float64 `json:"t"`
	// Lag is the longest lag behind the wall clock in the last three seconds, LagMax the longest so far.
	Lag     float64 `json:"lag"`
	LagMax  float64 `json:"lag_max"`
	System  int     `json:"system"`
	Running int     `json:"running"`
	Waiting int     `json:"waiting"`
	Held    int     `json:"held"`
	// Used of Blocks KV blocks are in use; Blocks is 0 if a pool has no end.
	Used   int `json:"used"`
	Blocks int `json:"blocks"`
	// Tokens and Prompts are output and prompt tokens per second, Requests those that complete, Arrivals those sent.
	Tokens   float64 `json:"tokens"`
	Prompts  float64 `json:"prompts"`
	Requests float64 `json:"requests"`
	Arrivals float64 `json:"arrivals"`
	// Latencies of the last minute.
	Latencies latencyState `json:"latencies"`
	// Ended are the requests that have ended, by outcome.
	Ended       [outcomes]int64 `json:"ended"`
	Preemptions int64           `json:"preemptions"`
	Replicas    []replicaState  `json:"replicas,omitempty"`
	Batch       *batch          `json:"batch,omitempty"`
	latest      latencyState
}

// latencyState are the percentiles 50, 90 and 99 of latencies in seconds; nil without values.
type latencyState struct {
	TTFT []float64 `json:"ttft"`
	TPOT []float64 `json:"tpot"`
	ITL  []float64 `json:"itl"`
}

type replicaState struct {
	State       string  `json:"state"`
	Running     int     `json:"running"`
	Waiting     int     `json:"waiting"`
	Used        int     `json:"used"`
	Tokens      float64 `json:"tokens"`
	Preemptions int64   `json:"preemptions"`
}

// batch describes the batch and the queue of one replica.
type batch struct {
	Replica int        `json:"replica"`
	Running []sequence `json:"running"`
	More    int        `json:"more"` // that are left out
	Waiting []sequence `json:"waiting"`
	Behind  int        `json:"behind"` // that are left out
}

// sequence is a request of a batch or a queue: its ID, tokens of the prompt, those found in a cache, those computed
// with the cached ones, tokens of the output, those that it has, and the seconds since it was sent.
type sequence [7]float64

const (
	mostRunning = 256
	mostWaiting = 24
	// latestSeconds is the length of the window of the charts' latencies.
	latestSeconds = 5
)

// state returns the state of an instant, with the batches of some replicas in their order.
func (m *Monitor) state(watched []int) (*state, map[int]*batch) {
	lag := m.behind()
	now := m.now()
	s := &state{At: now.Seconds(), Lag: lag.recent.Seconds(), LagMax: lag.most.Seconds(),
		Replicas: make([]replicaState, len(m.replicas))}
	batches := make(map[int]*batch, len(watched))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.window.passes(now)
	s.System, s.Running, s.Waiting, s.Held = m.system.System, m.system.Running, m.system.Waiting, m.system.Held
	s.Ended = m.outcomes
	sum, seconds := m.window.rates.recent(now)
	s.Tokens, s.Prompts = float64(sum.tokens)/seconds, float64(sum.prompts)/seconds
	s.Requests, s.Arrivals = float64(sum.ended[event.Completed])/seconds, float64(sum.arrivals)/seconds
	w := &m.window
	s.Latencies = latencyState{quantiles(&w.first.sum), quantiles(&w.output.sum), quantiles(&w.gaps.sum)}
	s.latest = latencyState{quantiles(w.first.latest(now, latestSeconds)),
		quantiles(w.output.latest(now, latestSeconds)), quantiles(w.gaps.latest(now, latestSeconds))}
	unlimited := false
	for i := range m.replicas {
		r := &m.replicas[i]
		sum, seconds := r.window.recent(now)
		s.Replicas[i] = replicaState{State: r.state.String(), Running: r.levels.Running, Waiting: r.levels.Waiting,
			Used: r.used, Tokens: float64(sum.tokens) / seconds, Preemptions: r.preemptions}
		s.Preemptions += r.preemptions
		s.Used += r.used
		n := m.info.Engines[i].UsableBlocks
		unlimited = unlimited || n == 0
		if r.state != event.Off {
			s.Blocks += n
		}
	}
	if unlimited {
		s.Blocks = 0
	}
	for _, i := range watched {
		batches[i] = m.replicas[i].batch(i, now)
	}
	return s, batches
}

// batch lists the first requests of the batch and the queue.
func (r *replica) batch(i int, now clock.Time) *batch {
	list := func(l *sequences, most int) ([]sequence, int) {
		out := make([]sequence, 0, min(most, l.n))
		for q := l.first; q != nil && len(out) < most; q = q.next {
			out = append(out, sequence{float64(q.id), float64(q.input), float64(q.cached), float64(q.computed),
				float64(q.output), float64(q.produced), max(0, now.Sub(q.arrival).Seconds())})
		}
		return out, l.n - len(out)
	}
	b := &batch{Replica: i}
	b.Running, b.More = list(&r.running, mostRunning)
	b.Waiting, b.Behind = list(&r.waiting, mostWaiting)
	return b
}

// kv is the part of all KV blocks in use; nil if a pool has no end.
func (s *state) kv() *float64 {
	if s.Blocks == 0 {
		return nil
	}
	part := float64(s.Used) / float64(s.Blocks)
	return &part
}

// point has the data of a second for the charts. Latencies are taken over the last five seconds.
type point struct {
	At      float64  `json:"t"`
	Running int      `json:"running"`
	Waiting int      `json:"waiting"`
	KV      *float64 `json:"kv"`
	Tokens  float64  `json:"tokens"`
	Prompts float64  `json:"prompts"`
	latencyState
}

func (s *state) point() point {
	return point{s.At, s.Running, s.Waiting + s.Held, s.kv(), s.Tokens, s.Prompts, s.latest}
}

// change is a change of a replica's state for pages.
type change struct {
	At      float64 `json:"t"`
	Replica int     `json:"replica"`
	State   string  `json:"state"`
}

// changes are the latest changes of states.
func (m *Monitor) changes() []change {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []change{}
	for _, n := range m.events.all() {
		list = append(list, change{n.at.Seconds(), n.replica, n.state.String()})
	}
	return list
}
