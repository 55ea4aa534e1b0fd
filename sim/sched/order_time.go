package sched

import (
	"errors"
	"fmt"

	"clifftop/sim/clock"
)

var edfRule = OrderRule{
	Name: "edf",
	Does: "the earliest deadline first",
	New:  func() OrderOptions { return new(EDF) },
}

// EDF is earliest deadline first. A request is due a given time after its arrival: the objective of its class for the
// time to first token, or for the whole output.
type EDF struct {
	// Within is the time by class, Otherwise that of classes beyond the list.
	Within    []clock.Duration
	Otherwise clock.Duration `json:"within" required:"yes" range:"[0,)" doc:"deadline after the arrival"`
}

var _ Order = EDF{}

// Make implements [OrderOptions].
func (o *EDF) Make(uint64) Order { return *o }

// Validate reports times that are negative, or beyond the longest run.
func (o EDF) Validate() error {
	for _, d := range append([]clock.Duration{o.Otherwise}, o.Within...) {
		if d < 0 || d > clock.MaxRun {
			return fmt.Errorf("deadline: %v after the arrival is not allowed", d)
		}
	}
	return nil
}

// Key implements [Order]: the deadline.
func (o EDF) Key(w *Waiting) int64 {
	within := o.Otherwise
	if int(w.Class) < len(o.Within) {
		within = o.Within[w.Class]
	}
	return w.Urgency.Arrival + int64(within)
}

var leastSlackRule = OrderRule{
	Name: "least-slack",
	Does: "the least time between the expected end and the deadline first",
	New:  func() OrderOptions { return &slackOptions{sizeOptions: sizeOptions{OutputWeight: 1}} },
}

type slackOptions struct {
	sizeOptions
	EDF
	TokenTime clock.Duration `json:"token_time" required:"yes" range:"[0,1]" doc:"time that a token of the size takes"`
}

func (o *slackOptions) Make(seed uint64) Order {
	return LeastSlack{EDF: o.EDF, Size: o.size(seed), PerUnit: o.TokenTime}
}

// LeastSlack is EDF less the time that the request takes: the request that must begin first comes first. It uses the
// whole request, without regard to progress. If progress made a request less urgent, two that do not fit into the pool
// together could preempt each other endlessly.
type LeastSlack struct {
	EDF
	Size
	// PerUnit is the time for a unit of the size.
	PerUnit clock.Duration
}

var _ Order = LeastSlack{}

// Validate reports what is wrong with its parts.
func (o LeastSlack) Validate() error {
	if o.PerUnit < 0 || o.PerUnit > clock.Second {
		return fmt.Errorf("least slack: %v for a unit of size is not allowed (want 0 to 1 s)", o.PerUnit)
	}
	return errors.Join(o.EDF.Validate(), o.Size.Validate())
}

// Key implements [Order]: the latest instant at which the request could begin.
func (o LeastSlack) Key(w *Waiting) int64 {
	const most = 1 << 61
	need := min(o.Whole(w), most/max(1, int64(o.PerUnit))) * int64(o.PerUnit)
	return o.EDF.Key(w) - need
}

// ageing is an option of orders in which requests can starve.
type ageing struct {
	Ageing clock.Duration `json:"ageing" range:"(0,3600]" doc:"wait that counts as one token, or one priority, less"`
}

// aged returns the order with ageing, if that is given.
func (a *ageing) aged(o Order) Order {
	if a.Ageing == 0 {
		return o
	}
	return Aged{Order: o, Per: a.Ageing}
}

// Aged prevents starvation: each Per of time since its arrival improves the key of a request by 1, so that in the end
// it comes before any new request. Keys that differ by k are worth k·Per of waiting. As all requests age equally, the
// order of two requests does not change while they wait. Time counts in microseconds.
type Aged struct {
	Order
	Per clock.Duration
}

var _ Order = Aged{}

// Validate reports a time that is too short or too long.
func (o Aged) Validate() error {
	if o.Order == nil {
		return errors.New("ageing: first come, first served needs none")
	}
	if _, ok := o.Order.(Fair); ok {
		return errors.New("ageing: a fair order needs no ageing")
	}
	if o.Per < clock.Microsecond || o.Per > clock.Hour {
		return fmt.Errorf("ageing: %v is not allowed (want 1us to 1h)", o.Per)
	}
	return nil
}

// Key implements [Order].
func (o Aged) Key(w *Waiting) int64 {
	per := int64(o.Per / clock.Microsecond)
	most := int64(1<<62) / per
	key := min(max(o.Order.Key(w), -most), most)
	return key*per + w.Urgency.Arrival/int64(clock.Microsecond)
}
