package page

import (
	"fmt"
	"io"
	"strings"

	"clifftop/report/layout"
	"clifftop/report/plan"
	"clifftop/report/plot"
	"clifftop/report/verdict"
)

// Compare is the page of a comparison.
func Compare(v *verdict.Result) (*Page, error) {
	p := &Page{Kind: "compare", Title: verdictTitle(v),
		Origin: Origin{Version: v.Clifftop, Seeds: fmt.Sprintf("seed %d", v.Seeds[0])}}
	if n := len(v.Seeds); n > 1 {
		p.Origin.Seeds = fmt.Sprintf("seeds %d to %d, which all variants share", v.Seeds[0], v.Seeds[n-1])
	}
	for _, w := range v.Warnings {
		if w.Code == "partial" {
			p.Partial = upper(w.Text) + "."
		}
	}
	for i := range v.Variants {
		p.Facts = append(p.Facts, variantFact(&v.Variants[i]))
	}
	for i, s := range v.Scenarios {
		if s != nil {
			p.Origin.Scenarios = append(p.Origin.Scenarios, Scenario{compared(v, i), s})
		}
	}
	for i := range v.Variants {
		p.figure(v.Variants[i].Name, plot.Differences(v, &v.Variants[i]))
	}
	for i := range p.Sections {
		c := &p.Sections[i].Charts[0]
		c.Height = 80 + 24*len(c.Y.Places)
	}
	if runs, name := typical(v); len(runs) > 0 {
		p.picture(name, plot.Latencies(runs))
	}
	words, err := tables(3, v.WriteMarkdown)
	if err != nil {
		return nil, err
	}
	p.add(Section{Name: "All numbers and criteria", Tables: words})
	return p, nil
}

func variantFact(x *verdict.Variant) Fact {
	better, worse := 0, 0
	for _, m := range x.Metrics {
		switch m.Verdict {
		case verdict.Pass:
			better++
		case verdict.Fail:
			worse++
		}
	}
	return Fact{Name: x.Name, Value: strings.ToUpper(x.Verdict),
		Note: fmt.Sprintf("%s; %d numbers better, %d worse", x.Because(), better, worse)}
}

// compared returns the name of a variant; number 0 is the baseline.
func compared(v *verdict.Result, i int) string {
	if i == 0 {
		return v.Baseline
	}
	return v.Variants[i-1].Name
}

// typical returns the baseline and the variants that have latencies to compare, as many as a picture can show, and the
// name of the picture.
func typical(v *verdict.Result) (runs []plot.NamedRun, name string) {
	const most = 6
	name = "Distribution of latencies"
	for i, s := range v.Typical {
		if s == nil || len(runs) == most {
			continue
		}
		runs = append(runs, plot.NamedRun{Name: compared(v, i), Summary: s})
		if v.States[i].ByMedian {
			name = "Distribution of latencies, median run"
		}
	}
	return runs, name
}

func verdictTitle(v *verdict.Result) string {
	var passed, failed []string
	for _, x := range v.Variants {
		if x.Pass {
			passed = append(passed, x.Name)
		} else {
			failed = append(failed, x.Name)
		}
	}
	switch {
	case len(failed) == 0 && len(passed) == 1:
		return fmt.Sprintf("%s does not fail against %s", passed[0], v.Baseline)
	case len(failed) == 0:
		return fmt.Sprintf("No variant fails against %s", v.Baseline)
	case len(passed) == 0:
		return fmt.Sprintf("Against %s: %s %s", v.Baseline, strings.Join(failed, ", "),
			map[bool]string{true: "fails", false: "all fail"}[len(failed) == 1])
	}
	return fmt.Sprintf("Against %s: %s %s, %s %s", v.Baseline, strings.Join(failed, ", "), verb("fail", len(failed)),
		strings.Join(passed, ", "), verb("do", len(passed))+" not")
}

// verb is a verb for so many.
func verb(plural string, n int) string {
	switch {
	case n != 1:
		return plural
	case plural == "do":
		return "does"
	}
	return plural + "s"
}

// Plan is the page of a plan.
func Plan(x *plan.Result) (*Page, error) {
	p := &Page{Kind: "plan", Title: x.Answer(), Facts: planFacts(x),
		Origin: Origin{Version: x.Clifftop, Seeds: fmt.Sprintf("seed %d", x.Seed)}}
	if x.Partial {
		p.Partial = "The search was interrupted: candidates may be missing."
	}
	words, err := tables(3, x.WriteMarkdown)
	if err != nil {
		return nil, err
	}
	p.figure("Cost against the SLO", plot.PlanSLO(x))
	p.figure("Cost against load", plot.PlanLoad(x))
	p.figure("Candidates", plot.PlanPareto(x))
	p.add(Section{Name: "The plan", Tables: words})
	return p, nil
}

func planFacts(x *plan.Result) []Fact {
	if len(x.Candidates) == 0 {
		return nil
	}
	b := &x.Candidates[0]
	facts := []Fact{{"Replicas", fmt.Sprint(b.Replicas), fmt.Sprintf("%d GPUs in all, %s", b.GPUs, b.GPU)}}
	if b.USDPerMonth != nil {
		facts = append(facts, Fact{"Cost", layout.Dollars(*b.USDPerMonth), "a month"})
	}
	if v := b.PerMillion.AtPlan; v != nil {
		facts = append(facts, Fact{"Cost of tokens", layout.Dollars(*v), "per million output tokens at the peak"})
	}
	facts = append(facts, Fact{"Used of the SLO", layout.Percent(b.AtPlan.SLOUse), "of the limit that is nearest"},
		Fact{"Peak hour", layout.Digits(x.Traffic.PlannedRequestsPerS) + " requests/s", "planned for"})
	if c := b.Capacity; c != nil {
		facts = append(facts, Fact{"One replica carries", layout.Digits(c.PassesRequestsPerS) + " requests/s",
			"within the SLO"})
	}
	return facts
}

// Validation is the page of simulated beside measured runs: a picture of them, and tables in Markdown.
func Validation(version string, f *plot.Figure, write func(io.Writer) error) (*Page, error) {
	p := &Page{Kind: "validate", Title: f.Title, Caption: f.Caption, Origin: Origin{Version: version}}
	words, err := tables(3, write)
	if err != nil {
		return nil, err
	}
	p.figure("Measured and simulated", f)
	if n := len(p.Sections); n > 0 {
		p.Sections[n-1].Title = "" // it is the page's
	}
	p.add(Section{Name: "Errors", Tables: words})
	return p, nil
}
