package model

import (
	"fmt"
	"math"

	"clifftop/internal/faults"
	"clifftop/sim/clock"
)

// PowerConstants describe the power that a GPU draws, in watts. While an iteration runs it is
//
//	min(TDP, Base + Compute·MFU + Memory·MBU)
//
// where MFU and MBU are the fractions of the datasheet's peak and bandwidth that the iteration uses. Without work it is
// Idle. The constants are those of an architecture, as fractions of the design power, fitted on measured runs.
type PowerConstants struct {
	Row     string // origin, such as "hopper power"
	Idle    float64
	Base    float64 // clocks, caches and latency-bound kernels
	Compute float64
	Memory  float64
	Cap     float64 // the design power, or a power limit
}

// Watts returns the power of a GPU in an iteration with the given utilisation of arithmetic and of memory bandwidth,
// in watts; 0 if it is not known.
func (p *PowerConstants) Watts(mfu, mbu float64) float64 {
	return min(p.Cap, p.Base+float64(p.Compute*mfu)+float64(p.Memory*mbu))
}

// Known reports whether the power of the GPU is known.
func (p *PowerConstants) Known() bool { return p.Cap > 0 }

// validate rejects powers that contradict each other.
func (p *PowerConstants) validate() error {
	if *p == (PowerConstants{}) {
		return nil
	}
	var f faults.List
	f.Check(p.Idle >= 0 && p.Idle < p.Cap, "%s: idle power is %v W (want 0 or more, below the design power of %v W)",
		p.Row, p.Idle, p.Cap)
	f.Check(p.Base >= p.Idle && p.Base <= p.Cap, "%s: base power is %v W (want %v to %v, idle to design power)", p.Row,
		p.Base, p.Idle, p.Cap)
	f.AtLeast(p.Row+": compute power", p.Compute, 0)
	f.AtLeast(p.Row+": memory power", p.Memory, 0)
	return f.Err()
}

// Engineering estimates of a GPU under a power limit, not measured.
const (
	reachedBandwidth = 0.8 // fraction of the bandwidth that kernels reach at most
	chipShare        = 0.5 // part of the power of memory traffic that the chip draws, not the memory
	slowestClock     = 0.5 // fraction of the clock at which the bandwidth is still reached
)

// Limited returns the GPU under a power limit in watts. The clock falls until the load stays within the limit: dynamic
// power grows with the cube of the clock, the product of frequency and the square of the voltage. At full arithmetic
// load
//
//	clock = ((limit − idle) / (TDP − idle))^(1/3)
//
// Arithmetic slows down in proportion to the clock. Memory traffic keeps its speed: only the chip's part of its power
// falls, with the square of a clock that is low enough for full traffic. If half the clock is not low enough, traffic
// slows down too. It returns an error if the limit is not between idle and design power.
func (g GPU) Limited(watts float64) (GPU, error) {
	p := &g.Power
	switch {
	case !p.Known():
		return g, fmt.Errorf("%g W: the design power of %s is not known (want no limit, or a GPU record with tdp_w)",
			watts, g.Name)
	case !(watts > p.Idle && watts <= p.Cap):
		return g, fmt.Errorf("%g W is outside the power of %s (want more than the %.4g W that it draws idle, and at "+
			"most the design power of %.4g W)", watts, g.Name, p.Idle, p.Cap)
	}
	cube := (watts - p.Idle) / (p.Cap - p.Idle)
	clock := math.Cbrt(cube)
	traffic, memory := p.limitedTraffic(watts)
	g.BF16FLOPs, g.FP8FLOPs, g.FP4FLOPs, g.INT8OPs = g.BF16FLOPs*clock, g.FP8FLOPs*clock, g.FP4FLOPs*clock,
		g.INT8OPs*clock
	g.HBMBytesPerSecond *= traffic
	g.Power = PowerConstants{Row: p.Row, Idle: p.Idle, Base: p.Idle + float64((p.Base-p.Idle)*cube),
		Compute: p.Compute * cube, Memory: p.Memory * traffic * memory, Cap: watts}
	return g, nil
}

// limitedTraffic returns the fraction of the memory bandwidth that a power limit leaves, and the energy of a byte
// relative to that without a limit.
func (p *PowerConstants) limitedTraffic(watts float64) (traffic, energy float64) {
	full := min(p.Cap-p.Base, float64(p.Memory*reachedBandwidth))
	base := func(clock float64) float64 { return p.Idle + float64((p.Base-p.Idle)*clock*clock*clock) }
	perByte := func(clock float64) float64 { return 1 - chipShare + float64(chipShare*clock*clock) }
	low, high := slowestClock, 1.0
	if full <= 0 || base(high)+float64(full*perByte(high)) <= watts {
		return 1, 1
	}
	for range 50 {
		clock := (low + high) / 2
		if base(clock)+float64(full*perByte(clock)) > watts {
			high = clock
		} else {
			low = clock
		}
	}
	energy = perByte(low)
	return min(1, max(0, watts-base(low))/float64(full*energy)), energy
}

