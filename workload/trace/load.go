package trace

import (
	"fmt"
	"math"

	"clifftop/internal/faults"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Switch is on, off or automatic.
type Switch string

// Values of Switch. The zero value is Auto.
const (
	Auto Switch = "auto"
	On   Switch = "on"
	Off  Switch = "off"
)

// CapPolicy is the policy for requests that exceed the model's context.
type CapPolicy string

// Policies for long requests. The zero value drops them. The truncating policies also drop a request if one of its
// lengths alone fills the context.
const (
	DropLong       CapPolicy = "drop"
	TruncateInput  CapPolicy = "truncate-input"
	TruncateOutput CapPolicy = "truncate-output"
)

// Load selects a part of a trace and the load at which it is replayed. Steps apply in the order of the fields. The
// zero value replays the trace as it is, except for the correction of coarse clocks.
type Load struct {
	// From and To select a slice of the recorded time; its start becomes 0. A To of 0 means the end.
	From, To clock.Duration
	// WarmPrefix makes the rows before From available to fill the prefix cache, see [Transformed.Before].
	WarmPrefix bool
	// Classes keeps the rows of these classes; empty means all.
	Classes []string
	// Dequantise spreads rows over the ticks of a coarse recording clock; Auto does so if at least half of the rows
	// share a tick.
	Dequantise Switch
	// Scale multiplies the load. Below 1 it keeps a fraction of the sessions (or of the rows, if there are no
	// sessions); above 1 it superposes shifted copies of the trace. Times within sessions stay unchanged. 0 means
	// 1.
	Scale float64
	// Rate scales to this mean rate in rows per second. A trace without times gets Poisson arrivals of this rate.
	Rate float64
	// Speedup divides all times, including think times and the length of the day. 0 means 1.
	Speedup float64
	// Loop plays the trace this many times in sequence; the passes share no sessions and no prefixes. 0 means 1.
	Loop int32
	// Limit ends the trace after this many rows; 0 means no limit.
	Limit int64
	// MaxOutput cuts longer outputs, in tokens, as the limit that clients send with their requests; 0 means no limit.
	MaxOutput int32
	// MaxTotal is the longest input and output together in tokens, usually the model's context; 0 means no limit.
	MaxTotal int32
	Cap      CapPolicy
	// Duration is the time before which requests arrive; 0 means no limit.
	Duration clock.Duration
	// Seed determines which rows are kept and where in a tick a row falls.
	Seed uint64
	// AllowLargeScale permits factors above [LargeScale].
	AllowLargeScale bool
}

// LargeScale is the factor above which a scaled trace is no longer representative.
const LargeScale = 100

// validate returns all faults joined into one error.
func (l Load) validate() error {
	var list faults.List
	fault := func(key, format string, args ...any) {
		list.Add(&workload.FieldError{Key: "workload.trace." + key, Problem: fmt.Sprintf(format, args...)})
	}
	positive := func(key string, v float64) {
		if !(v >= 0) || math.IsInf(v, 0) {
			fault(key, "%v is not allowed (want more than 0)", v)
		}
	}
	positive("scale", l.Scale)
	positive("rate", l.Rate)
	positive("speedup", l.Speedup)
	if l.Scale != 0 && l.Rate != 0 {
		fault("rate", "rate and scale are given together (want one)")
	}
	if l.From < 0 || l.To < 0 || l.To != 0 && l.To <= l.From {
		fault("to", "the slice from %v to %v is empty (want to after from)", l.From, l.To)
	}
	if l.WarmPrefix && l.From == 0 {
		fault("warm_prefix", "needs rows before the slice (want from)")
	}
	if l.Loop < 0 {
		fault("loop", "%d is not allowed (want 1 or more)", l.Loop)
	}
	if l.Limit < 0 {
		fault("limit", "%d is not allowed (want 1 or more)", l.Limit)
	}
	switch l.Dequantise {
	case "", Auto, On, Off:
	default:
		fault("dequantise", "%q is not known (want auto, on or off)", l.Dequantise)
	}
	switch l.Cap {
	case "", DropLong, TruncateInput, TruncateOutput:
	default:
		fault("cap", "%q is not known (want drop, truncate-input or truncate-output)", l.Cap)
	}
	return list.Err()
}
