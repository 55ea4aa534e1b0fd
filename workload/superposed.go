package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/sim/clock"
)

// Superposed is the sum of many sources, each a client of an API with its own rate and burstiness. A few of them
// send most of the requests, as in large services (ServeGen, Xiang et al. 2025).
//
// Shares of the requests fall as 1/rank within three groups: the first source has TopShare, the first ten have
// Top10Share, the others the rest. The coefficients of variation of the sources' gaps follow the quantiles CV,
// weighted by requests. A fraction [GammaSources] of the requests has gamma gaps, the rest Weibull gaps.
type Superposed struct {
	PerSecond            float64   // mean rate of all sources together
	Sources              int32     // more than 10
	TopShare, Top10Share float64   // of the requests
	CV                   []float64 // quantiles at 0.05, 0.25, 0.5, 0.75 and 0.95
}

// sourceQuantiles are the probabilities of Superposed.CV.
var sourceQuantiles = [...]float64{0.05, 0.25, 0.5, 0.75, 0.95}

// GammaSources is the fraction of the requests whose source has gamma gaps; ServeGen found 0.60 to 0.76.
const GammaSources = 0.7

// Rate returns PerSecond.
func (p Superposed) Rate() float64 { return p.PerSecond }

// shares returns the shares of the sources by rank.
func (p Superposed) shares() []float64 {
	s := make([]float64, p.Sources)
	group := func(from, to int, total float64) {
		sum := 0.0
		for i := from; i < to; i++ {
			sum += 1 / float64(i+1)
		}
		for i := from; i < to; i++ {
			s[i] = total / sum / float64(i+1)
		}
	}
	group(0, 1, p.TopShare)
	group(1, 10, p.Top10Share-p.TopShare)
	group(10, len(s), 1-p.Top10Share)
	return s
}

// Start starts all sources in their stationary state: the first gap of each is the rest of a gap around a random
// moment.
func (p Superposed) Start(seed, entity uint64) Arrivals {
	a := &superposed{}
	order := NewRNG(seed, purposeSources)
	order.Seek(entity, 0)
	draws := rand.New(order)
	shares := p.shares()
	at := 0.0 // share of the requests of the sources so far
	for _, i := range draws.Perm(len(shares)) {
		x := &source{rng: NewRNG(Hash(seed, entity), purposeArrivals), mean: 1 / (p.PerSecond * shares[i])}
		x.rng.Seek(uint64(i), 0)
		cv := p.cv(at + shares[i]/2)
		at += shares[i]
		if draws.Float64() < GammaSources {
			x.shape = 1 / (cv * cv)
		} else {
			x.shape, x.weibull = weibullShape(cv), true
		}
		a.sources = append(a.sources, x)
		k := int32(len(a.sources) - 1)
		a.pending.push(clock.Time(gap(x.residual())), k)
	}
	return a
}

// cv interpolates the quantiles of the burstiness; it is constant beyond the outermost ones.
func (p Superposed) cv(u float64) float64 {
	q := sourceQuantiles
	last := len(q) - 1
	switch {
	case u <= q[0]:
		return p.CV[0]
	case u >= q[last]:
		return p.CV[last]
	}
	i := 0
	for u > q[i+1] {
		i++
	}
	return p.CV[i] + (p.CV[i+1]-p.CV[i])*(u-q[i])/(q[i+1]-q[i])
}

// weibullShape returns the shape at which Weibull gaps have the given coefficient of variation, by bisection of CV²
// = Γ(1 + 2/k)/Γ(1 + 1/k)² − 1, which decreases with k.
func weibullShape(cv float64) float64 {
	low, high := 0.1, 100.0
	for range 60 {
		k := math.Sqrt(low * high)
		a, _ := math.Lgamma(1 + 2/k)
		b, _ := math.Lgamma(1 + 1/k)
		if math.Expm1(a-2*b) > cv*cv {
			low = k
		} else {
			high = k
		}
	}
	return math.Sqrt(low * high)
}

type superposed struct {
	sources []*source
	pending schedule
}

func (a *superposed) Next() clock.Time {
	at, source := a.pending.pop()
	a.pending.push(at.Add(gap(a.sources[source].gap())), source)
	return at
}

// source is one client, a renewal process.
type source struct {
	rng         *RNG
	mean, shape float64 // of the gaps, in seconds
	weibull     bool
}

func (s *source) gap() float64 {
	if s.weibull {
		law := weibullOf(s.mean, s.shape)
		return distuv.Weibull{K: law.Shape, Lambda: law.Scale, Src: s.rng}.Rand()
	}
	return distuv.Gamma{Alpha: s.shape, Beta: s.shape / s.mean, Src: s.rng}.Rand()
}

// residual draws the rest of a length-biased gap: a uniform fraction of a gap drawn with probability proportional
// to its length. For a gamma distribution that is a gamma distribution with a shape greater by 1; for a Weibull
// distribution it is a power of a gamma distribution.
func (s *source) residual() float64 {
	u := uniform(s.rng)
	if s.weibull {
		law := weibullOf(s.mean, s.shape)
		g := distuv.Gamma{Alpha: 1 + 1/s.shape, Beta: 1, Src: s.rng}.Rand()
		return u * law.Scale * math.Pow(g, 1/s.shape)
	}
	return u * distuv.Gamma{Alpha: s.shape + 1, Beta: s.shape / s.mean, Src: s.rng}.Rand()
}

func (s Phase) checkSuperposed(key string, f *fieldFaults) {
	if s.Sources < 11 || s.Sources > maxSources {
		f.add(key+".sources", "%d is not allowed (want 11 to %d)", s.Sources, maxSources)
	}
	f.number(key+".top_share", s.TopShare, s.TopShare > 0 && s.TopShare < 1, "more than 0, less than 1")
	f.number(key+".top10_share", s.Top10Share, s.Top10Share > s.TopShare && s.Top10Share < 1,
		"more than top_share, less than 1")
	if len(s.SourceCV) != len(sourceQuantiles) {
		f.add(key+".source_cv", "%d values are not allowed (want the quantiles at 0.05, 0.25, 0.5, 0.75 and 0.95)",
			len(s.SourceCV))
	}
	for i, v := range s.SourceCV {
		f.number(key+".source_cv", v, v >= 0.05 && v <= 100 && (i == 0 || v >= s.SourceCV[i-1]),
			"0.05 to 100, not falling")
	}
}

// maxSources limits the sources of a process.
const maxSources = 100_000

var _ process = Superposed{}
