package playground

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
)

// queries are what a page may ask for.
var queries = []Query{
	{},
	{Set: []string{"rate=12", "engine.policy=sglang", "run.requests=400"}},
	{Set: []string{"users=40", "workload.arrivals.think_time=5s", "clients.timeout=20s", "clients.retries=2"}},
	{Set: []string{"workload.arrivals={process: poisson, rate: 30}",
		"workload.input={distribution: lognormal, mean: 2000, cv: 1}", "engine.num_gpu_blocks_override=2000",
		"slo={ttft_p95: 1s}"}},
	{Set: []string{"model=mixtral-8x7b", "gpu=a100-80gb-sxm", "deployment.tensor_parallel_size=2",
		"deployment.dtype=int4"}},
	{Set: []string{"rate=12", "deployment.replicas=3",
		"lifecycle={cold_start: 10s, probe: 1s, failures: [{replica: 0, for: 20s, kind: crash, at: 30s}]}"}},
	{Set: []string{"rate=30", "lifecycle={cold_start: 10s, autoscale: {policy: keda, min: 1, max: 4, metric: concurrency, target: 20, scrape: 5s, polling_interval: 10s}}"}},
	{Lesson: 8, Step: 4},
	{Lesson: 4, Step: 1, Set: []string{"rate=25"}},
}

