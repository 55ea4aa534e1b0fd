package planning

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/layout"
	"clifftop/report/plan"
	"clifftop/workload"
)

// The search simulates one replica at its share of the load, and looks for the least number of replicas that meets
// the SLO.

// Lengths of runs, in requests. Near the limit a run is repeated with four times as many.
const (
	shortRun     = 1500
	longestRun   = 60_000
	residences   = 12 // that a run lasts at least
	tailRequests = 60 // beyond the highest percentile
	nearBelow    = 0.85
	nearAbove    = 1.18
)

// requests is how long to run a candidate at a rate at first.
func (p *planner) requests(c *candidate, rate float64) int {
	n := max(shortRun, residences*rate*c.bounds.residence())
	for _, o := range limits(p.objectives) {
		if o.Percentile > 0 {
			n = max(n, tailRequests/(1-o.Percentile/100))
		}
	}
	for _, k := range p.objectives {
		if k.class >= 0 { // the rarest class has enough requests too
			n = max(n, shortRun/(4*p.shape.share(k.class)))
		}
	}
	if w := p.slo.WaitProbability; w != nil && *w > 0 {
		n = max(n, 2*shortRun, tailRequests / *w)
	}
	n = max(n, float64(p.demand.Recorded(rate))) // its beginning may be unlike the rest
	return int(min(n, longestRun))
}

// probe runs a replica at a rate, in requests per second, once.
func (p *planner) probe(ctx context.Context, c *candidate, rate float64) (*report.Summary, error) {
	if s := c.probes[rate]; s != nil {
		return s, nil
	}
	n := p.requests(c, rate)
	s, err := p.run(ctx, c, c.setup, rate, n)
	if err == nil {
		recorded := p.demand.Recorded(rate) > 0 // and there are no more
		if use := s.SLOUse(); use > nearBelow && use < nearAbove && !recorded {
			c.effort.Requests -= s.Effort.Requests
			c.effort.RepeatedRequests += s.Effort.Requests
			s, err = p.run(ctx, c, c.setup, rate, min(4*n, longestRun))
		}
	}
	if err == nil {
		c.probes[rate] = s
	}
	return s, err
}

// run simulates a replica under so many requests.
func (p *planner) run(ctx context.Context, c *candidate, u *scenario.Setup, rate float64,
	requests int) (*report.Summary, error) {
	at, err := p.demand.Under(u, rate, requests)
	if err != nil {
		return nil, err
	}
	return p.make(ctx, c, at, rate, "", nil)
}

// make makes a run at a rate, or takes it from the ledger. more says what else is not as the setup's scenario has it.
func (p *planner) make(ctx context.Context, c *candidate, u *scenario.Setup, rate float64, more string,
	src workload.Source) (*report.Summary, error) {
	c.runs++
	s, err := p.options.Ledger.Run(ctx, u, experiments.RunOptions{Check: p.options.Check, Source: src},
		phrase("%v requests/s%s", rate, more))
	if errors.Is(err, experiments.ErrMissing) {
		return nil, fmt.Errorf("%s at %.4g requests/s%s: %w", c.name, rate, more, err)
	}
	if err == nil {
		c.effort.Add(s.Effort)
	}
	return s, err
}

// holds reports whether a replica meets the SLO at a rate.
func (p *planner) holds(ctx context.Context, c *candidate, rate float64) (bool, error) {
	s, err := p.probe(ctx, c, rate)
	return err == nil && s.SLOUse() <= 1, err
}

// fewest finds the least number of replicas. It gives up where that costs more than limit, in US dollars a month, or
// takes more GPUs than are allowed. A higher limit makes all the runs that a lower one does.
func (p *planner) fewest(ctx context.Context, c *candidate, limit float64) error {
	lowest, most := c.least(), p.spec.MaxGPUs/c.perGPUs
	dear := func(n int) bool { return c.price != nil && c.cost(n) > limit }
	if dear(lowest) {
		p.refuse(c, plan.TooDear, lowest)
		return nil
	}
	n := min(max(lowest, plan.Replicas(c.planned, c.about)), most)
	for {
		ok, err := p.holds(ctx, c, c.planned/float64(n))
		if err != nil {
			return err
		}
		if ok {
			break
		}
		lowest = n + 1
		switch {
		case dear(lowest):
			p.refuse(c, plan.TooDear, lowest)
			return nil
		case lowest > most:
			p.refuse(c, plan.TooManyGPUs, lowest)
			return nil
		case p.hopeless(c, n):
			p.refuse(c, plan.MissesSLO, n)
			return nil
		}
		n = min(max(lowest, n+n/4), most)
	}
	c.count = n
	if err := p.descend(ctx, c, lowest); err != nil {
		c.count = 0 // not known yet
		return err
	}
	c.bracket()
	return nil
}

// descend lowers the count of a candidate to the least between lowest and what it is, or within 3 % of that.
func (p *planner) descend(ctx context.Context, c *candidate, lowest int) error {
	step := 1
	for lowest < c.count {
		at := max(lowest, c.count-step)
		if at > lowest && c.count-lowest <= max(1, c.count*3/100) {
			at = c.count - 1
		}
		ok, err := p.holds(ctx, c, c.planned/float64(at))
		if err != nil {
			return err
		}
		if ok {
			c.count, step = at, 2*step
			continue
		}
		lowest, step = at+1, max(1, (c.count-at)/2)
		if c.count-lowest < c.count*3/100 {
			return nil
		}
	}
	return nil
}

