// Package order holds the orders of the waiting queue that a scenario can name at engine.order.
//
// Each order is one file: its options with their keys, and how an order of sim/sched is made from them. To add one,
// write such a file and add its variable to [Rules]; keys, JSON Schema and error messages follow from it. edf.go is a
// short example.
package order

import (
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/sched"
)

// Rule is an order under the name that scenarios give it.
type Rule = yamldoc.Rule[Options]

// Options are the keys of one order. They are fields of the struct that it points to.
type Options interface {
	// Order makes the order; nil is first come, first served. The seed is that of the run.
	Order(seed uint64) sched.Order
}

// Idle are options of an order that has no effect on some traffic.
type Idle interface {
	// Idle says why it has none on this one; it is empty if the order has an effect.
	Idle(t Traffic) string
}

// Traffic has the properties of the traffic that orders use.
type Traffic struct {
	// Labelled requests have the classes, sessions, users and priorities of a trace or of classes.
	Labelled bool
	// Users says that requests come from the users of a closed loop.
	Users bool
}

// Rules lists the orders.
func Rules() yamldoc.Rules[Options] {
	return yamldoc.Rules[Options]{fcfsRule, priorityRule, sjfRule, srptRule, ljfRule, edfRule, leastSlackRule, vtcRule}
}

// Name is the name of an order.
type Name string

// Names implements [yamldoc.Named].
func (Name) Names() []string { return Rules().Names() }

// ageing is an option of orders in which requests can starve.
type ageing struct {
	// Wait that counts as one token, or one priority, less.
	Ageing *yamldoc.Duration `json:"ageing,omitempty" range:"(0,3600]"`
}

// aged is an order with ageing, if that is given.
func (a *ageing) aged(o sched.Order) sched.Order {
	if a.Ageing == nil {
		return o
	}
	return sched.Aged{Order: o, Per: a.Ageing.Clock()}
}
