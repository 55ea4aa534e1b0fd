package monitor

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// request is the state of a request that has not ended.
type request struct {
	id                  int64
	arrival             clock.Time
	input               int32
	output              int32
	cached              int32 // prompt tokens that were found or loaded on admission
	computed            int32 // prompt tokens that are computed, with the cached ones
	produced            int32 // output tokens
	admitted            bool  // at least once
	prefilled, answered bool  // its first token is computed; its client has it
	known               bool  // params are given
	params              Params

	in         *sequences // where it runs or waits; nil before a replica has it
	prev, next *request   // there
}

// sequences are requests in order.
type sequences struct {
	replica     int
	running     bool // else they wait
	first, last *request
	n           int
}

// move puts a request behind all others of a list, or before them, and takes it out of its list. To is nil to only take
// it out.
func (q *request) move(to *sequences, before bool) {
	if l := q.in; l != nil {
		if q.prev != nil {
			q.prev.next = q.next
		} else {
			l.first = q.next
		}
		if q.next != nil {
			q.next.prev = q.prev
		} else {
			l.last = q.prev
		}
		l.n--
	}
	q.in, q.prev, q.next = to, nil, nil
	switch {
	case to == nil:
		return
	case to.first == nil:
		to.first, to.last = q, q
	case before:
		q.next, to.first.prev, to.first = to.first, q, q
	default:
		q.prev, to.last.next, to.last = to.last, q, q
	}
	to.n++
}

func (q *request) runs(replica int) bool {
	return q.in != nil && q.in.running && q.in.replica == replica
}

type replica struct {
	watch       replicaWatch
	levels      event.Levels
	state       event.State
	running     sequences
	waiting     sequences
	used        int // KV blocks
	preemptions int64
	window      rates
}

// replicaWatch is the observer of a replica for its totals.
type replicaWatch interface {
	event.LevelObserver
	event.TokenObserver
}

// Observer returns the observer of the simulation.
func (m *Monitor) Observer() event.Observer { return observer{m} }

// observer observes the simulation on the driver's goroutine.
type observer struct{ m *Monitor }

var (
	_ event.StepObserver      = observer{}
	_ event.ChunkObserver     = observer{}
	_ event.LevelObserver     = observer{}
	_ event.FleetObserver     = observer{}
	_ event.LifecycleObserver = observer{}
)

// passes notes that simulated time has come to an instant. Reports of the future do not move it.
func (m *Monitor) passes(at clock.Time) {
	if at > m.last {
		m.last = at
		m.window.passes(at)
	}
}

// Arrived implements [event.Observer].
func (o observer) Arrived(at clock.Time, r *workload.Request) {
	m := o.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes(at)
	q := new(request)
	if n := len(m.spare); n > 0 {
		q, m.spare = m.spare[n-1], m.spare[:n-1]
	}
	*q = request{id: r.ID, arrival: r.Arrival, input: r.InputTokens, output: r.OutputTokens}
	m.arrived = max(m.arrived, r.ID+1)
	if p, ok := m.expected[r.ID]; ok {
		q.params, q.known = p, true
		delete(m.expected, r.ID)
	}
	m.requests[r.ID] = q
	m.window.rates.at(at).arrivals++
}

// Levels implements [event.LevelObserver].
func (o observer) Levels(at clock.Time, l *event.Levels) {
	m := o.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes(at)
	m.system = *l
}

// Step implements [event.StepObserver].
func (o observer) Step(step *event.Step) {
	m, s := o.m, step.Span
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes(s.Start)
	r := &m.replicas[s.Replica]
	m.totals.Step(step)
	for _, id := range step.Preempted {
		if q := m.requests[id]; q != nil && q.runs(s.Replica) {
			q.computed = 0
			q.move(&r.waiting, true)
		}
	}
	var prompts, cached int64
	if s.PrefillTokens|s.RecomputedTokens|s.FirstTokens != 0 || r.running.n != step.Running {
		prompts, cached = m.walk(step)
	}
	m.totals.Iteration(s, prompts, cached)
	r.used = s.UsedBlocks
	end := s.End(1)
	n := r.window.at(end)
	n.tokens += int64(s.Output())
	n.prompts += prompts
	n = m.window.rates.at(end)
	n.tokens += int64(s.Output())
	n.prompts += prompts
	if s.Gaps > 0 {
		m.window.gaps.add(end, s.First/clock.FemtosPerPico+int64(s.Wait), s.Gaps)
	}
}

// walk notes what an iteration does for each sequence. It returns the tokens of the prompts that are complete with it,
// and those that admitted requests found in the prefix cache.
func (m *Monitor) walk(step *event.Step) (prompts, cached int64) {
	s := step.Span
	r := &m.replicas[s.Replica]
	for i := range step.Scheduled {
		share := &step.Scheduled[i]
		q := m.requests[share.Request]
		if q == nil {
			continue
		}
		if !q.runs(s.Replica) {
			q.move(&r.running, false)
			cached += int64(share.Cached)
			if !q.admitted {
				q.admitted = true
				m.totals.Admitted(s.Replica, s.Start, q.input, share.Cached)
				q.cached = min(share.Cached+share.Loaded, q.input)
			}
			q.computed = min(share.Cached+share.Loaded, q.input)
		}
		q.computed = min(q.computed+share.Tokens, q.input)
		if share.Emits && !q.prefilled {
			q.prefilled = true
			prompts += int64(q.input)
		}
	}
	return prompts, cached
}

