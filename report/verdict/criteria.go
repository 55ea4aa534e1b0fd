package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"clifftop/report"
	"clifftop/report/stats"
)

// Criterion is the result of a condition for replacing the baseline by a variant.
type Criterion struct {
	Condition
	// Baseline and Variant are means over the replications; nil where a run does not give the number.
	Baseline *float64 `json:"baseline"`
	Variant  *float64 `json:"variant"`
	// P is how likely a change so far from the limit is by chance, were it at the limit.
	P       *float64 `json:"p"`
	Verdict string   `json:"verdict"`
	// Reason says what the verdict rests on.
	Reason string `json:"reason"`

	missing, endless bool // no run gives the number, or it has no mean
}

// Harm is a number that users feel and that is worse by more than the tolerance and by more than chance.
type Harm struct {
	Path string `json:"path"`
	// Text says what is worse and by how much: "TTFT p95 is 41 times as long".
	Text string `json:"text"`

	size float64 // the logarithm of the ratio
}

// DefaultTolerance is the share of the baseline's value by which a number may be worse where no margin is given.
const DefaultTolerance = 0.01

// tolerance is how much worse a number may be.
func (o *Options) tolerance() float64 { return cmp.Or(o.Margin, DefaultTolerance) }

// conditions returns the conditions of the user, or the defaults: SLO attainment, goodput and cost are not worse by
// more than the tolerance. Without an SLO, the output tokens of successful requests stand for goodput.
func (o *Options) conditions(runs [][]*report.Summary) []Condition {
	if len(o.Criteria) > 0 {
		return o.Criteria
	}
	limit := func(name, path string, atLeast bool) Condition {
		c := Condition{Text: name, Path: path, AtLeast: atLeast, Change: o.tolerance()}
		if atLeast {
			c.Change = -c.Change
		}
		return c
	}
	cost := limit("cost not up", pathCost, false)
	if runs[0][0].Goodput.SLO == nil {
		return []Condition{limit("successful output tokens/s not down", "throughput.successful_output_tokens_per_s",
			true), cost}
	}
	return []Condition{limit("SLO attainment not down", "goodput.attainment", true),
		limit("goodput not down", "goodput.requests_per_s", true), cost}
}

func (c *Condition) metric() metric { return newMetric(c.Class, report.FindMetric(c.Path)) }

// decide judges the criteria of all variants, and looks for harm. The tests of all criteria and variants share one
// error probability (Holm), and so do those of all numbers that users feel.
func (v *Result) decide(o *Options, e *evidence) {
	var criteria []*Criterion
	var ps []float64
	for i := range v.Variants {
		x := &v.Variants[i]
		for _, condition := range o.conditions(e.runs) {
			x.Criteria = append(x.Criteria, condition.judge(e, i+1))
		}
		for k := range x.Criteria {
			if c := &x.Criteria[k]; c.P != nil {
				criteria, ps = append(criteria, c), append(ps, *c.P)
			}
		}
	}
	for k, real := range holm(ps) {
		if !real {
			criteria[k].Verdict = NotDistinguishable
		}
	}
	v.harms(o.tolerance())
	v.Pass = true
	for i := range v.Variants {
		v.Variants[i].conclude(&v.States[0], &v.States[i+1])
		v.Pass = v.Pass && v.Variants[i].Pass
	}
}

// judge tests whether the change meets the condition. The verdict is the verdict on the mean; its p decides whether it
// counts.
func (c Condition) judge(e *evidence, variant int) Criterion {
	m := c.metric()
	r := Criterion{Condition: c, Baseline: stats.Finite(e.center(m, 0, variant)),
		Variant: stats.Finite(e.center(m, variant, 0)), Verdict: Unknown}
	if e.overload(&r, m, variant) {
		return r
	}
	if r.Baseline == nil || r.Variant == nil {
		r.missing = true
		r.Reason = m.Title + " is unknown"
		return r
	}
	r.Reason = inWords(m.Metric, *r.Baseline, *r.Baseline+e.between(m, 0, variant, less).center)
	slack := e.difference(m, variant, func(base, variant float64) float64 {
		allowed := c.Change
		if !c.Absolute {
			allowed *= base
		}
		if c.AtLeast {
			return variant - base - allowed
		}
		return allowed - (variant - base)
	})
	if !slack.known {
		return r
	}
	p := 0.0
	if slack.se > 0 {
		p = slack.chance(0)
	}
	r.P, r.Verdict = stats.Finite(p), Pass
	if slack.center < 0 {
		r.Verdict = Fail
	}
	return r
}

