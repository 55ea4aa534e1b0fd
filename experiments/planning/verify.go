package planning

import (
	"context"
	"errors"
	"fmt"
	"math"

	"clifftop/experiments"
	"clifftop/experiments/hours"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/plan"
	"clifftop/sim/clock"
)

// The verification simulates whole fleets behind a router, hour by hour. The hours of all fleets have the same random
// numbers.

// defaultRouter is the router of a fleet if the scenario names none.
const defaultRouter = "least-requests"

// verifier verifies the best candidate by hours.
type verifier struct {
	*planner
	share   float64 // of the hours that should meet the SLO
	horizon clock.Duration
	lead    clock.Duration
	left    float64 // requests that may still be simulated
}

// looks returns after how many hours a fleet is looked at. One that fails is dismissed at the first look that shows it.
func looks() []int { return []int{4, 8, 16, hours.DefaultHours} }

// trial is a fleet, and its hours so far.
type trial struct {
	setup *scenario.Setup
	hours []hours.Hour
}

// verify simulates hours of the fleets of the candidates, the cheapest first, and adds replicas to those that miss the
// SLO, until the cheapest meets it. It returns those of the candidates that are left. If hours cannot be simulated, or
// take more requests than the budget has, a warning says so.
func (p resultBuilder) verify(ctx context.Context, result *plan.Result, met []*candidate) ([]*candidate, error) {
	if p.spec.Fewest != nil || len(met) == 0 {
		return met, nil // the number of seats has been found by hours
	}
	v := &verifier{planner: p.planner, share: hours.DefaultShare, horizon: hours.DefaultHorizon,
		left: p.spec.Budget}
	warn := func(err error) {
		result.Warnings = append(result.Warnings, report.Warning{Code: "not_verified",
			Text: phrase("the answer rests on short runs, and bursts can take more replicas: %v", err)})
	}
	if err := v.prepare(ctx, met[0]); yamldoc.BadInput(err) {
		warn(err)
		return met, nil
	} else if err != nil {
		return met, err
	}
	met, err := v.race(ctx, met)
	var small *budgetError
	if errors.Is(err, errNoBudget) || errors.As(err, &small) || yamldoc.BadInput(err) {
		warn(err)
		err = nil
	}
	return met, err
}

// prepare finds the length of the hours and of their lead-in.
func (v *verifier) prepare(ctx context.Context, c *candidate) error {
	s := v.scenario
	if s.SLO.Hours != nil {
		v.share = *s.SLO.Hours
	}
	if s.SLO.Horizon != nil {
		v.horizon = s.SLO.Horizon.Clock()
	}
	u, err := v.fleet(c, c.count)
	if err != nil {
		return err
	}
	const parts = 4 // of the busiest hour of a recording
	recorded := u.Traffic.Recording != nil
	if recorded && s.SLO.Horizon == nil {
		v.horizon = min(v.horizon, v.demand.span/parts)
	}
	c.effort.SearchRequests += steady.IdleRequests
	if v.lead, err = hours.Lead(ctx, u, v.horizon); err != nil {
		return err
	}
	if recorded {
		v.lead = min(v.lead, v.horizon/2)
	}
	return nil
}

// fleet is the candidate with so many replicas behind the router, under the planned load.
func (v *verifier) fleet(c *candidate, replicas int) (*scenario.Setup, error) {
	sets := append(c.sets[:len(c.sets):len(c.sets)], v.demand.At(c.planned)...)
	sets = append(sets, set("deployment.replicas", fmt.Sprint(replicas)))
	if !v.scenario.Given("deployment.router") {
		sets = append(sets, set("deployment.router", defaultRouter))
	}
	s, err := v.scenario.With(sets...)
	if err != nil {
		return nil, err
	}
	return s.Resolve()
}

// race takes the cheapest candidate, again and again, and verifies it or adds a replica, until the cheapest is
// verified.
func (v *verifier) race(ctx context.Context, met []*candidate) ([]*candidate, error) {
	for rank(met); len(met) > 0 && met[0].verified == nil; rank(met) {
		c := met[0]
		err := v.settle(ctx, c)
		if c.refusal != nil {
			met = met[1:]
		}
		if err != nil {
			rank(met)
			return met, err
		}
	}
	return met, nil
}

