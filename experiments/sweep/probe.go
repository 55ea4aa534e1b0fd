package sweep

import (
	"context"

	"clifftop/experiments/scenario"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// A probe is a short run that measures nothing but how fast requests complete. Sweeps use probes to find out where a
// system saturates before they choose loads. All replicas are there in a probe, from its beginning to its end.
type probe struct {
	half      clock.Time // from here on is counted
	arrived   int64      // in the second half
	completed int64      // in the second half
	all       int64      // completed
	refused   int64      // Default ended otherwise
	residence float64    // Seconds, summed over completed requests
	service   float64    // the same, from admission on
}

// Arrived counts a request.
func (p *probe) Arrived(at clock.Time, _ *workload.Request) {
	if at >= p.half {
		p.arrived++
	}
}

// Finished counts a request.
func (p *probe) Finished(r *event.Record) {
	if r.Outcome != event.Completed {
		p.refused++
		return
	}
	p.all++
	p.residence += r.ClientLast.Sub(r.Request.Arrival).Seconds()
	p.service += r.ClientLast.Sub(max(r.Scheduled, r.Request.Arrival)).Seconds()
	if r.ClientLast >= p.half {
		p.completed++
	}
}

// outcome is what a probe found.
type outcome struct {
	throughput float64 // completed requests per second, in the second half of the probe's time
	keepsUp    bool    // about as many completed as arrived
	hammered   bool    // nearly all were refused
	residence  float64 // mean seconds that a request took
	service    float64 // the same, from admission on
}

// probeAt runs a probe.
func probeAt(ctx context.Context, l scenario.ProbeLoad, u *scenario.Setup) (outcome, error) {
	l.Seconds = min(l.Seconds, clock.MaxRun.Seconds())
	src, err := u.SourceAt(l)
	if err != nil {
		return outcome{}, err
	}
	var p probe
	engine, err := sim.NewFleet(u.StandingFleet(false), src, &p)
	if err != nil {
		return outcome{}, err
	}
	end := clock.FromSeconds(l.Seconds)
	if l.Seconds > 0 {
		engine.Horizon = clock.Time(end)
		p.half = clock.Time(end / 2)
	}
	if err := engine.Run(ctx); err != nil || p.all == 0 {
		return outcome{}, err
	}
	o := outcome{
		residence: p.residence / float64(p.all), service: p.service / float64(p.all),
		keepsUp: float64(p.completed) >= 0.85*float64(p.arrived), hammered: p.refused > 10*p.all,
	}
	if l.Seconds > 0 {
		o.throughput = float64(p.completed) / (end - end/2).Seconds()
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

	probeSketch = 20 // lengths of the single probe of a sketch
)

// probeSeconds is how long to probe a rate.
func probeSeconds(rate, idle float64) float64 {
	usual := min(max(probeLengths*idle, probeMinRequests/rate), probeRequests/rate)
	return max(usual, min(probeMinLengths*idle, probeMaxRequests/rate))
}

// saturation is what probes find out.
type saturation struct {
	load    float64 // More of it brings no more throughput: a rate in requests per second, or a number of users
	service float64 // Seconds that a request takes there, waiting for admission apart
}

// findSaturation estimates where the system saturates. Its load is 0 if no request completes.
func findSaturation(ctx context.Context, u *scenario.Setup, users bool) (saturation, error) {
	idle, err := idleResidence(ctx, u)
	if err != nil || idle == 0 {
		return saturation{}, err
	}
	if users {
		return saturationUsers(ctx, u, idle)
	}
	return saturationRate(ctx, u, idle)
}

// idleResidence is the mean time of a request on an otherwise idle system.
func idleResidence(ctx context.Context, u *scenario.Setup) (float64, error) {
	o, err := probeAt(ctx, scenario.ProbeLoad{Users: 1, Requests: 50}, u)
	return o.residence, err
}

// serviceAt is how long a request takes at a rate, waiting for admission apart.
func serviceAt(ctx context.Context, u *scenario.Setup, rate float64) (float64, error) {
	idle, err := idleResidence(ctx, u)
	if err != nil || idle == 0 {
		return 0, err
	}
	o, err := probeAt(ctx, scenario.ProbeLoad{Rate: rate, Seconds: probeSeconds(rate, idle)}, u)
	return max(idle, o.service), err
}

// saturationRate quadruples the rate until completions do not follow, then closes in on the highest
// throughput.
func saturationRate(ctx context.Context, u *scenario.Setup, idle float64) (saturation, error) {
	best := saturation{service: idle}
	try := func(rate float64) (keepsUp bool, err error) {
		o, err := probeAt(ctx, scenario.ProbeLoad{Rate: rate, Seconds: probeSeconds(rate, idle)}, u)
		best.load, best.service = max(best.load, o.throughput), max(best.service, o.service)
		return o.keepsUp, err
	}
	rate := 0.5 / idle
	for range 20 {
		ok, err := try(rate)
		if err != nil {
			return best, err
		}
		if !ok {
			break
		}
		rate *= 4
	}
	// Overload may cost throughput, so that the peak is looked for from below too.
	for _, factor := range []float64{1.25, 1, 0.9} {
		if _, err := try(best.load * factor); err != nil {
			return best, err
		}
	}
	return best, nil
}

// saturationUsers doubles the number of users until throughput stops growing, and finds the number at
// which it comes near its highest.
func saturationUsers(ctx context.Context, u *scenario.Setup, idle float64) (saturation, error) {
	think := 0.0
	if u.Traffic.Closed {
		think = u.Traffic.Spec.Think().Seconds()
	}
	result := saturation{load: 1, service: idle}
	probe := func(n int) (outcome, error) {
		seconds := min(probeLengths*(idle+think), probeRequests*(idle+think)/float64(n))
		o, err := probeAt(ctx, scenario.ProbeLoad{Users: n, Seconds: max(seconds, 6*(idle+think))}, u)
		result.service = max(result.service, o.service)
		return o, err
	}
	var users []int
	var rates []float64
	best, flat := 0.0, 0
	for n := 1; n <= 1<<17 && flat < 3; n *= 2 {
		o, err := probe(n)
		if err != nil {
			return result, err
		}
		x := o.throughput
		users, rates = append(users, n), append(rates, x)
		if x < 1.03*best {
			flat++
		} else {
			flat = 0
		}
		if best = max(best, x); o.hammered {
			break // More users are refused at once, and come back at once
		}
	}
	const near = 0.95
	for i, x := range rates {
		if x >= near*best && i > 0 {
			// Between two powers of two throughput is taken to be straight.
			low, high := float64(users[i-1]), float64(users[i])
			result.load = low + (high-low)*(near*best-rates[i-1])/(x-rates[i-1])
			break
		}
	}
	return result, nil
}

// Saturation estimates the rate in requests per second at which the scenario's system saturates: the highest at which
// it completes requests, whatever their latency.
func Saturation(ctx context.Context, s *scenario.Scenario) (float64, error) {
	u, err := Options{Over: scenario.RateKey}.Trial(s)
	if err != nil {
		return 0, err
	}
	found, err := findSaturation(ctx, u, false)
	return found.load, err
}

// overloaded estimates from a single probe, of more load than the seats can take, how many requests per second the
// system completes, and how long one takes there from admission on. It is much rougher than saturation, and cheaper.
func overloaded(ctx context.Context, u *scenario.Setup) (o outcome, idle float64, err error) {
	if idle, err = idleResidence(ctx, u); err != nil || idle == 0 {
		return outcome{}, idle, err
	}
	seats := float64(*u.Scenario.Engine.MaxNumSeqs)
	seconds := probeSketch * idle
	rate := min(seats/idle, probeMaxRequests/seconds)
	o, err = probeAt(ctx, scenario.ProbeLoad{Rate: rate, Seconds: seconds}, u)
	return o, idle, err
}

// Sketch chooses loads for a curve that is wanted at once: from near idle to beyond where one short run in overload
// says that the system saturates. It also says how long a request takes there, in seconds from its admission on.
// Without loads, no request completes.
func Sketch(ctx context.Context, u *scenario.Setup, over string, points int) (chosen []float64, service float64,
	err error) {
	o, idle, err := overloaded(ctx, u)
	if err != nil || idle == 0 {
		return nil, 0, err
	}
	service = max(idle, o.service)
	load := o.throughput
	if load == 0 { // no request lasts that long: then one at a time
		load = 1 / idle
	}
	if over == scenario.UsersKey {
		think := 0.0
		if u.Traffic.Closed {
			think = u.Traffic.Spec.Think().Seconds()
		}
		load = max(1, load*(think+service)) // as many as are thinking or being served
	}
	return loadGrid(load, over == scenario.UsersKey, points), service, nil
}