// hopeless reports whether more replicas will not help: with little to do a replica misses the SLO no less.
func (p *planner) hopeless(c *candidate, n int) bool {
	s := c.probes[c.planned/float64(n)]
	busy := s.System.BusyFraction
	return busy != nil && *busy < 0.05 || s.Concurrency.InSystem.Mean != nil && *s.Concurrency.InSystem.Mean < 0.02
}

// bracket reads off the probes at which rate a replica passes and at which it fails.
func (c *candidate) bracket() {
	c.passes, c.fails = c.planned/float64(c.count), 0
	for rate, s := range c.probes {
		if s.SLOUse() <= 1 {
			c.passes = max(c.passes, rate)
		}
	}
	for rate, s := range c.probes {
		if s.SLOUse() > 1 && rate > c.passes && (c.fails == 0 || rate < c.fails) {
			c.fails = rate
		}
	}
}

// refusals of the search, in words.
func (p *planner) refuse(c *candidate, reason string, n int) {
	r := &plan.Refusal{Name: c.name, Reason: reason}
	if rate, s := c.best(); s != nil {
		if use := s.SLOUse(); !math.IsInf(use, 1) {
			r.Excess = &use
		}
		r.Text = phrase("at %s requests/s each replica, %s", layout.Digits(rate), curve.Breaks(s))
	}
	switch reason {
	case plan.TooDear:
		r.Text = prefixedBy(phrase("at least %d %s, %s a month", n, plural(n, "replica"), layout.Dollars(c.cost(n))),
			r.Text)
		r.Excess = nil
	case plan.TooManyGPUs:
		r.Text = prefixedBy(phrase("more than %d GPUs", p.spec.MaxGPUs), r.Text)
	}
	c.refusal = r
}

func prefixedBy(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}

// best is the probe at the lowest rate.
func (c *candidate) best() (rate float64, s *report.Summary) {
	for _, at := range c.rates() {
		return at, c.probes[at]
	}
	return 0, nil
}

// rates are those of the probes, rising.
func (c *candidate) rates() []float64 {
	var list []float64
	for rate := range c.probes {
		list = append(list, rate)
	}
	slices.Sort(list)
	return list
}

// refine narrows the bracket of a replica's capacity to a few per cent, and corrects the count by it.
func (p *planner) refine(ctx context.Context, c *candidate) error {
	const growth, precision = 1.25, 1.04
	for range 20 {
		if c.fails != 0 {
			break
		}
		if _, err := p.probe(ctx, c, c.passes*growth); err != nil {
			return err
		}
		c.bracket()
	}
	for c.fails > c.passes*precision {
		if _, err := p.probe(ctx, c, math.Sqrt(c.passes*c.fails)); err != nil {
			return err
		}
		c.bracket()
	}
	c.count = min(c.count, plan.Replicas(c.planned, c.passes))
	c.near = true
	return nil
}

// open are the candidates that nothing stands against, those that are likely cheapest first.
func open(all []*candidate) []*candidate {
	var list []*candidate
	for _, c := range all {
		if c.refusal == nil {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *candidate) int { return compareCosts(a.likely(), b.likely()) })
	return list
}

// search searches the shard's part of the candidates.
func (p *planner) search(ctx context.Context, list []*candidate) error {
	if p.spec.Fewest != nil {
		return p.seats(ctx, list)
	}
	return p.screen(ctx, list)
}

// screen searches candidates in rounds. What a round finds ends later searches that cannot compete.
//
// A shard uses only what it has found itself. That is not less than what all have found together, so that it makes all
// the runs of its candidates that one process would, and perhaps more.
func (p *planner) screen(ctx context.Context, list []*candidate) error {
	const round = 8
	cheapest, cheapestApart := math.Inf(1), math.Inf(1)
	missing := &MissingError{Of: len(list)}
	for first := 0; first < len(list); first += round {
		var now []*candidate
		for i := first; i < min(first+round, len(list)); i++ {
			if p.shard.Has(i) {
				now = append(now, list[i])
			}
		}
		limit := func(c *candidate) float64 {
			if c.apart {
				return min(cheapest, cheapestApart) * p.spec.Within
			}
			return cheapest * p.spec.Within
		}
		err := p.each(ctx, len(now), func(ctx context.Context, i int) error {
			return p.fewest(ctx, now[i], limit(now[i]))
		})
		if err = missing.gather(err); err != nil {
			return err
		}
		for _, c := range now {
			switch {
			case c.count == 0:
			case c.apart:
				cheapestApart = min(cheapestApart, c.cost(c.count))
			default:
				cheapest = min(cheapest, c.cost(c.count))
			}
		}
		p.tell(len(now))
	}
	return missing.orNil()
}

func (c *candidate) likely() float64 { return c.cost(plan.Replicas(c.planned, c.about)) }

func compareCosts(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
