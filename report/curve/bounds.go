package curve

import (
	"fmt"
	"math"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// Bounds are the asymptotic bounds of operational analysis (Denning and Buzen 1978), from demands that were measured
// in the sweep itself: D, the time in the system that a request takes at least; Z, the time that a user of a closed
// loop thinks; Dmax, the time for which a request keeps the GPU busy, its bottleneck, at least.
//
//	closed, N users:  X ≤ min(N/(D+Z), 1/Dmax)   R ≥ max(D, N·Dmax - Z)
//	open, rate λ:     X ≤ min(λ, 1/Dmax)         R ≥ D
//
// A batch shares the GPU, so that the busy time per request falls with load: Dmax is the smallest one of all loads.
// Within the sweep the bounds hold by Little's law and the utilisation law; a system that was not driven to saturation
// may yet have a higher roof.
type Bounds struct {
	DemandS           float64  `json:"demand_s"`
	ThinkS            *float64 `json:"think_s"` // nil for an open load
	BottleneckDemandS float64  `json:"bottleneck_demand_s"`
	// Value is the load where both bounds on throughput meet: N* = (D+Z)/Dmax users, or a rate of 1/Dmax. Beyond it
	// requests must wait.
	Value               float64 `json:"value"`
	MaxRequestsPerS     float64 `json:"max_requests_per_s"`
	MaxOutputTokensPerS float64 `json:"max_output_tokens_per_s"`
	// Points are the bounds at the loads of the sweep, in their order.
	Points []Bound `json:"points"`
}

// Bound is the highest throughput and the lowest latency that one load can have.
type Bound struct {
	Value            float64 `json:"value"`
	RequestsPerS     float64 `json:"requests_per_s"`
	OutputTokensPerS float64 `json:"output_tokens_per_s"`
	E2EMeanS         float64 `json:"e2e_mean_s"`
}

// usage describes the use of the system at a load, in requests or output tokens per second.
type usage struct {
	load       float64
	throughput float64
	inSystem   float64 // on average
	busy       float64 // fraction of the time
}

// demands are the least that the loads show for one request, or one token: in the system, and of the GPU. Of thinking
// the least and the most.
type demands struct{ total, bottleneck, thinkLow, thinkHigh float64 }

// add looks at one more load.
func (d *demands) add(l usage) {
	d.total = min(d.total, l.inSystem/l.throughput)
	d.bottleneck = min(d.bottleneck, l.busy/l.throughput)
	think := max(0, l.load-l.inSystem) / l.throughput
	d.thinkLow, d.thinkHigh = min(d.thinkLow, think), max(d.thinkHigh, think)
}

// usages returns the usage at a load in requests and in output tokens. ok reports whether throughput, number in the
// system and busy time are known.
func (l *load) usages() (requests, tokens usage, ok bool) {
	requests = usage{l.offered, l.requestsS, l.inSystem, l.busy}
	tokens = usage{l.offered, l.throughput, l.inSystem, l.busy}
	return requests, tokens, l.requestsS > 0 && l.inSystem > 0 && l.busy > 0 && l.throughput > 0
}

// bounds needs two loads of use.
func (a *analysis) bounds() *Bounds {
	most := math.Inf(1)
	r, t, n := demands{most, most, most, 0}, demands{most, most, most, 0}, 0
	for i := range a.at {
		if requests, tokens, ok := a.at[i].usages(); ok {
			r.add(requests)
			t.add(tokens)
			n++
		}
	}
	if n < 2 || !a.isLoad {
		return nil
	}
	if !a.closed {
		r.thinkLow, r.thinkHigh, t.thinkLow, t.thinkHigh = 0, 0, 0, 0
	}
	b := &Bounds{
		DemandS: r.total, BottleneckDemandS: r.bottleneck, Value: 1 / r.bottleneck,
		MaxRequestsPerS: 1 / r.bottleneck, MaxOutputTokensPerS: 1 / t.bottleneck, Points: make([]Bound, 0, n),
	}
	if a.closed {
		b.ThinkS = stats.Finite((r.thinkLow + r.thinkHigh) / 2)
		b.Value = (t.total + t.thinkLow) / t.bottleneck
	}
	for i := range a.at {
		if requests, tokens, ok := a.at[i].usages(); ok {
			at := a.boundAt(requests, tokens, r, t)
			at.Value = a.at[i].value
			b.Points = append(b.Points, at)
		}
	}
	return b
}

func (a *analysis) boundAt(request, token usage, r, t demands) Bound {
	n := request.load
	at := Bound{RequestsPerS: min(n, 1/r.bottleneck), OutputTokensPerS: 1 / t.bottleneck, E2EMeanS: r.total}
	if a.closed {
		at.RequestsPerS = min(n/(r.total+r.thinkLow), 1/r.bottleneck)
		at.OutputTokensPerS = min(n/(t.total+t.thinkLow), 1/t.bottleneck)
		at.E2EMeanS = max(r.total, n*r.bottleneck-r.thinkHigh)
	} else {
		at.OutputTokensPerS = min(n*token.throughput/request.throughput, at.OutputTokensPerS)
	}
	return at
}

func (b *Bounds) text(over string) string {
	if b.ThinkS == nil {
		return fmt.Sprintf("at most %s output tokens/s, which a %s of %s asks for; a request takes %s or more on "+
			"average",
			layout.Digits(b.MaxOutputTokensPerS), report.LastKey(over), layout.Digits(b.Value),
			layout.Seconds(b.DemandS))
	}
	think := ""
	if *b.ThinkS >= .01*b.DemandS { // a smaller think time is a rounding error
		think = " and users think for " + layout.Seconds(*b.ThinkS)
	}
	return fmt.Sprintf("at most %s output tokens/s; requests take %s or more%s, so that throughput can follow the "+
		"number of users up to N* = %s and no further",
		layout.Digits(b.MaxOutputTokensPerS), layout.Seconds(b.DemandS), think, layout.Digits(b.Value))
}
