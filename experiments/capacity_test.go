package experiments_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/sweep"
	"clifftop/internal/testenv"
	"clifftop/report"
	"clifftop/report/curve"
)

func capacity(t *testing.T, text string, o sweep.CapacityOptions) *curve.Capacity {
	t.Helper()
	c, err := sweep.Capacity(context.Background(), parse(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The mean wait of M/D/1 is ρ/2(1-ρ) services: at most one up to ρ = 2/3. It is the mean over many hours: in half of
// them the wait is less.
func TestCapacityOfMD1(t *testing.T) {
	c := capacity(t, md1+"slo: {queue_mean: 1s, hours: 0.5}\n", sweep.CapacityOptions{Hours: 15})
	if c.Passes == nil || c.Low == nil || c.High == nil || *c.Low > 2./3 || *c.High < 2./3 || *c.Low < .6 ||
		*c.High > .75 || *c.Passes < *c.Low || *c.Passes > *c.High {
		t.Errorf("%v", c)
	}
	if c.Hours == nil || c.Hours.Of != 30 || c.Hours.Met < 15 || c.Hours.HorizonS != 3600 {
		t.Errorf("%v", c.Hours)
	}
	if c.Limit != "queue_mean" || c.FirstLimit == nil || c.FirstLimit.Resource != "seats" || c.MoreHelps ||
		c.Fails == nil || *c.Fails < *c.Passes {
		t.Errorf("%+v", c)
	}
	if c.OutputTokensPerS == nil || *c.OutputTokensPerS < .6 || *c.OutputTokensPerS > .7 {
		t.Errorf("throughput %v", c.OutputTokensPerS)
	}
}

func TestCapacityIsTheSameOnAnyNumberOfCores(t *testing.T) {
	testenv.NeedsLong(t, "a search on one core and on three")
	var first []byte
	for _, jobs := range []int{1, 3} {
		b := asJSON(t, capacity(t, md1+"slo: {queue_mean: 1s}\n", sweep.CapacityOptions{Jobs: jobs}))
		if first == nil {
			first = b
		} else if !bytes.Equal(b, first) {
			t.Error("the number of jobs changes the result")
		}
	}
}

// mmc is a system of many servers under 10 erlangs, whose services are nearly exponential.
const mmc = "step_time: {linear: {a_ms: 10, b_us: 0}}\nworkload: {arrivals: {process: poisson, rate: 10}, input: {distribution: fixed, value: 1}, output: {distribution: gamma, mean: 100, cv: 1}}\n"

// With 10 erlangs 16 servers are the fewest with which at most 8 in a hundred requests wait for one, and so longer than
// an iteration: Erlang's C is 0.0573 with 16 and 0.1020 with 15. In nine hours of ten one server more suffices at most.
func TestCapacityCountsServers(t *testing.T) {
	testenv.NeedsLong(t, "hours of 36,000 requests")
	c := capacity(t, mmc+"slo: {queue_p92: 10ms}\n",
		sweep.CapacityOptions{Over: "engine.max_num_seqs", Hours: 10})
	if !c.MoreHelps || c.Passes == nil || c.Fails == nil || *c.Passes < 16 || *c.Passes > 17 || *c.Fails > 16 {
		t.Errorf("%v", c)
	}
}

func TestCapacityAtTheEnds(t *testing.T) {
	few := sweep.CapacityOptions{Hours: 10}
	none := capacity(t, md1+"slo: {e2e_mean: 100ms}\n", few)
	if none.Passes != nil || none.Fails == nil ||
		!strings.Contains(none.String(), "at no value of rate that was tried do 90.0 % of hours meet the SLO") {
		t.Errorf("nothing meets it: %v", none)
	}
	few.Low, few.High = .1, .8
	all := capacity(t, md1+"slo: {e2e_mean: 2h}\n", few)
	if all.Fails != nil || all.Passes == nil || *all.Passes != .8 || all.Hours.Met != 20 {
		t.Errorf("everything meets it: %v", all)
	}
}

// TestCapacityOfTrace takes the hours from one trace, and refuses one that is shorter than an hour.
func TestCapacityOfTrace(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.csv")
	rows := "arrival_s,input_tokens,output_tokens\n"
	for i := range 6000 {
		rows += fmt.Sprintf("%d,1,1\n", 2*i)
	}
	if err := os.WriteFile(trace, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	const server = "step_time: {linear: {a_ms: 1000, b_us: 0}}\nengine: {max_num_seqs: 1}\n"
	text := server + "workload: {trace: {file: " + trace + "}}\nslo: {queue_mean: 1s, horizon: %s}\n"
	c := capacity(t, fmt.Sprintf(text, "30m"), sweep.CapacityOptions{Hours: 10})
	if c.Passes == nil || *c.Passes < .5 || *c.Passes > 1 || c.Hours.HorizonS != 1800 ||
		!slices.ContainsFunc(c.Warnings, func(w report.Warning) bool { return w.Code == "one_trace" }) {
		t.Errorf("%v, %v", c, c.Warnings)
	}
	_, err := sweep.Capacity(context.Background(), parse(t, fmt.Sprintf(text, "9h")), sweep.CapacityOptions{})
	if err == nil || !strings.Contains(err.Error(), "want a shorter horizon, such as slo.horizon: ") {
		t.Errorf("an hour that is longer than the trace: %v", err)
	}
}

func TestCapacityRefuses(t *testing.T) {
	for _, c := range []struct {
		text, want string
		o          sweep.CapacityOptions
	}{
		{"{}", "slo: the search needs an SLO", sweep.CapacityOptions{}},
		{"slo: {attainment: 0}", "the search needs an SLO", sweep.CapacityOptions{}},
		{"slo: {ttft_p95: 1s}", "1 is a number (want a text)", sweep.CapacityOptions{Over: "model"}},
		{"slo: {ttft_p95: 1s}", "clients.timeout", sweep.CapacityOptions{Over: "clients.timeout"}},
		{"slo: {ttft_p95: 1s}", "engine.seats: unknown key", sweep.CapacityOptions{Over: "engine.seats"}},
		{"slo: {ttft_p95: 1s}", "want rising numbers", sweep.CapacityOptions{Low: 3, High: 2}},
		{"slo: {ttft_p95: 1s}", "--precision", sweep.CapacityOptions{Precision: 1}},
		{"slo: {ttft_p95: 1s, hours: 0.99}", "want 100 or more", sweep.CapacityOptions{}},
		{"slo: {ttft_p95: 1s, horizon: 1s}", "is shorter than a request takes", sweep.CapacityOptions{}},
		{"slo: {ttft_p95: 1s}", "--replications", sweep.CapacityOptions{Hours: 9}},
	} {
		_, err := sweep.Capacity(context.Background(), parse(t, c.text), c.o)
		if !yamldoc.BadInput(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.text, c.o, err, c.want)
		}
	}
}

func TestParseSLO(t *testing.T) {
	for text, want := range map[string]string{
		"ttft_p95<800ms":                     "{ttft_p95: 800ms}",
		"ttft_p95 <= 800ms, attainment>=0.9": "{ttft_p95: 800ms, attainment: 0.9}",
		"e2e_mean<=3s,hours>=0.8,horizon=1d": "{e2e_mean: 3s, hours: 0.8, horizon: 1d}", "e2e_mean=3s": "{e2e_mean: 3s}",
		"": "", "ttft_p95": "", "ttft_p95>1s": "", "attainment<0.9": "", "ttft_p95<": "", "ttft_p95<1s,": "",
	} {
		got, err := sweep.ParseSLO(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// An SLO that only a class has is one, too. Two classes that are alike, with the SLO of the run, have its capacity.
func TestCapacityOfClassSLOs(t *testing.T) {
	const classes = `
step_time: {linear: {a_ms: 1000, b_us: 0}}
engine: {max_num_seqs: 1}
workload:
  arrivals: {process: poisson, rate: 0.5}
  classes:
    - {name: a, weight: 1, input: {distribution: fixed, value: 1}, output: {distribution: fixed, value: 1}SLO}
    - {name: b, weight: 1, input: {distribution: fixed, value: 1}, output: {distribution: fixed, value: 1}}
`
	o := sweep.CapacityOptions{Hours: 10}
	whole := capacity(t, strings.Replace(classes, "SLO", "", 1)+"slo: {queue_p50: 1s, hours: 0.5}\n", o)
	one := capacity(t, strings.Replace(classes, "SLO", ", slo: {queue_p50: 1s}", 1)+"slo: {hours: 0.5}\n", o)
	if whole.Passes == nil || one.Passes == nil || *one.Passes < .97**whole.Passes || *one.Passes > 1.03**whole.Passes {
		t.Fatalf("%v for the SLO of a class, %v for that of the run", one.Passes, whole.Passes)
	}
	if one.Limit != "a: queue_p50" {
		t.Errorf("the limit is %q", one.Limit)
	}
}
