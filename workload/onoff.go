package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/sim/clock"
)

// Default spreads of the bursts and pauses of [OnOff], close to the Azure 2023 code trace: gaps get a coefficient of
// variation of about 15 (trace: 13), and counts in 1, 10 and 60 s a dispersion of 10, 54 and 152 (trace: 13, 72 and
// 167). Exponential lengths vary far less.
const (
	DefaultOnSigma  = 1.3
	DefaultOffSigma = 1.4
)

// OnOff sends requests in bursts with pauses between them, as in code completion. The lengths of bursts and pauses
// are lognormal; gaps inside bursts are gamma with coefficient of variation CV. A gap that exceeds its burst
// continues in the next one, which keeps the mean rate exact. The process starts in its stationary state.
type OnOff struct {
	PerSecond         float64        // mean rate over bursts and pauses
	OnMean, OffMean   clock.Duration // mean lengths of bursts and pauses
	CV                float64        // of the gaps inside a burst
	OnSigma, OffSigma float64        // standard deviations of the logarithms of the lengths
}

func (s Phase) onOff() OnOff {
	o := OnOff{PerSecond: s.Rate, OnMean: s.OnMean, OffMean: s.OffMean, CV: s.CV, OnSigma: s.OnSigma,
		OffSigma: s.OffSigma}
	if o.CV == 0 {
		o.CV = 1
	}
	if o.OnSigma == 0 {
		o.OnSigma = DefaultOnSigma
	}
	if o.OffSigma == 0 {
		o.OffSigma = DefaultOffSigma
	}
	return o
}

// Rate returns PerSecond.
func (o OnOff) Rate() float64 { return o.PerSecond }

// BurstRate returns the rate inside the bursts in requests per second.
func (o OnOff) BurstRate() float64 {
	return o.PerSecond * (o.OnMean.Seconds() + o.OffMean.Seconds()) / o.OnMean.Seconds()
}

// Start draws the phase at the start and its remaining length.
func (o OnOff) Start(seed, entity uint64) Arrivals {
	phases := NewRNG(seed, purposeModulation)
	phases.Seek(entity, 0)
	gaps := gamma{Mean: 1 / o.BurstRate(), CV: o.CV}
	a := &onOff{gaps: gaps.dist(arrivalRNG(seed, entity)), phases: rand.New(phases)}
	a.on, a.onSigma = logMean(o.OnMean, o.OnSigma), o.OnSigma
	a.off, a.offSigma = logMean(o.OffMean, o.OffSigma), o.OffSigma

	// A random moment falls into a long phase more often: its phase has the length-biased distribution,
	// lognormal again with mu raised by sigma², and the moment is uniform in it.
	on := o.OnMean.Seconds() / (o.OnMean.Seconds() + o.OffMean.Seconds())
	if a.phases.Float64() < on {
		a.left = gap(a.phases.Float64() * a.length(a.on+o.OnSigma*o.OnSigma, o.OnSigma))
	} else {
		rest := gap(a.phases.Float64() * a.length(a.off+o.OffSigma*o.OffSigma, o.OffSigma))
		a.at = a.at.Add(rest)
		a.left = gap(a.length(a.on, a.onSigma))
	}
	return a
}

// logMean returns the mu of a lognormal distribution with the given mean in seconds.
func logMean(mean clock.Duration, sigma float64) float64 {
	return math.Log(mean.Seconds()) - sigma*sigma/2
}

type onOff struct {
	gaps              distuv.Gamma
	phases            *rand.Rand
	on, off           float64 // mu of the lengths
	onSigma, offSigma float64
	at                clock.Time
	left              clock.Duration // of the burst
}

// length draws the length of a phase in seconds.
func (a *onOff) length(mu, sigma float64) float64 {
	return math.Exp(mu + float64(sigma*a.phases.NormFloat64()))
}

func (a *onOff) Next() clock.Time {
	wait := gap(a.gaps.Rand())
	for wait >= a.left {
		wait -= a.left
		a.at = a.at.Add(a.left).Add(gap(a.length(a.off, a.offSigma)))
		a.left = gap(a.length(a.on, a.onSigma))
		if a.at > clock.Time(clock.MaxRun) {
			return clock.Never
		}
	}
	a.left -= wait
	a.at = a.at.Add(wait)
	return a.at
}

var _ process = OnOff{}
