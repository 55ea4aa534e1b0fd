package planning_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments/planning"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/testenv"
	"clifftop/report/plan"
)

// makePlan plans a scenario, or ends the test.
func makePlan(t *testing.T, text string, o planning.Options) *plan.Result {
	t.Helper()
	p, err := planning.New(context.Background(), parse(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plans are those that several tests look at.
var plans = map[string]*plan.Result{}

// planned is the plan of a scenario with the default options, made once for all tests.
func planned(t *testing.T, text string) *plan.Result {
	t.Helper()
	if plans[text] == nil {
		plans[text] = makePlan(t, text, planning.Options{})
	}
	return plans[text]
}

// withoutHours is a scenario whose plan is not verified by hours, unless it says something of them.
func withoutHours(text string) string {
	at := strings.Index(text, "plan: {")
	if strings.Contains(text, "budget:") {
		return text
	}
	if at < 0 {
		return text + "\nplan: {budget: 0}\n"
	}
	open := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return text[:i] + ", budget: 0" + text[i:]
			}
		}
	}
	return text
}

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("plan.yaml", []byte(withoutHours(text)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func within(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if !(math.Abs(got-want) <= part*want) {
		t.Errorf("%s is %.6g, want %.6g within %.3g %%", what, got, want, 100*part)
	}
}

const two = `
workload: {arrivals: {process: poisson, rate: 30}}
slo: {ttft_p95: 800ms, tpot_p95: 60ms}
plan: {gpus: [h100-sxm, l40s], dtypes: [auto, fp8], tensor_parallel_sizes: [1, 2]}
`

// A plan is the same to the byte on one processor and on several.
func TestPlanIsDeterministic(t *testing.T) {
	text := testenv.Choose(divided, two)
	one, err1 := json.Marshal(makePlan(t, text, planning.Options{Jobs: 1}))
	several, err2 := json.Marshal(makePlan(t, text, planning.Options{Jobs: 4}))
	if err1 != nil || err2 != nil || string(one) != string(several) {
		t.Errorf("%v, %v: jobs change the plan", err1, err2)
	}
}

// What is planned holds: the replicas carry the load with the allowance for the error, one less does not, costs follow
// from counts and prices, and the order is that of costs.
func TestPlan(t *testing.T) {
	p := planned(t, two)
	if p.Counts.Candidates != 8 || len(p.Candidates) < 4 || len(p.Candidates)+len(p.Refused) != 8 {
		t.Fatalf("%+v, %d candidates, %d refused", p.Counts, len(p.Candidates), len(p.Refused))
	}
	last := 0.0
	for i := range p.Candidates {
		c := &p.Candidates[i]
		load := 30 / (1 - c.Error)
		if n := float64(c.Replicas); n*c.Capacity.PassesRequestsPerS < load*0.999 ||
			c.Capacity.FailsRequestsPerS != nil && (n-1)**c.Capacity.FailsRequestsPerS > load && c.Replicas > 40 {
			t.Errorf("%s carries %v each, planned for %v", c.Name, c.Capacity.PassesRequestsPerS, load)
		}
		if c.AtPlan.SLOUse > 1 {
			t.Errorf("%s uses %v of the SLO", c.Name, c.AtPlan.SLOUse)
		}
		within(t, c.Name+" a month", *c.USDPerMonth, *c.USDPerGPUHour*float64(c.GPUs)*730, 1e-9)
		within(t, c.Name+" per million", *c.PerMillion.AtPlan,
			*plan.USDPerMillion(*c.USDPerHour, 30*p.Traffic.MeanOutputTokens), 1e-9)
		if *c.PerMillion.AtCapacity > *c.PerMillion.AtPlan*1.0001 {
			t.Errorf("%s costs %v at capacity, %v at the plan", c.Name, *c.PerMillion.AtCapacity, *c.PerMillion.AtPlan)
		}
		if *c.USDPerMonth < last {
			t.Errorf("%s is out of order", c.Name)
		}
		last = *c.USDPerMonth
		if !c.Validated || c.Error <= 0 {
			t.Errorf("%s: error %v, %s", c.Name, c.Error, c.Scope)
		}
	}
	b := &p.Candidates[0]
	if len(b.Headroom) != 4 || b.Spare == nil || b.Spare.Replicas != b.Replicas+1 || !b.Pareto || b.Group != 1 {
		t.Errorf("the best is %+v", b)
	}
	if len(p.CostByLoad) == 0 || len(p.CostBySLO) == 0 || len(p.Why) < 2 || len(p.Flips) == 0 {
		t.Errorf("%d lines by load, %d points by SLO, why %q, flips %q", len(p.CostByLoad), len(p.CostBySLO), p.Why,
			p.Flips)
	}
	for _, line := range p.CostByLoad {
		for i, q := range line.Points {
			if q.Replicas != i+1 || i > 0 && q.USDPerMonth <= line.Points[i-1].USDPerMonth {
				t.Errorf("%s: %+v", line.Name, q)
			}
		}
	}
}

// Four requests a minute of 30 s each are two at once on average, five at the 95th percentile and six at the 99th; and
// $3 an hour at 4,000 tokens/s is $0.208 per million.
func TestPlanByHand(t *testing.T) {
	p := makePlan(t, `
step_time: {linear: {a_ms: 100, b_us: 0}}
workload: {arrivals: {process: poisson, rate: 0.0666667}, input: {distribution: fixed, value: 1}, output: {distribution: fixed, value: 300}}
slo: {e2e_p99: 31s}
`, planning.Options{})
	if len(p.Candidates) != 1 {
		t.Fatalf("%d candidates, %+v", len(p.Candidates), p.Refused)
	}
	in := p.Candidates[0].AtPlan.InSystem
	within(t, "requests at once", *in.Mean, 2, 0.06)
	if *in.P95 != 5 || *in.P99 < 5 || *in.P99 > 6 {
		t.Errorf("at once: p95 %v, p99 %v", *in.P95, *in.P99)
	}
	p = makePlan(t, `
step_time: {linear: {a_ms: 10, b_us: 0}}
cost: {gpu_hour: 3}
workload: {arrivals: {process: constant, rate: 40}, input: {distribution: fixed, value: 1}, output: {distribution: fixed, value: 100}}
slo: {ttft_p95: 30ms}
`, planning.Options{})
	c := &p.Candidates[0]
	within(t, "cost per million", *c.PerMillion.AtLoad, 3/14.4, 1e-9)
	if c.Error != 0 || c.Replicas != 1 {
		t.Errorf("%d replicas with an error of %v", c.Replicas, c.Error)
	}
}

// An SLO below what one request takes alone is refused with the floor, before anything is simulated.
func TestPlanFloors(t *testing.T) {
	p := makePlan(t, `
slo: {tpot_p95: 1ms}
plan: {gpus: [h100-sxm, a100], tensor_parallel_sizes: [1]}
`, planning.Options{})
	if len(p.Candidates) != 0 || p.Counts.Runs != 0 || len(p.Refused) == 0 {
		t.Fatalf("%d candidates, %d runs", len(p.Candidates), p.Counts.Runs)
	}
	for _, r := range p.Refused {
		if r.Reason != plan.SLOFloor || *r.Excess < 2 || !strings.Contains(r.Text, "TPOT p95") {
			t.Errorf("%+v", r)
		}
	}
	if !strings.HasPrefix(p.Answer(), "No plan: the SLO is below what any of 6 candidates that fit can reach") {
		t.Error(p.Answer())
	}
}

// A limit of nothing at all is missed by no multiple that JSON could say.
func TestPlanOfZero(t *testing.T) {
	p := makePlan(t, "slo: {ttft_p95: 0s}\nplan: {gpus: [h100-sxm], dtypes: [auto], tensor_parallel_sizes: [1]}",
		planning.Options{})
	if _, err := json.Marshal(p); err != nil || len(p.Refused) != 1 || p.Refused[0].Reason != plan.SLOFloor ||
		p.Refused[0].Excess != nil {
		t.Errorf("%v: %+v", err, p.Refused)
	}
}

// What does not fit is listed with the bytes that lack: 141 GB of weights on 80 GB.
func TestPlanFit(t *testing.T) {
	p := makePlan(t, "{model: llama-3.1-70b, plan: {gpus: [h100-sxm], dtypes: [bf16], tensor_parallel_sizes: [1]}}",
		planning.Options{})
	if len(p.Candidates) != 0 || len(p.Refused) != 1 || p.Refused[0].Reason != plan.DoesNotFit {
		t.Fatalf("%+v", p.Refused)
	}
	if m := *p.Refused[0].MissingBytes; m < 60e9 || m > 75e9 {
		t.Errorf("%v bytes are missing", m)
	}
}

// Bad input gets a line that says where, what and what is wanted.
func TestPlanFaults(t *testing.T) {
	for text, want := range map[string]string{
		"workload: {arrivals: {users: 8}}":                   "plan.yaml:1:30: workload.arrivals.users: a closed loop has no peak hour (want a rate of requests: --rate, plan.peak_rate, or another workload.arrivals.process)",
		"workload: {arrivals: {process: all-at-once}}":       "plan.yaml:1:22: workload.arrivals: requests that arrive all-at-once have no peak hour (want a rate of requests: --rate, plan.peak_rate, or another workload.arrivals.process)",
		"plan: {max_gpus: 2, tensor_parallel_sizes: [4, 8]}": "plan.yaml:1:18: plan.max_gpus: 2 is less than the 4 GPUs of the smallest candidate",
		"plan: {gpus: [h100x]}":                              `plan.yaml:1:14: plan.gpus: no gpu "h100x"; nearest: `,
		"plan: {prices: {h101: 3}}":                          `plan.yaml:1:16: plan.prices: no gpu "h101"; nearest: `,
		"slo: {attainment: 0.9}":                             "plan.yaml:1:6: slo: attainment needs a latency limit",
		"model: llama-9":                                     `plan.yaml:1:8: model: no model "llama-9"; nearest: `,
		"workload: {input: {distribution: fixed, value: 9}, arrivals: {process: profile, rate: 3, hourly: day}}": "plan.yaml:1:98: workload.arrivals.hourly: ",
	} {
		_, err := scenario.Parse("plan.yaml", []byte(text))
		if err == nil {
			_, err = planning.New(context.Background(), parse(t, text), planning.Options{})
		}
		if err == nil || !yamldoc.BadInput(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant %s", text, err, want)
		}
	}
}

// A course of the day is planned for its busiest hour, and replicas that follow it cost less.
func TestPlanHours(t *testing.T) {
	hours := strings.TrimSuffix(strings.Repeat("1, ", 12)+strings.Repeat("3, ", 12), ", ")
	p := makePlan(t, `
workload: {arrivals: {process: profile, rate: 40, hourly: [`+hours+`]}}
slo: {ttft_p95: 1s, tpot_p95: 60ms}
plan: {gpus: [a100], dtypes: [auto], tensor_parallel_sizes: [1], growth: 0.5, on_prem: {usd_per_gpu: 20000}, api: {usd_per_million_input: 0.1, usd_per_million_output: 0.4}}
`, planning.Options{})
	within(t, "peak", p.Traffic.PeakRequestsPerS, 60, 1e-9)
	within(t, "planned", p.Traffic.PlannedRequestsPerS, 90, 1e-9)
	a := p.Autoscaling
	if a == nil || a.Static != p.Candidates[0].Replicas || a.ReplicasByHour[0] >= a.Static ||
		*a.USDPerMonth >= *a.StaticUSDPerMonth {
		t.Errorf("%+v", a)
	}
	within(t, "paid idle", a.PaidIdle, 1./3, 0.1)
	if p.OnPrem == nil || p.OnPrem.GPUs != p.Candidates[0].GPUs || p.API == nil || p.API.USDPerRequest <= 0 {
		t.Errorf("%+v, %+v", p.OnPrem, p.API)
	}
	c := &p.Candidates[0]
	within(t, "cost at the mean load", *c.PerMillion.AtLoad, *c.PerMillion.AtPlan*90/40, 1e-9)
}

// The tables say what the plan says.
func TestPlanTables(t *testing.T) {
	p := planned(t, two)
	var table, page, csv strings.Builder
	if err := p.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteCSV(&csv); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{p.Candidates[0].Name, "Ranking", "Why", "What was assumed",
		"What would change the answer", "N+1", "load × 1.5"} {
		if !strings.Contains(table.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(csv.String(), "\n"); n != len(p.Candidates)+1 {
		t.Errorf("%d lines of CSV for %d candidates", n, len(p.Candidates))
	}
	for line := range strings.SplitSeq(table.String(), "\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

// Square-root staffing: with at most a tenth of Poisson arrivals waiting for exponential service, an offered load of 2
// takes 5 servers and one of 10 takes 16, by Erlang's C: 4 would make 17.4 % wait, and 15 as many as 10.2 %.
func TestPlanStaffing(t *testing.T) {
	for load, seats := range testenv.Choose(map[string]string{"0.3": "2"}, map[string]string{"2": "5", "10": "16"}) {
		p := makePlan(t, `
step_time: {linear: {a_ms: 1, b_us: 0}}
workload: {arrivals: {process: poisson, rate: `+load+`}, input: {distribution: fixed, value: 1}, output: {distribution: gamma, mean: 1000, cv: 1}}
slo: {wait_probability: 0.1}
plan: {fewest: max_num_seqs}
`, planning.Options{})
		if len(p.Candidates) != 1 || p.Candidates[0].Engine["max_num_seqs"] != seats {
			t.Errorf("a load of %s takes %+v, want %s seats", load, p.Candidates, seats)
		}
	}
}

// Every class is held to its own SLO: a strict one decides, even of few requests.
func TestPlanClasses(t *testing.T) {
	const traffic = `
workload:
  arrivals: {process: poisson, rate: 12}
  classes:
  - {name: chat, weight: 1, preset: chat-azure23, slo: {tpot_p95: CHAT}}
  - {name: batch, weight: 4, input: {distribution: fixed, value: 2000}, output: {distribution: fixed, value: 300}, slo: {e2e_p95: 5m}}
plan: {gpus: [h100-sxm], dtypes: [fp8], tensor_parallel_sizes: [1]}
`
	loose := makePlan(t, strings.Replace(traffic, "CHAT", "100ms", 1), planning.Options{})
	strict := makePlan(t, strings.Replace(traffic, "CHAT", "12ms", 1), planning.Options{})
	if len(loose.Candidates) != 1 || len(strict.Candidates) != 1 || len(strict.Classes) != 2 {
		t.Fatalf("%+v, %+v", loose.Refused, strict.Refused)
	}
	l, s := &loose.Candidates[0], &strict.Candidates[0]
	if l.Replicas >= s.Replicas || !strings.Contains(s.LimitedBy, "chat: TPOT p95") ||
		s.AtPlan.Limits[0].Key != "chat: tpot_p95" {
		t.Errorf("%d replicas, and %d for the strict class; it is limited by %q", l.Replicas, s.Replicas, s.LimitedBy)
	}
}

// A recording that begins calmly is planned for by all of its hour, and its averages are those of all of it.
func TestPlanOfAnUnevenRecording(t *testing.T) {
	var b strings.Builder
	b.WriteString("arrival_s,input_tokens,output_tokens\n")
	input, output := 0.0, 0.0
	const rows = 6000
	for i := range rows { // two per second, long prompts and answers in the last quarter of the time
		in, out := 200, 20
		if i >= rows*3/4 {
			in, out = 4000, 400
		}
		input, output = input+float64(in)/rows, output+float64(out)/rows
		fmt.Fprintf(&b, "%.1f,%d,%d\n", float64(i)/2, in, out)
	}
	path := filepath.Join(t.TempDir(), "hour.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := makePlan(t, "workload: {trace: {file: "+path+"}}\nslo: {ttft_p95: 1s}\nplan: {gpus: [l40s], dtypes: [fp8], tensor_parallel_sizes: [1]}", planning.Options{})
	within(t, "mean input", p.Traffic.MeanInputTokens, input, 1e-9)
	within(t, "mean output", p.Traffic.MeanOutputTokens, output, 1e-9)
	if len(p.Candidates) != 1 {
		t.Fatalf("%+v", p.Refused)
	}
	const short = 200 // ms, more than a short prompt takes and less than a long one
	if at := &p.Candidates[0].AtPlan.Limits[0]; at.ValueMs == nil || *at.ValueMs < short {
		t.Errorf("%s: %s is %v ms: the long requests were not met", p.Answer(), at.Key, *at.ValueMs)
	}
}

// A GPU without measured runs is cheaper. It is listed apart, unless the plan says otherwise or there is no other GPU.
func TestUnmeasuredCandidatesStandApart(t *testing.T) {
	for _, c := range []struct {
		plan, best string
		apart      bool
	}{
		{"{gpus: [mi300x, h100], dtypes: [fp8], tensor_parallel_sizes: [1]}", "1 × h100-sxm fp8", true},
		{"{gpus: [mi300x, h100], dtypes: [fp8], tensor_parallel_sizes: [1], unmeasured: ranked}", "1 × mi300x fp8", false},
		{"{gpus: [mi300x], dtypes: [fp8], tensor_parallel_sizes: [1]}", "1 × mi300x fp8", false},
	} {
		p := makePlan(t, "workload: {arrivals: {rate: 5}}\nplan: "+c.plan+"\n", planning.Options{})
		if p.Candidates[0].Name != c.best || p.Candidates[0].Apart {
			t.Errorf("%s: the best is %s, apart: %v", c.plan, p.Candidates[0].Name, p.Candidates[0].Apart)
		}
		last := p.Candidates[len(p.Candidates)-1]
		flip := slices.ContainsFunc(p.Flips, func(s string) bool { return strings.Contains(s, "if unmeasured step times are good enough") })
		if last.Apart != c.apart || flip != c.apart {
			t.Errorf("%s: %s is apart: %v, %q", c.plan, last.Name, last.Apart, p.Flips)
		}
	}
}
