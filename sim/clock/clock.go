// Package clock defines simulated time: integer picoseconds since the start of a run.
//
// Integers make a run exact: the same scenario gives the same instants on every platform, and a run of many iterations
// can be split anywhere without changing its end. Iteration times are a thousand times finer, in femtoseconds;
// [Progression] carries the remainder.
package clock

import (
	"fmt"
	"math"
	"time"
)

// Time is an instant: picoseconds since the start of the run. The range is 106 days.
type Time int64

// Duration is a length of time in picoseconds.
type Duration int64

// Lengths of time. A femtosecond is a thousandth of a [Picosecond] and has no Duration of its own.
const (
	Picosecond  Duration = 1
	Nanosecond           = 1000 * Picosecond
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
	Minute               = 60 * Second
	Hour                 = 60 * Minute
	Day                  = 24 * Hour
)

// FemtosPerPico is the number of femtoseconds in a picosecond.
const FemtosPerPico = 1000

// Never is later than every instant of a run.
const Never = Time(math.MaxInt64)

// MaxRun is the longest run that is accepted; it leaves room below [Never] for instants a little
// past the end.
const MaxRun = 100 * Day

// FromSeconds rounds a number of seconds to the nearest picosecond. Values outside the range
// of a run, and NaN, saturate.
func FromSeconds(s float64) Duration {
	ps := math.Round(s * float64(Second))
	switch {
	case math.IsNaN(ps):
		return 0
	case ps >= math.MaxInt64:
		return math.MaxInt64
	case ps <= math.MinInt64:
		return math.MinInt64
	}
	return Duration(ps)
}

// Seconds is the duration in seconds.
func (d Duration) Seconds() float64 { return float64(d) / float64(Second) }

// Milliseconds is the duration in milliseconds.
func (d Duration) Milliseconds() float64 { return float64(d) / float64(Millisecond) }

// String prints the duration in the usual units, to the nanosecond.
func (d Duration) String() string {
	return time.Duration(d / Nanosecond).String()
}

// Add returns t+d, or [Never] where that would overflow.
func (t Time) Add(d Duration) Time {
	if s := t + Time(d); d < 0 || s >= t {
		return s
	}
	return Never
}

// Sub returns t-u.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// Seconds is the instant in seconds since the start of the run.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// String prints the instant in seconds, to the picosecond.
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return fmt.Sprintf("%d.%012ds", t/Time(Second), t%Time(Second))
}
