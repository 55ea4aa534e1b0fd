package plan

import (
	"fmt"
	"strconv"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
)

// bestLines tell more of the first candidate.
func (p *Result) bestLines(t *layout.Text) {
	b := &p.Candidates[0]
	t.Heading("%s", b.Name)
	t.Line("each replica", p.replicaText(b))
	if v := b.Verified; v != nil {
		t.Line("verified", fmt.Sprintf("%s; all are simulated whole behind the router %s, with a lead-in of %s",
			v.text(), v.Router, layout.Seconds(v.LeadS)))
	}
	t.Line("cost", b.costText())
	if b.Nodes != nil && b.Nodes.GPUsPerNode > 1 {
		t.Line("nodes", b.Nodes.text(b))
	}
	if b.USDPerMonthRange != nil && b.USDPerMonthRange[0] < b.USDPerMonthRange[1] {
		t.Line("uncertainty", fmt.Sprintf("%s to %s a month within the error of the step model and the width of the "+
			"search",
			layout.Dollars(b.USDPerMonthRange[0]), layout.Dollars(b.USDPerMonthRange[1])))
	}
	if b.Predictive != nil {
		t.Line("error", b.Predictive.String())
		t.Line("allowance", b.errorText())
	} else {
		t.Line("error", b.errorText())
	}
	for _, h := range b.Headroom {
		text := "holds"
		if h.Breaks != "" {
			text = "breaks: " + h.Breaks
		}
		t.Line(h.What, text)
	}
	if b.LimitedBy != "" {
		t.Line("first limit", b.LimitedBy)
	}
	if x := b.Spare; x != nil {
		t.Line("N+"+strconv.Itoa(x.Failures), x.text())
	}
	if x := b.Energy.Kilowatts; x != nil {
		text := fmt.Sprintf("about %s kW of GPUs", layout.Digits(*x))
		if servers := b.Energy.ServerKilowatts; servers != nil {
			text += fmt.Sprintf(", %s kW of servers", layout.Digits(*servers))
		}
		if wh := b.Energy.WattHoursPerMillionToks; wh != nil {
			text += fmt.Sprintf(", %s Wh per million output tokens at the peak (estimate)", layout.Digits(*wh))
		}
		if g := b.Energy.CarbonPerMillion; g != nil {
			text += fmt.Sprintf("; %s g CO2e", layout.Digits(*g))
		}
		if usd := b.Energy.USDPerMillion; usd != nil {
			text += fmt.Sprintf("; electricity %s", layout.Price(usd))
		}
		t.Line("energy", text)
	}
	if a := p.Autoscaling; a != nil {
		t.Line("autoscaling", a.text())
	}
	if o := p.OnPrem; o != nil {
		t.Line("on premises", o.text())
	}
	if a := p.API; a != nil {
		t.Line("API", a.text())
	}
}

func (p *Result) replicaText(b *Candidate) string {
	a := &b.AtPlan
	var parts []string
	for i := range a.Limits {
		x, value := &a.Limits[i], "∞"
		switch {
		case x.N == 0:
			value = "–"
		case x.ValueMs != nil:
			value = layout.Milliseconds(*x.ValueMs)
		case x.LimitMs == nil && x.Fraction != nil:
			value = layout.Percent(*x.Fraction)
		}
		parts = append(parts, report.LimitName(x.Key)+" "+value)
	}
	text := fmt.Sprintf("at %s requests/s %s", layout.Digits(a.RequestsPerS), strings.Join(parts, ", "))
	if x := a.InSystem; x.Mean != nil && x.P95 != nil && x.P99 != nil {
		text += fmt.Sprintf("; %s requests at once (p95 %s, p99 %s)", layout.Digits(*x.Mean), layout.Digits(*x.P95),
			layout.Digits(*x.P99))
	}
	if a.BusyFraction != nil {
		text += ", busy " + layout.Percent(*a.BusyFraction)
	}
	if a.KVUsageMax != nil && b.KVTokens > 0 {
		text += fmt.Sprintf(", KV at most %s of %s tokens", layout.Percent(*a.KVUsageMax),
			layout.Digits(float64(b.KVTokens)))
	}
	text += fmt.Sprintf("; in short runs it carries %s requests/s", layout.Digits(b.Capacity.PassesRequestsPerS))
	if f := b.Capacity.FailsRequestsPerS; f != nil {
		text += fmt.Sprintf(" and fails at %s", layout.Digits(*f))
	}
	return text
}

