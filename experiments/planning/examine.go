package planning

import (
	"context"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/layout"
	"clifftop/report/plan"
)

// examiner looks at the best candidates under more load than they were planned for, and without a replica.
type examiner struct{ *planner }

// examine looks at the best candidates under more than the plan was made for.
func (p examiner) examine(ctx context.Context, plan *plan.Result, met []*candidate) error {
	n := min(examined, len(met))
	return p.each(ctx, n, func(ctx context.Context, i int) error {
		c, r := met[i], &plan.Candidates[i]
		if err := p.headroom(ctx, c, r); err != nil {
			return err
		}
		if err := p.spare(ctx, c, r); err != nil {
			return err
		}
		r.LimitedBy = c.limit()
		return nil
	})
}

// limit says what broke at the lowest rate that the candidate failed at.
func (c *candidate) limit() string {
	for _, rate := range c.rates() {
		if s := c.probes[rate]; s.SLOUse() > 1 && rate > c.passes {
			return phrase("at %s requests/s each replica %s", layout.Digits(rate), curve.Breaks(s))
		}
	}
	return ""
}

// headroom loads the plan more, and with longer requests.
func (p examiner) headroom(ctx context.Context, c *candidate, r *plan.Candidate) error {
	rate := c.planned / float64(c.count)
	for _, factor := range []float64{1.2, 1.5, 2} {
		s, err := p.probe(ctx, c, rate*factor)
		if err != nil {
			return err
		}
		r.Headroom = append(r.Headroom, step(phrase("load × %g", factor), factor, s))
	}
	s, err := p.longer(ctx, c, rate, 2)
	if err != nil {
		return err
	}
	r.Headroom = append(r.Headroom, step("prompts and outputs × 2", 2, s))
	return nil
}

func step(what string, factor float64, s *report.Summary) plan.HeadroomStep {
	holds := s.SLOUse() <= 1
	return plan.HeadroomStep{What: what, Factor: factor, Holds: &holds, Breaks: curve.Breaks(s)}
}

// longer runs a replica with requests that are longer by a factor.
func (p examiner) longer(ctx context.Context, c *candidate, rate, factor float64) (*report.Summary, error) {
	at, err := p.demand.Under(c.setup, rate, p.requests(c, rate))
	if err != nil {
		return nil, err
	}
	src, err := stretched(at, factor)
	if err != nil {
		return nil, err
	}
	return p.make(ctx, c, at, rate, phrase(", lengths × %v", factor), src)
}

// spare finds how many replicas the plan needs so that it survives failures, with the prefix caches as they are and
// with nothing found in them.
func (p examiner) spare(ctx context.Context, c *candidate, r *plan.Candidate) error {
	k := p.spec.Spare
	if k == 0 {
		return nil
	}
	x := &plan.SparePlan{Failures: k, Replicas: c.count + k}
	if c.count > k {
		s, err := p.probe(ctx, c, c.planned/float64(c.count-k))
		if err != nil {
			return err
		}
		x.Degraded = curve.Breaks(s)
		if x.Degraded == "" {
			x.Replicas, x.Degraded = c.count, "the SLO holds"
		}
	} else {
		x.Degraded = "nothing is left to serve"
	}
	if err := p.cold(ctx, c, x); err != nil {
		return err
	}
	if c.price != nil {
		usd := c.cost(x.Replicas)
		x.USDPerMonth = &usd
		if x.ColdReplicas > 0 {
			cold := c.cost(x.ColdReplicas)
			x.ColdUSD = &cold
		}
	}
	r.Spare = x
	return nil
}

// cold is the same without any hits in a prefix cache, the worst that a failure can do to it.
func (p examiner) cold(ctx context.Context, c *candidate, x *plan.SparePlan) error {
	e := &c.setup.Scenario.Engine
	if !c.bounds.cached {
		x.ColdReplicas = x.Replicas // there is nothing to lose
		return nil
	}
	s, err := p.scenario.With(append(c.sets[:len(c.sets):len(c.sets)], set("engine.enable_prefix_caching", "false"),
		set("engine.policy", e.Policy))...)
	if err != nil {
		return err
	}
	u, err := s.Resolve()
	if err != nil {
		return nil // a policy that needs its cache
	}
	cold := &candidate{sets: c.sets, setup: u, perGPUs: c.perGPUs, planned: c.planned, err: c.err, price: c.price,
		name: c.name, probes: map[float64]*report.Summary{}}
	cold.bounds = replicaOf(u, p.shape)
	cold.about, _ = cold.bounds.carries(p.objectives)
	cold.atMost = c.planned / float64(c.count) // no fewer than with the cache
	if err := p.fewest(ctx, cold, 1e300); err != nil {
		return err
	}
	c.runs += cold.runs
	c.effort.Add(cold.effort)
	if cold.count > 0 {
		x.ColdReplicas = max(x.Replicas, cold.count+x.Failures)
	}
	return nil
}
