package curve

import (
	"fmt"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// Capacity is the answer to how much of something meets a service-level objective: the highest load, or the least of
// what helps. It lies between the two ends, of which the one was shown to meet the objective and the other to miss it.
type Capacity struct {
	Over string      `json:"over"` // what varies: "rate", "users" or a scenario key
	SLO  *report.SLO `json:"slo"`
	// Passes is the end at which the objective is met, nil where no value tried meets it; Fails the one at which it is
	// missed, nil where none misses it.
	Passes *float64 `json:"passes"`
	Fails  *float64 `json:"fails"`
	// MoreHelps says that larger values meet the objective and smaller ones miss it.
	MoreHelps bool `json:"more_helps"`
	// Precision is the distance of the ends that was asked for, as a fraction; Resolved says that they are so near, or
	// neighbours of a value that is whole. What lies between could not be told, at the given effort.
	Precision float64 `json:"precision"`
	Resolved  bool    `json:"resolved"`
	// NonMonotone says that a value beyond the failing end meets the objective again.
	NonMonotone bool `json:"non_monotone"`
	// OutputTokensPerS is the throughput at the passing end.
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
	// USDPerMillionOutput is the price of a million output tokens there.
	USDPerMillionOutput *float64 `json:"usd_per_million_output_tokens"`
	// Limit is the key of the limit that is missed at the failing end, Evidence by how much, and FirstLimit what
	// requests wait for there; nil where nothing holds them back.
	Limit      string           `json:"limit"`
	Evidence   string           `json:"evidence"`
	FirstLimit *Limit           `json:"first_limit"`
	Runs       int              `json:"runs"` // of the simulator
	Probes     []Probe          `json:"probes"`
	Warnings   []report.Warning `json:"warnings"`

	// AtPasses and AtFails pool the runs at the ends; nil where there is none.
	AtPasses *report.Summary `json:"-"`
	AtFails  *report.Summary `json:"-"`
}

// Probe is one value that was tried.
type Probe struct {
	Value   float64 `json:"value"`
	Verdict string  `json:"verdict"`
	// Purpose is what it was tried for: to look around by a single run, to search, or to look beyond the answer.
	Purpose string `json:"purpose"`
	// Runs is the number of replications, and Requests how many each had.
	Runs     int   `json:"runs"`
	Requests int64 `json:"requests"`
	// Overload says that there is no steady state: the objective is then missed, if only later.
	Overload bool        `json:"overload"`
	Limits   []ProbeSide `json:"limits"`
}

// ProbeSide is one limit of the objective at a probe, with the interval that decided. Means are in milliseconds, others
// are shares of requests. Value, Low and High are nil where they are infinite or unknown.
type ProbeSide struct {
	Key     string   `json:"key"`
	Value   *float64 `json:"value"`
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	Target  float64  `json:"target"`
	Verdict string   `json:"verdict"`
}

// Verdicts on a probe, and purposes of it.
const (
	ProbePasses    = "passes"
	ProbeFails     = "fails"
	ProbeUndecided = "undecided"

	ProbeLooks    = "look"
	ProbeSearches = "search"
	ProbeBeyond   = "beyond"
)

// JudgeProbe holds pooled runs, or a single one, against each limit of their objective: a limit is met or missed where
// the interval lies wholly on one side of its target. sure takes the point for the interval, which is right where the
// seed changes nothing.
func JudgeProbe(s *report.Summary, confidence float64, sure bool) []ProbeSide {
	sides := []ProbeSide{}
	for i := range s.Goodput.Limits {
		l := &s.Goodput.Limits[i]
		value, low, high, target := l.Interval(confidence)
		if sure {
			low, high = value, value
		}
		side := ProbeSide{Key: l.Key, Value: stats.Finite(value), Low: stats.Finite(low), High: stats.Finite(high),
			Target: target, Verdict: ProbeUndecided}
		if l.Mean() || l.Lower() {
			low, high, target = -high, -low, -target
		}
		switch {
		case low >= target, l.N == 0:
			side.Verdict = ProbePasses
		case high < target && l.Met != nil: // or what was unfinished could still turn it
			side.Verdict = ProbeFails
		}
		sides = append(sides, side)
	}
	return sides
}

// Perfect reports whether a share is as good as any can be while its target asks for that, so that no number of
// requests could show more.
func (p *ProbeSide) Perfect(l *report.LimitResult) bool {
	return !l.Mean() && p.Value != nil && *p.Value == p.Target && (p.Target == 0 || p.Target == 1)
}

// Explain says what is missed at the failing end, and what holds requests back there.
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
	a := &analysis{Thresholds: DefaultThresholds()}
	m := measuresOf(c.AtFails)
	if resource, evidence := a.binds(&m); resource != "" {
		c.FirstLimit = &Limit{Resource: resource, Value: *c.Fails, Evidence: evidence}
	} else if y := &c.AtFails.System; y.BusyFraction != nil && *y.BusyFraction >= a.Saturated {
		c.FirstLimit = &Limit{Resource: "gpu", Value: *c.Fails,
			Evidence: "busy " + layout.Percent(*y.BusyFraction) + " of the time, and requests wait for nothing else"}
	}
	for i := range c.Probes {
		if p := &c.Probes[i]; p.Value == *c.Fails && p.Verdict == ProbeFails {
			c.Limit, c.Evidence = p.missed(c.AtFails)
		}
	}
}