// Chunk implements [event.ChunkObserver].
func (o observer) Chunk(c event.Chunk) {
	m := o.m
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.requests[c.Request]
	if q == nil {
		return
	}
	q.produced = c.Tokens
	if !q.answered {
		m.answered(q, c.Replica, c.At)
	}
}

// answered notes the first token of a request, which its client gets at an instant.
func (m *Monitor) answered(q *request, replica int, at clock.Time) {
	q.answered = true
	m.totals.Answered(replica, at.Add(-m.info.NetworkOut), q.arrival.Add(m.info.NetworkIn), q.input)
	m.window.first.add(at, int64(at-q.arrival), 1)
}

// completed notes the time per output token of a request that has completed.
func (m *Monitor) completed(rec *event.Record) {
	if n := int64(rec.Tokens) - 1; n > 0 && rec.Outcome == event.Completed && rec.ClientFirst != clock.Never {
		m.window.output.add(rec.ClientLast, int64(rec.ClientLast-rec.ClientFirst)/n, 1)
	}
}

// Finished implements [event.Observer].
func (o observer) Finished(rec *event.Record) {
	m := o.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outcomes[rec.Outcome]++
	m.refusals[rec.Refusal]++
	end := m.last
	if rec.ClientLast != clock.Never {
		end = rec.ClientLast
	}
	m.window.rates.at(end).ended[rec.Outcome]++
	m.completed(rec)
	q := m.requests[rec.Request.ID]
	if q == nil {
		return
	}
	q.move(nil, false)
	if rec.Replica >= 0 && rec.Refusal == event.NotRefused {
		if !q.admitted && rec.Scheduled != clock.Never {
			m.totals.Admitted(rec.Replica, rec.Scheduled, q.input, rec.CachedTokens)
		}
		if !q.answered && rec.ClientFirst != clock.Never {
			m.answered(q, rec.Replica, rec.ClientFirst)
		} else if !q.answered && rec.FirstToken != clock.Never {
			m.totals.Answered(rec.Replica, rec.FirstToken, q.arrival.Add(m.info.NetworkIn), q.input)
		}
		m.totals.Ended(rec, q.params.Limited)
		if q.known {
			m.totals.Params(rec.Replica, max(1, q.params.N), int(rec.Tokens), q.params.MaxTokens)
		}
	}
	delete(m.requests, rec.Request.ID)
	m.spare = append(m.spare, q)
}

// ReplicaState implements [event.LifecycleObserver].
func (o observer) ReplicaState(at clock.Time, i int, s event.State) {
	m := o.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes(at)
	m.totals.ReplicaState(at, i, s)
	r := &m.replicas[i]
	r.state = s
	if s == event.Down || s == event.Off {
		r.used = 0
	}
	m.events.push(note{at: at, replica: i, state: s})
}

// note is a change of a replica's state.
type note struct {
	at      clock.Time
	replica int
	state   event.State
}

// OfReplica implements [event.FleetObserver].
func (o observer) OfReplica(i int) event.Observer { return replicaObserver{m: o.m, i: i} }

type replicaObserver struct {
	event.Ignore
	m *Monitor
	i int
}

var (
	_ event.LevelObserver = replicaObserver{}
	_ event.TokenObserver = replicaObserver{}
)

func (o replicaObserver) Arrived(_ clock.Time, r *workload.Request) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if q := o.m.requests[r.ID]; q != nil {
		q.move(&o.m.replicas[o.i].waiting, false)
	}
}

// Levels implements [event.LevelObserver].
func (o replicaObserver) Levels(at clock.Time, l *event.Levels) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	r := &o.m.replicas[o.i]
	r.levels = *l
	if l.Running == 0 {
		r.used = 0
	}
	r.watch.Levels(at, l)
}

// Gap implements [event.TokenObserver].
func (o replicaObserver) Gap(at clock.Time, gap clock.Duration, n int) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.m.window.gaps.add(at, int64(gap), n)
	r := &o.m.replicas[o.i]
	r.watch.Gap(at, gap, n)
}

// Preempted implements [event.TokenObserver].
func (o replicaObserver) Preempted(at clock.Time) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	r := &o.m.replicas[o.i]
	r.preemptions++
	r.watch.Preempted(at)
}

// Dropped implements [event.TokenObserver].
func (o replicaObserver) Dropped(at clock.Time, tokens int) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	r := &o.m.replicas[o.i]
	r.window.at(at).tokens -= int64(tokens)
	o.m.window.rates.at(at).tokens -= int64(tokens)
	r.watch.Dropped(at, tokens)
}
