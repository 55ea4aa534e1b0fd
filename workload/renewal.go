package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/sim/clock"
)

// Constant sends a request every 1/PerSecond seconds, the first at 0.
type Constant struct{ PerSecond float64 }

// Rate returns PerSecond.
func (c Constant) Rate() float64 { return c.PerSecond }

// Start starts at 0.
func (c Constant) Start(_, _ uint64) Arrivals { return &constant{rate: c.PerSecond} }

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

// GammaRenewal sends requests with independent gamma gaps of coefficient of variation CV; above 1 they cluster. It
// matches the histogram of gaps of bursty traffic but not its bursts of many requests.
type GammaRenewal struct{ PerSecond, CV float64 }

// Rate returns PerSecond.
func (g GammaRenewal) Rate() float64 { return g.PerSecond }

// Start starts at 0 with a gap.
func (g GammaRenewal) Start(seed, entity uint64) Arrivals {
	law := Gamma{Mean: 1 / g.PerSecond, CV: g.CV}
	return &renewal{gaps: law.dist(arrivalRNG(seed, entity))}
}

// WeibullRenewal sends requests with independent Weibull gaps.
type WeibullRenewal struct{ PerSecond, Shape float64 }

// Rate returns PerSecond.
func (w WeibullRenewal) Rate() float64 { return w.PerSecond }

// Start starts at 0 with a gap.
func (w WeibullRenewal) Start(seed, entity uint64) Arrivals {
	law := WeibullOf(1/w.PerSecond, w.Shape)
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

// AllAtOnce sends every request at 0, as an offline batch does.
type AllAtOnce struct{}

// Rate returns +Inf.
func (AllAtOnce) Rate() float64 { return math.Inf(1) }

// Start starts at 0.
func (AllAtOnce) Start(_, _ uint64) Arrivals { return AllAtOnce{} }

// Next always returns 0.
func (AllAtOnce) Next() clock.Time { return 0 }

func arrivalRNG(seed, entity uint64) *RNG {
	s := NewRNG(seed, purposeArrivals)
	s.Seek(entity, 0)
	return s
}

var (
	_ Process = Constant{}
	_ Process = Poisson{}
	_ Process = GammaRenewal{}
	_ Process = WeibullRenewal{}
	_ Process = AllAtOnce{}
)
