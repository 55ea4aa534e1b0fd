package planning_test

import (
	"strings"
	"testing"

	"clifftop/experiments/planning"
	"clifftop/report/plan"
)

// fleet asks for copies of one server of one second per request. An hour has ten minutes.
const fleet = `
step_time: {linear: {a_ms: 1000, b_us: 0}}
engine: {max_num_seqs: 1}
workload:
  arrivals: {process: poisson, rate: 2}
  input: {distribution: fixed, value: 1}
  output: {distribution: fixed, value: 1}
slo: {ttft_p90: 5s, horizon: 10m}
plan: {gpus: [h100-sxm], dtypes: [auto], tensor_parallel_sizes: [1], budget: 1e7}
`

// TestPlanIsVerified: the number of replicas is the least with which 90 % of the hours of the whole fleet meet the SLO,
// and the answer has the counts.
func TestPlanIsVerified(t *testing.T) {
	p := makePlan(t, fleet, planning.Options{})
	best := &p.Candidates[0]
	v := best.Verified
	if v == nil || v.Of != 29 || v.Met < 27 || v.Fewer == nil || v.Fewer.Of != 29 || v.Fewer.Met >= 27 ||
		v.HorizonS != 600 || v.Router != "least-requests" || v.LeadS <= 0 {
		t.Fatalf("%d replicas: %+v, one fewer %+v", best.Replicas, v, v.Fewer)
	}
	if c := best.Capacity; plan.Replicas(2, c.PassesRequestsPerS) != best.Replicas {
		t.Errorf("%d replicas, each with a capacity of %+v", best.Replicas, c)
	}
	if a := p.Answer(); !strings.Contains(a, "of 29 parts of 600 s meet the SLO, with one replica fewer") {
		t.Error(a)
	}
}

// TestPlanWithoutHours: where hours cannot be simulated, the plan says why, and what would do.
func TestPlanWithoutHours(t *testing.T) {
	for budget, want := range map[string]string{
		"0":    "no hours were simulated (plan.budget is 0)",
		"2000": "plan.budget is 1 million requests, and the next fleet takes it to",
	} {
		p := makePlan(t, strings.Replace(fleet, "1e7", budget, 1), planning.Options{})
		if p.Candidates[0].Verified != nil {
			t.Errorf("budget %s: it is verified", budget)
		}
		found := false
		for _, w := range p.Warnings {
			found = found || w.Code == "not_verified" && strings.Contains(w.Text, want)
		}
		if !found {
			t.Errorf("budget %s: %+v, want %q", budget, p.Warnings, want)
		}
	}
}
