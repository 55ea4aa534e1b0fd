// Package autoscale has the autoscalers: rules that decide how many replicas run, one file each.
//
// The metric that an autoscaler sees is delayed: an engine's gauge is scraped periodically, the rule uses the last
// value or the mean of a window, and it decides only when its own loop runs. The delays add up, and a new replica takes
// time to start.
package autoscale

import (
	"math"

	"clifftop/sim/clock"
)

// Policy decides how many replicas there should be. It may keep state, and belongs to one fleet.
type Policy interface {
	// Turn returns the wanted number of replicas, and the next instant at which it is called, which is later than
	// s.Now. The first call is at 0. The fleet applies its own limits; replicas take time to start and stop.
	Turn(s *State) (replicas int, next clock.Time)
	// Validate reports every fault of the parameters; least is the least number of replicas.
	Validate(least int) error
}

// State is what a policy sees at a call.
type State struct {
	Now clock.Time
	// Wanted is the number of replicas that were wanted so far, and Ready how many of them are ready.
	Wanted, Ready int
	// Least is the smallest number of replicas of the fleet.
	Least int
	// Load is the scraped metric that the fleet scales by.
	Load *History
}

// History is the scraped values of a metric, kept for a limited time.
type History struct {
	samples []sample // the oldest first
	keep    clock.Duration
}

// sample is the metric's sum over the ready replicas at the instant At.
type sample struct {
	At  clock.Time
	Sum float64
}

// NewHistory returns a history that keeps samples for a duration.
func NewHistory(keep clock.Duration) *History { return &History{keep: keep} }

// Add adds a sample that is later than those before.
func (h *History) Add(at clock.Time, sum float64) {
	old := 0
	for old < len(h.samples) && h.samples[old].At < at.Add(-h.keep) {
		old++
	}
	if old > len(h.samples)/2 {
		h.samples = append(h.samples[:0], h.samples[old:]...)
	}
	h.samples = append(h.samples, sample{at, sum})
}

// Mean is the mean of the samples of a window that ends at an instant, or the last sample if the window is 0. ok is
// false if there is none.
func (h *History) Mean(now clock.Time, window clock.Duration) (mean float64, ok bool) {
	n := len(h.samples)
	if n == 0 {
		return 0, false
	}
	if window == 0 {
		return h.samples[n-1].Sum, true
	}
	sum, count := 0.0, 0
	for i := n - 1; i >= 0 && h.samples[i].At > now.Add(-window); i-- {
		sum += h.samples[i].Sum
		count++
	}
	return sum / float64(max(count, 1)), count > 0
}

// loop runs periodically, from a phase on.
type loop struct {
	every, phase clock.Duration
}

// due reports whether the loop runs at an instant.
func (l loop) due(now clock.Time) bool {
	since := now.Sub(clock.Time(0)) - l.phase
	return since >= 0 && since%l.every == 0
}

// next is the next instant after at at which it runs.
func (l loop) next(now clock.Time) clock.Time {
	since := now.Sub(clock.Time(0)) - l.phase
	if since < 0 {
		return clock.Time(l.phase)
	}
	return clock.Time(l.phase + (since/l.every+1)*l.every)
}

// up is ceil with a relative tolerance of 1e-9, because quotients are not exact.
func up(x float64) int {
	if x >= math.MaxInt32 {
		return math.MaxInt32
	}
	return int(math.Ceil(x - 1e-9*math.Max(1, x)))
}
