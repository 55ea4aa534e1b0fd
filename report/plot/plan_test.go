package plot

import (
	"image/png"
	"slices"
	"strings"
	"testing"

	"clifftop/report/plan"
)

// Pictures of a plan are written in both formats, their titles say what they show, and one without prices has none.
func TestWritePlan(t *testing.T) {
	usd := func(x float64) *float64 { return &x }
	p := &plan.Result{
		Model: "m", Traffic: plan.Traffic{PlannedRequestsPerS: 10},
		Candidates: []plan.Candidate{
			{Name: "2 × a", USDPerMonth: usd(1000), Pareto: true, AtPlan: plan.Point{SLOUse: 0.8}},
			{Name: "1 × b", USDPerMonth: usd(1500), Pareto: true, AtPlan: plan.Point{SLOUse: 0.3}},
			{Name: "2 × b", USDPerMonth: usd(3000), AtPlan: plan.Point{SLOUse: 0.3}},
		},
		CostBySLO: []plan.CostPoint{{Factor: 0.3, USDPerMonth: 1500, Name: "1 × b"},
			{Factor: 0.8, USDPerMonth: 1000, Name: "2 × a"}},
		CostByLoad: []plan.LoadLine{
			{Name: "a", Points: []plan.LoadPoint{{RequestsPerS: 6, Replicas: 1, USDPerMonth: 500},
				{RequestsPerS: 12, Replicas: 2, USDPerMonth: 1000}, {RequestsPerS: 18, Replicas: 3, USDPerMonth: 1600},
				{RequestsPerS: 40, Replicas: 4, USDPerMonth: 2000}}},
			{Name: "b", Points: []plan.LoadPoint{{RequestsPerS: 30, Replicas: 1, USDPerMonth: 1500}}},
		},
	}
	files := memory{}
	names, err := WritePlan(p, files.keep)
	if err != nil || !slices.Equal(names, []string{"plan-slo", "plan-load", "plan-pareto"}) || len(files) != 6 {
		t.Fatalf("%q, %v", names, err)
	}
	for name, text := range map[string]string{
		"plan-slo":    "The SLO costs $1k a month; limits half as wide would cost $1.5k",
		"plan-load":   "a is the cheapest up to 12 requests/s; then b",
		"plan-pareto": "2 of 3 candidates are not beaten in both cost and latency: from $1k at 80 % of the limit to $1.5k at 30 %",
	} {
		if _, err := png.Decode(files[name+".png"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if svg := files[name+".svg"].String(); !strings.Contains(svg, "<title>"+text+"</title>") {
			title, _, _ := strings.Cut(svg[strings.Index(svg, "<title>"):], "</title>")
			t.Errorf("%s is titled %q", name, title)
		}
	}
	if PlanSLO(&plan.Result{}) != nil || PlanLoad(&plan.Result{}) != nil ||
		PlanPareto(&plan.Result{Candidates: []plan.Candidate{{}}}) != nil {
		t.Error("without prices there are pictures")
	}
}
