package experiments

import (
	"context"
	"math"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// A probe is a short run that measures nothing but how fast requests complete. Sweeps use probes to
// find out where a system saturates before they choose loads.
type probe struct {
	half      clock.Time // from here on is counted
	arrived   int64      // in the second half
	completed int64      // in the second half
	all       int64      // completed
	residence float64    // seconds, summed over completed requests
}

// The methods of [sim.Observer].
func (p *probe) Edge() clock.Time               { return clock.Never }
func (p *probe) Levels(clock.Time, *sim.Levels) {}
func (p *probe) Span(*sim.Span)                 {}
func (p *probe) Gap(clock.Time, clock.Duration) {}
func (p *probe) Preempted(clock.Time)           {}
func (p *probe) Dropped(clock.Time, int)        {}

// Arrived counts a request.
func (p *probe) Arrived(at clock.Time, _ *workload.Request) {
	if at >= p.half {
		p.arrived++
	}
}

// Finished counts a request.
func (p *probe) Finished(r *sim.Record) {
	if r.Outcome != sim.Completed {
		return
	}
	p.all++
	p.residence += r.ClientLast.Sub(r.Request.Arrival).Seconds()
	if r.ClientLast >= p.half {
		p.completed++
	}
}

// probeLoad is one load for a probe: a rate of Poisson arrivals, or a number of users.
type probeLoad struct {
	rate     float64
	users    int
	requests int64   // 0 for no limit
	seconds  float64 // 0 for no limit
}

// outcome is what a probe found.
type outcome struct {
	throughput float64 // completed requests per second, in the second half of the probe's time
	keepsUp    bool    // about as many completed as arrived
	residence  float64 // mean seconds that a request took
}

// run runs a probe.
func (l probeLoad) run(ctx context.Context, u *Setup) (outcome, error) {
	l.seconds = min(l.seconds, clock.MaxRun.Seconds())
	src, err := u.probeSource(l)
	if err != nil {
		return outcome{}, err
	}
	var p probe
	cfg := u.Config
	cfg.Scheduler = u.newScheduler()
	engine, err := sim.NewEngine(cfg, src, &p)
	if err != nil {
		return outcome{}, err
	}
	end := clock.FromSeconds(l.seconds)
	if l.seconds > 0 {
		engine.Horizon = clock.Time(end)
		p.half = clock.Time(end / 2)
	}
	if err := engine.Run(ctx); err != nil || p.all == 0 {
		return outcome{}, err
	}
	o := outcome{residence: p.residence / float64(p.all), keepsUp: float64(p.completed) >= 0.85*float64(p.arrived)}
	if l.seconds > 0 {
		o.throughput = float64(p.completed) / (end - end/2).Seconds()
	}
	return o, nil
}

// probeSource is the scenario's traffic at another load, and without bursts where it is synthetic.
func (u *Setup) probeSource(l probeLoad) (workload.Source, error) {
	if t := u.traffic.trace; t != nil {
		return t.probe(l)
	}
	spec := u.traffic.spec
	stage := workload.Stage{Process: "poisson", Rate: l.rate}
	if l.users > 0 {
		stage = workload.Stage{Process: "closed", Users: int32(l.users), Ramp: clock.FromSeconds(l.seconds / 20)}
		if spec.Closed() {
			stage.ThinkTime = spec.Arrivals[0].ThinkTime
		}
	}
	spec.Arrivals = []workload.Stage{stage}
	spec.Requests, spec.Duration = l.requests, clock.FromSeconds(l.seconds)
	return workload.New(spec, u.Scenario.Run.Seed)
}

// Probes last as long as so many requests on an idle system. They are long enough for so many
// requests that chance does not matter, and short enough not to take longer than the sweep.
const (
	probeLengths     = 40
	probeRequests    = 30_000
	probeMinRequests = 1_000
)

// probeSeconds is how long to probe a rate.
func probeSeconds(rate, idle float64) float64 {
	return min(max(probeLengths*idle, probeMinRequests/rate), probeRequests/rate)
}

// saturation estimates the load beyond which more of it brings no more throughput: a rate in requests per second,
// or a number of users.
func (u *Setup) saturation(ctx context.Context, users bool) (float64, error) {
	idle, err := u.idleResidence(ctx)
	if err != nil || idle == 0 {
		return 0, err
	}
	if users {
		return u.saturationUsers(ctx, idle)
	}
	return u.saturationRate(ctx, idle)
}

// idleResidence is the mean time of a request on an otherwise idle system.
func (u *Setup) idleResidence(ctx context.Context) (float64, error) {
	o, err := probeLoad{users: 1, requests: 50}.run(ctx, u)
	return o.residence, err
}

// saturationRate quadruples the rate until completions do not follow, then closes in on the highest
// throughput.
func (u *Setup) saturationRate(ctx context.Context, idle float64) (float64, error) {
	best := 0.0
	try := func(rate float64) (keepsUp bool, err error) {
		o, err := probeLoad{rate: rate, seconds: probeSeconds(rate, idle)}.run(ctx, u)
		best = max(best, o.throughput)
		return o.keepsUp, err
	}
	rate := 0.5 / idle
	for range 20 {
		ok, err := try(rate)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		rate *= 4
	}
	// Overload may cost throughput, so that the peak is looked for from below too.
	for _, factor := range []float64{1.25, 1, 0.9} {
		if _, err := try(best * factor); err != nil {
			return 0, err
		}
	}
	return best, nil
}

// saturationUsers doubles the number of users until throughput stops growing, and returns the number at
// which it comes near its highest.
func (u *Setup) saturationUsers(ctx context.Context, idle float64) (float64, error) {
	think := 0.0
	if u.traffic.closed {
		think = u.traffic.spec.Arrivals[0].ThinkTime.Mean.Seconds()
	}
	throughput := func(n int) (float64, error) {
		seconds := min(probeLengths*(idle+think), probeRequests*(idle+think)/float64(n))
		o, err := probeLoad{users: n, seconds: max(seconds, 6*(idle+think))}.run(ctx, u)
		return o.throughput, err
	}
	var users []int
	var rates []float64
	best, flat := 0.0, 0
	for n := 1; n <= 1<<17 && flat < 3; n *= 2 {
		x, err := throughput(n)
		if err != nil {
			return 0, err
		}
		users, rates = append(users, n), append(rates, x)
		if x < 1.03*best {
			flat++
		} else {
			flat = 0
		}
		best = max(best, x)
	}
	const near = 0.95
	for i, x := range rates {
		if x >= near*best && i > 0 {
			// Between two powers of two throughput is taken to be straight.
			low, high := float64(users[i-1]), float64(users[i])
			return low + (high-low)*(near*best-rates[i-1])/(x-rates[i-1]), nil
		}
	}
	return 1, nil
}

// loads spreads points from near idle, through saturation, where they are densest, to beyond.
func loads(saturation float64, users bool, points int) []float64 {
	shares := []float64{0.05, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.87, 0.94, 1, 1.08, 1.18, 1.32, 1.5}
	if users {
		shares = []float64{0.02, 0.06, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 1.15, 1.35, 1.6, 2, 2.5}
	}
	var values []float64
	for i := range points {
		at := 0.0
		if points > 1 {
			at = float64(i) * float64(len(shares)-1) / float64(points-1)
		}
		k := min(int(at), len(shares)-2)
		share := shares[k] + (shares[k+1]-shares[k])*(at-float64(k))
		v := significant(saturation*share, 3)
		if users {
			v = max(1, math.Round(v))
		}
		if len(values) == 0 || v > values[len(values)-1] {
			values = append(values, v)
		}
	}
	return values
}

// significant rounds to so many significant digits.
func significant(x float64, digits int) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, float64(digits)-1-math.Floor(math.Log10(math.Abs(x))))
	if scale >= 1 {
		return math.Round(x*scale) / scale
	}
	inverse := math.Round(1 / scale)
	return math.Round(x/inverse) * inverse
}
