package trace

import (
	"fmt"
	"math"

	"clifftop/internal/faults"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Switch is on, off, or automatic.
type Switch string

// Settings of a Switch. The zero value is Auto.
const (
	Auto Switch = "auto"
	On   Switch = "on"
	Off  Switch = "off"
)

// CapPolicy says what becomes of a request that is longer than the model's context.
type CapPolicy string

// Policies for long requests. The zero value drops them, as the truncating ones do where one length
// alone fills the context.
const (
	DropLong       CapPolicy = "drop"
	TruncateInput  CapPolicy = "truncate-input"
	TruncateOutput CapPolicy = "truncate-output"
)

// Load says how a trace is cut and at what load it is replayed. The steps are taken in the order of
// the fields. The zero value replays it as it is, coarse clocks aside.
type Load struct {
	// From and To cut a slice of the recorded time, which then begins at 0; To 0 is the end.
	From, To clock.Duration
	// WarmPrefix says that the rows before From are to fill the prefix cache, see [Transformed.Before].
	WarmPrefix bool
	// Classes keeps the rows of these classes; none are all.
	Classes []string
	// Dequantise spreads rows over the ticks of a coarse recording clock; by itself where at least
	// half of the rows share a tick.
	Dequantise Switch
	// Scale multiplies the load: below 1 a part of the sessions (or of the rows, where there are no
	// sessions) is kept, above 1 copies of the trace are superposed, shifted against each other.
	// Human time scales stay as they are. 0 is 1.
	Scale float64
	// Rate scales to this mean rate, rows per second, instead of by a factor. A trace without times gets
	// Poisson arrivals of this rate.
	Rate float64
	// Speedup divides all times, think times and the length of the day with them. 0 is 1.
	Speedup float64
	// Loop plays the trace so many times, one after another; the passes share no sessions and no prefixes.
	// 0 is 1.
	Loop int32
	// Limit ends the trace after this many rows; 0 is no limit.
	Limit int64
	// MaxTotal is the longest input and output together, usually the model's context; 0 is no limit.
	MaxTotal int32
	Cap      CapPolicy
	// Duration ends the traffic: requests arrive before it; 0 is no limit.
	Duration clock.Duration
	// Seed decides what is kept and where in a tick a row falls.
	Seed uint64
	// AllowLargeScale permits factors above [LargeScale].
	AllowLargeScale bool
}

// LargeScale is the factor above which a trace says little about the traffic that it would become.
const LargeScale = 100

// validate reports all faults.
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
		fault("to", "a slice from %v to %v is empty (want to after from)", l.From, l.To)
	}
	if l.WarmPrefix && l.From == 0 {
		fault("warm_prefix", "there is nothing before the beginning of the trace (want from)")
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
