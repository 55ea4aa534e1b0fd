package autoscale

import (
	"errors"
	"fmt"
	"math"

	"clifftop/sim/clock"
)

var kedaRule = Rule{
	Name:   "keda",
	Does:   "hpa on the sum of the metric; it can scale to zero",
	Source: "KEDA, Scaling Deployments",
	New:    func() Options { return NewKEDA(0) },
}

// KEDA starts the first replica of a fleet and removes the last one, and leaves the rest to an [HPA] with the metric
// that it provides: desired = ⌈metric/Target⌉ of the sum over all replicas, unless the mean is within the tolerance of
// the target.
//
// It polls the metric every Poll; the HPA uses the last poll. Above Activation it starts the first replica. If the
// metric has not been above Activation for Cooldown, and the fleet may scale to zero, it wants no replica. Source:
// keda.sh, Scaling Deployments and the ScaledObject specification.
type KEDA struct {
	HPA

	// Poll is the period of polling the metric, PollPhase the first poll.
	Poll      clock.Duration `json:"polling_interval" range:"(0,3600]" doc:"period of reading the metric"`
	PollPhase clock.Duration

	Cooldown clock.Duration `json:"cooldown_period" range:"[0,86400]" doc:"idle time before the last replica goes"`

	Activation float64 `json:"activation_threshold" range:"[0,1e9]" doc:"metric above which the first replica starts"`

	seen   float64
	polled bool
	active clock.Time // when it was last above Activation
}

var _ Policy = (*KEDA)(nil)

// NewKEDA is a KEDA with its defaults: it polls every 30 s and cools down for 300 s.
func NewKEDA(target float64) *KEDA {
	return &KEDA{HPA: *NewHPA(target), Poll: 30 * clock.Second, Cooldown: 300 * clock.Second}
}

// Make implements [Options].
func (p *KEDA) Make(target float64) Policy { made := *p; made.Target = target; return &made }

// Validate implements [Policy].
func (p *KEDA) Validate(least int) error {
	faults := p.faults("keda")
	if p.Poll <= 0 || p.Cooldown < 0 || p.PollPhase < 0 {
		faults = append(faults, fmt.Errorf("keda: a poll every %v and a cooldown of %v are not allowed (want more "+
			"than 0, and 0 or more)", p.Poll, p.Cooldown))
	}
	if p.Activation < 0 {
		faults = append(faults, fmt.Errorf("keda: activation: %v is negative", p.Activation))
	}
	return errors.Join(faults...)
}

// Turn implements [Policy].
func (p *KEDA) Turn(s *State) (int, clock.Time) {
	polls, loops := loop{p.Poll, p.PollPhase}, loop{p.Loop, p.Phase}
	n := s.Wanted
	if polls.due(s.Now) {
		n = p.look(s)
	}
	if n == s.Wanted && n > 0 && p.polled && loops.due(s.Now) {
		n = p.behave(s, p.wants(s))
	}
	return n, min(polls.next(s.Now), loops.next(s.Now))
}

// look polls the metric, and starts the first replica or removes the last one.
func (p *KEDA) look(s *State) int {
	sum, ok := s.Load.Mean(s.Now, p.Window)
	if !ok {
		return s.Wanted
	}
	p.seen, p.polled = sum, true
	switch {
	case sum > p.Activation:
		p.active = s.Now
		return max(s.Wanted, 1)
	case s.Now.Sub(p.active) >= p.Cooldown && s.Least == 0:
		return 0
	}
	return s.Wanted
}

// wants is the number of replicas that the HPA computes.
func (p *KEDA) wants(s *State) int {
	if mean := p.seen / float64(s.Wanted); math.Abs(mean/p.Target-1) <= p.Tolerance {
		return s.Wanted
	}
	return max(1, up(p.seen/p.Target))
}