// StepPower is the energy of iterations on one GPU, in integers, so that it does not depend on how iterations are
// grouped into spans. Beside Base for its duration, an iteration takes an energy that is linear in its tokens and its
// context: Compute for the time that its arithmetic would take at peak, and Memory for the time of its traffic at full
// bandwidth.
type StepPower struct {
	idle, base, cap                         int64 // watts
	iteration, token, decode, context, emit int64 // nanojoules
	pair                                    int64 // nanojoules per 1024 pairs of a new token and one of its context
	experts                                 []int64
	windows                                 []windowEnergy

	// For Below: the energy of a token at most, in nanojoules, and by how many watts the bound has to be below a power.
	// The margin is infinite if sums do not tell the energy of iterations.
	most   int64
	margin float64
}

// expertTable is the number of tokens up to which the experts read are tabulated; more tokens read as many.
const expertTable = 4096

// windowEnergy is the energy of decode attention in layers with the same window, in nanojoules per token of context.
type windowEnergy struct{ window, context int64 }

// longContext is longer than any context; the window of full attention is longer.
const longContext = 1 << 40

// NewStepPower returns the energy of the deployment's iterations; nil if the power of its GPU is not known.
func NewStepPower(d *Deployment) *StepPower { return newStepPower(d, 1, 1) }

// NewMeanDraftedPower returns the energy of iterations of [MeanDrafting]: each stands for the part 1/yield of an
// iteration that verifies k drafts for each decoding sequence. The drafter itself is not counted.
func NewMeanDraftedPower(d *Deployment, k int, acceptance []float64) *StepPower {
	return newStepPower(d, float64(k+1), ExpectedYield(k, acceptance))
}

// newStepPower returns the energy of iterations that compute rows tokens for each decoding sequence, of which yield are
// put out.
func newStepPower(d *Deployment, rows, yield float64) *StepPower {
	c := &d.GPU.Power
	if !c.Known() {
		return nil
	}
	w := d.Work()
	joules := func(compute, bytes float64) int64 {
		j := float64(c.Compute*compute) + float64(c.Memory*bytes/d.GPU.HBMBytesPerSecond)
		return int64(math.Round(j / w.stages * 1e9))
	}
	p := &StepPower{
		idle: int64(math.Round(c.Idle)), base: int64(math.Round(c.Base)), cap: int64(math.Round(c.Cap)),
		iteration: joules(0, (w.weightBytes+w.headBytes)/yield), token: joules(w.token.seconds+w.experts.seconds, 0),
		emit: joules(w.emit.seconds*rows/yield, 0),
	}
	var open, openBytes, pair float64
	for i := range w.windows {
		x := &w.windows[i]
		if x.window < longContext {
			p.windows = append(p.windows, windowEnergy{x.window,
				joules(x.decodePair.seconds*rows/yield, x.kvBytes/yield)})
			continue
		}
		open, openBytes, pair = open+x.decodePair.seconds, openBytes+x.kvBytes, pair+x.prefillPair.seconds
	}
	more := float64((w.token.seconds + w.experts.seconds) * (rows/yield - 1)) // of drafts that are rejected
	p.decode = joules(float64(w.decodeToken.seconds*rows/yield)+more, w.stateBytes/yield)
	p.context, p.pair = joules(open*rows/yield, openBytes/yield), joules(pair*1024, 0)
	if w.expertBytes > 0 {
		p.experts = make([]int64, expertTable+1)
		for tokens := range p.experts {
			if tokens > 0 {
				active := w.activeExperts(float64(float64(tokens*d.DataParallel) * rows))
				p.experts[tokens] = joules(0, w.expertBytes*active/yield)
			}
		}
	}
	p.most, p.margin = p.token+p.decode+p.emit, float64(p.base)+1e-6
	if p.experts != nil || p.windows != nil {
		p.margin = math.Inf(1)
	}
	return p
}

// Iterations is a run of like iterations on one GPU. Iteration k takes First + k·Slope femtoseconds, and its context is
// Context + k·Decodes.
type Iterations struct {
	First, Slope  int64
	N             int64
	Tokens        int64 // computed in each
	Decodes, Emit int64
	Context       int64 // read by decodes in the first, in tokens
}

// Energy is what sums of iterations do not tell.
type Energy struct {
	Rest clock.Uint128 // nanojoules of experts and of sliding windows
	// Excess is the energy above the design power or the limit, in femtojoules: it is not drawn.
	Excess clock.Uint128
	Peak   float64 // highest power of an iteration, in watts
}

// Of returns the energy of iterations beyond their sums.
func (p *StepPower) Of(x *Iterations) (e Energy) {
	p.Count(&e, x)
	return e
}

