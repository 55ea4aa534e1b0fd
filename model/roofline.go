package model

import (
	"fmt"

	"clifftop/internal/faults"
	"clifftop/sim/clock"
)

// RooflineOptions are the four constants of [Roofline]. Start from [DefaultRooflineOptions].
type RooflineOptions struct {
	PeakFraction      float64        // achieved fraction of the datasheet's FLOP/s
	BandwidthFraction float64        // achieved fraction of the datasheet's memory bandwidth
	LayerTime         clock.Duration // per layer, for any batch
	StepTime          clock.Duration // per step
}

// DefaultRooflineOptions returns the constants with the best fit to 1,048 served runs.
func DefaultRooflineOptions() RooflineOptions {
	return RooflineOptions{
		PeakFraction: 0.6, BandwidthFraction: 0.8,
		LayerTime: 80 * clock.Microsecond, StepTime: 500 * clock.Microsecond,
	}
}

func (o *RooflineOptions) validate() error {
	var f faults.List
	fraction := func(name string, v float64) {
		f.Check(v >= 1e-6 && v <= 1, "%s is %v (want above 0, at most 1)", name, v)
	}
	fraction("peak fraction", o.PeakFraction)
	fraction("bandwidth fraction", o.BandwidthFraction)
	faults.Within(&f, "layer time", o.LayerTime, 0, clock.Second)
	faults.Within(&f, "step time", o.StepTime, 0, clock.Second)
	return f.Err()
}

// Roofline is the simple step timer: the maximum of arithmetic and memory time at constant fractions of the
// datasheet, plus a time per layer and one per step. The time per layer includes communication between GPUs.
type Roofline struct {
	work *Work
	o    RooflineOptions

	fixed int64

	// Arithmetic, in femtoseconds per unit.
	token, decodeToken, emit, upToken int64
	computeContext                    windowRates // of the decodes
	windows                           []windowPairs

	// Memory traffic, in femtoseconds per unit.
	weights, head  int64
	state          int64       // per sequence
	trafficContext windowRates // of the decodes
	experts        table       // by tokens in the step; empty for dense models
}

var _ StepTimer = (*Roofline)(nil)

// NewRoofline precomputes the coefficients of a deployment.
func NewRoofline(d *Deployment, o RooflineOptions) (*Roofline, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("roofline of %v: %w", d, err)
	}
	w := d.Work()
	compute := func(p operations) float64 { return p.seconds / o.PeakFraction }
	memory := func(bytes float64) float64 { return bytes / (d.GPU.HBMBytesPerSecond * o.BandwidthFraction) }
	fs := func(seconds float64) int64 { return roundFemtos(seconds * femtosPerSecond) }
	r := &Roofline{work: w, o: o, weights: fs(memory(w.weightBytes)), head: fs(memory(w.headBytes)),
		state: fs(memory(w.stateBytes))}
	r.fixed = fs(o.StepTime.Seconds() + float64(o.LayerTime.Seconds()*float64(d.LLM.Layers)))
	r.token = fs(compute(w.token.plus(w.experts)))
	r.emit = fs(compute(w.emit))
	r.upToken = fs(compute(w.upToken))
	r.decodeToken = fs(compute(w.decodeToken))
	for i := range w.windows {
		x := &w.windows[i]
		r.computeContext.add(x.window, fs(compute(x.decodePair)))
		r.trafficContext.add(x.window, fs(memory(x.kvBytes)))
		r.windows = append(r.windows, windowPairs{x.window, newFraction(compute(x.prefillPair) / 2),
			newFraction(memory(x.kvBytes))})
	}
	if w.expertBytes > 0 {
		r.experts = newTable(func(tokens float64) float64 {
			return memory(w.expertBytes * w.activeExperts(tokens))
		}, 4096)
	}
	return r, nil
}

// Work returns the minimal work of steps.
func (r *Roofline) Work() *Work { return r.work }

