package naive

import (
	"slices"

	"clifftop/sim/sched"
)

// batch is the running batch.
type batch struct {
	running     []*sequence // in order of admission
	serials     int64       // admissions so far
	departures  int64       // sequences that have left so far
	decodeSteps int64       // iterations so far in which a sequence decoded
}

func (b *batch) RunningLen() int { return len(b.running) }

// DecodeSteps is the number of iterations so far in which a sequence decoded.
func (b *batch) DecodeSteps() int64 { return b.decodeSteps }

// Departures is the number of sequences that have left the batch so far.
func (b *batch) Departures() int64 { return b.departures }

func (b *batch) Decoding() int {
	sum := 0
	for _, s := range b.running {
		if s.decodes() {
			sum++
		}
	}
	return sum
}

// Context is the sum of their computed tokens.
func (b *batch) Context() int64 {
	sum := int64(0)
	for _, s := range b.running {
		if s.decodes() {
			sum += int64(s.computed)
		}
	}
	return sum
}

// First is the sequence that was admitted first.
func (b *batch) First() sched.Seq {
	return b.first(func(*sequence) bool { return true })
}

// first is the first running sequence for which f is true.
func (b *batch) first(f func(s *sequence) bool) sched.Seq {
	for _, s := range b.running {
		if f(s) {
			return handle(s)
		}
	}
	return sched.None
}

// Last is the sequence that was admitted last.
func (b *batch) Last() sched.Seq {
	return b.last(func(*sequence) bool { return true })
}

// last is the last running sequence for which f is true.
func (b *batch) last(f func(s *sequence) bool) sched.Seq {
	for _, s := range slices.Backward(b.running) {
		if f(s) {
			return handle(s)
		}
	}
	return sched.None
}

// anyGiven reports whether the iteration that was composed gives tokens to a sequence.
func (b *batch) anyGiven() bool {
	return slices.ContainsFunc(b.running, func(s *sequence) bool { return s.given > 0 })
}
