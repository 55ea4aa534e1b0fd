package sim

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// tee tells two observers the same: a fleet's, and a replica's own.
type tee struct{ fleet, own Observer }

var _ Observer = (*tee)(nil)

// Edge implements [Observer].
func (t *tee) Edge(past clock.Time) clock.Time { return min(t.fleet.Edge(past), t.own.Edge(past)) }

// Arrived implements [Observer]. The fleet's observer was told when the request was sent.
func (t *tee) Arrived(at clock.Time, r *workload.Request) { t.own.Arrived(at, r) }

// Levels implements [Observer]. The fleet's are others.
func (t *tee) Levels(at clock.Time, l *Levels) { t.own.Levels(at, l) }

// Span implements [Observer].
func (t *tee) Span(s *Span) {
	t.fleet.Span(s)
	t.own.Span(s)
}

// Gap implements [Observer].
func (t *tee) Gap(at clock.Time, gap clock.Duration, n int) {
	t.fleet.Gap(at, gap, n)
	t.own.Gap(at, gap, n)
}

// Preempted implements [Observer].
func (t *tee) Preempted(at clock.Time) {
	t.fleet.Preempted(at)
	t.own.Preempted(at)
}

// Dropped implements [Observer].
func (t *tee) Dropped(at clock.Time, tokens int) {
	t.fleet.Dropped(at, tokens)
	t.own.Dropped(at, tokens)
}

// Finished implements [Observer].
func (t *tee) Finished(rec *Record) {
	t.fleet.Finished(rec)
	t.own.Finished(rec)
}
