package workload

import (
	"math"
	"math/rand/v2"

	"clifftop/sim/clock"
)

// Cox is a Poisson process with a random rate. In step k the rate is
//
//	λ_k = PerSecond · exp(X_k − Sigma²/2),  X_k = Rho·X_{k−1} + Sigma·√(1−Rho²)·Z_k
//
// with Z standard normal and X stationary, so that the mean rate is PerSecond. Chat traffic is of this kind:
// Poisson within a minute, with a slow drift that renewal processes lack.
//
// The mean over an hour still varies by a tenth or more. Over scales the rates so that their mean over the length
// of the run is exactly PerSecond.
type Cox struct {
	PerSecond float64        // mean rate
	Sigma     float64        // standard deviation of the logarithm of the rate
	Rho       float64        // correlation of that logarithm from one step to the next
	Step      clock.Duration // length of a step
	Over      clock.Duration // length of the run; 0 means that the mean is exact only in expectation
}

// Rate returns PerSecond.
func (c Cox) Rate() float64 { return c.PerSecond }

// Start draws the rate of the first step.
func (c Cox) Start(seed, entity uint64) Arrivals {
	steps := NewRNG(seed, purposeModulation)
	steps.Seek(entity, 0)
	a := &cox{
		Cox: c, gaps: rand.New(arrivalRNG(seed, entity)), steps: rand.New(steps),
		fresh: math.Sqrt(1 - c.Rho*c.Rho), scale: 1,
	}
	if c.Over > 0 && c.Over/c.Step < maxCourse {
		a.scale = 1 / a.meanOver()
		steps.Seek(entity, 0)
	}
	a.z = a.steps.NormFloat64()
	a.enter(0)
	return a
}

type cox struct {
	Cox
	gaps, steps *rand.Rand
	fresh       float64 // √(1−Rho²)
	z           float64 // X/Sigma of this step
	scale       float64 // makes the mean over the run exact
	rate        float64 // of this step, per second
	at, end     clock.Time
}

// maxCourse is the number of steps above which no scaling is needed.
const maxCourse = 1 << 20

// meanOver returns the mean rate over the run relative to PerSecond. It consumes the draws of the steps.
func (c *cox) meanOver() float64 {
	var sum float64
	z := c.steps.NormFloat64()
	for left := c.Over; ; left -= c.Step {
		sum += float64(c.factor(z) * min(left, c.Step).Seconds())
		if left <= c.Step {
			return sum / c.Over.Seconds()
		}
		z = float64(c.Rho*z) + float64(c.fresh*c.steps.NormFloat64())
	}
}

func (c *cox) factor(z float64) float64 {
	return math.Exp(float64(c.Sigma*z) - float64(c.Sigma*c.Sigma)/2)
}

func (c *cox) enter(start clock.Time) {
	c.rate = c.PerSecond * c.scale * c.factor(c.z)
	c.at, c.end = start, start.Add(c.Step)
}

// Next spends a unit exponential at the rate of each step in turn (time change of a Poisson process).
func (c *cox) Next() clock.Time {
	need := c.gaps.ExpFloat64()
	for c.at < clock.Time(clock.MaxRun) {
		wait := gap(need / c.rate)
		if wait < c.end.Sub(c.at) {
			c.at = c.at.Add(wait)
			return c.at
		}
		need -= float64(c.rate * c.end.Sub(c.at).Seconds())
		need = max(need, 0)
		c.z = float64(c.Rho*c.z) + float64(c.fresh*c.steps.NormFloat64())
		c.enter(c.end)
	}
	return clock.Never
}

var _ Process = Cox{}
