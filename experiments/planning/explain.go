package planning

import (
	"math"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/plan"
)

// explain says in sentences why the best candidate is that, and what would make another one it.
func (p resultBuilder) explain(plan *plan.Result, met []*candidate) {
	best := met[0]
	if best.price == nil {
		plan.Why = append(plan.Why, phrase("no price is known: %s needs the fewest GPUs", best.label(best.count)))
		return
	}
	b := &plan.Candidates[0]
	plan.Why = append(plan.Why, phrase("%s: a replica carries %s requests/s within the SLO, and %s are planned for: "+
		"it takes %d",
		b.Name, layout.Digits(best.passes), layout.Digits(best.planned), best.count))
	plan.Why = append(plan.Why, p.missed...)
	if best.seatsNote != "" {
		plan.Why = append(plan.Why, best.seatsNote)
	}
	for _, rival := range p.rivals(met) {
		c, r := met[rival], &plan.Candidates[rival]
		plan.Why = append(plan.Why, comparison(best, c, r))
		if flip := *b.USDPerHour / float64(r.GPUs); rival > 0 && c.price != nil && flip < *c.price &&
			c.setup.Pools[0].Deployment.GPU.Name != best.setup.Pools[0].Deployment.GPU.Name {
			plan.Flips = append(plan.Flips,
				phrase("%s becomes the cheapest below %s per GPU and hour (now %s)", r.Name, layout.Dollars(flip),
					layout.Dollars(*c.price)))
		}
	}
	p.flips(plan, met)
}

// rivals are the best candidates on each other GPU, and of the best's own GPU with other parallelism and another
// format: three of the first, one each of the others.
func (p resultBuilder) rivals(met []*candidate) []int {
	best := met[0].setup.Pools[0].Deployment
	var list []int
	gpus := map[string]bool{best.GPU.Name: true}
	format, spread, knobs := false, false, false
	for i, c := range met[1:] {
		d := c.setup.Pools[0].Deployment
		same := d.GPU.Name == best.GPU.Name
		alike := d.Dtype == best.Dtype && d.MoEDtype == best.MoEDtype
		split := d.TensorParallel == best.TensorParallel && d.PipelineParallel == best.PipelineParallel &&
			d.ExpertParallel == best.ExpertParallel
		switch {
		case c.price == nil:
		case !same && !gpus[d.GPU.Name] && len(gpus) < 4:
			gpus[d.GPU.Name] = true
			list = append(list, i+1)
		case same && alike && !split && !spread:
			spread = true
			list = append(list, i+1)
		case same && split && !alike && !format:
			format = true
			list = append(list, i+1)
		case same && split && alike && !knobs:
			knobs = true
			list = append(list, i+1)
		}
	}
	return list
}

// comparison sets a candidate against the best: what a replica carries for its price.
func comparison(best, c *candidate, r *plan.Candidate) string {
	times := func(x float64) string {
		if math.Abs(x-1) < 0.005 {
			return "as much"
		}
		return phrase("%.2f times as much", x)
	}
	carries, costs := c.passes/best.passes, *c.price*float64(c.perGPUs)/(*best.price*float64(best.perGPUs))
	text := phrase("%s costs %s: its replica carries %s and costs %s", r.Name,
		times(c.cost(c.count)/best.cost(best.count)), times(carries), times(costs))
	if c.err > best.err {
		text += phrase("; it plans with an error of %.3g %%, not %.3g %%", 100*c.err, 100*best.err)
	}
	whole := c.planned / c.passes
	if spare := 1 - whole/float64(c.count); spare > 0.25 {
		text += phrase("; %.0f %% of its capacity stays unused, since replicas come whole", 100*spare)
	}
	return text
}

