package export

import (
	"cmp"
	"fmt"
	"io"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// TraceInfo says what a timeline is of.
type TraceInfo struct {
	// Replicas describe the replicas; each is a process.
	Replicas []TraceReplica
	// Other is written as otherData: the program, the scenario, the seed.
	Other map[string]any
	// Lifecycle says that replicas start, fail and end; each has a track for its states then.
	Lifecycle bool
	// End is the instant at which the run is stopped; 0 where it goes on until all requests have ended.
	End clock.Time
	// Events is about how many events are written at most; 0 is [DefaultEvents].
	Events int64
}

// TraceReplica says what a replica is.
type TraceReplica struct {
	// Name is added to its number.
	Name string
	// Stages is the number of stages of its pipeline, each with a track; 0 without a pipeline.
	Stages int
}

// DefaultEvents is the number of events, about 120 bytes each, that viewers load in seconds.
const DefaultEvents = 1_000_000

// A Trace writes a timeline while a run goes on: each replica is a process with tracks for its states, its iterations,
// the stages of its pipeline, the requests that it serves with their phases, and counters of its KV blocks, batch and
// queue. Requests that no replica took are in a process of their own. It keeps in memory what is in the system only.
//
// Of long runs it thins out what comes late: see the notes in the timeline, and otherData.
type Trace struct {
	out      *events
	info     TraceInfo
	replicas []*traceReplica
	clients  traceLanes
	open     map[int64]*traceLife
	last     clock.Time // of the last event

	iterations, counters, requests thinning
	shown, ended                   int64 // requests
}

var (
	_ event.StepObserver      = (*Trace)(nil)
	_ event.FleetObserver     = (*Trace)(nil)
	_ event.LifecycleObserver = (*Trace)(nil)
)

// Processes and threads of a timeline.
const (
	clientProcess   = 1
	firstReplica    = 2
	iterationThread = 1
	stateThread     = 2 // which stands above it
	firstStage      = 3
	firstLane       = 10 // of requests, or later where there are many stages
)

// NewTrace starts a timeline. Call [Trace.Close] at the end.
func NewTrace(w io.Writer, info TraceInfo) *Trace {
	limit := info.Events
	if limit == 0 {
		limit = DefaultEvents
	}
	return &Trace{
		out: newEvents(w), info: info, open: map[int64]*traceLife{},
		clients:    traceLanes{process: clientProcess, first: firstLane},
		iterations: newThinning(limit * 4 / 10), counters: newThinning(limit * 3 / 10),
		requests: newThinning(limit * 3 / 10),
	}
}

type traceReplica struct {
	lanes   traceLanes
	group   iterationGroup
	end     clock.Time // of its last iteration
	levels  event.Levels
	state   event.State
	since   clock.Time // in it
	changes int64      // of levels, and iterations, that have been counted
	batches int64
}

// iterationGroup is iterations that are drawn as one slice: more than one where they are thinned out.
type iterationGroup struct {
	start, end                   clock.Time
	n                            int64
	decodes, prefill, recomputed int64 // tokens computed
	output                       int64 // tokens
	blocks                       int   // at the end
	number                       int64 // of the first, of the replica's from 1 on
	stages                       []stageGroup
}

// replica is the state of one, whose tracks are named when it is first seen.
func (t *Trace) replica(i int) *traceReplica {
	for len(t.replicas) <= i {
		k := len(t.replicas)
		process := firstReplica + k
		name, stages := fmt.Sprintf("replica %d", k), 0
		if k < len(t.info.Replicas) {
			name += ": " + t.info.Replicas[k].Name
			stages = t.info.Replicas[k].Stages
		}
		t.replicas = append(t.replicas, &traceReplica{
			lanes: traceLanes{process: process, first: max(firstLane, firstStage+stages)},
			group: iterationGroup{stages: make([]stageGroup, stages)},
		})
		t.out.named("process", track{process, 0}, name, process)
		if t.info.Lifecycle {
			t.out.named("thread", track{process, stateThread}, "state", 0)
		}
		t.out.named("thread", track{process, iterationThread}, "iterations", iterationThread)
		for i := range stages {
			t.out.named("thread", track{process, firstStage + i}, fmt.Sprintf("stage %d", i), firstStage+i)
		}
	}
	return t.replicas[i]
}

// Arrived begins to follow a request.
func (t *Trace) Arrived(_ clock.Time, r *workload.Request) {
	id, _ := r.First()
	t.open[r.ID] = &traceLife{kept: id%t.requests.stride == 0}
}

// OfReplica implements [event.FleetObserver].
func (t *Trace) OfReplica(i int) event.Observer { return traceLevels{export: t, replica: i} }

// traceLevels observes the levels of a replica.
type traceLevels atReplica[*Trace]

// Levels draws the numbers of running and waiting requests of a replica.
func (o traceLevels) Levels(at clock.Time, l *event.Levels) {
	t, replica := o.export, o.replica
	r := t.replica(replica)
	t.last = max(t.last, at)
	if l.Running == r.levels.Running && l.Waiting == r.levels.Waiting {
		return
	}
	r.levels = *l
	if r.changes++; r.changes%t.counters.stride == 0 {
		t.counter(firstReplica+replica, at, "requests", "running", int64(l.Running), "waiting", int64(l.Waiting))
	}
}

// counter draws two numbers, or one where the second has no name.
func (t *Trace) counter(process int, at clock.Time, name, key string, v int64, second string, u int64) {
	t.out.begin('C', track{process, 0}, name)
	t.out.at(at)
	t.out.openArgs()
	t.out.number(key, v)
	if second != "" {
		t.out.number(second, u)
	}
	t.out.closeArgs()
	t.out.end()
	t.counters.spend(1)
}

// Step draws an iteration and notes what it does for each request.
func (t *Trace) Step(s *event.Step) {
	i := s.Span.Replica
	r := t.replica(i)
	start, end := s.Span.Start, s.Span.End(s.Span.N)
	t.last = max(t.last, end)
	g := &r.group
	idle, busy := start.Sub(r.end), r.end.Sub(g.start) // before this iteration, and before that
	if g.n > 0 && (g.n >= t.iterations.stride || t.iterations.shows(idle, busy)) {
		t.iteration(i, g)
	}
	if g.n == 0 {
		*g = iterationGroup{start: start, number: r.batches + 1, stages: g.stages}
	}
	g.countPassages(s.Span.Passages)
	g.n += int64(s.Span.N)
	g.decodes += int64(s.Span.Decodes + s.Span.Drafts)
	g.prefill += int64(s.Span.PrefillTokens)
	g.recomputed += int64(s.Span.RecomputedTokens)
	g.output += int64(s.Span.Output())
	g.end, g.blocks = end, s.Span.UsedBlocks
	process := firstReplica + i
	paused := r.batches > 0 && t.counters.shows(idle, busy)
	if paused {
		t.counter(process, r.end, "batch", "decoding", 0, "prefill tokens", 0)
	}
	if r.batches%t.counters.stride == 0 || paused {
		t.counter(process, start, "batch", "decoding", int64(s.Span.Decodes), "prefill tokens",
			int64(s.Span.PrefillTokens+s.Span.RecomputedTokens))
		t.counter(process, start, "KV blocks", "used", int64(s.Span.UsedBlocks), "", 0)
	}
	r.batches++
	r.end = end
	for _, id := range s.Preempted {
		if life := t.open[id]; life != nil {
			life.preempted()
		}
	}
	for k := range s.Scheduled {
		if life := t.open[s.Scheduled[k].Request]; life != nil && life.kept {
			life.scheduled(&s.Scheduled[k], start, end)
		}
	}
}

func (g *iterationGroup) name() string {
	switch computed := g.prefill + g.recomputed; {
	case computed > 0 && g.decodes > 0:
		return "mixed"
	case computed > 0:
		return "prefill"
	}
	return "decode"
}

// iteration draws a slice for iterations, and one for each stage that they pass.
func (t *Trace) iteration(replica int, g *iterationGroup) {
	on := track{firstReplica + replica, iterationThread}
	t.out.begin('X', on, g.name())
	t.out.during(g.start, g.end)
	t.out.openArgs()
	if g.n > 1 {
		t.out.number("iterations", g.n)
	}
	t.out.number("decode_tokens", g.decodes)
	t.out.number("prefill_tokens", g.prefill)
	if g.recomputed > 0 {
		t.out.number("recomputed_tokens", g.recomputed)
	}
	t.out.number("output_tokens", g.output)
	t.out.number("kv_blocks", int64(g.blocks))
	t.out.closeArgs()
	t.out.end()
	drawn := t.stages(on.process, g)
	if t.iterations.spend(1 + drawn) {
		t.out.note(on, g.end, fmt.Sprintf("from here on a slice stands for up to %d iterations", t.iterations.stride))
	}
	g.n = 0
}

// Finished draws a request.
func (t *Trace) Finished(rec *event.Record) {
	life := t.open[rec.Request.ID]
	delete(t.open, rec.Request.ID)
	t.ended++
	if life == nil || !life.kept {
		return
	}
	t.shown++
	lanes := &t.clients
	if i := rec.Replica; i >= 0 {
		lanes = &t.replica(i).lanes
	}
	before := t.out.n
	on := life.draw(t.out, lanes, rec)
	if t.requests.spend(t.out.n - before) {
		t.out.note(on, rec.Request.Arrival,
			fmt.Sprintf("from about here on every %dth request is shown", t.requests.stride))
	}
}

// Close ends the file.
func (t *Trace) Close() error {
	if n := len(t.info.Replicas); t.info.Lifecycle && n > 0 {
		t.replica(n - 1) // those that nothing happened to have a state, too
	}
	for i, r := range t.replicas {
		if r.group.n > 0 {
			t.iteration(i, &r.group)
		}
		t.state(i, cmp.Or(t.info.End, t.last))
	}
	if len(t.clients.ends) > 0 {
		t.out.named("process", track{clientProcess, 0}, "requests that no replica took", clientProcess)
	}
	other := map[string]any{"sampling": t.sampling(), "requests_shown": t.shown, "requests_ended": t.ended,
		"requests_in_system_at_end": len(t.open)}
	for k, v := range t.info.Other {
		other[k] = v
	}
	return t.out.close(other)
}

// sampling says what was left out.
func (t *Trace) sampling() string {
	text := ""
	say := func(x *thinning, format string) {
		if x.stride > 1 {
			if text != "" {
				text += "; "
			}
			text += fmt.Sprintf(format, x.stride)
		}
	}
	say(&t.iterations, "late iterations are joined, up to %d in a slice")
	say(&t.counters, "late counters are taken at every %dth change")
	say(&t.requests, "of late requests every %dth is shown")
	if text == "" {
		return "none: everything is shown"
	}
	return text + ". Notes in the timeline say from where on"
}