// Count adds the energy of iterations beyond their sums to e.
func (p *StepPower) Count(e *Energy, x *Iterations) {
	for i := range p.windows {
		// Contexts that pass the window end the progression.
		full := x.Decodes * p.windows[i].window
		if x.Decodes > 0 && x.Context < full && x.Context+(x.N-1)*x.Decodes > full {
			head, tail := *x, *x
			head.N = (full-x.Context)/x.Decodes + 1
			tail.N, tail.First, tail.Context = x.N-head.N, x.First+head.N*x.Slope, x.Context+head.N*x.Decodes
			p.Count(e, &head)
			p.Count(e, &tail)
			return
		}
	}
	dynamic := p.iteration + x.Tokens*p.token + x.Decodes*p.decode + x.Context*p.context + x.Emit*p.emit
	growth := x.Decodes * p.context
	if p.experts != nil || p.windows != nil {
		rest, more := p.rest(x)
		dynamic, growth = dynamic+rest, growth+more
		e.Rest = e.Rest.Add(progression(rest, more, 0, x.N))
	}
	last := x.First + (x.N-1)*x.Slope
	peak := p.watts(dynamic, x.First)
	if x.N > 1 {
		peak = max(peak, p.watts(dynamic+(x.N-1)*growth, last))
	}
	if peak >= float64(p.cap) {
		peak = float64(p.cap)
		e.Excess = e.Excess.Add(p.excess(dynamic, growth, x, last))
	}
	e.Peak = max(e.Peak, peak)
}

// Below reports whether iterations draw less than so many watts, and their sums tell their energy: then Count need not
// see them. It looks at a bound, and may report false. They compute so many tokens each, read a context of at most this
// size, and take so many femtoseconds or more.
func (p *StepPower) Below(watts float64, tokens, context, femtos int64) bool {
	return float64(p.iteration+tokens*p.most+context*p.context)*1e6 < (watts-p.margin)*float64(femtos)
}

// Add adds the energy of other iterations.
func (e *Energy) Add(o Energy) {
	e.Rest, e.Excess, e.Peak = e.Rest.Add(o.Rest), e.Excess.Add(o.Excess), max(e.Peak, o.Peak)
}

// rest returns the energy of experts and windows in the first iteration, and how it grows.
func (p *StepPower) rest(x *Iterations) (first, growth int64) {
	if p.experts != nil {
		first = p.experts[min(x.Tokens, expertTable)]
	}
	for i := range p.windows {
		c := &p.windows[i]
		if full := x.Decodes * c.window; x.Context > full {
			first += full * c.context
		} else {
			first, growth = first+x.Context*c.context, growth+x.Decodes*c.context
		}
	}
	return first, growth
}

// progression returns the sum of first + k·slope for k from from to to − 1, where no term is negative.
func progression(first, slope, from, to int64) clock.Uint128 {
	n := uint64(to - from)
	ends := uint64(2*first + (from+to-1)*slope)
	if n%2 == 0 {
		return clock.Mul64(ends, n/2)
	}
	return clock.Mul64(ends/2, n)
}

// watts returns the power of an iteration with the given dynamic energy in nanojoules, before the cap.
func (p *StepPower) watts(dynamic, femtos int64) float64 {
	if femtos <= 0 {
		return 0
	}
	return float64(p.base) + float64(dynamic)*1e6/float64(femtos)
}

// excess returns the energy of iterations above the cap. It is an arithmetic progression, whose positive part counts.
func (p *StepPower) excess(dynamic, growth int64, x *Iterations, last int64) clock.Uint128 {
	const longest = 1e15 // femtoseconds; no iteration of a second and more is capped, so that nothing overflows
	if x.First >= longest || last >= longest {
		return clock.Uint128{}
	}
	const femtos = 1e6 // per nanojoule
	margin := p.cap - p.base
	first, slope := dynamic*femtos-margin*x.First, growth*femtos-margin*x.Slope
	from, to := int64(0), x.N // iterations with an excess
	switch end := first + (x.N-1)*slope; {
	case first <= 0 && end <= 0:
		return clock.Uint128{}
	case first <= 0:
		from = -first/slope + 1
	case end <= 0:
		to = (first - slope - 1) / -slope
	}
	return progression(first, slope, from, to)
}

// Sums are counts over iterations of one GPU, from which their energy follows.
type Sums struct {
	Seconds       float64 // for which the GPU is switched on
	BusySeconds   float64 // of iterations
	Iterations    int64
	Tokens        int64
	Decodes, Emit int64
	Context       int64
	Pairs         clock.Uint128 // of a new token of a prompt and one of its context
	Energy
}

// Joules returns the energy of one GPU in joules.
func (p *StepPower) Joules(s *Sums) float64 {
	dynamic := float64(p.iteration)*float64(s.Iterations) + float64(p.token)*float64(s.Tokens) +
		float64(p.decode)*float64(s.Decodes) + float64(p.context)*float64(s.Context) +
		float64(p.emit)*float64(s.Emit) + float64(p.pair)*s.Pairs.Float64()/1024 + s.Rest.Float64()
	joules := float64(p.idle)*s.Seconds + float64(p.base-p.idle)*s.BusySeconds + dynamic*1e-9 - s.Excess.Float64()*1e-15
	return min(joules, float64(p.cap)*s.Seconds)
}

// Limits returns the idle power and the cap of one GPU, in watts.
func (p *StepPower) Limits() (idle, most float64) { return float64(p.idle), float64(p.cap) }