// missed is the limit that a failing probe misses, and by how much.
func (p *Probe) missed(s *report.Summary) (key, evidence string) {
	for i := range p.Limits {
		side := &p.Limits[i]
		if side.Verdict != ProbeFails {
			continue
		}
		key = side.Key
		l := &s.Goodput.Limits[i]
		bound := func(v *float64) string { return layout.Cell(v) + " ms" }
		if !l.Mean() {
			bound = func(v *float64) string {
				if v == nil {
					return "–"
				}
				return layout.Percent(*v)
			}
		}
		evidence = fmt.Sprintf("%s to %s, want ", bound(side.Low), bound(side.High))
		if side.Low == nil || side.High == nil || *side.Low == *side.High {
			evidence = fmt.Sprintf("%s, want ", bound(side.Value))
		}
		switch {
		case l.Mean():
			evidence = fmt.Sprintf("%s is %sat most %s", key, evidence, bound(&side.Target))
		case l.Lower():
			evidence = fmt.Sprintf("the share that waits is %sat most %s", evidence, bound(&side.Target))
		case l.LimitMs != nil:
			evidence = fmt.Sprintf("the share of requests with a %s of at most %s ms is %sat least %s",
				strings.ToUpper(key[:strings.IndexByte(key, '_')]), layout.Digits(*l.LimitMs), evidence,
				bound(&side.Target))
		default:
			evidence = fmt.Sprintf("the share of good requests is %sat least %s", evidence, bound(&side.Target))
		}
		break
	}
	if p.Overload {
		text := "there is no steady state: the system fills up"
		if evidence == "" {
			return key, text
		}
		return key, text + "; " + evidence
	}
	return key, evidence
}

// String is the answer in words.
func (c *Capacity) String() string {
	name, show := report.LastKey(c.Over), func(v *float64) string { return layout.Significant(*v, 5) }
	text := ""
	switch {
	case c.Passes == nil && c.Fails == nil:
		return "could not be told from the runs that were made"
	case c.Passes == nil:
		text = fmt.Sprintf("the SLO is met at no value of %s that was tried, down to %s", name, show(c.Fails))
		if c.MoreHelps {
			text = fmt.Sprintf("the SLO is met at no value of %s that was tried, up to %s", name, show(c.Fails))
		}
	case c.Fails == nil:
		text = fmt.Sprintf("the SLO is met at every value of %s that was tried, up to %s", name, show(c.Passes))
		if c.MoreHelps {
			text = fmt.Sprintf("the SLO is met at every value of %s that was tried, down to %s", name, show(c.Passes))
		}
	default:
		text = fmt.Sprintf("the SLO is met at %s %s and missed at %s", name, show(c.Passes), show(c.Fails))
	}
	if c.Evidence != "" {
		text += ", where " + c.Evidence
	}
	if c.Passes != nil && c.Fails != nil && !c.Resolved {
		text += "; what lies between could not be told"
	}
	if c.NonMonotone {
		text += ". Beyond that it is met again: see the probes"
	}
	return text
}

// SetCapacity adds the capacity to a curve over the same, and its price to the costs of all points.
func (c *Curve) SetCapacity(found *Capacity) {
	c.Capacity = found
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
