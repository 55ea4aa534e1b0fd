package steady

import (
	"context"

	"clifftop/experiments/scenario"
	"clifftop/report"
)

// Saturation is what [Find] found out about a system.
type Saturation struct {
	// Rates are the saturation rates. They are nil in a closed loop, with phases of traffic, and if no request
	// completes.
	Rates *report.Saturation
	// Throughput is the rate at which the system works off a backlog, in requests per second, also of a closed loop.
	Throughput float64
	// Idle is the mean time of a request on an idle system, IdleTTFT that to its first token, and Service the mean time
	// at saturation without waiting, all in seconds.
	Idle, IdleTTFT, Service float64
	// Longest is the longest residence at saturation without waiting, in seconds.
	Longest float64
	// WorkCV2 is the squared coefficient of variation of the work of a request.
	WorkCV2 float64
	// Effort is the number of spans of iterations that a simulation has per request at saturation.
	Effort float64
	// Low means that only the low rate was looked for, and the high one is taken to be the same.
	Low bool
	// Simulated is the number of requests of the search.
	Simulated int64
}

// The search for the saturation rate of a system that starts empty.
const (
	// agree is the relative difference below which the two rates count as equal.
	agree = .03
	// keepUp is the share of the arrivals that a system completes if it keeps up.
	keepUp = .97
	// trialArrivals is the smallest number of arrivals of a trial: a system can look well for a while before it fills.
	trialArrivals = 12_000
	// bisections halve the interval of the higher rate.
	bisections = 4
)

// Find estimates the two saturation rates of the scenario's system. All replicas are ready, clients are patient, and
// the admission limits do not apply. Arrivals are Poisson: a saturation rate does not depend on bursts.
//
// The low rate is that at which a system with a backlog completes requests, so that it recovers below it. The high rate
// is the largest at which a system that starts empty keeps up with 12,000 arrivals or more. They differ if throughput
// falls when the system is full, for example through preemptions or cold caches.
func Find(ctx context.Context, u *scenario.Setup) (*Saturation, error) {
	s, err := find(ctx, u, firstBacklog, leastBacklog, mostBacklog)
	if err != nil || s.Rates == nil {
		return s, err
	}
	return s, s.findHigh(ctx, u)
}

// Of is [Find] for a system whose runs can have a steady state at a rate. Otherwise it finds nothing.
func Of(ctx context.Context, u *scenario.Setup) (*Saturation, error) {
	if u.Traffic.Closed || new(Saturation).load(u).Finite {
		return &Saturation{}, nil
	}
	return Find(ctx, u)
}

// Throughput is the rate in requests per second at which the scenario's system works off a backlog, whatever its load.
func Throughput(ctx context.Context, s *scenario.Scenario) (float64, error) {
	open, err := s.With(scenario.Setting{Key: scenario.RateKey, Value: "1", Flag: "rate"})
	if err != nil {
		return 0, err
	}
	u, err := open.Resolve()
	if err != nil {
		return 0, err
	}
	found, err := find(ctx, u, firstBacklog, leastBacklog, mostBacklog)
	return found.Throughput, err
}

// Sketch is [Find] with a tenth of the requests, for a picture that is wanted at once. It does not look for a higher
// rate of a system that starts empty.
func Sketch(ctx context.Context, u *scenario.Setup) (*Saturation, error) {
	return find(ctx, u, firstBacklog, sketchBacklog, mostBacklog)
}

// The requests of a search that is bounded.
const (
	// conversationSearch is about what the trials of [Saturation.findOfConversations] take.
	conversationSearch = 200_000
	// fullSearch is about what [Find] takes for other traffic.
	fullSearch = IdleRequests + firstBacklog + leastBacklog + trialArrivals
	// firstShare is the part of a bounded search that estimates the rate at which the rest arrives.
	firstShare = .25
	// turnovers is the number of times that a backlog fills the system. With 6, the rate is too high by up to 11 %,
	// because the batch that fills first is in step; with 10, by 3 %.
	turnovers = 10
	// fewBacklog is the smallest backlog of a bounded search.
	fewBacklog = 1_000
)

