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

var fcfsRule = OrderRule{
	Name: "fcfs",
	Does: "first come, first served",
	New:  func() OrderOptions { return new(firstCome) },
}

type firstCome struct{}

func (*firstCome) Make(uint64) Order { return nil }

var priorityRule = OrderRule{
	Name:   "priority",
	Does:   "the lowest priority value first",
	Source: "vLLM (scheduling_policy priority)",
	New:    func() OrderOptions { return new(priorityOptions) },
}

type priorityOptions struct{ ageing }

func (o *priorityOptions) Make(uint64) Order { return o.aged(ByPriority{}) }

func (o *priorityOptions) Idle(t OrderTraffic) string {
	if t.Labelled {
		return ""
	}
	return "all requests have the same priority: only classes and traces set priorities"
}

// ByPriority is vLLM's scheduling policy "priority": requests are ordered by their clients' priority.
type ByPriority struct{}

var _ Order = ByPriority{}

// Key implements [Order].
func (ByPriority) Key(w *Waiting) int64 { return int64(w.Priority) }
