package collect

import (
	"clifftop/model"
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Facility says what GPUs need around them, and what energy costs.
type Facility struct {
	ServerPower float64 // power of servers as a multiple of that of their GPUs; 0 means 1
	PUE         float64 // power of the site as a multiple of that of the servers; 0 means 1
	// CarbonGPerKWh is the carbon intensity of electricity, in grams of CO2 equivalent, and USDPerKWh its price; nil
	// means unknown.
	CarbonGPerKWh, USDPerKWh *float64
}

// powerUse holds what the energy of a bucket needs beside the counts of iterations.
type powerUse struct {
	energy model.Energy
	pairs  clock.Uint128 // of a new token of a prompt and one of its context
}

func (p *powerUse) merge(c *powerUse) {
	p.energy.Add(c.energy)
	p.pairs = p.pairs.Add(c.pairs)
}

// attended counts the attention of a prompt at its first token.
func (p *powerUse) attended(rec *event.Record) {
	n := int64(rec.Request.InputTokens) - int64(rec.CachedTokens)
	p.pairs = p.pairs.Add(clock.Mul64(uint64(max(n, 0)), uint64(rec.CachedTokens)+uint64(max(n, 0)/2)))
}

// powered counts the energy of a span.
func (p *powerUse) powered(power *model.StepPower, s *event.Span) {
	power.Count(&p.energy, &model.Iterations{
		First: s.First, Slope: s.Slope, N: int64(s.N), Decodes: int64(s.Decodes),
		Tokens: int64(s.Decodes + s.Drafts + s.PrefillTokens + s.RecomputedTokens),
		Emit:   int64(s.Output() + s.Rejected()), Context: s.Context - s.Shared,
	})
}

// joules returns the energy of all GPUs of a unit in a window.
func (u *unit) joules(w *window) float64 {
	b, stages := &u.sum, float64(u.PipelineStages)
	paid, _ := u.paidPicos(w)
	seconds := paid.Float64() * 1e-12 // of all replicas
	busy := b.busy
	if stages > 1 {
		busy = clock.Uint128{}
		for _, worked := range b.worked {
			busy = busy.Add(worked)
		}
	}
	working := max(0, busy.Float64()/stages-b.lost[lostHost].Float64()) * 1e-15
	gpus := float64(u.GPUs) / float64(u.Replicas)
	return gpus * u.Power.Joules(&model.Sums{
		Seconds: seconds, BusySeconds: min(working, seconds), Iterations: b.iterations, Tokens: b.computed(),
		Decodes: b.decodes, Emit: b.output + b.rejected(), Context: b.context, Pairs: b.power.pairs,
		Energy: b.power.energy,
	})
}

// energy measures the energy of the units in a window; nil if the power of a GPU is unknown.
func (c summariser) energy(s *report.Summary, w *window, sum *bucket, units []unit) *report.Energy {
	joules, peak, gpuS := 0.0, 0.0, 0.0
	for i := range units {
		u := &units[i]
		if u.Power == nil || w.end <= w.start {
			return nil
		}
		joules += u.joules(w)
		idle, _ := u.Power.Limits()
		peak = max(peak, idle, u.sum.power.energy.Peak)
		paid, _ := u.paidPicos(w)
		gpuS += paid.Float64() * 1e-12 * float64(u.GPUs) / float64(u.Replicas)
	}
	e := &report.Energy{
		GPUJoules: stats.Finite(joules), PerRequest: stats.Ratio(joules, float64(sum.completions)),
		PerOutputToken: stats.Ratio(joules, float64(sum.output)),
		PerToken:       stats.Ratio(joules, float64(sum.input+sum.output)),
		GPUWatts:       report.Watts{Mean: stats.Ratio(joules, gpuS), Max: stats.Finite(peak)},
	}
	f := &c.opts.Facility
	server := max(f.ServerPower, 1)
	e.SystemWatts = report.Watts{Mean: stats.Ratio(joules*server, w.seconds())}
	if c.line.detail != nil { // not a replica of a fleet
		e.SystemWatts.Max = stats.Finite(max(c.highestPower(w)*server, stats.OrNaN(e.SystemWatts.Mean)))
	}
	kWhPerMillion := joules * server * max(f.PUE, 1) / 3.6e6 / float64(sum.output) * 1e6
	if f.CarbonGPerKWh != nil && sum.output > 0 {
		e.CarbonPerMillion = stats.Finite(kWhPerMillion * *f.CarbonGPerKWh)
	}
	if f.USDPerKWh != nil && sum.output > 0 {
		e.USDPerMillion = stats.Finite(kWhPerMillion * *f.USDPerKWh)
	}
	return e
}

// powerInterval is the shortest time over which the highest power of the whole system is a mean.
const powerInterval = clock.Second

// highestPower returns the highest mean power of all GPUs together over an interval of a second or a bucket, whichever
// is longer, in watts.
func (c summariser) highestPower(w *window) float64 {
	highest := 0.0
	step := max(1, int(int64(powerInterval)/c.line.width))
	for from := w.from; from+step <= w.to; from += step {
		part := window{from: from, to: from + step, start: c.line.start(from), end: c.line.start(from + step)}
		if part.end > w.end {
			break
		}
		total, joules := c.line.sum(from, from+step), 0.0
		units := c.units(&part, &total, nil)
		for i := range units {
			joules += units[i].joules(&part)
		}
		highest = max(highest, joules/part.seconds())
	}
	return highest
}
