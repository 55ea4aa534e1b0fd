package event

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Fanout forwards events to observers, in the order in which they were given. Each observer gets the events of the
// interfaces that it implements; an interface that no observer implements costs nothing. A nil Fanout has no observers.
type Fanout struct {
	all       []Observer
	levels    []LevelObserver
	spans     []SpanObserver
	edges     []EdgeObserver
	tokens    []TokenObserver
	steps     []StepObserver
	chunks    []ChunkObserver
	caches    []CacheObserver
	fleets    []FleetObserver
	moves     []MoveObserver
	lifecycle []LifecycleObserver
}

var (
	_ LevelObserver     = (*Fanout)(nil)
	_ SpanObserver      = (*Fanout)(nil)
	_ EdgeObserver      = (*Fanout)(nil)
	_ TokenObserver     = (*Fanout)(nil)
	_ StepObserver      = (*Fanout)(nil)
	_ ChunkObserver     = (*Fanout)(nil)
	_ CacheObserver     = (*Fanout)(nil)
	_ FleetObserver     = (*Fanout)(nil)
	_ MoveObserver      = (*Fanout)(nil)
	_ LifecycleObserver = (*Fanout)(nil)
)

// Join returns a Fanout to observers. It leaves out nil ones, and takes the observers of a Fanout in its place.
func Join(observers ...Observer) *Fanout {
	f := new(Fanout)
	for _, o := range observers {
		switch o := o.(type) {
		case nil:
		case *Fanout:
			for _, each := range o.observers() {
				f.add(each)
			}
		default:
			f.add(o)
		}
	}
	return f
}

func (f *Fanout) add(o Observer) {
	f.all = append(f.all, o)
	f.levels = implementing(f.levels, o)
	f.spans = implementing(f.spans, o)
	f.edges = implementing(f.edges, o)
	f.tokens = implementing(f.tokens, o)
	f.steps = implementing(f.steps, o)
	f.chunks = implementing(f.chunks, o)
	f.caches = implementing(f.caches, o)
	f.fleets = implementing(f.fleets, o)
	f.moves = implementing(f.moves, o)
	f.lifecycle = implementing(f.lifecycle, o)
}

// implementing appends o to a list if it implements T.
func implementing[T any](list []T, o Observer) []T {
	if t, ok := o.(T); ok {
		return append(list, t)
	}
	return list
}

func (f *Fanout) observers() []Observer {
	if f == nil {
		return nil
	}
	return f.all
}

// Arrived implements [Observer].
func (f *Fanout) Arrived(at clock.Time, r *workload.Request) {
	for _, o := range f.all {
		o.Arrived(at, r)
	}
}

// Finished implements [Observer].
func (f *Fanout) Finished(rec *Record) {
	for _, o := range f.all {
		o.Finished(rec)
	}
}

// Levels implements [LevelObserver].
func (f *Fanout) Levels(at clock.Time, l *Levels) {
	for _, o := range f.levels {
		o.Levels(at, l)
	}
}

// LevelObserver returns the only observer of levels, or f.
func (f *Fanout) LevelObserver() LevelObserver {
	if len(f.levels) == 1 {
		return f.levels[0]
	}
	return f
}

// Span implements [SpanObserver].
func (f *Fanout) Span(s *Span) {
	for _, o := range f.spans {
		o.Span(s)
	}
}

// Edge implements [EdgeObserver]: it returns the first edge of all observers.
func (f *Fanout) Edge(past clock.Time) clock.Time {
	first := clock.Never
	for _, o := range f.edges {
		first = min(first, o.Edge(past))
	}
	return first
}

// Gap implements [TokenObserver].
func (f *Fanout) Gap(at clock.Time, gap clock.Duration, n int) {
	for _, o := range f.tokens {
		o.Gap(at, gap, n)
	}
}

// Preempted implements [TokenObserver].
func (f *Fanout) Preempted(at clock.Time) {
	for _, o := range f.tokens {
		o.Preempted(at)
	}
}

// Dropped implements [TokenObserver].
func (f *Fanout) Dropped(at clock.Time, tokens int) {
	for _, o := range f.tokens {
		o.Dropped(at, tokens)
	}
}

// WantsSteps reports whether some observer is a [StepObserver].
func (f *Fanout) WantsSteps() bool { return len(f.steps) > 0 }

// Step implements [StepObserver].
func (f *Fanout) Step(s *Step) {
	for _, o := range f.steps {
		o.Step(s)
	}
}

// WantsChunks reports whether some observer is a [ChunkObserver].
func (f *Fanout) WantsChunks() bool { return len(f.chunks) > 0 }

// Chunk implements [ChunkObserver].
func (f *Fanout) Chunk(c Chunk) {
	for _, o := range f.chunks {
		o.Chunk(c)
	}
}

// WantsCaches reports whether some observer is a [CacheObserver].
func (f *Fanout) WantsCaches() bool { return len(f.caches) > 0 }

// CacheChanged implements [CacheObserver].
func (f *Fanout) CacheChanged(c *CacheChange) {
	for _, o := range f.caches {
		o.CacheChanged(c)
	}
}

// OfReplica implements [FleetObserver]. It returns nil if no observer has one for replica i.
func (f *Fanout) OfReplica(i int) Observer {
	if part := f.Replica(i); part != nil {
		return part
	}
	return nil
}

// Replica returns a Fanout to the observers of replica i, as [FleetObserver.OfReplica] returns them, or nil if there is
// none.
func (f *Fanout) Replica(i int) *Fanout {
	var parts []Observer
	for _, o := range f.fleets {
		if part := o.OfReplica(i); part != nil {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return Join(parts...)
}

// Moved implements [MoveObserver].
func (f *Fanout) Moved(at clock.Time, m Move) {
	for _, o := range f.moves {
		o.Moved(at, m)
	}
}

// LinkBusy implements [MoveObserver].
func (f *Fanout) LinkBusy(at clock.Time, replica, tier int, busy bool) {
	for _, o := range f.moves {
		o.LinkBusy(at, replica, tier, busy)
	}
}

// ReplicaState implements [LifecycleObserver].
func (f *Fanout) ReplicaState(at clock.Time, replica int, s State) {
	for _, o := range f.lifecycle {
		o.ReplicaState(at, replica, s)
	}
}
