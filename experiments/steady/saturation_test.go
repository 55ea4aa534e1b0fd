package steady_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
	"clifftop/internal/testenv"
	"clifftop/report"
)

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("scenario.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func resolve(t *testing.T, text string) *scenario.Setup {
	t.Helper()
	u, err := parse(t, text).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func find(t *testing.T, text string) (*steady.Saturation, *scenario.Setup) {
	t.Helper()
	u := resolve(t, text)
	s, err := steady.Find(context.Background(), u)
	if err != nil {
		t.Fatal(err)
	}
	return s, u
}

// queue is M/M/n with services of one second on average.
const queue = `
step_time: {linear: {a_ms: 1, b_us: 0}}
engine: {max_num_seqs: %d}
workload:
  arrivals: {process: %s, rate: %v}
  input: {distribution: fixed, value: 1}
  output: {distribution: gamma, mean: 1000, cv: 1}
`

// TestSaturationOfQueues: n servers saturate at n services per second, however bursty the arrivals are.
func TestSaturationOfQueues(t *testing.T) {
	for n, process := range map[int]string{1: "poisson", 4: "gamma, cv: 3"} {
		s, _ := find(t, fmt.Sprintf(queue, n, process, .9))
		r := s.Rates
		if ci := r.LowCI95; math.Abs(r.LowRequestsPerS/float64(n)-1) > .003 || ci[0] > r.LowRequestsPerS ||
			ci[1] < r.LowRequestsPerS || ci[1]-ci[0] > .01*float64(n) {
			t.Errorf("%d servers saturate at %v, %v", n, r.LowRequestsPerS, ci)
		}
		if r.Metastable || r.HighRequestsPerS != r.LowRequestsPerS {
			t.Errorf("%d servers: %+v, want rates that agree", n, r)
		}
	}
}

// TestSaturationOfFleet: behind least-requests all seats of a fleet of unequal replicas are taken, so that it saturates
// at seats / (tokens · iteration), added up over the replicas: 2 · 16/(20 · 18 ms) + 16/(20 · 38 ms) = 109.9 requests/s.
func TestSaturationOfFleet(t *testing.T) {
	s, _ := find(t, `
step_time: {linear: {a_ms: 10, b_us: 500}}
engine: {max_num_seqs: 16}
workload:
  input: {distribution: fixed, value: 20}
  output: {distribution: fixed, value: 20}
  arrivals: {process: poisson, rate: 60}
deployment: {router: {policy: least-requests, ties: first}}
pools:
  - {name: fast, replicas: 2}
  - {name: slow, step_time: {linear: {a_ms: 30, b_us: 500}}}
`)
	want := 2*16/(20*.018) + 16/(20*.038)
	if r := s.Rates; math.Abs(r.LowRequestsPerS/want-1) > .005 || r.Metastable {
		t.Errorf("saturation %+v, want %.4g", r, want)
	}
}

// TestRelaxation compares with M/M/1, whose relaxation time is 1/(√μ − √λ)² (Morse 1958).
func TestRelaxation(t *testing.T) {
	s, u := find(t, fmt.Sprintf(queue, 1, "poisson", .9))
	got := *s.Case(u).RelaxationS
	want := 1 / math.Pow(1-math.Sqrt(.9), 2)
	if math.Abs(got/want-1) > .1 {
		t.Errorf("relaxation time %.4g services, want %.4g", got, want)
	}
}

// TestStates: the state of a run follows from its load and length, not from how it looks.
func TestStates(t *testing.T) {
	const requests = "run: {requests: %d}\n"
	for _, c := range []struct {
		rate     float64
		requests int
		want     string
	}{
		{.5, 20_000, report.Settled},      // 1,000 relaxation times are 17,000 services
		{.9, 5_000, report.Finite},        // 1,000 relaxation times are 400,000 services
		{.9999, 2_000, report.Overloaded}, // in the interval of saturation
		{1.2, 2_000, report.Overloaded},
	} {
		text := fmt.Sprintf(queue, 1, "poisson", c.rate) + fmt.Sprintf(requests, c.requests)
		s, u := find(t, text)
		r, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		judge := s.Case(u)
		judge.Judge(r.Summary)
		if w := r.Summary.Window; w.State != c.want {
			t.Errorf("rate %v, %d requests: %s, want %s (%+v)", c.rate, c.requests, w.State, c.want, w)
		}
	}
}

// TestRequestsSettle: a run whose length is left open is long enough to settle, or short enough for the budget.
func TestRequestsSettle(t *testing.T) {
	s, u := find(t, fmt.Sprintf(queue, 1, "poisson", .9))
	needed := .9 * 30 * *s.Case(u).RelaxationS
	if n := float64(s.Requests(u)); n < needed || n > 1.2*needed {
		t.Errorf("%v requests, want a little more than %v", n, needed)
	}
}

// conversations lose their place in the prefix cache if turns wait long.
const conversations = `
gpu: h100-sxm
workload:
  arrivals: %s
  sessions:
    turns: {distribution: geometric, mean: 8}
    first_prompt: {distribution: lognormal, mean: 3000, cv: 1}
    later_user_tokens: {distribution: lognormal, mean: 200, cv: 1}
    think_time: {distribution: exponential, mean: 2s}
  output: {distribution: lognormal, mean: 200, cv: 0.8}
run: {duration: 3000s}
`

// TestMetastable: between the two rates a system that starts empty keeps up, and one with a backlog does not recover.
func TestMetastable(t *testing.T) {
	testenv.NeedsLong(t, "a metastable system is not simulated from both ends")
	s, _ := find(t, fmt.Sprintf(conversations, "{process: poisson, rate: 1}"))
	r := s.Rates
	if !r.Metastable || r.LowRequestsPerS > .8*r.HighRequestsPerS {
		t.Fatalf("rates %+v, want two", r)
	}
	between := math.Sqrt(r.LowCI95[1] * r.HighCI95[0])
	from := func(arrivals string) *report.Summary {
		res, err := experiments.Run(context.Background(), parse(t, fmt.Sprintf(conversations, arrivals)),
			experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return res.Summary
	}
	empty := from(fmt.Sprintf("{process: poisson, rate: %v}", between))
	if n := empty.Requests.InSystemAtEnd; n > 200 {
		t.Errorf("at %v requests/s, %d are in a system that started empty", between, n)
	}
	backlog := from(fmt.Sprintf("[{process: poisson, rate: %v, duration: 200s}, {process: poisson, rate: %v}]",
		5*between, between))
	if n := backlog.Requests.InSystemAtEnd; n < 1_000 {
		t.Errorf("at %v requests/s, only %d are in a system that started with a backlog", between, n)
	}
}