// within is [Sketch] with at most so many requests. If these are too few it finds nothing, and needs is the number of
// requests that it takes; else needs is 0.
func within(ctx context.Context, u *scenario.Setup, requests int64) (s *Saturation, needs int64, err error) {
	if needs := leastSearch(u); requests < needs {
		return &Saturation{}, needs, nil
	}
	if waits(u) {
		s, err = Find(ctx, u)
		return s, 0, err
	}
	first := min(firstBacklog, int64(firstShare*float64(requests-IdleRequests)))
	rest := requests - IdleRequests - first
	if s, err = find(ctx, u, first, min(sketchBacklog, rest), rest); err != nil {
		return s, 0, err
	}
	s.Low = true
	const enough = 4 // times that the backlog filled the system
	if running := s.Throughput * s.Service; float64(s.Simulated) < enough*running {
		s.Rates, needs = nil, IdleRequests+int64(turnovers*running/(1-firstShare))
	}
	return s, needs, nil
}

// leastSearch is the smallest number of requests that within needs.
func leastSearch(u *scenario.Setup) int64 {
	if waits(u) {
		return conversationSearch
	}
	return IdleRequests + int64(max(turnovers*mostRunning(u), fewBacklog)/(1-firstShare))
}

// waits reports whether later requests wait for the answers of earlier ones.
func waits(u *scenario.Setup) bool {
	return u.Traffic.Recording == nil && u.Traffic.Spec.WaitsForOutputs()
}

// mostRunning is about the number of requests that run at once when others wait: as many as there are seats, or as the
// KV cache holds.
func mostRunning(u *scenario.Setup) float64 {
	tokens := 0.0 // that a request holds, on average
	if u.Traffic.Recording == nil {
		if input, output, err := u.Traffic.Spec.MeanTokens(); err == nil {
			tokens = input + output/2
		}
	}
	sum := 0.0
	for i := range u.Pools {
		c := &u.Pools[i].Config
		running := float64(c.MaxNumSeqs)
		if room := float64(c.UsableBlocks()) * float64(c.BlockSize); tokens > 0 {
			running = min(running, room/tokens)
		}
		sum += running * float64(u.Pools[i].Engines())
	}
	return sum
}

// find measures the low rate with a backlog, and takes the high rate to be the same. The numbers of requests are those
// of [drainBacklog].
func find(ctx context.Context, u *scenario.Setup, first, least, most int64) (*Saturation, error) {
	s := &Saturation{}
	idle, err := idleSystem(ctx, u)
	s.Idle, s.IdleTTFT, s.Simulated = idle.residence, idle.ttft, idle.sent
	if err != nil || s.Idle == 0 {
		return s, err
	}
	d, err := drainBacklog(ctx, u, s.Idle, first, least, most)
	s.Simulated += d.sent
	if err != nil {
		return s, err
	}
	s.Service, s.Longest, s.WorkCV2 = max(s.Idle, d.service), max(s.Idle, d.longest), d.cv2
	s.Throughput, s.Effort = d.rate, d.effort
	if !u.Traffic.Closed && d.rate > 0 {
		ci := d.interval()
		s.Rates = &report.Saturation{LowRequestsPerS: d.rate, LowCI95: ci, HighRequestsPerS: d.rate, HighCI95: ci}
	}
	return s, nil
}

// findHigh looks for a rate above the low one with which a system that starts empty keeps up.
func (s *Saturation) findHigh(ctx context.Context, u *scenario.Setup) error {
	if waits(u) {
		return s.findOfConversations(ctx, u)
	}
	r := s.Rates
	b := bracket{ctx: ctx, u: u, s: s, holds: s.follows}
	if err := b.up((1 + 2*agree) * r.LowCI95[1]); err != nil || b.good == 0 {
		return err
	}
	if err := b.halve(); err != nil {
		return err
	}
	r.HighRequestsPerS, r.HighCI95, r.Metastable = b.middle(), b.interval(), true
	return nil
}

