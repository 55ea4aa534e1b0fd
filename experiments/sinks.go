package experiments

import (
	"slices"

	"clifftop/report/export"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// listening passes on to sinks what an observer is told.
func listening(o sim.Observer, sinks []export.Sink) sim.Observer {
	if len(sinks) == 0 {
		return o
	}
	l := &sinkListener{Observer: o, sinks: sinks}
	if slices.ContainsFunc(sinks, func(s export.Sink) bool { _, ok := s.(export.StepSink); return ok }) {
		return &stepListener{l}
	}
	return l
}

// sinkListener tells an observer first, and then sinks. The accounting is cut as the observer wants it.
type sinkListener struct {
	sim.Observer
	sinks []export.Sink
}

// Moved implements [sim.MoveObserver] for an observer that does.
func (l *sinkListener) Moved(at clock.Time, m sim.Move) {
	if o, ok := l.Observer.(sim.MoveObserver); ok {
		o.Moved(at, m)
	}
}

// LinkBusy implements [sim.MoveObserver] for an observer that does.
func (l *sinkListener) LinkBusy(at clock.Time, replica, tier int, busy bool) {
	if o, ok := l.Observer.(sim.MoveObserver); ok {
		o.LinkBusy(at, replica, tier, busy)
	}
}

// ReplicaState tells the sinks that want to know of it, and implements [sim.LifeObserver] for an observer that does.
func (l *sinkListener) ReplicaState(at clock.Time, replica int, s sim.State) {
	if o, ok := l.Observer.(sim.LifeObserver); ok {
		o.ReplicaState(at, replica, s)
	}
	for _, sink := range l.sinks {
		if o, ok := sink.(export.LifeSink); ok {
			o.ReplicaState(replica, at, s)
		}
	}
}

// OfReplica tells the sinks of what happens at one replica, and the observer too if it wants that.
func (l *sinkListener) OfReplica(i int) sim.Observer {
	part := &replicaListener{Observer: nobody{}, sinks: l.sinks, replica: i}
	if f, ok := l.Observer.(sim.FleetObserver); ok {
		if own := f.OfReplica(i); own != nil {
			part.Observer = own
		}
	}
	return part
}

// Arrived passes the request on.
func (l *sinkListener) Arrived(at clock.Time, r *workload.Request) {
	l.Observer.Arrived(at, r)
	for _, s := range l.sinks {
		s.Arrived(at, r)
	}
}

// Span passes the iterations on.
func (l *sinkListener) Span(span *sim.Span) {
	l.Observer.Span(span)
	for _, s := range l.sinks {
		s.Span(span)
	}
}

// Finished passes the record on.
func (l *sinkListener) Finished(rec *sim.Record) {
	l.Observer.Finished(rec)
	for _, s := range l.sinks {
		s.Finished(rec)
	}
}

// replicaListener passes on what happens at a replica.
type replicaListener struct {
	sim.Observer
	sinks   []export.Sink
	replica int
}

// Levels passes the levels on.
func (l *replicaListener) Levels(at clock.Time, levels *sim.Levels) {
	l.Observer.Levels(at, levels)
	for _, s := range l.sinks {
		s.Levels(l.replica, at, levels)
	}
}

// Gap passes the gaps on.
func (l *replicaListener) Gap(at clock.Time, gap clock.Duration, n int) {
	l.Observer.Gap(at, gap, n)
	for _, s := range l.sinks {
		s.Gap(l.replica, at, gap, n)
	}
}

// Preempted passes the preemption on.
func (l *replicaListener) Preempted(at clock.Time) {
	l.Observer.Preempted(at)
	for _, s := range l.sinks {
		s.Preempted(l.replica, at)
	}
}

// Dropped passes the tokens on.
func (l *replicaListener) Dropped(at clock.Time, tokens int) {
	l.Observer.Dropped(at, tokens)
	for _, s := range l.sinks {
		s.Dropped(l.replica, at, tokens)
	}
}

// stepListener passes on iterations sequence by sequence too.
type stepListener struct{ *sinkListener }

// Step passes the iteration on.
func (l *stepListener) Step(step *sim.Step) {
	for _, s := range l.sinks {
		if s, ok := s.(export.StepSink); ok {
			s.Step(step)
		}
	}
}

// nobody is an observer that nothing is told to.
type nobody struct{}

// The methods of [sim.Observer].
func (nobody) Edge(clock.Time) clock.Time            { return clock.Never }
func (nobody) Arrived(clock.Time, *workload.Request) {}
func (nobody) Levels(clock.Time, *sim.Levels)        {}
func (nobody) Span(*sim.Span)                        {}
func (nobody) Gap(clock.Time, clock.Duration, int)   {}
func (nobody) Preempted(clock.Time)                  {}
func (nobody) Dropped(clock.Time, int)               {}
func (nobody) Finished(*sim.Record)                  {}
