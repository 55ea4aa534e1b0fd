package sched

import "clifftop/sim/rule"

// OrderOptions make orders of the waiting queue: an order with its parameters, or the parameters alone.
type OrderOptions interface {
	// Make returns the order of a run with a seed; nil is first come, first served.
	Make(seed uint64) Order
}

// IdleOrder is [OrderOptions] of an order that has no effect on some traffic.
type IdleOrder interface {
	OrderOptions
	// Idle says why it has none on this one; it is empty if the order has an effect.
	Idle(t OrderTraffic) string
}

// OrderTraffic has the properties of the traffic that orders use.
type OrderTraffic struct {
	// Labelled requests have the classes, sessions, users and priorities of a trace or of classes.
	Labelled bool
	// Users says that requests come from the users of a closed loop.
	Users bool
}

// OrderRule is an order of the waiting queue under the name that scenarios give it.
type OrderRule = rule.Rule[OrderOptions]

// Orders lists the orders of the waiting queue.
func Orders() rule.List[OrderOptions] {
	return rule.List[OrderOptions]{
		fcfsRule,
		priorityRule,
		sjfRule,
		srptRule,
		ljfRule,
		edfRule,
		leastSlackRule,
		vtcRule,
	}
}