func (c *Candidate) costText() string {
	if c.USDPerHour == nil {
		return "price unknown: set plan.prices"
	}
	text := fmt.Sprintf("%s/h for %d × %s (%s); per million output tokens %s at capacity, %s at the peak, %s at the "+
		"mean load, idle hours paid",
		layout.Dollars(*c.USDPerHour), c.GPUs, layout.Dollars(*c.USDPerGPUHour), c.PriceSource,
		layout.Price(c.PerMillion.AtCapacity), layout.Price(c.PerMillion.AtPlan), layout.Price(c.PerMillion.AtLoad))
	if c.PerMillion.Good != nil {
		text += fmt.Sprintf(", %s for good ones at the peak", layout.Price(c.PerMillion.Good))
	}
	return text
}

func (c *Candidate) errorText() string {
	switch {
	case c.Error == 0:
		return c.Scope
	case !c.Validated:
		return fmt.Sprintf("%s; ±%s is assumed, and %s requests/s are planned for", c.Scope, layout.Percent(c.Error),
			layout.Digits(c.AtPlan.RequestsPerS*float64(c.Replicas)))
	}
	return fmt.Sprintf("±%s (%s): planned for %s requests/s, the peak divided by 1 − %s", layout.Percent(c.Error),
		c.Scope, layout.Digits(c.AtPlan.RequestsPerS*float64(c.Replicas)), strconv.FormatFloat(c.Error, 'g', 3, 64))
}

func (x *SparePlan) text() string {
	text := fmt.Sprintf("%d replicas survive the failure of %d", x.Replicas, x.Failures)
	if x.USDPerMonth != nil {
		text += fmt.Sprintf(" (%s a month)", layout.Dollars(*x.USDPerMonth))
	}
	switch {
	case x.ColdReplicas == x.Replicas:
		text += ", also with cold prefix caches"
	case x.ColdReplicas > 0:
		text += fmt.Sprintf(", %d with cold prefix caches", x.ColdReplicas)
		if x.ColdUSD != nil {
			text += fmt.Sprintf(" (%s)", layout.Dollars(*x.ColdUSD))
		}
	default:
		text += "; with cold prefix caches no number does"
	}
	return text + fmt.Sprintf("; without spares, when %d fails: %s", x.Failures, x.Degraded)
}

func (a *Autoscaling) text() string {
	least := a.Static
	for _, n := range a.ReplicasByHour {
		least = min(least, n)
	}
	text := fmt.Sprintf("the peak is %s times the mean; %d to %d replicas by the hour, %s on average with starts of "+
		"%s s; standing ones are idle %s of their time",
		layout.Digits(a.PeakToMean), least, a.Static, layout.Digits(a.ReplicaHours()), layout.Digits(a.StartUpS),
		layout.Percent(a.PaidIdle))
	if a.USDPerMonth != nil {
		text += fmt.Sprintf("; %s a month, not %s", layout.Dollars(*a.USDPerMonth),
			layout.Dollars(*a.StaticUSDPerMonth))
	}
	return text
}

func (o *OnPremCost) text() string {
	text := fmt.Sprintf("%s to buy, %s a month for power and staff, %s a month with the write-off over %s years (%s "+
		"per GPU and hour), rented %s",
		layout.Dollars(o.CapexUSD), layout.Dollars(o.OpexUSDPerMonth), layout.Dollars(o.USDPerMonth),
		layout.Digits(o.LifeYears), layout.Dollars(o.USDPerGPUHour), layout.Dollars(o.CloudUSDPerMonth))
	switch {
	case o.BreakEvenUtilisation <= 1:
		text += fmt.Sprintf("; cheaper where GPUs are needed more than %s of the time",
			layout.Percent(o.BreakEvenUtilisation))
	default:
		text += "; renting is cheaper even around the clock"
	}
	if o.BreakEvenMonth != nil {
		text += fmt.Sprintf("; paid for after %s months", layout.Digits(*o.BreakEvenMonth))
	}
	return text
}

func (a *APIComparison) text() string {
	text := fmt.Sprintf("%s a month at the mean load, own %s; they cost the same at %s requests/s on average",
		layout.Dollars(a.APIUSDPerMonth), layout.Dollars(a.OwnUSDPerMonth), layout.Digits(a.BreakEvenRequestsPerS))
	if !a.PlanCarries {
		text += ", more than this plan carries"
	}
	return text
}
