package planning

import (
	"context"
	"math"
	"slices"

	"clifftop/experiments"
	"clifftop/report"
	"clifftop/report/plan"
)

// How many candidates are looked at more closely, and how many under more than the plan's load.
const (
	finalists = 8
	examined  = 3
)

// resultBuilder puts the result of a plan together: what each candidate costs and can do, and what stands against the
// others.
type resultBuilder struct{ *planner }

// leftOut returns warnings that say what the model leaves out of its config.json.
func leftOut(all []*candidate) []report.Warning {
	warnings := []report.Warning{}
	i := slices.IndexFunc(all, func(c *candidate) bool { return c.setup != nil })
	if i < 0 {
		return warnings
	}
	llm := &all[i].setup.Pools[0].Deployment.LLM
	for _, what := range llm.LeftOut {
		warnings = append(warnings, report.Warning{Code: "deployment", Text: llm.Name + ": " + what})
	}
	return warnings
}

// build ranks what the search found, looks closely at the best, and puts the plan together. runErr says why the
// search ended early, if it did.
func (p resultBuilder) build(ctx context.Context, all []*candidate, runErr error) (*plan.Result, error) {
	result := &plan.Result{
		Schema: plan.Schema, Clifftop: experiments.Version, Seed: p.scenario.Run.Seed, Model: p.scenario.Model,
		Traffic: p.traffic, SLO: p.slo, SLOAssumed: p.assumed, Candidates: []plan.Candidate{},
		Refused: []plan.Refusal{},
		Partial: runErr != nil,
	}
	result.Warnings = leftOut(all)
	for _, k := range p.objectives {
		if k.class >= 0 {
			result.Classes = append(result.Classes, plan.Class{Name: p.classes[k.class], SLO: k.slo})
		}
	}
	var met []*candidate
	for _, c := range all {
		if c.count > 0 {
			met = append(met, c)
		}
	}
	rank(met)
	close := p.closest(recommendable(met))
	if runErr == nil {
		runErr = p.each(ctx, len(close), func(ctx context.Context, i int) error { return p.refine(ctx, close[i]) })
		rank(met)
	}
	if runErr == nil {
		met, runErr = p.verify(ctx, result, met)
	}
	for _, c := range met {
		result.Candidates = append(result.Candidates, p.describe(c))
	}
	others := met
	met = recommendable(others)
	judge(result.Candidates[:len(met)])
	judge(result.Candidates[len(met):])
	for i := len(met); i < len(others); i++ {
		result.Candidates[i].Apart = true
	}
	if runErr == nil && len(met) > 0 {
		runErr = examiner(p).examine(ctx, result, met)
	}
	if runErr != nil && !isEnd(ctx, runErr) {
		return nil, runErr
	}
	result.Partial = runErr != nil
	p.count(result, all)
	p.refusals(result, all)
	if len(met) > 0 {
		result.Scenario = met[0].setup.Scenario
		result.Model = met[0].setup.Pools[0].Deployment.LLM.Name
		p.prices(result, met[0])
		result.CostBySLO, result.CostByLoad = costBySLO(met), p.costByLoad(met, result.Candidates)
		p.explain(result, met)
		p.explainApart(result, others[len(met):])
	}
	p.assume(result, met)
	return result, runErr
}

// rank orders candidates by cost; what costs the same by the SLO's use, and then as they were listed. Those without a
// price come last, the fewest GPUs first. Behind all of these, in the same order, are those without measured runs.
func rank(list []*candidate) {
	slices.SortStableFunc(list, func(a, b *candidate) int {
		if a.apart != b.apart {
			if b.apart {
				return -1
			}
			return 1
		}
		if o := compareCosts(a.cost(a.count), b.cost(b.count)); o != 0 {
			return o
		}
		if a.price == nil && a.count*a.perGPUs != b.count*b.perGPUs {
			return a.count*a.perGPUs - b.count*b.perGPUs
		}
		return compareCosts(a.at().SLOUse(), b.at().SLOUse())
	})
}

// recommendable are the candidates of a ranking behind which measured runs stand, or all if there are none.
func recommendable(met []*candidate) []*candidate {
	n := slices.IndexFunc(met, func(c *candidate) bool { return c.apart })
	if n <= 0 {
		return met
	}
	return met[:n]
}

