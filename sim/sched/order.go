package sched

// Order ranks the waiting queue. Without one the queue is first come, first served, and preempted
// sequences go to its head, or to its tail where the policy says so.
//
// An order has no state: it may serve many engines at once.
type Order interface {
	// Key ranks a request: the lowest goes first, and equals go by arrival, then request. It is asked when a
	// request joins the queue, when it returns there, and of running sequences, as if they returned now. What the
	// prefix cache holds of the request is not looked up for it: Cached, Held and Live are zero, and so is
	// Urgency.Key.
	Key(w *Waiting) int64
}

// ByPriority is vLLM's scheduling policy "priority": requests go by the priority that their clients gave
// them.
type ByPriority struct{}

var _ Order = ByPriority{}

// Key implements [Order].
func (ByPriority) Key(w *Waiting) int64 { return int64(w.Priority) }
