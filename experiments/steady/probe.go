package steady

import (
	"context"

	"clifftop/experiments/scenario"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// A probe is a short run that measures only how fast requests complete. All replicas are ready from its start.
type probe struct {
	half      clock.Time // the start of the measurement
	arrived   volume     // in the second half
	completed volume     // in the second half
	sent      int64
	most      int64   // that were in the system at once
	all       int64   // completed
	refused   int64   // ended otherwise
	residence float64 // seconds, summed over completed requests
	service   float64 // the same, from admission on
	ttft      float64 // the same, to the first token
}

// volume is a number of requests and of their tokens, prompts and outputs.
type volume struct{ requests, tokens int64 }

func (v *volume) add(r *workload.Request) {
	v.requests++
	v.tokens += int64(r.InputTokens) + int64(r.OutputTokens)
}

// follows reports whether the volume is nearly that of the arrivals. Tokens count too: an order of the queue that
// prefers short requests leaves few requests but much work behind.
func (v volume) follows(arrived volume) bool {
	return arrived.requests > 0 && float64(v.requests) >= keepUp*float64(arrived.requests) &&
		float64(v.tokens) >= keepUp*float64(arrived.tokens)
}

func (p *probe) Arrived(at clock.Time, r *workload.Request) {
	p.sent++
	p.most = max(p.most, p.sent-p.all-p.refused)
	if at >= p.half {
		p.arrived.add(r)
	}
}

func (p *probe) Finished(r *event.Record) {
	if r.Outcome != event.Completed {
		p.refused++
		return
	}
	p.all++
	p.residence += r.ClientLast.Sub(r.Request.Arrival).Seconds()
	p.ttft += r.ClientFirst.Sub(r.Request.Arrival).Seconds()
	p.service += r.ClientLast.Sub(max(r.Scheduled, r.Request.Arrival)).Seconds()
	if r.ClientLast >= p.half {
		p.completed.add(&r.Request)
	}
}

// outcome is what a probe found.
type outcome struct {
	throughput float64 // completed requests per second, in the second half of the probe's time
	keepsUp    bool    // nearly as many requests, and tokens, completed as arrived in that half
	sent       int64   // requests
	most, left int64   // requests that were in the system at once, and at the end
	hammered   bool    // nearly all were refused
	residence  float64 // mean seconds that a request took
	service    float64 // the same, from admission on
	ttft       float64 // the same, to the first token
}

func probeAt(ctx context.Context, l scenario.ProbeLoad, u *scenario.Setup, fleet sim.Fleet) (outcome, error) {
	l.Seconds = min(l.Seconds, clock.MaxRun.Seconds())
	src, err := u.SourceAt(l)
	if err != nil {
		return outcome{}, err
	}
	var p probe
	engine, err := sim.NewFleet(fleet, src, &p)
	if err != nil {
		return outcome{}, err
	}
	end := clock.FromSeconds(l.Seconds)
	if l.Seconds > 0 {
		engine.Horizon = clock.Time(end)
		p.half = clock.Time(end / 2)
	}
	if err := engine.Run(ctx); err != nil || p.all == 0 {
		return outcome{sent: p.sent}, err
	}
	o := outcome{
		sent: p.sent, ttft: p.ttft / float64(p.all),
		residence: p.residence / float64(p.all), service: p.service / float64(p.all),
		keepsUp: p.completed.follows(p.arrived), hammered: p.refused > 10*p.all,
		most: p.most, left: p.sent - p.all - p.refused,
	}
	if l.Seconds > 0 {
		o.throughput = float64(p.completed.requests) / (end - end/2).Seconds()
	}
	return o, nil
}

// Probes last as long as so many requests on an idle system. They are long enough for so many
// requests that chance does not matter, and short enough not to take longer than the sweep; but a system
// that holds very many requests must have time to fill.
const (
	probeLengths     = 40
	probeMinLengths  = 10
	probeRequests    = 30_000
	probeMaxRequests = 300_000
	probeMinRequests = 1_000
)

func probeSeconds(rate, idle float64) float64 {
	usual := min(max(probeLengths*idle, probeMinRequests/rate), probeRequests/rate)
	return max(usual, min(probeMinLengths*idle, probeMaxRequests/rate))
}

// IdleRequests is the number of requests that [Idle] simulates.
const IdleRequests = 50

// Idle is the mean time in seconds of a request on an otherwise idle system; 0 if none completes.
func Idle(ctx context.Context, u *scenario.Setup) (float64, error) {
	o, err := idleSystem(ctx, u)
	return o.residence, err
}

// idleSystem sends one request after the other.
func idleSystem(ctx context.Context, u *scenario.Setup) (outcome, error) {
	return probeAt(ctx, scenario.ProbeLoad{Users: 1, Requests: IdleRequests}, u, u.StandingFleet(false))
}

// Users finds the number of users of a closed loop at which throughput comes near its highest; 0 if no request
// completes. It doubles the number until throughput stops growing. simulated is the number of requests that it took.
func Users(ctx context.Context, u *scenario.Setup) (users float64, simulated int64, err error) {
	alone, err := idleSystem(ctx, u)
	idle := alone.residence
	if err != nil || idle == 0 {
		return 0, alone.sent, err
	}
	simulated = alone.sent
	think := 0.0
	if u.Traffic.Closed {
		think = u.Traffic.Spec.Think().Seconds()
	}
	var rates []float64 // of 1, 2, 4, … users
	best, flat := 0.0, 0
	for n := 1; n <= 1<<17 && flat < 3; n *= 2 {
		seconds := min(probeLengths*(idle+think), probeRequests*(idle+think)/float64(n))
		load := scenario.ProbeLoad{Users: n, Seconds: max(seconds, 6*(idle+think))}
		o, err := probeAt(ctx, load, u, u.StandingFleet(false))
		if err != nil {
			return 0, simulated, err
		}
		simulated += o.sent
		x := o.throughput
		rates = append(rates, x)
		if x < 1.03*best {
			flat++
		} else {
			flat = 0
		}
		if best = max(best, x); o.hammered {
			break // more users are refused at once, and come back at once
		}
	}
	return nearBest(rates, best), simulated, nil
}

// nearBest is the number of users at which throughput reaches 95 % of the best, given that of 1, 2, 4, … users. It is
// interpolated linearly.
func nearBest(rates []float64, best float64) float64 {
	const near = 0.95
	for i, x := range rates {
		if x >= near*best && i > 0 {
			low := float64(int(1) << (i - 1))
			return low + low*(near*best-rates[i-1])/(x-rates[i-1])
		}
	}
	return 1
}
