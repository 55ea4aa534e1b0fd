package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/internal/testenv"
	"clifftop/report/curve"
)

func mustSweep(t testing.TB, text string, o Options, sets ...scenario.Setting) *curve.Curve {
	t.Helper()
	c, err := Run(context.Background(), with(t, mustParse(t, text), sets...), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func signs(c *curve.Curve) []string {
	var list []string
	for _, s := range c.WarningSigns {
		list = append(list, s.Code)
	}
	return list
}

// With equally few requests at all loads the system never fills at the higher ones. The engine loses nothing
// there, so that no collapse and no limit may be told.
func TestShortRunsTellNothing(t *testing.T) {
	for _, requests := range []string{"100", "300"} {
		c := mustSweep(t, "run: {requests: "+requests+"}", Options{})
		if c.Collapse != nil || c.FirstLimit != nil || len(c.WarningSigns) != 0 {
			t.Errorf("%s requests: collapse %+v, limit %+v, signs %v", requests, c.Collapse, c.FirstLimit, c.WarningSigns)
		}
		if len(c.Warnings) != 1 || c.Peak == nil || !c.Peak.AtEdge {
			t.Errorf("%s requests: warnings %v, peak %+v", requests, c.Warnings, c.Peak)
		}
	}
}

// A server that serves everybody at the same speed is M/G/∞: what comes goes, a request takes as long at any load,
// and by Little's law λ times that are in the system. Nothing saturates.
func TestServerWithoutLimit(t *testing.T) {
	c := mustSweep(t, `
step_time: {linear: {a_ms: 10, b_us: 0}}
engine: {max_num_seqs: 100000, max_num_batched_tokens: 100000}
workload: {arrivals: {process: poisson, rate: 1}, input: {distribution: fixed, value: 10}, output: {distribution: fixed, value: 200}}
`, Options{Over: scenario.RateKey, Values: []string{"10", "100", "400", "900", "1500"}[:testenv.Choose(3, 5)]})
	if !c.Peak.AtEdge || c.Knee != nil || c.Collapse != nil || c.FirstLimit != nil || len(c.WarningSigns) != 0 ||
		len(c.Warnings) != 0 {
		t.Errorf("peak %+v, knee %+v, collapse %+v, limit %+v, signs %v, warnings %v", c.Peak, c.Knee, c.Collapse,
			c.FirstLimit, c.WarningSigns, c.Warnings)
	}
	for _, p := range c.Points {
		s := p.Summary
		offered, e2e := *s.Throughput.OfferedRequestsPerS, *s.Latency.E2E.Mean/1000
		if x := *s.Throughput.OutputTokensPerS; math.Abs(x/(200*offered)-1) > .05 {
			t.Errorf("rate %v: %v tokens/s, want %v", p.Value, x, 200*offered)
		}
		if math.Abs(e2e-2.005) > .01 {
			t.Errorf("rate %v: %v s for a request, want 200 iterations of 10 ms and half of one", p.Value, e2e)
		}
		if n := *s.Concurrency.InSystem.Mean; math.Abs(n/(offered*e2e)-1) > .05 {
			t.Errorf("rate %v: %v in the system, want %v", p.Value, n, offered*e2e)
		}
	}
}

// A KV pool too small for the crowd makes running requests give way. That is what limits first, and recomputing
// makes throughput fall beyond the peak; with room for all prompts and answers it does not.
func TestMemoryCliff(t *testing.T) {
	s, err := scenario.Load("../examples/memory-cliff.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Run(context.Background(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Collapse == nil || !strings.Contains(c.Collapse.Evidence, "recomputed") || c.Collapse.FallFraction < .03 ||
		c.Collapse.FallFraction > .15 {
		t.Errorf("collapse %+v", c.Collapse)
	}
	// 600 tokens of answer and 150 of prompt, half of the answer at a time on average, in 2,499 blocks of 16.
	if fit := 2499 * 16 / 450.; c.FirstLimit == nil || c.FirstLimit.Resource != "kv" || c.FirstLimit.Value > fit ||
		c.FirstLimit.Value < fit/2 {
		t.Errorf("limit %+v, about %.0f users fit", c.FirstLimit, fit)
	}
	if c.Knee == nil || c.Peak.AtEdge {
		t.Errorf("knee %+v, peak %+v", c.Knee, c.Peak)
	}
	if got := signs(c); !slices.Contains(got, "recompute") {
		t.Errorf("signs %v", got)
	}

	roomy, err := s.With(scenario.Setting{Key: "engine.num_gpu_blocks_override", Value: "100000"},
		scenario.Setting{Key: "engine.max_num_seqs", Value: "64"})
	if err != nil {
		t.Fatal(err)
	}
	c, err = Run(context.Background(), roomy, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Collapse != nil || c.FirstLimit == nil || c.FirstLimit.Resource != "seats" || c.FirstLimit.Value < 64 {
		t.Errorf("with room: collapse %+v, limit %+v", c.Collapse, c.FirstLimit)
	}
}

// Numbers of users begin with one and double, so that power, N/(a+bN)², rises before the knee at a/b users.
func TestUsersBeginWithOne(t *testing.T) {
	c := mustSweep(t, `
step_time: {linear: {a_ms: 10, b_us: 500}}
engine: {max_num_seqs: 1000}
workload: {arrivals: {users: 10}, input: {distribution: fixed, value: 10}, output: {distribution: fixed, value: 50}}
run: {requests: 2000}
`, Options{})
	if c.Over != scenario.UsersKey || c.Points[0].Value != 1 {
		t.Errorf("over %s from %v", c.Over, c.Points[0].Value)
	}
	if c.Knee == nil || c.Knee.Value < 10 || c.Knee.Value > 40 {
		t.Errorf("knee %+v, want about 20", c.Knee)
	}
	// X = N/(a+bN) rises without end towards 1/b, and nobody waits.
	if c.Collapse != nil || c.FirstLimit != nil && c.FirstLimit.Resource != "gpu" {
		t.Errorf("collapse %+v, limit %+v", c.Collapse, c.FirstLimit)
	}
}

// The default engine gives about 22.7 requests per second. Beyond, throughput stays: the peak is where that
// begins, whatever the seed.
func TestPeakIsWhereThePlateauBegins(t *testing.T) {
	testenv.NeedsLong(t, "the default sweep, 5 s")
	for _, seed := range []string{"2", "4"} {
		c := mustSweep(t, "run: {seed: "+seed+"}", Options{})
		if c.Peak.AtEdge || c.Peak.Value < 21 || c.Peak.Value > 27 || c.Collapse != nil {
			t.Errorf("seed %s: peak %+v, collapse %+v", seed, c.Peak, c.Collapse)
		}
		if c.FirstLimit == nil || c.FirstLimit.Resource != "kv" {
			t.Errorf("seed %s: limit %+v", seed, c.FirstLimit)
		}
		if c.Points[0].Value*20 > c.Points[len(c.Points)-1].Value || len(c.Points) != defaultPoints {
			t.Errorf("seed %s: %d points from %v to %v", seed, len(c.Points), c.Points[0].Value,
				c.Points[len(c.Points)-1].Value)
		}
	}
}

// The rate of chat traffic wanders. Over the run it is what was asked for, and the cut of a warm-up leaves it so.
func TestOfferedRateIsTheNominal(t *testing.T) {
	for _, rate := range []float64{9, 18} {
		s := with(t, mustParse(t, "run: {requests: 20000}"),
			scenario.Setting{Key: scenario.RateKey, Value: loadText(rate)})
		res, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := res.Summary
		if x := *r.Throughput.OfferedRequestsPerS; math.Abs(x/rate-1) > .03 {
			t.Errorf("rate %v: %v offered in the window of %+v", rate, x, r.Window)
		}
	}
}

// Both rounds of loads are the same for any number of jobs.
func TestJobsChangeNoRounds(t *testing.T) {
	const text = "workload: {arrivals: {users: 10}, output: {distribution: fixed, value: 50}}\nrun: {requests: 1500}"
	a, _ := json.Marshal(mustSweep(t, text, Options{Jobs: 1}))
	b, _ := json.Marshal(mustSweep(t, text, Options{Jobs: 5}))
	if !bytes.Equal(a, b) {
		t.Error("the number of jobs changes the result")
	}
}

func TestLoads(t *testing.T) {
	for _, test := range []struct {
		saturation float64
		users      bool
		points     int
		want       []float64
	}{
		{20, false, 10, []float64{1, 3.67, 7.33, 11, 13.8, 16.2, 18.5, 20.3, 23.3, 30}},
		{1, true, 10, []float64{1, 2, 3}},
		{60, true, 10, []float64{1, 2, 4, 8, 16, 32, 39, 60, 90, 150}},
		{60, true, 1, []float64{1}},
	} {
		if got := loadGrid(test.saturation, test.users, test.points); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v", test, got)
		}
	}
	for points := 1; points < 200; points++ {
		for _, saturation := range []float64{1, 2, 3, 7, 100, 5000, 1e6} {
			got := loadGrid(saturation, true, points)
			if got[0] != 1 || len(got) > points || !slices.IsSorted(got) || points > 1 && saturation > 2 &&
				got[len(got)-1] < 2*saturation && points > 4 {
				t.Errorf("%d points around %v: %v", points, saturation, got)
			}
		}
	}
	for _, test := range []struct {
		peak   float64
		atEdge bool
		want   []float64
	}{
		{20, false, []float64{13.3, 16.7, 23.3, 26.7}},
		{30, true, []float64{37.5, 48, 60, 78}},
		{30, false, []float64{22, 24, 26, 28}},
		{10, false, []float64{12, 14, 16, 18}},
		{20, true, nil},
		{25, false, nil},
	} {
		if got := refine([]float64{10, 20, 30}, test.peak, test.atEdge, false); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if got := refine([]float64{1, 2, 4}, 2, false, true); !slices.Equal(got, []float64{3}) {
		t.Errorf("whole users: %v", got)
	}
}

func mustParse(t testing.TB, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func with(t testing.TB, s *scenario.Scenario, sets ...scenario.Setting) *scenario.Scenario {
	t.Helper()
	s, err := s.With(sets...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
