package order

import "clifftop/sim/sched"

var fcfsRule = Rule{
	Name:    "fcfs",
	Does:    "first come, first served",
	Options: func() Options { return new(fcfs) },
}

type fcfs struct{}

func (*fcfs) Order(uint64) sched.Order { return nil }
