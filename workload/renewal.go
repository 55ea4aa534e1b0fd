package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/sim/clock"
)

// constantGaps sends a request every 1/PerSecond seconds, the first at 0.
type constantGaps struct{ PerSecond float64 }

func (c constantGaps) Rate() float64 { return c.PerSecond }

// Start starts at 0.
func (c constantGaps) Start(_, _ uint64) Arrivals { return &constant{rate: c.PerSecond} }

type constant struct{ rate, sent float64 }

// Next multiplies instead of adding, so that rounding errors do not accumulate.
func (c *constant) Next() clock.Time {
	at := clock.Time(clock.FromSeconds(c.sent / c.rate))
	c.sent++
	return at
}

// Poisson sends requests with independent exponential gaps.
type Poisson struct{ PerSecond float64 }

// Rate returns PerSecond.
func (p Poisson) Rate() float64 { return p.PerSecond }

// Start starts at 0 with a gap. The same seed at another rate gives the same gaps, scaled.
func (p Poisson) Start(seed, entity uint64) Arrivals {
	a := &poisson{mean: 1 / p.PerSecond}
	a.rng = rand.New(arrivalRNG(seed, entity))
	return a
}

type poisson struct {
	rng  *rand.Rand
	mean float64 // gap, seconds
	at   clock.Time
}

func (p *poisson) Next() clock.Time {
	p.at = p.at.Add(gap(p.rng.ExpFloat64() * p.mean))
	return p.at
}

// gammaRenewal sends requests with independent gamma gaps of coefficient of variation CV; above 1 they cluster. It
// matches the histogram of gaps of bursty traffic but not its bursts of many requests.
type gammaRenewal struct{ PerSecond, CV float64 }

func (g gammaRenewal) Rate() float64 { return g.PerSecond }

// Start starts at 0 with a gap.
func (g gammaRenewal) Start(seed, entity uint64) Arrivals {
	law := gamma{Mean: 1 / g.PerSecond, CV: g.CV}
	return &renewal{gaps: law.dist(arrivalRNG(seed, entity))}
}

// weibullRenewal sends requests with independent Weibull gaps.
type weibullRenewal struct{ PerSecond, Shape float64 }

func (w weibullRenewal) Rate() float64 { return w.PerSecond }

// Start starts at 0 with a gap.
func (w weibullRenewal) Start(seed, entity uint64) Arrivals {
	law := weibullOf(1/w.PerSecond, w.Shape)
	return &renewal{gaps: distuv.Weibull{K: law.Shape, Lambda: law.Scale, Src: arrivalRNG(seed, entity)}}
}

// renewal adds up independent gaps in seconds.
type renewal struct {
	gaps distuv.Rander
	at   clock.Time
}

func (r *renewal) Next() clock.Time {
	r.at = r.at.Add(gap(r.gaps.Rand()))
	return r.at
}

// allAtOnce sends every request at 0, as an offline batch does.
type allAtOnce struct{}

func (allAtOnce) Rate() float64 { return math.Inf(1) }

// Start starts at 0.
func (allAtOnce) Start(_, _ uint64) Arrivals { return allAtOnce{} }

// Next always returns 0.
func (allAtOnce) Next() clock.Time { return 0 }

func arrivalRNG(seed, entity uint64) *RNG {
	s := NewRNG(seed, purposeArrivals)
	s.Seek(entity, 0)
	return s
}

var (
	_ process = constantGaps{}
	_ process = Poisson{}
	_ process = gammaRenewal{}
	_ process = weibullRenewal{}
	_ process = allAtOnce{}
)
