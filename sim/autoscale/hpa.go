package autoscale

import (
	"errors"
	"fmt"
	"math"

	"clifftop/sim/clock"
)

var hpaRule = Rule{
	Name:   "hpa",
	Does:   "⌈replicas · metric / target⌉",
	Source: "Kubernetes, Horizontal Pod Autoscaling",
	New:    func() Options { return NewHPA(0) },
}

// HPA is Kubernetes' horizontal pod autoscaler on a metric of the pods: every Loop, desired = ⌈ready · ratio⌉ where
// ratio is the mean over the ready replicas divided by Target. Nothing changes while the ratio is within Tolerance of
// 1. When the ratio is above 1, replicas that are not ready count as idle.
//
// In one Period it adds as many replicas as there are, or AddAtOnce if that is more. It removes any number, but not
// below the highest desired number of the last Stabilisation. Source: kubernetes.io, Horizontal Pod Autoscaling,
// algorithm details and default behavior.
type HPA struct {
	// Target is the metric's target value per replica.
	Target float64

	Window clock.Duration `json:"window,omitempty" range:"(0,86400]" doc:"window of the metric's mean"`
	// Loop is the period of the loop, Phase its first run.
	Loop  clock.Duration `json:"sync_period" range:"(0,3600]" doc:"period of the HPA's loop"`
	Phase clock.Duration

	Tolerance float64 `json:"tolerance" range:"[0,1)" doc:"deviation of metric/target from 1 that changes nothing"`

	AddAtOnce int `json:"scale_up_pods" range:"[1,4096]" doc:"replicas that may always be added in a scale_up_period"`

	Period clock.Duration `json:"scale_up_period" range:"(0,3600]" doc:"period of scale_up_pods"`

	Stabilisation clock.Duration `json:"stabilization_window" range:"[0,3600]" doc:"how long higher counts are kept"`

	desires []count
	added   []count
}

// count is a number of replicas as of an instant.
type count struct {
	at clock.Time
	n  int
}

var _ Policy = (*HPA)(nil)

// NewHPA is an HPA with Kubernetes' defaults.
func NewHPA(target float64) *HPA {
	return &HPA{
		Target: target, Loop: 15 * clock.Second, Tolerance: 0.1, AddAtOnce: 4, Period: 15 * clock.Second,
		Stabilisation: 300 * clock.Second,
	}
}

// Make implements [Options].
func (p *HPA) Make(target float64) Policy { made := *p; made.Target = target; return &made }

// Defaults implements [Options].
func (*HPA) Defaults() Defaults { return Defaults{Metric: Waiting, Scrape: 15 * clock.Second} }

// Longest implements [Options].
func (p *HPA) Longest() clock.Duration { return p.Window }

// Validate implements [Policy].
func (p *HPA) Validate(least int) error {
	faults := p.faults("hpa")
	if least < 1 {
		faults = append(faults, errors.New("hpa: it cannot scale to zero (want min 1 or more, or keda or knative)"))
	}
	return errors.Join(faults...)
}

func (p *HPA) faults(name string) (faults []error) {
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(name+": "+format, args...))
		}
	}
	want(p.Target > 0 && !math.IsInf(p.Target, 0), "target: %v is not allowed (want more than 0)", p.Target)
	want(p.Loop > 0 && p.Period > 0, "a loop of %v with a period of %v is not allowed (want more than 0)", p.Loop,
		p.Period)
	want(p.Window >= 0 && p.Phase >= 0 && p.Stabilisation >= 0, "a time is negative")
	want(p.Tolerance >= 0 && p.Tolerance < 1, "tolerance: %v is not allowed (want 0 or more, less than 1)", p.Tolerance)
	want(p.AddAtOnce >= 1, "add at once: %d is not allowed (want 1 or more)", p.AddAtOnce)
	return faults
}

// Turn implements [Policy].
func (p *HPA) Turn(s *State) (int, clock.Time) {
	l := loop{p.Loop, p.Phase}
	sum, ok := s.Load.Mean(s.Now, p.Window)
	if !ok || s.Wanted == 0 || !l.due(s.Now) {
		return s.Wanted, l.next(s.Now)
	}
	return p.behave(s, p.desire(s, sum)), l.next(s.Now)
}

// desire is ⌈replicas · metric/target⌉.
func (p *HPA) desire(s *State, sum float64) int {
	ready := float64(s.Ready)
	if s.Ready == 0 {
		return s.Wanted // there is no replica to measure
	}
	ratio := sum / ready / p.Target
	if math.Abs(ratio-1) <= p.Tolerance {
		return s.Wanted
	}
	if ratio > 1 && s.Ready < s.Wanted {
		all := float64(s.Wanted)
		if ratio = sum / all / p.Target; ratio <= 1+p.Tolerance {
			return s.Wanted
		}
		return up(all * ratio)
	}
	return up(ready * ratio)
}

// behave limits how fast the number of replicas follows the desired one.
func (p *HPA) behave(s *State, desire int) int {
	p.desires = since(append(p.desires, count{s.Now, desire}), s.Now.Add(-p.Stabilisation))
	highest := desire
	for _, d := range p.desires {
		highest = max(highest, d.n)
	}
	n := s.Wanted
	switch {
	case desire > n:
		p.added = since(p.added, s.Now.Add(-p.Period)+1)
		before := n // a period ago
		for _, a := range p.added {
			before -= a.n
		}
		n = max(n, min(desire, max(2*before, before+p.AddAtOnce)))
		if n > s.Wanted {
			p.added = append(p.added, count{s.Now, n - s.Wanted})
		}
	case highest < n:
		n = highest
	}
	return n
}

// since drops what is older than an instant.
func since(list []count, at clock.Time) []count {
	for len(list) > 0 && list[0].at < at {
		list = list[1:]
	}
	return list
}
