package verdict

import (
	"fmt"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/layout"
)

// Criterion is a condition for taking a variant in the baseline's place.
type Criterion struct {
	Name    string   `json:"name"`
	Paths   []string `json:"paths"` // of the metrics that it looks at
	Verdict string   `json:"verdict"`
	// Reason says what the verdict rests on.
	Reason string `json:"reason"`
}

// Names of the criteria.
const (
	CriterionThroughput = "throughput_up_without_lower_success"
	CriterionGap        = "gap_time_down_while_a_backlog_exists"
	CriterionRetries    = "retries_not_up"
)

// decide judges the criteria. What cannot be told from chance is no failure.
func (v *Variant) decide(base, variant []*report.Summary) {
	v.Criteria = []Criterion{v.throughput(), v.gap(base, variant), v.retries()}
	v.Pass = true
	for _, c := range v.Criteria {
		v.Pass = v.Pass && c.Verdict != Fail
	}
}

// metric is the difference of a path.
func (v *Variant) metric(path string) *Difference {
	for i := range v.Metrics {
		if v.Metrics[i].Path == path {
			return &v.Metrics[i]
		}
	}
	return &Difference{Path: path, Verdict: Unknown}
}

// throughput has to go up, and the share of requests that succeed must not go down.
func (v *Variant) throughput() Criterion {
	x, errors := v.metric("throughput.output_tokens_per_s"), v.metric("system.error_rate")
	c := Criterion{Name: CriterionThroughput, Paths: []string{x.Path, errors.Path}, Verdict: x.Verdict}
	c.Reason = "output tokens/s " + x.text()
	switch {
	case errors.Verdict == Fail:
		c.Verdict = Fail
		c.Reason += ", error rate " + errors.text()
	case x.Verdict == NotRelevant:
		c.Verdict = NotDistinguishable
	}
	return c
}

// gap time, in which requests wait though nothing holds them back, has to go down while there is a backlog. Where there
// is none, waits are those for the next iteration, and their time says nothing; a variant that ends a backlog has done
// better than shorten it.
func (v *Variant) gap(base, variant []*report.Summary) Criterion {
	x := v.metric("system.gap_fraction")
	c := Criterion{Name: CriterionGap, Paths: []string{x.Path}, Verdict: x.Verdict, Reason: "gap fraction " + x.text()}
	least := curve.DefaultThresholds().Binding
	before, after := backlog(base), backlog(variant)
	switch {
	case before < least && after < least:
		c.Verdict = NotDistinguishable
		c.Reason = fmt.Sprintf("there is no backlog: requests wait for seats, KV blocks or tokens %s of the time, with "+
			"the variant %s", layout.Percent(before), layout.Percent(after))
	case after < least && len(base) > 1:
		c.Verdict, c.Reason = Pass, fmt.Sprintf("the backlog is gone: requests wait for seats, KV blocks or tokens %s of "+
			"the time, before %s", layout.Percent(after), layout.Percent(before))
	case x.Verdict == NotRelevant:
		c.Verdict = NotDistinguishable
	}
	return c
}

// backlog is the part of the time in which requests wait for something that others have, on average over the runs.
func backlog(runs []*report.Summary) float64 {
	sum := 0.0
	for _, s := range runs {
		g := &s.System.GapByCause
		for _, part := range []*float64{g.KV, g.Seats, g.TokenBudget, g.Policy} {
			if part != nil {
				sum += *part
			}
		}
	}
	return sum / float64(len(runs))
}

// retries must not go up.
func (v *Variant) retries() Criterion {
	x := v.metric("retry_rate")
	c := Criterion{Name: CriterionRetries, Paths: []string{x.Path}, Verdict: x.Verdict,
		Reason: "retries per request " + x.text()}
	switch {
	case x.Baseline != nil && x.Variant != nil && *x.Baseline == 0 && *x.Variant == 0:
		c.Verdict, c.Reason = Pass, "there are no retries in either"
	case x.Verdict == NotRelevant:
		c.Verdict = Pass
	}
	return c
}

// text is the change of a metric in words.
func (d *Difference) text() string {
	if d.Baseline == nil || d.Variant == nil {
		return "unknown"
	}
	text := fmt.Sprintf("%s → %s", layout.Cell(d.Baseline), layout.Cell(d.Variant))
	if d.CI95 != nil && *d.Baseline != 0 {
		in := func(x float64) string { return percent(100 * x / *d.Baseline) }
		text += fmt.Sprintf(" (%s to %s %%)", in(d.CI95[0]), in(d.CI95[1]))
	} else if d.CI95 != nil {
		text += fmt.Sprintf(" (%s to %s)", signed(d.CI95[0]), signed(d.CI95[1]))
	}
	return text
}
