// Package autoscale holds rules that decide how many replicas there are, one file each.
//
// What a rule knows has come a long way: an engine's gauge is read by a scrape every so often, the rule takes the last
// value or the mean of a window, and it looks only when its own loop turns. The delays add up, and a replica that is
// started then takes its time too.
package autoscale

import (
	"math"

	"clifftop/sim/clock"
)

// Policy decides how many replicas there should be. It may keep state, and belongs to one fleet.
type Policy interface {
	// Turn returns how many replicas it wants, and when it wants to be asked next, which is later than s.Now. It is
	// first asked at 0. The fleet keeps to its own bounds, and replicas start and end in their own time.
	Turn(s *State) (replicas int, next clock.Time)
	// Validate reports every fault of the parameters; least is the least number of replicas.
	Validate(least int) error
}

// State is what a policy learns at its turn.
type State struct {
	Now clock.Time
	// Wanted is the number of replicas that were asked for so far, and Ready that of them which serve.
	Wanted, Ready int
	// Least is the least number of replicas that the fleet has.
	Least int
	// Load is the metric that the fleet scales by, as it was scraped.
	Load *History
}

// History is the values of a metric at its scrapes, as far back as somebody may ask.
type History struct {
	samples []Sample // the oldest first
	keep    clock.Duration
}

// Sample is the metric's sum over the replicas that serve, as of the instant At.
type Sample struct {
	At  clock.Time
	Sum float64
}

// NewHistory keeps samples for so long.
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
	h.samples = append(h.samples, Sample{at, sum})
}

// Mean is the mean of the samples of a window that ends at an instant, or the last one where the window is 0. ok is
// false where there is none.
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

// loop is a loop that turns every so often, from a phase on.
type loop struct {
	every, phase clock.Duration
}

// due reports whether the loop turns at an instant.
func (l loop) due(now clock.Time) bool {
	since := now.Sub(clock.Time(0)) - l.phase
	return since >= 0 && since%l.every == 0
}

// next is its next turn after an instant.
func (l loop) next(now clock.Time) clock.Time {
	since := now.Sub(clock.Time(0)) - l.phase
	if since < 0 {
		return clock.Time(l.phase)
	}
	return clock.Time(l.phase + (since/l.every+1)*l.every)
}

// up is x rounded up, where a hair's breadth above a whole number is that number: quotients are not exact.
func up(x float64) int {
	if x >= math.MaxInt32 {
		return math.MaxInt32
	}
	return int(math.Ceil(x - 1e-9*math.Max(1, x)))
}
