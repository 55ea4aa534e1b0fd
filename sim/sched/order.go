package sched

// Order ranks the waiting queue. Without one the queue is first come, first served, and preempted
// sequences go to its head, or to its tail where the policy says so.
//
// An order has no state: it may serve many engines at once.
type Order interface {
	// Key ranks a request: the lowest key comes first, and equals are ordered by arrival, then request. It is called
	// when a request joins the queue, when it returns there, and for running sequences, as if they returned now. The
	// prefix cache is not looked up for it: Cached, Held and Live are zero, and so is Urgency.Key.
	Key(w *Waiting) int64
}

// ByPriority is vLLM's scheduling policy "priority": requests are ordered by their clients' priority.
type ByPriority struct{}

var _ Order = ByPriority{}

// Key implements [Order].
func (ByPriority) Key(w *Waiting) int64 { return int64(w.Priority) }