// findOfConversations finds both rates by trial. What a system with a backlog completes says little about
// conversations: their later turns arrive only after the earlier ones are answered, so that first turns prevail.
func (s *Saturation) findOfConversations(ctx context.Context, u *scenario.Setup) error {
	r := s.Rates
	high := bracket{ctx: ctx, u: u, s: s, holds: s.follows}
	if err := high.around(r.LowRequestsPerS); err != nil {
		return err
	}
	if high.good == 0 {
		s.Rates = nil
		return nil
	}
	r.HighRequestsPerS, r.HighCI95 = high.middle(), high.interval()
	r.LowRequestsPerS, r.LowCI95 = r.HighRequestsPerS, r.HighCI95
	low := bracket{ctx: ctx, u: u, s: s, holds: s.recovers}
	if err := low.down(r.HighCI95[0]); err != nil || low.good == 0 || low.bad == 0 {
		return err
	}
	if err := low.halve(); err != nil {
		return err
	}
	r.LowRequestsPerS, r.LowCI95, r.Metastable = low.middle(), low.interval(), true
	return nil
}

// follows reports whether a system that starts empty keeps up with a rate.
func (s *Saturation) follows(ctx context.Context, u *scenario.Setup, rate float64) (bool, error) {
	load := scenario.ProbeLoad{Rate: rate, Seconds: max(probeSeconds(rate, s.Service), trialArrivals/rate)}
	o, err := probeAt(ctx, load, u, patientFleet(u))
	s.Simulated += o.sent
	s.Service = max(s.Service, o.service)
	return o.keepsUp, err
}

// recovers reports whether a system whose backlog is about ten times what it runs at once gets rid of half of it, in
// twenty times the time in which as many requests arrive.
func (s *Saturation) recovers(ctx context.Context, u *scenario.Setup, rate float64) (bool, error) {
	const (
		backlogs = 10
		times    = 20
		surge    = 4 // the arrivals of a surge that wait, per second, as a multiple of the rate
	)
	waiting := min(backlogs*max(s.Throughput*s.Service, 1), probeRequests/times)
	load := scenario.ProbeLoad{Rate: rate, Surge: waiting / (surge * rate)}
	load.Seconds = load.Surge + times*waiting/rate
	o, err := probeAt(ctx, load, u, patientFleet(u))
	s.Simulated += o.sent
	return 2*o.left < o.most, err
}

// bracket narrows the largest rate for which a property holds.
type bracket struct {
	ctx       context.Context
	u         *scenario.Setup
	s         *Saturation
	holds     func(ctx context.Context, u *scenario.Setup, rate float64) (bool, error)
	good, bad float64 // the largest rate for which it holds, the smallest for which it does not; 0 if unknown
}

const stride = 1 + 5*agree

// try tries a rate and notes the result.
func (b *bracket) try(rate float64) (bool, error) {
	ok, err := b.holds(b.ctx, b.u, rate)
	switch {
	case err != nil:
	case ok:
		b.good = rate
	default:
		b.bad = rate
	}
	return ok, err
}

// up raises the rate until the property fails.
func (b *bracket) up(rate float64) error {
	for {
		if ok, err := b.try(rate); err != nil || !ok {
			return err
		}
		rate *= stride
	}
}

// down lowers the rate until the property holds, or the rate is negligible.
func (b *bracket) down(rate float64) error {
	const negligible = .01
	for least := negligible * rate; rate > least; rate /= stride {
		if ok, err := b.try(rate); err != nil || ok {
			return err
		}
	}
	return nil
}

// around goes up or down from a rate, and halves.
func (b *bracket) around(rate float64) error {
	ok, err := b.try(rate)
	if err == nil && ok {
		err = b.up(rate * stride)
	} else if err == nil {
		err = b.down(rate / stride)
	}
	if err == nil && b.good > 0 {
		err = b.halve()
	}
	return err
}

func (b *bracket) halve() error {
	for range bisections {
		if _, err := b.try(b.middle()); err != nil {
			return err
		}
	}
	return nil
}

func (b *bracket) middle() float64 { return (b.good + b.bad) / 2 }

// interval allows for the error of a trial.
func (b *bracket) interval() [2]float64 { return [2]float64{b.good * keepUp, b.bad} }

// interval is that of the rate at 95 %.
func (d *drain) interval() [2]float64 {
	half := d.rate * d.relative
	return [2]float64{max(0, d.rate-half), d.rate + half}
}