// Span implements [StepTimer]. A sequence of decodes ends where arithmetic and memory time change order or the mean
// context passes the window.
func (r *Roofline) Span(b *Batch) (first, slope int64, n int) {
	c, m, tokens := r.sides(b)
	if tokens <= 0 {
		return 0, 0, 1
	}
	if len(b.Chunks) > 0 || b.Drafts > 0 {
		return r.fixed + max(c, m), 0, 1
	}
	decodes := int64(b.Decodes)
	read, exact := readContext(b)
	if !exact {
		return r.fixed + max(c, m), 0, 1
	}
	compute, traffic := r.computeContext.linear(b.Context, decodes), r.trafficContext.linear(read, decodes)
	compute.value, traffic.value = c, m
	t := compute.max(traffic)
	return r.fixed + t.value, t.slope, int(bound(r.fixed+t.value, t.slope, t.run))
}

// sides returns the arithmetic and the memory time of a step, and its number of tokens.
func (r *Roofline) sides(b *Batch) (compute, memory, tokens int64) {
	decodes := int64(b.Decodes)
	read, _ := readContext(b)
	tokens = b.decodeTokens()
	compute = tokens * r.decodeToken
	for _, x := range r.computeContext {
		compute = saturate(compute, b.rows(inWindow(b.Context, decodes, x.window)), x.perToken)
	}
	memory = saturate(r.weights+r.trafficContext.value(read, decodes), decodes+int64(len(b.Chunks)), r.state)
	for _, ch := range b.Chunks {
		n, cached := int64(ch.New), int64(ch.Cached)
		span := 2*cached + n
		var pairs, reads uint128
		for i := range r.windows {
			x := &r.windows[i]
			pairs.add(n*min(span, 2*x.window), x.pair)
			reads.add(min(cached, x.window), x.read)
		}
		compute = min(compute+pairs.femtos()+(n+cached)*r.upToken, maxFemtos)
		memory = min(memory+reads.femtos(), maxFemtos)
		tokens += n
	}
	compute += tokens*r.token + int64(b.Emit)*r.emit
	if b.Emit > 0 {
		memory += r.head
	}
	if r.experts.values != nil {
		routed := tokens * int64(r.work.d.DataParallel)
		if b.GroupTokens > 0 {
			routed = b.GroupTokens
		}
		memory += r.experts.at(routed)
	}
	return compute, memory, tokens
}

// Explain returns the breakdown of the time of one step.
func (r *Roofline) Explain(b *Batch) Explanation {
	var e Explanation
	c, m, tokens := r.sides(b)
	if tokens == 0 {
		return e
	}
	seconds := func(fs int64) float64 { return float64(fs) / femtosPerSecond }
	e.add("roofline", "roofline options", cost{seconds: seconds(max(c, m)), compute: seconds(c), memory: seconds(m)})
	e.add("layers", "roofline options", latency(r.o.LayerTime.Seconds()*float64(r.work.d.LLM.Layers)))
	e.add(termStep, "roofline options", latency(r.o.StepTime.Seconds()))
	e.finish(r.work, b)
	return e
}

// Linear is a step timer for comparison with theory: each iteration takes A + B·n, where n counts the decoding
// sequences and the prefill chunks. Drafts, context and prompt length have no effect.
type Linear struct {
	A, B clock.Duration
}

var (
	_ StepTimer = (*Kernels)(nil)
	_ StepTimer = (*Linear)(nil)
)

// NewLinear returns the timer a + b·n. Negative lengths count as 0.
func NewLinear(a, b clock.Duration) *Linear { return &Linear{max(a, 0), max(b, 0)} }

// Span implements [StepTimer].
func (l *Linear) Span(b *Batch) (first, slope int64, n int) {
	b1 := saturate(0, int64(l.B), clock.FemtosPerPico)
	first = saturate(saturate(0, int64(l.A), clock.FemtosPerPico), b1, int64(b.Decodes+len(b.Chunks)))
	if len(b.Chunks) > 0 {
		return first, 0, 1
	}
	return first, 0, maxRun
}