// overload judges a criterion on a number that grows without limit under overload, where a side is overloaded.
func (e *evidence) overload(r *Criterion, m metric, variant int) bool {
	base, other := &e.states[0], &e.states[variant]
	if !m.endless || !base.Overloaded() && !other.Overloaded() {
		return false
	}
	switch {
	case !base.Overloaded():
		r.Verdict, r.Reason = Fail, other.overload("the variant")
	case !other.Overloaded():
		r.Verdict, r.Reason = Pass, base.overload("the baseline")
	default:
		r.endless, r.Reason = true, "both are overloaded, so that it depends on the length of the run"
	}
	return true
}

// harms finds the numbers that users feel and that are surely worse by more than the tolerance.
func (v *Result) harms(tolerance float64) {
	type test struct {
		variant *Variant
		harm    Harm
	}
	var tests []test
	var ps []float64
	for k, m := range v.metrics {
		if !m.felt {
			continue
		}
		for i := range v.Variants {
			d, x := &v.Variants[i].Metrics[k], v.differences[i][k]
			if d.Difference == nil || !x.known {
				continue
			}
			p := 1.0
			if worse := (*d.Difference > 0) == (m.Better == report.Lower) && *d.Difference != 0; worse {
				p = x.chance(tolerance*math.Abs(*d.Baseline)) / 2 // one-sided: only worse is harm
			}
			h := Harm{Path: d.Path, Text: inWords(m.Metric, *d.Baseline, *d.Baseline+*d.Difference),
				size: math.Abs(math.Log1p(*d.Difference / *d.Baseline))}
			tests, ps = append(tests, test{&v.Variants[i], h}), append(ps, p)
		}
	}
	for k, real := range holm(ps) {
		if real {
			tests[k].variant.Harms = append(tests[k].variant.Harms, tests[k].harm)
		}
	}
}

// conclude sets the verdict on a variant. It fails if a criterion fails, if users are worse off, or if it is overloaded
// and the baseline is not. It passes if all criteria pass. Otherwise it does not differ significantly from the
// baseline.
func (v *Variant) conclude(base, own *State) {
	if own.Overloaded() && !base.Overloaded() {
		v.overload = own.overload("it")
	}
	slices.SortStableFunc(v.Harms, func(a, b Harm) int { return cmp.Compare(b.size, a.size) })
	count, endless := map[string]int{}, false
	for _, c := range v.Criteria {
		count[c.Verdict]++
		endless = endless || c.endless
	}
	switch {
	case count[Fail] > 0 || len(v.Harms) > 0 || v.overload != "":
		v.Verdict = Fail
	case count[NotDistinguishable] > 0:
		v.Verdict = NotDistinguishable
	case endless:
		v.Verdict = Unknown
	case count[Pass] > 0:
		v.Verdict = Pass
	default:
		v.Verdict = Unknown
	}
	v.Pass = v.Verdict != Fail
}

// Missing returns the first of the user's conditions that no variant could be judged by, with the reason; empty if
// there is none.
func (v *Result) Missing(o Options) string {
	for k, c := range o.Criteria {
		for i := range v.Variants {
			x := &v.Variants[i].Criteria[k]
			if !x.missing {
				continue
			}
			m := c.metric()
			name := v.Baseline
			if x.Baseline != nil {
				name = v.Variants[i].Name
			}
			text := fmt.Sprintf("%q: the runs of %s do not give %s", shortened(c.Text), shortened(name), m.Title)
			switch {
			case m.Path == pathCost || c.Path == pathCost:
				return text + " (want a price: deployment.usd_per_hour)"
			case report.FindMetric(c.Path).MinSamples > 0:
				return text + fmt.Sprintf(" (want %d or more requests in the window of each run)",
					report.FindMetric(c.Path).MinSamples)
			case c.Path[:min(8, len(c.Path))] == "goodput.":
				return text + " (want an SLO, such as --slo 'ttft_p95<800ms')"
			}
			return text
		}
	}
	return ""
}
