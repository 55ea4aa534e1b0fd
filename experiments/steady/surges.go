package steady

import (
	"math"
	"math/rand/v2"

	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/workload"
)

// Surges describe how the rate of a Cox process wanders, see [workload.Cox], and the system that has to follow.
type Surges struct {
	Sigma float64 `json:"sigma"`
	Rho   float64 `json:"rho"`
	StepS float64 `json:"step_s"`
	// IdleS and ServiceS are how long a request takes on an idle system, and at saturation without waiting, in seconds.
	IdleS    float64 `json:"idle_s"`
	ServiceS float64 `json:"service_s"`
}

// surges are those of the arrivals of a setup; nil if their rate does not wander.
func (s *Saturation) surges(u *scenario.Setup) *Surges {
	if a := u.Traffic.Spec.Arrivals; len(a) == 1 && a[0].Process == "cox" {
		return &Surges{Sigma: a[0].Sigma, Rho: a[0].Rho, StepS: a[0].Step.Seconds(), IdleS: s.Idle, ServiceS: s.Service}
	}
	return nil
}

// wait is the mean time in seconds that requests wait because the rate of some steps is above saturation. A run with
// few such steps, or none, has seen little of it, and its batches cannot tell.
//
// Requests are a fluid: they arrive at the rate r of the step, and n of them in the system are completed at the rate
// n/S(n), where S(n) rises in proportion from the time on an idle system to that at saturation. What is above the
// number at saturation waits. A wait of most or longer is infinite.
func (g *Surges) wait(rate, saturation, most float64) float64 {
	const (
		steps  = 500_000
		beyond = 5  // standard deviations; no step is so far out
		near   = .8 // of saturation: below it the system follows the rate at once
		parts  = 60 // of a step
	)
	if rate*math.Exp(beyond*g.Sigma) < saturation {
		return 0
	}
	course := workload.Cox{PerSecond: rate, Sigma: g.Sigma, Rho: g.Rho}.Course(rand.NewPCG(1, 0))
	full := saturation * g.ServiceS
	slope := (g.ServiceS - g.IdleS) / full
	n, arrived, waited, dt := 0.0, 0.0, 0.0, g.StepS/parts
	enough := most * rate * g.StepS * steps
	for range steps {
		if waited >= enough {
			return math.Inf(1)
		}
		r := course()
		arrived += r * g.StepS
		settled := r * g.IdleS / (1 - r*slope)
		if n <= full && r < near*saturation {
			n = settled
			continue
		}
		for range parts {
			before := n
			n += dt * (r - min(n, full)/(g.IdleS+slope*min(n, full)))
			switch { // a part may be longer than the system takes to follow
			case r < saturation && (before < settled) != (n < settled):
				n = settled
			case r >= saturation && before < full:
				n = min(n, full+dt*(r-saturation))
			}
			waited += r * dt * max(0, (before+n)/2-full) / saturation
		}
	}
	return waited / arrived
}

// allow widens the intervals of the mean times that contain the wait of surges, upwards.
func (c *Case) allow(sum *report.Summary) {
	if c.Surges == nil || c.Rates == nil || c.overloaded() {
		return
	}
	for _, path := range []string{"latency_ms.ttft.mean", "latency_ms.e2e.mean", "latency_ms.queue.mean"} {
		ci, ok := sum.CI95[path]
		if !ok {
			continue
		}
		if c.surgeWait == nil {
			wait := c.Surges.wait(c.Rate, c.Rates.LowRequestsPerS, math.Inf(1)) // may be infinite
			c.surgeWait = &wait
		}
		ms := 1000 * *c.surgeWait
		sum.CI95[path] = [2]float64{ci[0], ci[1] + ms}
	}
}
