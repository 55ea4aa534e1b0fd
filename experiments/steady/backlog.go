package steady

import (
	"cmp"
	"context"
	"math"
	"slices"

	"clifftop/experiments/scenario"
	"clifftop/report/stats"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// A backlog has so many requests: first a few, to see how many run at once, then a number of times as many.
const (
	firstBacklog  = 2_000
	sketchBacklog = 4_000
	leastBacklog  = 40_000
	mostBacklog   = 200_000
	backlogTimes  = 20
	// The rate is measured between these shares of the work: at the start the batch is filled, and after two thirds of
	// the time no more requests arrive, so that replicas of unequal speed do not run empty together.
	fromShare, toShare = .2, .65
)

// drain is how a system works off a backlog.
type drain struct {
	rate     float64 // requests per second
	relative float64 // half width of its 95 % interval, as a share of the rate
	spread   float64 // the part of it that does not come from the lengths of the requests
	service  float64 // mean seconds of a request from admission on
	longest  float64 // the longest of them
	cv2      float64 // squared coefficient of variation of the work of a request
	running  float64 // requests that run at once, on average
	effort   float64 // spans of iterations per request
	sent     int64   // requests
}

// drainBacklog measures how fast the system completes requests while others wait. It estimates the rate with the first
// requests, which arrive almost at once; then many arrive at overload times this rate, so that a router sees the load
// that it makes: from least to most, and as many as fill the system [backlogTimes] times if this is between.
func drainBacklog(ctx context.Context, u *scenario.Setup, idle float64, first, least, most int64) (drain, error) {
	const (
		atOnce   = .05 // of the time of a request on an idle system
		overload = 1.5
		mostRate = 1e7 // that arrivals can have
	)
	d, err := drainRequests(ctx, u, first, min(float64(first)/(atOnce*idle), mostRate))
	if err != nil || d.rate == 0 {
		return d, err
	}
	n := min(max(int64(backlogTimes*d.running), least), most)
	all, err := drainRequests(ctx, u, n, min(overload*d.rate, mostRate))
	all.sent += d.sent
	return all, err
}

// service is the work of one request: when it completed, and how much of the system's capacity it took.
type service struct {
	end       clock.Time
	replica   int
	residence float64 // seconds from admission on
	input     float64 // tokens
	output    float64 // tokens
	work      float64
}

// services collects the requests of a backlog that completed.
type services struct {
	event.Ignore
	list  []service
	spans int
}

// Span implements [event.SpanObserver].
func (c *services) Span(*event.Span) { c.spans++ }

// Finished implements [event.Observer].
func (c *services) Finished(r *event.Record) {
	if r.Outcome != event.Completed {
		return
	}
	c.list = append(c.list, service{
		end: r.Released, replica: r.Replica, residence: r.Released.Sub(r.Scheduled).Seconds(),
		input: float64(r.Request.InputTokens), output: float64(r.Tokens),
	})
}

// drainRequests works off n requests that arrive at a rate above saturation.
func drainRequests(ctx context.Context, u *scenario.Setup, n int64, rate float64) (drain, error) {
	src, err := u.SourceAt(scenario.ProbeLoad{Rate: rate, Requests: n})
	if err != nil {
		return drain{}, err
	}
	var c services
	engine, err := sim.NewFleet(patientFleet(u), src, &c)
	if err != nil {
		return drain{}, err
	}
	if err := engine.Run(ctx); err != nil {
		return drain{sent: n}, err
	}
	d := c.measure(seatsOf(u))
	d.sent = n
	if len(c.list) == int(n) && d.rate > 0 {
		d.adjust(c.list, u)
	}
	return d, nil
}

// patientFleet is the fleet with all its replicas ready and without admission limits.
func patientFleet(u *scenario.Setup) sim.Fleet {
	f := u.StandingFleet(false)
	for i := range f.Replicas {
		f.Replicas[i].MaxQueuedRequests, f.Replicas[i].MaxQueuedTokens = 0, 0
	}
	return f
}

// seatsOf is the number of sequences that the fleet can run at once.
func seatsOf(u *scenario.Setup) float64 {
	seats := 0
	for i := range u.Pools {
		seats += u.Pools[i].Config.MaxNumSeqs * u.Pools[i].Engines()
	}
	return float64(seats)
}

// measure finds the rate at which the system completes requests while others wait. Requests count by their work, so
// that orders that prefer short requests do not look faster than they are.
func (c *services) measure(seats float64) drain {
	n := len(c.list)
	if n == 0 {
		return drain{}
	}
	slices.SortFunc(c.list, func(a, b service) int { return cmp.Compare(a.end, b.end) })
	d := drain{effort: float64(c.spans) / float64(n)}
	total := 0.0
	for i := range c.list {
		total += c.list[i].residence
		d.longest = max(d.longest, c.list[i].residence)
	}
	d.service = total / float64(n)
	d.running = total / c.list[n-1].end.Seconds()
	d.cv2 = c.weigh(d.running >= .9*seats)
	from, to, counted := c.middle()
	seconds := to.Sub(from).Seconds()
	if seconds <= 0 {
		return d
	}
	d.rate = float64(n) * (toShare - fromShare) / seconds
	d.spread = c.spread(from, to)
	d.relative = math.Hypot(normal*math.Sqrt(d.cv2/float64(counted)), d.spread)
	return d
}

// normal is the 97.5th percentile of the normal distribution.
const normal = 1.96

// middle is the part of the backlog in which the rate is measured, and the number of requests that complete in it.
func (c *services) middle() (from, to clock.Time, counted int) {
	total, done := 0.0, 0.0
	for i := range c.list {
		total += c.list[i].work
	}
	for i := range c.list {
		before := done / total
		done += c.list[i].work
		switch share := done / total; {
		case before < fromShare && share >= fromShare:
			from = c.list[i].end
		case before < toShare && share >= toShare:
			return from, c.list[i].end, max(counted, 1)
		case share > fromShare:
			counted++
		}
	}
	return from, from, 1
}

// spread is the relative half width of the interval of the work per second, from the means of 20 parts of the time.
func (c *services) spread(from, to clock.Time) float64 {
	const parts = 20
	work := make([]float64, parts)
	for i := range c.list {
		if s := &c.list[i]; s.end > from && s.end <= to {
			part := int(float64(s.end-from) / float64(to-from) * parts)
			work[min(part, parts-1)] += s.work
		}
	}
	mean, half := stats.MeanInterval(work, stats.Confidence)
	return half / mean
}

// weigh sets the work of each request to its share of what is scarce on its replica: a seat, or else the KV cache. The
// mean work is 1 on each replica: a request is not more work because its replica is slower. It returns the squared
// coefficient of variation.
func (c *services) weigh(seats bool) float64 {
	type total struct{ work, requests float64 }
	of := make(map[int]total)
	for i := range c.list {
		s := &c.list[i]
		if s.work = s.residence; !seats {
			s.work *= s.input + s.output/2 // the tokens that it held in the KV cache, on average
		}
		t := of[s.replica]
		of[s.replica] = total{work: t.work + s.work, requests: t.requests + 1}
	}
	squares := 0.0
	for i := range c.list {
		s := &c.list[i]
		if t := of[s.replica]; t.work > 0 {
			s.work *= t.requests / t.work
		}
		squares += s.work * s.work
	}
	return max(0, squares/float64(len(c.list))-1)
}
