package event

import "clifftop/sim/sched"

// Levels are the numbers of requests by state, and the cause that blocks the first waiting request.
type Levels struct {
	System   int // sent and not yet ended
	Waiting  int // in the engine's queue, preempted ones included
	Running  int // holding a seat in the running batch
	Decoding int // running, and past their first token
	Held     int // waiting at the router while no replica takes requests
	// Blocked is the cause why the head of the queue was not admitted at the last scheduling. It is [sched.NotBlocked]
	// when the queue is empty, or when every request that fits was admitted. For a fleet it is the cause that blocks
	// the most queues.
	Blocked sched.Cause
}

// Equal reports whether two levels are the same. It is inlined, while == calls a function for a struct of this size; it
// is called for every event.
func (l *Levels) Equal(m *Levels) bool {
	return l.System == m.System && l.Waiting == m.Waiting && l.Running == m.Running && l.Decoding == m.Decoding &&
		l.Held == m.Held && l.Blocked == m.Blocked
}