// TestYAMLGivesTheSummary runs the file that a page shows, and wants the bytes of the summary that it shows.
func TestYAMLGivesTheSummary(t *testing.T) {
	ctx := context.Background()
	var p Player
	for _, q := range queries {
		point, err := p.Point(ctx, q)
		if err != nil {
			t.Fatalf("%v: %v", q, err)
		}
		summary, err := p.Summary(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse("copied.yaml", []byte(point.YAML))
		if err != nil {
			t.Fatalf("%v: %v in\n%s", q, err, point.YAML)
		}
		r, err := experiments.Settled(ctx, s, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := encode(r.Summary, "  ")
		if err != nil {
			t.Fatal(err)
		}
		if summary != string(want) {
			t.Errorf("%v: the page shows\n%s\nand the file gives\n%s", q, summary, want)
		}
		if len(point.Series) < 10 || point.Pool == nil {
			t.Errorf("%v: %d buckets of time, pool %v", q, len(point.Series), point.Pool)
		}
	}
}

// TestCurve draws a curve in both rounds and asks what it shows.
func TestCurve(t *testing.T) {
	ctx := context.Background()
	for _, x := range []struct {
		query    Query
		over     string
		low, top float64 // where the peak is
	}{
		{Query{}, "rate", 10, 40},
		{Query{Set: []string{"users=40"}}, "users", 60, 600},
		{Query{Lesson: 5, Step: 1}, "users", 40, 150},
		{Query{Set: []string{"clients.timeout=1s"}}, "rate", 1, 40},
		{Query{Set: []string{"deployment.replicas=2",
			"lifecycle={cold_start: 10s, failures: [{replica: 0, for: 20s, kind: crash, at: 30s}]}"}}, "rate", 20, 80},
	} {
		var p Player
		plan, err := p.Curve(ctx, x.query)
		if err != nil {
			t.Fatalf("%v: %v", x.query, err)
		}
		if plan.Over != x.over || len(plan.Loads) < curvePoints/2 {
			t.Fatalf("%v: the plan is %v", x.query, plan)
		}
		completed := [Rounds]int64{}
		for round := range plan.Rounds {
			for i := range plan.Loads {
				point, err := p.Load(ctx, i, round)
				if err != nil {
					t.Fatalf("%v at %v: %v", x.query, plan.Loads[i], err)
				}
				completed[round] += point.Summary.Requests.Offered
			}
		}
		if lives := strings.Contains(fmt.Sprint(x.query), "lifecycle"); lives != (plan.Rounds == 1) || !lives &&
			completed[1] < 2*completed[0] {
			t.Errorf("%v: the rounds have %v requests", x.query, completed)
		}
		c := p.Judgement()
		if c.Peak == nil || c.Peak.Value < x.low || c.Peak.Value > x.top {
			t.Errorf("%v: the peak is %+v", x.query, c.Peak)
		}
	}
}

// TestNoFalseCliff: a short run far above saturation measures no throughput, and the page says so instead of showing one.
// The bound is there before the first run of a curve.
func TestNoFalseCliff(t *testing.T) {
	ctx := context.Background()
	var p Player
	for _, rate := range []string{"100", "200", "500"} {
		point, err := p.Point(ctx, Query{Set: []string{"rate=" + rate}})
		if err != nil {
			t.Fatal(err)
		}
		s := point.Summary
		if s.Throughput.OutputTokensPerS != nil || !strings.Contains(point.Withheld, "saturates at 2") ||
			s.Window.State != report.Overloaded {
			t.Errorf("at %s requests/s: %v tokens/s, %q, %s", rate, s.Throughput.OutputTokensPerS, point.Withheld,
				s.Window.State)
		}
	}
	plan, err := p.Curve(ctx, Query{})
	if err != nil {
		t.Fatal(err)
	}
	// a sweep finds a plateau of 4,840 tokens/s at 23.1 requests/s
	if b := plan.Bound; b == nil || b.RequestsPerS < 22 || b.RequestsPerS > 24 || b.OutputTokensPerS < 4600 ||
		b.OutputTokensPerS > 5100 {
		t.Errorf("bound %+v", b)
	}
}

// TestAnswer asks as a page does.
func TestAnswer(t *testing.T) {
	var p Player
	ask := func(method, arguments string) string {
		return string(p.Call(context.Background(), method, []byte(arguments), nil))
	}
	for _, x := range []struct{ method, arguments, want string }{
		{"describe", "{}", `{"ok":{"clifftop":"`},
		{"point", `{"set":["run.requests=50"]}`, `{"ok":{"summary":{"schema":"clifftop.summary/1"`},
		{"summary", `{"set":["run.requests=50"]}`, `{"ok":"{\n  \"schema\": \"clifftop.summary/1\"`},
		{"curve", `{"set":["rate=5"]}`, `{"ok":{"over":"rate","loads":[`},
		{"load", `{"load":2,"round":0}`, `{"ok":{"value":`},
		{"judge", `{}`, `{"ok":{"schema":"clifftop.curve/1"`},
		{"point", `{"set":["engine.max_num_seqs=0"]}`,
			`{"faults":[{"key":"engine.max_num_seqs","problem":"0 is not allowed (want 1 to 1048576)","hint":""}]}`},
		{"point", `{"set":["engine.max_num_seq=8"]}`,
			`{"faults":[{"key":"engine.max_num_seq","problem":"unknown key","hint":"did you mean max_num_seqs?"`},
		{"point", `{"set":["rate"]}`, `{"faults":[{"key":"","problem":"\"rate\" is not a setting (want KEY=VALUE)"`},
		{"point", `{"set":["run.requests=1000000"]}`,
			`{"faults":[{"key":"run.requests","problem":"1000000 are too many for the browser (want 50000 or less)"`},
		{"point", `{"set":["run.duration=9h"]}`,
			`{"faults":[{"key":"run.duration","problem":"32400 s is too long for the browser`},
		{"point", `{"set":["run.replications=3"]}`, `{"faults":[{"key":"run.replications"`},
		{"point", `{"set":["workload.trace.file=x.csv"]}`, `{"faults":[{"key":"workload.trace"`},
		{"point", `{"lesson":11,"step":1}`,
			`{"faults":[{"key":"","problem":"\"11\" is not known (want 1 to 10, or list)"`},
		{"point", `{"lesson":1,"step":9}`, `{"faults":[{"key":"","problem":"9 is not one of lesson 1 (want 1 to 1)"`},
		{"curve", `{"set":["workload.arrivals={process: all-at-once}"]}`,
			`{"faults":[{"key":"workload.arrivals","problem":"the requests arrive all at once`},
		{"load", `{"load":99}`, `{"faults":[{"key":"","problem":"playground: the curve has no such load"`},
		{"point", `[`, `{"faults":[{"key":"","problem":"what the page asks cannot be read`},
		{"sing", `{}`, `{"faults":[{"key":"","problem":"the method \"sing\" is not known"`},
	} {
		if got := ask(x.method, x.arguments); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s %s answers %.300s, want %s", x.method, x.arguments, got, x.want)
		}
	}
}

// TestHold holds a lesson with its pictures.
func TestHold(t *testing.T) {
	var p Player
	last := [2]int{}
	text := p.Call(context.Background(), "hold", []byte(`{"number":9}`), func(done, total int) {
		last = [2]int{done, total}
	})
	var answer struct {
		OK struct {
			Pass     bool
			Number   int
			Table    struct{ Rows [][]string }
			Pictures []struct{ Lines struct{ Panels []any } }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	l := answer.OK
	if !l.Pass || l.Number != 9 || len(l.Table.Rows) == 0 || len(l.Pictures) == 0 ||
		len(l.Pictures[0].Lines.Panels) == 0 {
		t.Errorf("the lesson is %.2000s", text)
	}
	if last[0] == 0 || last[0] != last[1] {
		t.Errorf("the last progress was %v", last)
	}
}

// TestLives runs fleets whose replicas come and go, whatever the load for as long as it takes to see what happens.
func TestLives(t *testing.T) {
	ctx := context.Background()
	var p Player
	for _, x := range []struct {
		set     []string
		seconds float64
	}{
		{[]string{"rate=4"}, 120},
		{[]string{"users=50"}, 120},
		{[]string{"rate=500", "deployment.replicas=16"}, 100}, // no more than 50,000 requests
		{[]string{"rate=4", "run.duration=40s"}, 40},
	} {
		point, err := p.Point(ctx, Query{Set: append(x.set,
			"lifecycle={cold_start: 10s, failures: [{replica: 0, for: 5s, kind: crash, at: 20s}]}")})
		if err != nil {
			t.Fatal(err)
		}
		if w := point.Summary.Window; w.StartS != 0 || w.EndS != x.seconds {
			t.Errorf("%v: the window is from %v to %v s, want 0 to %v", x.set, w.StartS, w.EndS, x.seconds)
		}
		ready := 1e9
		for _, b := range point.Series {
			if b.ReplicasReady == nil {
				t.Fatalf("%v: the series do not tell of replicas", x.set)
			}
			ready = min(ready, *b.ReplicasReady)
		}
		if n := point.Summary.System.Replicas; n == nil || float64(n.Max)-ready < 0.9 ||
			point.Summary.Requests.Failed == 0 {
			t.Errorf("%v: at least %v replicas are ready, of %+v", x.set, ready, n)
		}
	}
}