// settle verifies the candidate with its number of replicas, or raises the number. If a smaller number suffices, it
// takes that.
func (v *verifier) settle(ctx context.Context, c *candidate) error {
	e, err := v.judge(ctx, c, c.count, false)
	if err != nil {
		return err
	}
	if !v.holds(e) {
		failed := c.count
		v.missed = append(v.missed, phrase("%s misses the SLO: %d of %d hours meet it", c.label(failed), e.Met, e.Of))
		c.count += max(1, c.count/20)
		if most := v.spec.MaxGPUs / c.perGPUs; c.count > most {
			c.count = most
		}
		if c.count <= failed {
			v.refuse(c, plan.TooManyGPUs, failed+1)
			c.refusal.Text = phrase("more than %d GPUs: with %d %s, %d of %d hours meet the SLO",
				v.spec.MaxGPUs, failed, plural(failed, "replica"), e.Met, e.Of)
			c.count = 0
			return nil
		}
		_, err := v.probe(ctx, c, c.planned/float64(c.count))
		return err
	}
	var fewer *plan.HourCount
	for c.count > 1 {
		less, err := v.judge(ctx, c, c.count-1, true)
		if err != nil {
			return err
		}
		if !v.holds(less) {
			fewer = countOf(less)
			break
		}
		c.count, e = c.count-1, less
	}
	c.verified = &plan.Verification{HourCount: *countOf(e), Share: v.share, Fewer: fewer, HorizonS: v.horizon.Seconds(),
		LeadS: v.lead.Seconds(), Router: v.routerOf()}
	return v.agree(ctx, c)
}

// holds reports whether the share of the hours meets the SLO.
func (v *verifier) holds(e hours.Evidence) bool {
	return e.Of >= hours.DefaultHours && float64(e.Met) >= v.share*float64(e.Of)
}

// agree makes the capacity of a replica, which short runs have found, agree with the hours: the verified number of
// replicas carries the load, and one fewer does not.
func (v *verifier) agree(ctx context.Context, c *candidate) error {
	if _, err := v.probe(ctx, c, c.planned/float64(c.count)); err != nil {
		return err
	}
	carries := c.planned / float64(c.count)
	c.passes = max(c.passes, carries)
	if c.verified.Fewer == nil {
		return nil
	}
	if fails := c.planned / float64(c.count-1); c.passes >= fails {
		c.passes, c.fails = carries, fails
	}
	return nil
}

// judge simulates hours of the candidate with so many replicas. If whole is false, it stops where it is plain that too
// few of them meet the SLO.
func (v *verifier) judge(ctx context.Context, c *candidate, replicas int, whole bool) (hours.Evidence, error) {
	t := c.trials[replicas]
	if t == nil {
		u, err := v.fleet(c, replicas)
		if err != nil {
			return hours.Evidence{}, err
		}
		t = &trial{setup: u}
		if c.trials == nil {
			c.trials = map[int]*trial{}
		}
		c.trials[replicas] = t
	}
	for _, n := range looks() {
		done := len(t.hours)
		if n <= done {
			continue
		}
		if e := hours.Weigh(t.hours, v.share); !whole && e.Verdict(v.share) == hours.No {
			return e, nil
		}
		if err := v.pay(c, n-done); err != nil {
			return hours.Evidence{}, err
		}
		more, err := hours.Judge(ctx, t.setup, hours.Options{First: done, Hours: n - done, Horizon: v.horizon,
			Lead: v.lead, Jobs: v.options.Jobs, Check: v.options.Check, Cache: v.options.Ledger})
		if errors.Is(err, experiments.ErrMissing) {
			return hours.Evidence{}, &MissingError{Labels: []string{phrase("hours of %s", c.label(replicas))}}
		}
		if err != nil {
			return hours.Evidence{}, err
		}
		c.runs += len(more)
		for i := range more {
			c.effort.Add(more[i].Summary.Effort)
		}
		t.hours = append(t.hours, more...)
	}
	return hours.Weigh(t.hours, v.share), nil
}

// pay takes the requests of hours from the budget.
func (v *verifier) pay(c *candidate, n int) error {
	each := c.planned * (v.horizon + v.lead).Seconds()
	if v.spec.Budget == 0 {
		return errNoBudget
	}
	if v.left < each*float64(n) {
		return &budgetError{have: v.spec.Budget, want: v.spec.Budget - v.left + 2*each*hours.DefaultHours}
	}
	v.left -= each * float64(n)
	return nil
}

// errNoBudget says that no hours are to be simulated.
var errNoBudget = errors.New("no hours were simulated (plan.budget is 0)")

// budgetError says that the budget does not suffice.
type budgetError struct{ have, want float64 }

func (e *budgetError) Error() string {
	million := func(x float64) float64 { return math.Ceil(x / 1e6) }
	return fmt.Sprintf("plan.budget is %.0f million requests, and the next fleet takes it to %.0f million (want as "+
		"many or more)", million(e.have), million(e.want))
}

func (v *verifier) routerOf() string {
	if v.scenario.Given("deployment.router") {
		return v.scenario.Deployment.Router.Policy
	}
	return defaultRouter
}

func countOf(e hours.Evidence) *plan.HourCount {
	return &plan.HourCount{Met: e.Met, Of: e.Of, ShareLow: e.Low, ShareHigh: e.High}
}
