package curve

import (
	"fmt"

	"clifftop/report"
	"clifftop/report/layout"
)

// Capacity is the highest load at which a share of hours meets a service-level objective, or, for a key that helps, the
// smallest such value.
type Capacity struct {
	Over string      `json:"over"` // what varies: "rate", "users" or a scenario key
	SLO  *report.SLO `json:"slo"`
	// Share is the share of hours that should meet the objective.
	Share float64 `json:"share"`
	// Passes is the answer: a value at which the share of hours met the objective. It is nil if there is none. Low
	// and High are the ends of its 95 % interval; nil where the hours do not determine them.
	Passes *float64 `json:"passes"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	// Hours counts the hours that met the objective at Passes; nil without it.
	Hours *report.SLOHours `json:"hours"`
	// LeadS is the time of the same traffic before each hour, in seconds.
	LeadS float64 `json:"lead_s"`
	// Fails is the nearest value at which too many hours missed the objective; nil if none did.
	Fails *float64 `json:"fails"`
	// MoreHelps says that larger values meet the objective and smaller ones miss it.
	MoreHelps bool `json:"more_helps"`
	// OutputTokensPerS is the throughput at Passes.
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
	// USDPerMillionOutput is the price of a million output tokens there.
	USDPerMillionOutput *float64 `json:"usd_per_million_output_tokens"`
	// Limit is the key of the limit that an hour misses at Fails, Evidence by how much, and FirstLimit what requests
	// wait for there; nil where nothing holds them back.
	Limit      string           `json:"limit"`
	Evidence   string           `json:"evidence"`
	FirstLimit *Limit           `json:"first_limit"`
	Runs       int              `json:"runs"` // hours that were simulated
	Probes     []Probe          `json:"probes"`
	Warnings   []report.Warning `json:"warnings"`
	// Effort counts the requests that were simulated.
	Effort report.Effort `json:"effort"`

	// AtPasses pools the hours at Passes, and AtFails is an hour at Fails that misses the objective; nil where there
	// is none.
	AtPasses *report.Summary `json:"-"`
	AtFails  *report.Summary `json:"-"`
}

// Probe is one value that was tried: of so many hours, so many met the objective.
type Probe struct {
	Value float64 `json:"value"`
	Met   int     `json:"met"`
	Of    int     `json:"of"`
}

// Explain sets the limits that the first failing load misses, and the resource that requests wait for there.
func (c *Capacity) Explain() {
	if c.AtPasses != nil {
		c.OutputTokensPerS = c.AtPasses.Throughput.OutputTokensPerS
		if cost := c.AtPasses.Cost; cost != nil {
			c.USDPerMillionOutput = cost.USDPerMillionOutputAtLoad
		}
	}
	if c.AtFails == nil || c.Fails == nil {
		return
	}
	a := &analysis{Thresholds: defaultThresholds()}
	m := measuresOf(c.AtFails)
	if resource, evidence := a.binds(&m); resource != "" {
		c.FirstLimit = &Limit{Resource: resource, Value: *c.Fails, Evidence: evidence}
	} else if y := &c.AtFails.System; y.BusyFraction != nil && *y.BusyFraction >= a.Saturated {
		c.FirstLimit = &Limit{Resource: "gpu", Value: *c.Fails,
			Evidence: "busy " + layout.Percent(*y.BusyFraction) + " of the time, and requests wait for nothing else"}
	}
	if l := c.AtFails.WorstLimit(); l != nil && (l.Met == nil || !*l.Met) {
		c.Limit, c.Evidence = l.Key, missed(l.LimitResult)
		if l.Class != "" {
			c.Limit, c.Evidence = l.Class+": "+l.Key, l.Class+": "+c.Evidence
		}
	}
}

// missed says by how much a limit is missed.
func missed(l *report.LimitResult) string {
	share := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return layout.Percent(*v)
	}
	switch {
	case l.LimitMs != nil && l.ValueMs == nil:
		return fmt.Sprintf("%s has no end, since too many requests do not complete", report.LimitName(l.Key))
	case l.LimitMs != nil:
		return fmt.Sprintf("%s is %s, want at most %s", report.LimitName(l.Key), layout.Milliseconds(*l.ValueMs),
			layout.Milliseconds(*l.LimitMs))
	case l.Lower():
		return fmt.Sprintf("the share that waits is %s, want at most %s", share(l.Fraction), share(l.Target))
	}
	return fmt.Sprintf("the share of good requests is %s, want at least %s", share(l.Fraction), share(l.Target))
}

// String is the answer in words.
func (c *Capacity) String() string {
	show := func(v *float64) string {
		if v == nil {
			return "?"
		}
		return layout.Digits(*v)
	}
	name, at := report.LastKey(c.Over), ""
	switch c.Over {
	case "rate":
		at = show(c.Passes) + " requests/s"
	case "users":
		at = show(c.Passes) + " users"
	default:
		at = name + " " + show(c.Passes)
	}
	text := ""
	switch {
	case c.Passes == nil && c.Fails == nil:
		return "could not be told from the hours that were simulated"
	case c.Passes == nil:
		text = fmt.Sprintf("at no value of %s that was tried do %s of hours meet the SLO", name,
			layout.Percent(c.Share))
	case c.Fails == nil && c.Low == nil && c.High == nil:
		text = fmt.Sprintf("%s meet the SLO at %s, and no value was tried with which fewer do", c.Hours, at)
	default:
		text = fmt.Sprintf("%s (%s–%s): %s meet the SLO", at, show(c.Low), show(c.High), c.Hours)
	}
	if c.Evidence != "" {
		text += fmt.Sprintf("; in an hour at %s %s", show(c.Fails), c.Evidence)
	}
	return text
}

// SetCapacity adds the capacity to a curve over the same, and its price to the costs of all points.
func (c *Curve) SetCapacity(found *Capacity) {
	if c.Capacity = found; found != nil {
		c.Effort.Add(found.Effort)
	}
	for i := range c.Points {
		if s := c.Points[i].Summary; s != nil {
			c.Points[i].Summary = c.priced(s)
		}
	}
}

// priced is a summary with the price at the capacity, where both are known.
func (c *Curve) priced(s *report.Summary) *report.Summary {
	if c.Capacity == nil || c.Capacity.USDPerMillionOutput == nil || s.Cost == nil {
		return s
	}
	cost, summary := *s.Cost, *s
	cost.USDPerMillionOutputAtCapacity = c.Capacity.USDPerMillionOutput
	summary.Cost = &cost
	return &summary
}
