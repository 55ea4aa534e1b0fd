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

	"clifftop/experiments/scenario"
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

// The mean wait of M/D/1 is ρ/2(1-ρ) services: at most one up to ρ = 2/3.
func TestCapacityOfMD1(t *testing.T) {
	c := capacity(t, md1+"slo: {queue_mean: 1s}\n", sweep.CapacityOptions{})
	if c.Passes == nil || c.Fails == nil || *c.Passes > 2./3 || *c.Fails < 2./3 || *c.Fails > 1.15**c.Passes {
		t.Errorf("%v", c)
	}
	if c.Limit != "queue_mean" || c.FirstLimit == nil || c.FirstLimit.Resource != "seats" || c.NonMonotone ||
		c.MoreHelps {
		t.Errorf("%+v", c)
	}
	if c.OutputTokensPerS == nil || *c.OutputTokensPerS < .6 || *c.OutputTokensPerS > .7 {
		t.Errorf("throughput %v", c.OutputTokensPerS)
	}
	beyond := 0
	for _, p := range c.Probes {
		if p.Purpose == curve.ProbeBeyond && p.Verdict == curve.ProbeFails && p.Value > *c.Fails {
			beyond++
		}
	}
	if beyond != 3 {
		t.Errorf("%d probes beyond the answer, want 3", beyond)
	}
}

func TestCapacityIsTheSameOnAnyNumberOfCores(t *testing.T) {
	testenv.NeedsLong(t, "a search on one core and on three")
	var first []byte
	for _, jobs := range []int{1, 3} {
		b := asJSON(t, capacity(t, md1+"slo: {queue_mean: 1s}\n", sweep.CapacityOptions{Requests: 500, Jobs: jobs}))
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
// an iteration: Erlang's C is 0.0573 with 16 and 0.1020 with 15.
func TestCapacityCountsServers(t *testing.T) {
	c := capacity(t, mmc+"slo: {queue_p92: 10ms}\n",
		sweep.CapacityOptions{Over: "engine.max_num_seqs", Precision: .001})
	if !c.MoreHelps || c.Passes == nil || c.Fails == nil || *c.Passes < 16 || *c.Fails > 15 || *c.Passes-*c.Fails > 2 {
		t.Errorf("%v", c)
	}
}

func TestCapacityAtTheEnds(t *testing.T) {
	none := capacity(t, md1+"slo: {e2e_mean: 100ms}\n", sweep.CapacityOptions{Requests: 300})
	if none.Passes != nil || none.Fails == nil ||
		!strings.Contains(none.String(), "the SLO is met at no value of rate that was tried") {
		t.Errorf("nothing meets it: %v", none)
	}
	all := capacity(t, md1+"slo: {e2e_mean: 2h}\n", sweep.CapacityOptions{Requests: 300, Low: .1, High: .8})
	if all.Fails != nil || all.Passes == nil || *all.Passes != .8 {
		t.Errorf("everything meets it: %v", all)
	}
}

// Requests that come at once are as many at any load: a search that they all pass ends.
func TestCapacityOfFewRequests(t *testing.T) {
	for key, text := range map[string]string{
		scenario.RateKey:  md1 + "run: {requests: 1}\nslo: {e2e_mean: 2h}\n",
		scenario.UsersKey: "workload: {arrivals: {process: closed, users: 1}}\nrun: {requests: 3}\nslo: {e2e_mean: 2h}\n",
	} {
		c := capacity(t, text, sweep.CapacityOptions{Over: key})
		if c.Fails != nil || c.Passes == nil || *c.Passes > 1000 || c.Runs > 30 {
			t.Errorf("%s: %v from %d runs", key, c, c.Runs)
		}
	}
}

// A trace that is shorter than a run should be is searched nevertheless, and the answer says so.
func TestCapacityOfShortRunsWarns(t *testing.T) {
	short := func(c *curve.Capacity) bool {
		return slices.ContainsFunc(c.Warnings, func(w report.Warning) bool { return w.Code == "short_runs" })
	}
	trace := filepath.Join(t.TempDir(), "trace.csv")
	rows := "arrival_s,input_tokens,output_tokens\n"
	for i := range 60 {
		rows += fmt.Sprintf("%d,1,1\n", i)
	}
	if err := os.WriteFile(trace, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	const server = "step_time: {linear: {a_ms: 1000, b_us: 0}}\nengine: {max_num_seqs: 1}\nslo: {queue_mean: 1s}\n"
	if c := capacity(t, server+"workload: {trace: {file: "+trace+"}}\n",
		sweep.CapacityOptions{Low: .2, High: 3}); !short(c) {
		t.Errorf("60 requests: no warning in %+v", c.Warnings)
	}
	if c := capacity(t, md1+"slo: {queue_mean: 1s}\n", sweep.CapacityOptions{Low: .1, High: .2}); short(c) {
		t.Errorf("no end of requests: %+v", c.Warnings)
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
		{"slo: {ttft_p95: 1s}", "--replications", sweep.CapacityOptions{Replications: 1}},
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
		"ttft_p95 <= 800ms, attainment>=0.9": "{ttft_p95: 800ms, attainment: 0.9}", "e2e_mean=3s": "{e2e_mean: 3s}",
		"": "", "ttft_p95": "", "ttft_p95>1s": "", "attainment<0.9": "", "ttft_p95<": "", "ttft_p95<1s,": "",
	} {
		got, err := sweep.ParseSLO(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
