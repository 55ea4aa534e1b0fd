package autoscale

import (
	"errors"
	"fmt"

	"clifftop/sim/clock"
)

var knativeRule = Rule{
	Name:   "knative",
	Does:   "⌈concurrency / (target · utilization)⌉ with a panic window; it can scale to zero",
	Source: "Knative Serving, Autoscaling",
	New:    func() Options { return NewKnative(0) },
}

// Knative is the pod autoscaler of Knative Serving on concurrency: desired = ⌈mean over Window / target⌉ with target =
// Concurrency · Utilisation. When the mean over the last part of the window needs PanicThreshold times the ready
// replicas or more, it enters panic mode: until that has not happened for a whole Window, it follows the higher of both
// means and removes no replica. In one step it scales up to ScaleUp times the ready replicas, and down to 1/ScaleDown
// of them.
//
// When the mean is 0 it wants no replica after Grace. Source: knative.dev, Autoscaling, and pkg/autoscaler of Serving.
type Knative struct {
	// Concurrency is the number of requests that a replica may have at once.
	Concurrency float64

	Window      clock.Duration `json:"window" range:"(0,86400]" doc:"window of the metric's mean"`
	Utilisation float64        `json:"target_utilization" range:"(0,1]" doc:"part of the target that is aimed at"`

	PanicPart      float64 `json:"panic_window" range:"(0,1]" doc:"part of the window that shows a reason for panic"`
	PanicThreshold float64 `json:"panic_threshold" range:"(1,1000]" doc:"needed over ready replicas that start panic"`

	ScaleUp   float64 `json:"max_scale_up_rate" range:"(1,1e6]" doc:"most growth in one step, as a factor"`
	ScaleDown float64 `json:"max_scale_down_rate" range:"(1,1e6]" doc:"most reduction in one step, as a factor"`

	Grace clock.Duration `json:"scale_to_zero_grace_period" range:"[0,86400]" doc:"idle time before the last one goes"`

	// Tick is the period of the loop, Phase its first run.
	Tick  clock.Duration `json:"tick_interval" range:"(0,3600]" doc:"period of the loop"`
	Phase clock.Duration

	panics  bool
	since   clock.Time // the last instant with a reason for panic mode
	highest int        // highest desired number in panic mode
	idle    clock.Time // since when no replica is needed
	sleepy  bool
}

var _ Policy = (*Knative)(nil)

// NewKnative is a Knative with its defaults.
func NewKnative(concurrency float64) *Knative {
	return &Knative{
		Concurrency: concurrency, Utilisation: 0.7, Window: 60 * clock.Second, PanicPart: 0.1, PanicThreshold: 2,
		ScaleUp: 1000, ScaleDown: 2, Grace: 30 * clock.Second, Tick: 2 * clock.Second,
	}
}

// Make implements [Options].
func (p *Knative) Make(target float64) Policy { made := *p; made.Concurrency = target; return &made }

// Defaults implements [Options].
func (*Knative) Defaults() Defaults {
	return Defaults{Metric: Concurrency, OnlyMetric: true, Scrape: clock.Second}
}

// Longest implements [Options].
func (p *Knative) Longest() clock.Duration { return p.Window }

// Validate implements [Policy].
func (p *Knative) Validate(int) error {
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("knative: "+format, args...))
		}
	}
	want(p.Concurrency > 0, "concurrency: %v is not allowed (want more than 0)", p.Concurrency)
	want(p.Utilisation > 0 && p.Utilisation <= 1, "utilisation: %v is not allowed (want more than 0, at most 1)",
		p.Utilisation)
	want(p.Window > 0 && p.Tick > 0 && p.Grace >= 0 && p.Phase >= 0,
		"a window of %v, a tick of %v or a grace of %v is not allowed", p.Window, p.Tick, p.Grace)
	want(p.PanicPart > 0 && p.PanicPart <= 1,
		"panic window: %v of the window is not allowed (want more than 0, at most 1)", p.PanicPart)
	want(p.PanicThreshold > 1, "panic threshold: %v is not allowed (want more than 1)", p.PanicThreshold)
	want(p.ScaleUp > 1 && p.ScaleDown > 1, "rates of %v and %v are not allowed (want more than 1)", p.ScaleUp,
		p.ScaleDown)
	return errors.Join(faults...)
}

// Turn implements [Policy].
func (p *Knative) Turn(s *State) (int, clock.Time) {
	next := loop{p.Tick, p.Phase}.next(s.Now)
	stable, ok := s.Load.Mean(s.Now, p.Window)
	if !ok || s.Now < clock.Time(p.Phase) {
		return s.Wanted, next
	}
	short, _ := s.Load.Mean(s.Now, max(1, clock.Duration(float64(p.Window)*p.PanicPart)))
	return p.sleep(s, p.wants(s, p.replicas(stable), p.replicas(short))), next
}

func (p *Knative) replicas(concurrency float64) int {
	return up(concurrency / (p.Concurrency * p.Utilisation))
}

// wants combines the desired numbers of the stable and the panic window.
func (p *Knative) wants(s *State, stable, short int) int {
	ready := max(s.Ready, 1)
	most, least := up(p.ScaleUp*float64(ready)), 0
	if s.Ready > 0 {
		least = int(float64(s.Ready) / p.ScaleDown)
	}
	over := float64(short) >= p.PanicThreshold*float64(ready)
	stable, short = min(max(stable, least), most), min(max(short, least), most)
	switch {
	case over && !p.panics:
		p.panics, p.since, p.highest = true, s.Now, s.Wanted
	case over:
		p.since = s.Now
	case p.panics && s.Now.Sub(p.since) >= p.Window:
		p.panics = false
	}
	if !p.panics {
		return stable
	}
	p.highest = max(p.highest, stable, short)
	return p.highest
}

// sleep keeps the last replica until none has been needed for Grace.
func (p *Knative) sleep(s *State, n int) int {
	if n > 0 {
		p.sleepy = false
		return n
	}
	if !p.sleepy {
		p.sleepy, p.idle = true, s.Now
	}
	if s.Now.Sub(p.idle) < p.Grace {
		return min(s.Wanted, 1)
	}
	return 0
}
