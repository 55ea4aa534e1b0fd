package order

import "clifftop/sim/sched"

var priorityRule = Rule{
	Name:    "priority",
	Does:    "the lowest priority value first",
	Source:  "vLLM (scheduling_policy priority)",
	Options: func() Options { return new(priority) },
}

type priority struct{ ageing }

func (o *priority) Order(uint64) sched.Order { return o.aged(sched.ByPriority{}) }

func (o *priority) Idle(t Traffic) string {
	if t.Labelled {
		return ""
	}
	return "all requests have the same priority: only classes and traces set priorities"
}