// at is the run at the planned load.
func (c *candidate) at() *report.Summary {
	rate := c.planned / float64(c.count)
	if s := c.probes[rate]; s != nil {
		return s
	}
	// A capacity found later carries the load with fewer replicas than were tried: the run nearest to it speaks.
	best := 0.0
	for _, r := range c.rates() {
		if math.Abs(r-rate) < math.Abs(best-rate) {
			best = r
		}
	}
	return c.probes[best]
}

// closest are the candidates to look at closely: the cheapest, those that nothing cheaper beats on latency, the
// cheapest of the best GPUs, and those that the result compares itself with.
func (p resultBuilder) closest(met []*candidate) []*candidate {
	var list []*candidate
	take := func(c *candidate) {
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	gpus := map[string]bool{}
	for i, c := range met {
		if name := c.setup.Pools[0].Deployment.GPU.Name; !gpus[name] && len(gpus) < finalists-3 {
			gpus[name] = true
			take(c)
		}
		if i == 0 {
			for _, rival := range p.rivals(met) {
				take(met[rival])
			}
		}
	}
	least := math.Inf(1)
	for i, c := range met {
		use := c.at().LatencyUse()
		if i < finalists-3 || use < least {
			take(c)
		}
		least = min(least, use)
	}
	return list
}

func (p resultBuilder) count(result *plan.Result, all []*candidate) {
	n := &result.Counts
	n.Candidates = len(all)
	for _, c := range all {
		n.Runs += c.runs
		result.Effort.Add(c.effort)
		switch {
		case c.refusal != nil && c.refusal.Reason == plan.DoesNotFit:
			n.DoNotFit++
		case c.refusal != nil && c.refusal.Reason == plan.NotPossible:
			n.NotBuilt++
		case c.runs == 0:
			n.ByBound++
		default:
			n.Simulated++
		}
		if c.count > 0 {
			n.Met++
		}
	}
}

// refusals lists what stands against the others: what came nearest first.
func (p resultBuilder) refusals(result *plan.Result, all []*candidate) {
	order := []string{plan.MissesSLO, plan.SLOFloor, plan.TooDear, plan.TooManyGPUs, plan.DoesNotFit, plan.NotPossible}
	for _, c := range all {
		if c.refusal != nil {
			result.Refused = append(result.Refused, *c.refusal)
		}
	}
	slices.SortStableFunc(result.Refused, func(a, b plan.Refusal) int {
		if o := slices.Index(order, a.Reason) - slices.Index(order, b.Reason); o != 0 {
			return o
		}
		return compareCosts(nearness(&a), nearness(&b))
	})
}

// nearness is how far a refused candidate is from the plan.
func nearness(r *plan.Refusal) float64 {
	switch {
	case r.Excess != nil:
		return *r.Excess
	case r.MissingBytes != nil:
		return *r.MissingBytes
	}
	return math.Inf(1)
}

func (p resultBuilder) describe(c *candidate) plan.Candidate {
	u, s, n := c.setup, c.at(), c.count
	d := u.Pools[0].Deployment
	native := d.LLM.Precision == d.Dtype || d.LLM.Precision == 0 && d.Dtype.WeightBytes() == 2
	r := plan.Candidate{
		Name: c.label(n), GPU: d.GPU.Name, Dtype: d.Dtype.String(), Native: native, KVCacheDtype: d.KVDtype.String(),
		TensorParallel: d.TensorParallel, PipelineParallel: d.PipelineParallel, ExpertParallel: d.ExpertParallel,
		Engine: c.knobs, GPUsPerReplica: c.perGPUs, Replicas: n, GPUs: n * c.perGPUs,
		Error: c.err, USDPerGPUHour: c.price, PriceSource: c.source,
	}
	for _, x := range c.sets {
		r.Settings = append(r.Settings, x.Key+"="+x.Value)
	}
	if u.Pools[0].Memory != nil {
		r.KVTokens = u.Pools[0].Memory.UsableTokens
	}
	r.Predictive = u.Predictive()
	if a := c.accuracy; a != nil {
		r.Validated, r.Scope = measured(a), a.Scope
	} else {
		r.Scope = "no machine is modelled: there is no error to allow for"
	}
	r.Capacity = &plan.Capacity{PassesRequestsPerS: c.passes, Resolved: c.near}
	if c.fails > 0 {
		fails := c.fails
		r.Capacity.FailsRequestsPerS = &fails
	}
	r.AtPlan = plan.Point{
		RequestsPerS: c.planned / float64(n), Limits: s.HeldTo(), SLOUse: s.SLOUse(), Attainment: s.Goodput.Attainment,
		OutputTokensPerS: s.Throughput.OutputTokensPerS, BusyFraction: s.System.BusyFraction,
		KVUsageMax: s.System.KVUsage.Max,
		InSystem:   s.Concurrency.InSystem,
	}
	r.Verified = c.verified
	if u.Scenario.StepTime.Kind != "linear" {
		nodes := plan.WholeNodes(n, c.perGPUs, d.GPU.NodeSize())
		r.Nodes = &nodes
	}
	p.costs(&r, c, s)
	return r
}

// energy fills in the power and the energy at the planned load, by the simulated replica. plan.idle_power, if it is
// given, replaces the idle power of the GPU.
func (p resultBuilder) energy(r *plan.Candidate, c *candidate, s *report.Summary) {
	e := s.Energy
	if e == nil || e.GPUWatts.Mean == nil {
		return
	}
	watts, gpu := *e.GPUWatts.Mean, &c.setup.Pools[0].Deployment.GPU
	if busy := s.System.Working(); busy != nil && p.scenario.Given("plan.idle_power") {
		watts += (p.spec.IdlePower*gpu.TDPWatts - gpu.Power.Idle) * (1 - min(1, *busy))
	}
	r.Energy = plan.EnergyAt(e, r.GPUs, watts, p.scenario.Energy.ServerPower,
		p.traffic.PlannedRequestsPerS*p.traffic.MeanOutputTokens)
}

// costs fills the costs and the energy in. The traffic's own rates count, without the allowance for the error.
func (p resultBuilder) costs(r *plan.Candidate, c *candidate, s *report.Summary) {
	t, n := &p.traffic, float64(c.count)
	out := t.MeanOutputTokens
	p.energy(r, c, s)
	if c.price == nil {
		return
	}
	hour := *c.price * float64(r.GPUs)
	month := hour * plan.HoursPerMonth
	r.USDPerHour, r.USDPerMonth = &hour, &month
	r.PerMillion = plan.TokenCost{
		AtCapacity: plan.USDPerMillion(hour, n*c.passes*out),
		AtPlan:     plan.USDPerMillion(hour, t.PlannedRequestsPerS*out),
		AtLoad:     plan.USDPerMillion(hour, t.MeanRequestsPerS*out),
	}
	if x := s.Throughput.OutputTokensPerS; s.Goodput.OutputTokensPerS != nil && x != nil && *x > 0 {
		r.PerMillion.Good = plan.USDPerMillion(hour, t.PlannedRequestsPerS*out*min(1, *s.Goodput.OutputTokensPerS / *x))
	}
	least := c.count
	if c.fails > 0 {
		least = min(least, plan.Replicas(t.PlannedRequestsPerS, c.fails*(1+c.err)))
	}
	r.USDPerMonthRange = &[2]float64{c.cost(least), c.cost(c.count)}
}

// judge marks the Pareto set of cost and use of the SLO, and the groups that cost does not tell apart: a candidate is
// of the group of the cheapest before it whose costs reach its own.
func judge(list []plan.Candidate) {
	group, reach := 0, math.Inf(-1)
	best := -1
	for i := range list {
		c := &list[i]
		switch {
		case c.USDPerMonth == nil:
			c.Group = group + 1
			continue
		case c.USDPerMonthRange[0] > reach:
			group, reach = group+1, c.USDPerMonthRange[1]
		}
		c.Group = group
		switch {
		case best < 0 || c.AtPlan.SLOUse < list[best].AtPlan.SLOUse:
			best, c.Pareto = i, true
		default:
			c.DominatedBy = list[best].Name
		}
	}
	if best < 0 { // no price is known: GPUs stand for cost
		for i := range list {
			c := &list[i]
			if best < 0 || c.AtPlan.SLOUse < list[best].AtPlan.SLOUse {
				best, c.Pareto = i, true
			} else {
				c.DominatedBy = list[best].Name
			}
		}
	}
}

// prices adds the comparisons with other ways to pay.
func (p resultBuilder) prices(result *plan.Result, c *candidate) {
	best := &result.Candidates[0]
	if t := p.traffic; t.HourlyRequestsPerS != nil {
		var hourly []float64
		for _, rate := range t.HourlyRequestsPerS {
			hourly = append(hourly, rate*(1+t.Growth)/(1-c.err))
		}
		if result.Autoscaling = plan.Autoscale(hourly, c.passes, p.spec.StartUp.Seconds()); result.Autoscaling != nil &&
			c.price != nil {
			result.Autoscaling.Price(*c.price * float64(c.perGPUs))
		}
	}
	if o := p.spec.OnPrem; o != nil && c.price != nil {
		result.OnPrem = plan.OnPrem(plan.OnPremInput{
			GPUs: best.GPUs, USDPerGPU: *o.USDPerGPU, LifeYears: o.LifeYears,
			WattsPerGPU: c.setup.Pools[0].Deployment.GPU.TDPWatts * o.ServerPower, PUE: o.PUE, USDPerKWh: o.USDPerKWh,
			StaffUSDPerMonth: o.StaffUSDPerMonth,
		}, *c.price)
	}
	if a := p.spec.API; a != nil && c.price != nil {
		hit := 0.0
		if h := c.at().System.PrefixHitRate; h != nil {
			hit = *h
		}
		cached := *a.USDPerMillionInput
		if a.USDPerMillionCached != nil {
			cached = *a.USDPerMillionCached
		}
		perRequest := (p.shape.in*((1-hit)**a.USDPerMillionInput+hit*cached) + p.shape.out**a.USDPerMillionOutput) / 1e6
		if perRequest > 0 {
			result.API = plan.APIBreakEven(perRequest, p.traffic.MeanRequestsPerS, p.traffic.PlannedRequestsPerS,
				*best.USDPerMonth)
		}
	}
}

// costBySLO is the lower envelope of all runs: what suffices when the limits on latency are multiplied.
func costBySLO(met []*candidate) []plan.CostPoint {
	var points []plan.CostPoint
	for _, c := range met {
		if c.price == nil {
			continue
		}
		for _, rate := range c.rates() {
			n := plan.Replicas(c.planned, rate)
			use := c.probes[rate].LatencyUse()
			const widest = 10
			if use > 0 && use <= widest {
				points = append(points, plan.CostPoint{Factor: use, USDPerMonth: c.cost(n), Name: c.label(n)})
			}
		}
	}
	slices.SortStableFunc(points, func(a, b plan.CostPoint) int {
		if o := compareCosts(a.Factor, b.Factor); o != 0 {
			return o
		}
		return compareCosts(a.USDPerMonth, b.USDPerMonth)
	})
	var front []plan.CostPoint
	for _, q := range points {
		if n := len(front); n == 0 || q.USDPerMonth < front[n-1].USDPerMonth {
			front = append(front, q)
		}
	}
	return front
}

// costByLoad is the cost of the best candidates by load: a step for each replica.
func (p resultBuilder) costByLoad(met []*candidate, described []plan.Candidate) []plan.LoadLine {
	const lines, reach = 5, 3
	var list []plan.LoadLine
	seen := map[string]bool{}
	for i, c := range met {
		if c.price == nil || len(list) == lines {
			break
		}
		if !c.near {
			continue
		}
		if !described[i].Pareto && seen[c.setup.Pools[0].Deployment.GPU.Name] {
			continue
		}
		seen[c.setup.Pools[0].Deployment.GPU.Name] = true
		line := plan.LoadLine{Name: c.name}
		top := reach * p.traffic.PlannedRequestsPerS
		for n := 1; ; n++ {
			rate := float64(n) * c.passes * (1 - c.err)
			line.Points = append(line.Points, plan.LoadPoint{RequestsPerS: rate, Replicas: n, USDPerMonth: c.cost(n)})
			if rate >= top || n == 10_000 {
				break
			}
		}
		list = append(list, line)
	}
	return list
}
