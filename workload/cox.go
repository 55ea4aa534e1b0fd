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
// The mean over an hour still varies by a tenth or more. Over scales the rates so that the mean over a part of the run
// is exactly PerSecond.
type Cox struct {
	PerSecond float64        // mean rate
	Sigma     float64        // standard deviation of the logarithm of the rate
	Rho       float64        // correlation of that logarithm from one step to the next
	Step      clock.Duration // length of a step
	// Over is the length of a window over which the mean is exact, and From its start; the traffic before it has the
	// window's scale. Each repeats the window. 0 means that the mean is exact only in expectation.
	From, Over clock.Duration
	Each       bool
}

// Rate returns PerSecond.
func (c Cox) Rate() float64 { return c.PerSecond }

// Start draws the rate of the first step.
func (c Cox) Start(seed, entity uint64) Arrivals {
	a := &cox{Cox: c, gaps: rand.New(arrivalRNG(seed, entity)), steps: c.course(seed, entity), scale: 1,
		window: clock.Never}
	if c.Over > 0 && c.Over/c.Step < maxCourse {
		a.ahead = c.course(seed, entity)
		a.window = clock.Time(c.From + c.Over)
		a.scale = 1 / a.ahead.mean(clock.Time(c.From), a.window)
	}
	a.enter(0)
	return a
}

// Course returns a function that gives the rate per second of one step after the other.
func (c Cox) Course(random rand.Source) func() float64 {
	x := &course{Cox: c, rng: rand.New(random), fresh: math.Sqrt(1 - c.Rho*c.Rho)}
	x.z = x.rng.NormFloat64()
	return func() float64 {
		x.next()
		return c.PerSecond * x.factor()
	}
}

type cox struct {
	Cox
	gaps   *rand.Rand
	steps  *course
	ahead  *course    // looks ahead to the end of the window; nil if the mean is not scaled
	window clock.Time // its end
	scale  float64    // makes the mean over the window exact
	rate   float64    // of this step, per second
	at     clock.Time
	end    clock.Time // of this step, or of the window
}

// maxCourse is the number of steps above which no scaling is needed.
const maxCourse = 1 << 20

// course is the course of the rate relative to PerSecond, step by step.
type course struct {
	Cox
	rng   *rand.Rand
	fresh float64 // √(1−Rho²)
	z     float64 // X/Sigma of this step
	step  int64   // its number
}

func (c Cox) course(seed, entity uint64) *course {
	steps := NewRNG(seed, purposeModulation)
	steps.Seek(entity, 0)
	x := &course{Cox: c, rng: rand.New(steps), fresh: math.Sqrt(1 - c.Rho*c.Rho)}
	x.z = x.rng.NormFloat64()
	return x
}

// at returns the relative rate at an instant, which is not before that of an earlier call, and the end of the step.
func (c *course) at(t clock.Time) (factor float64, end clock.Time) {
	for n := int64(clock.Duration(t) / c.Step); c.step < n; c.step++ {
		c.next()
	}
	return c.factor(), clock.Time(clock.Duration(c.step+1) * c.Step)
}

// next draws the next step.
func (c *course) next() { c.z = float64(c.Rho*c.z) + float64(c.fresh*c.rng.NormFloat64()) }

// factor is the relative rate of the step.
func (c *course) factor() float64 { return math.Exp(float64(c.Sigma*c.z) - float64(c.Sigma*c.Sigma)/2) }

// mean returns the mean relative rate from one instant to another.
func (c *course) mean(from, to clock.Time) float64 {
	sum := 0.0
	for t := from; t < to; {
		factor, end := c.at(t)
		end = min(end, to)
		sum += float64(factor * end.Sub(t).Seconds())
		t = end
	}
	return sum / to.Sub(from).Seconds()
}

// enter begins a step, or what is left of it after the end of a window.
func (c *cox) enter(start clock.Time) {
	if start >= c.window && c.Each {
		c.window = c.window.Add(c.Over)
		c.scale = 1 / c.ahead.mean(start, c.window)
	}
	factor, end := c.steps.at(start)
	if c.Each {
		end = min(end, c.window)
	}
	c.rate, c.at, c.end = c.PerSecond*c.scale*factor, start, end
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
		c.enter(c.end)
	}
	return clock.Never
}

var _ process = Cox{}