// flips adds what else would change the result.
func (p resultBuilder) flips(plan *plan.Result, met []*candidate) {
	best := met[0]
	rate := p.traffic.PlannedRequestsPerS
	full := float64(best.count) * best.passes * (1 - best.err)
	plan.Flips = append(plan.Flips, phrase("a peak above %s requests/s (%s are planned for) takes another replica",
		layout.Digits(full), layout.Digits(rate)))
	if best.count > 1 {
		less := float64(best.count-1) * best.passes * (1 - best.err)
		plan.Flips = append(plan.Flips, phrase("a peak of %s requests/s or less takes one replica less",
			layout.Digits(less)))
	}
	plan.Flips = append(plan.Flips, cheapestByLoad(met)...)
	if len(plan.Candidates) > 1 && plan.Candidates[1].Group == 1 {
		n := 0
		for _, c := range plan.Candidates {
			if c.Group == 1 {
				n++
			}
		}
		plan.Flips = append(plan.Flips, phrase("the first %d candidates are not distinguishable: their costs overlap "+
			"within the model's error and the width of the search", n))
	}
	for i, c := range met {
		if r := &plan.Candidates[i]; c.price != nil && !plan.Candidates[0].Native && r.Native {
			plan.Flips = append(plan.Flips,
				phrase("if the loss of quality by %s weights does not do, %s is the cheapest in the published "+
					"format: %s a month",
					plan.Candidates[0].Dtype, r.Name, layout.Dollars(*r.USDPerMonth)))
			break
		}
	}
	for i := range met {
		if r := &plan.Candidates[i]; !plan.Candidates[0].Validated && plan.Candidates[0].Error > 0 && r.Validated &&
			r.USDPerMonth != nil {
			plan.Flips = append(plan.Flips,
				phrase("if only validated step times will do, %s is the cheapest: %s a month", r.Name,
					layout.Dollars(*r.USDPerMonth)))
			break
		}
	}
}

// explainApart says what the cheapest candidate without measured runs would save.
func (p resultBuilder) explainApart(plan *plan.Result, apart []*candidate) {
	best := &plan.Candidates[0]
	if len(apart) == 0 || best.USDPerMonth == nil || apart[0].price == nil {
		return
	}
	r := &plan.Candidates[len(plan.Candidates)-len(apart)]
	if *r.USDPerMonth >= *best.USDPerMonth {
		return
	}
	plan.Flips = append(plan.Flips, phrase("if unmeasured step times are good enough, %s costs %s a month "+
		"instead of %s (plan.unmeasured: ranked)", r.Name, layout.Dollars(*r.USDPerMonth),
		layout.Dollars(*best.USDPerMonth)))
}

// cheapestByLoad says at which multiples of the load another candidate is the cheapest.
func cheapestByLoad(met []*candidate) []string {
	var lines []string
	last := met[0]
	for _, factor := range []float64{0.25, 0.5, 2, 4} {
		var best *candidate
		cost := math.Inf(1)
		for _, c := range met {
			if c.price == nil || !c.near {
				continue
			}
			if x := c.cost(plan.Replicas(c.planned*factor, c.passes)); x < cost {
				best, cost = c, x
			}
		}
		if best != nil && best != met[0] && best != last {
			n := plan.Replicas(best.planned*factor, best.passes)
			lines = append(lines, phrase("at %g times the load, %s is the cheapest: %s a month", factor, best.label(n),
				layout.Dollars(cost)))
			last = best
		}
	}
	return lines
}

func (p resultBuilder) assume(plan *plan.Result, met []*candidate) {
	say := func(format string, args ...any) { plan.Assumptions = append(plan.Assumptions, phrase(format, args...)) }
	if p.assumed {
		say("no SLO was given: a TTFT of 800 ms and a TPOT of 80 ms at the 95th percentile are assumed")
	}
	say("short runs simulate one replica at its share of the load, and replicas are identical: %s", p.traffic.Split)
	if len(met) > 0 && met[0].verified != nil {
		say("hours simulate the whole fleet behind the router %s, in traffic whose mean over the hour is the planned "+
			"rate",
			met[0].verified.Router)
	}
	if p.demand != nil && p.demand.Note != "" {
		say("%s", p.demand.Note)
	}
	say("rates are divided by one less the validated error of the step model, %.3g %% where nothing was measured",
		100*p.spec.UnvalidatedError)
	for i, c := range met {
		if i == 0 && c.accuracy != nil {
			say("error of %s: %s", c.name, report.ErrorText(c.setup.Predictive(), c.accuracy))
		}
		if i == 0 && c.price != nil {
			say("price of %s: %s per GPU and hour (%s)", c.setup.Pools[0].Deployment.GPU.Name, layout.Dollars(*c.price),
				c.source)
		}
	}
	say("GPUs are rented for all 730 hours of a month; idle hours are paid")
	say("what smaller formats of weights cost in quality is not modelled")
	say("power is that of the simulated replica at the planned peak; servers draw %.3g times that of their GPUs",
		p.scenario.Energy.ServerPower)
	if p.spec.Within > 1 {
		say("what costs more than %g times the cheapest is not looked into", p.spec.Within)
	}
}
