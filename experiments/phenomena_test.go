package experiments_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/compare"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/internal/testenv"
	"clifftop/model"
	"clifftop/report"
	"clifftop/report/curve"
)

// requestRows reads requests.csv: a map from column to cell for each row.
func requestRows(t *testing.T, s *scenario.Scenario) (*report.Summary, []map[string]string) {
	t.Helper()
	var b bytes.Buffer
	res := mustRun(t, s, experiments.RunOptions{Requests: &b})
	list, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, cells := range list[1:] {
		row := map[string]string{}
		for i, name := range list[0] {
			row[name] = cells[i]
		}
		out = append(out, row)
	}
	return res.Summary, out
}

// cellOf is a number of a row.
func cellOf(t *testing.T, row map[string]string, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(row[name], 64)
	if err != nil {
		t.Fatalf("%s is %q", name, row[name])
	}
	return v
}

// A6, A5: the three concurrencies are integrals over time, and each is what Little's law makes of the residence times
// of requests in its state. A28, D5: a request's instants follow each other, and its times add up. A29: both speeds end
// to end, with the queue and without.
func TestRequestsAddUp(t *testing.T) {
	s, list := requestRows(t, mustParse(t,
		"workload: {arrivals: {rate: 22}}\nengine: {max_num_seqs: 64}\nrun: {requests: 3000, warmup: none}"))
	end := s.Window.EndS
	var system, queue, running, decoding, user, flight float64
	measured := 0.
	for _, row := range list {
		get := func(name string) float64 { return cellOf(t, row, name) }
		instants := []float64{get("arrival_s"), get("queued_s"), get("scheduled_s"), get("first_token_s"),
			get("last_token_s"), get("released_s")}
		if !slices.IsSorted(instants) {
			t.Fatalf("request %s: %v", row["request"], instants)
		}
		within := func(from, to float64) float64 { return max(0, min(to, end)-min(from, end)) }
		system += within(instants[0], instants[5])
		queue += within(instants[1], instants[2])
		running += within(instants[2], instants[5])
		decoding += within(instants[3], instants[5])
		n := get("output_tokens")
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 2e-6 {
				t.Fatalf("request %s: %s is %v, want %v", row["request"], what, got, want)
			}
		}
		near("queue time", get("queue_ms")/1e3, instants[2]-instants[1])
		near("TTFT", get("ttft_ms")/1e3, get("client_first_s")-instants[0])
		near("E2E", get("e2e_ms")/1e3, get("client_last_s")-instants[0])
		if n > 1 {
			if e2e := get("ttft_ms") + (n-1)*get("tpot_ms"); math.Abs(e2e-get("e2e_ms")) > n*2e-6 {
				t.Fatalf("request %s: TTFT and gaps make %v ms, E2E is %v", row["request"], e2e, get("e2e_ms"))
			}
		}
		if instants[0] <= end {
			measured++
			user += n / (get("e2e_ms") / 1e3)
			flight += n / (instants[5] - instants[2])
		}
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"in system", *s.Concurrency.InSystem.Mean, system / end},
		{"queued", *s.Concurrency.QueueDepth.Mean, queue / end},
		{"running", *s.Concurrency.Running.Mean, running / end},
		{"decoding", *s.Concurrency.Decoding.Mean, decoding / end},
		{"speed that users see", *s.E2ETPSUser.Mean, user / measured},
		{"speed in flight", *s.E2ETPSInFlight.Mean, flight / measured},
	} {
		if math.Abs(c.got/c.want-1) > 1e-6 {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if *s.Concurrency.QueueDepth.Mean < 1 || *s.Concurrency.Decoding.Mean > *s.Concurrency.Running.Mean ||
		*s.E2ETPSUser.Mean > *s.E2ETPSInFlight.Mean {
		t.Errorf("%+v", s.Concurrency)
	}
}

const batchOf8B = "workload: {arrivals: {users: %d}, input: {distribution: fixed, value: 300}, output: {distribution: fixed, value: 250}}\nrun: {requests: %d}\nengine: {max_num_seqs: %d}"

// A33: one request at a time is quick for whom it serves, and serves few. C12: more seats shorten the queue and
// lengthen the time per token.
func TestOneAtATime(t *testing.T) {
	at := func(seats int) *report.Summary {
		return mustRun(t, mustParse(t, fmt.Sprintf(batchOf8B, 64, 1500, seats)), experiments.RunOptions{}).Summary
	}
	one, some, many := at(1), at(16), at(64)
	x := func(s *report.Summary) float64 { return *s.Throughput.OutputTokensPerS }
	if alone := 1000 / *one.Latency.TPOT.Mean; x(one) > alone || x(one) < .9*alone || x(many) < 20*x(one) {
		t.Errorf("one at a time: %v tokens/s, a stream of %v; 64 at a time: %v", x(one), alone, x(many))
	}
	if !(*one.Latency.TPOT.P50 < *some.Latency.TPOT.P50 && *some.Latency.TPOT.P50 < *many.Latency.TPOT.P50) {
		t.Error("the time per token does not grow with the batch")
	}
	if !(*one.Latency.Queue.P50 > *some.Latency.Queue.P50 && *some.Latency.Queue.P50 > *many.Latency.Queue.P50) {
		t.Error("the queue does not shorten with the batch")
	}
}

// B16: where reading the weights takes the time, five streams are nearly as quick each as one; only where arithmetic
// does are they a fifth each. The first token takes longer, since prompts are computed one after the other.
func TestFiveTogether(t *testing.T) {
	run := func(text string, users int) *report.Summary {
		return mustRun(t, mustParse(t, fmt.Sprintf(text, users)), experiments.RunOptions{}).Summary
	}
	const memory = "model: llama-3.1-70b\ndeployment: {dtype: int4}\nengine: {enable_prefix_caching: false}\nworkload: {arrivals: {users: %d}, input: {distribution: fixed, value: 1500}, output: {distribution: fixed, value: 300}}\nrun: {requests: 200}"
	one, five := run(memory, 1), run(memory, 5)
	if ratio := *five.Latency.ITL.P50 / *one.Latency.ITL.P50; ratio > 1.2 || ratio < 1 {
		t.Errorf("five streams have gaps %v times those of one", ratio)
	}
	together := "workload: {arrivals: {process: all-at-once}, input: {distribution: fixed, value: 1500}, output: {distribution: fixed, value: 50}}\nmodel: llama-3.1-70b\ndeployment: {dtype: int4}\nengine: {enable_prefix_caching: false}\nrun: {requests: %d}"
	if ratio := *run(together, 5).Latency.TTFT.Max / *run(together, 1).Latency.TTFT.Max; ratio < 3.5 {
		t.Errorf("the last of five first tokens takes only %v times as long as one alone", ratio)
	}
	const arithmetic = "step_time: {linear: {a_ms: 0.000001, b_us: 1000}}\nworkload: {arrivals: {users: %d}, input: {distribution: fixed, value: 1}, output: {distribution: fixed, value: 300}}\nrun: {requests: 200, warmup: 1s}"
	if ratio := *run(arithmetic, 5).Latency.TPOT.P50 / *run(arithmetic, 1).Latency.TPOT.P50; math.Abs(ratio-5) > .01 {
		t.Errorf("without weights to read, five streams have gaps %v times those of one", ratio)
	}
}

// B11: a system prompt of 2,048 tokens costs hundreds of milliseconds of a model with 70 billion parameters on one GPU,
// and about 50 of one with 8.
func TestSystemPromptTakesTime(t *testing.T) {
	for _, c := range []struct {
		text      string
		low, high float64 // ms
	}{{"model: llama-3.1-70b\ndeployment: {dtype: int4}", 250, 700}, {"model: llama-3.1-8b", 30, 80}} {
		u, err := mustParse(t, c.text).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		e, _, err := experiments.Explain(u, model.Batch{Chunks: []model.Chunk{{New: 2048}}, Emit: 1})
		if err != nil || e.Seconds*1e3 < c.low || e.Seconds*1e3 > c.high {
			t.Errorf("%s: %v ms, want %v to %v; %v", c.text, e.Seconds*1e3, c.low, c.high, err)
		}
	}
}

// B12: a prompt that is in the cache costs little before its first token, but not nothing.
func TestCachedPromptsAreQuick(t *testing.T) {
	const text = "workload: {arrivals: {users: 1, think_time: 1s}, input: {distribution: fixed, value: 4096}, output: {distribution: fixed, value: 20}, prefix: {groups: 1, prompts_per_group: 1, shared_tokens: 4096}}\nrun: {requests: 100, warmup: none}\nengine: {enable_prefix_caching: %t}"
	hit := mustRun(t, mustParse(t, fmt.Sprintf(text, true)), experiments.RunOptions{}).Summary
	miss := mustRun(t, mustParse(t, fmt.Sprintf(text, false)), experiments.RunOptions{}).Summary
	if a, b := *hit.Latency.TTFT.P50, *miss.Latency.TTFT.P50; a > b/3 || a < *hit.Latency.TPOT.P50/2 {
		t.Errorf("TTFT is %v ms from the cache and %v without", a, b)
	}
	if rate := *hit.System.PrefixHitRate; rate < .95 || rate >= 1 { // the last block is computed
		t.Errorf("hit rate %v", rate)
	}
}

// B15: up to the knee more users make tokens cheaper; beyond, no more.
func TestCostFallsToTheKnee(t *testing.T) {
	c := mustSweep(t, fmt.Sprintf(batchOf8B, 1, 2000, 128),
		sweep.Options{Over: scenario.UsersKey, Values: []string{"1", "4", "16", "64", "256", "512"}})
	cost := func(i int) float64 { return *c.Points[i].Summary.Cost.USDPerMillionOutputAtLoad }
	for i := 1; i < 4; i++ {
		if cost(i) > .6*cost(i-1) {
			t.Errorf("a million tokens cost $%v with %v users and $%v with %v", cost(i-1), c.Points[i-1].Value, cost(i),
				c.Points[i].Value)
		}
	}
	if math.Abs(cost(5)/cost(4)-1) > .05 || *c.Peak.USDPerMillionOutput > cost(3) {
		t.Errorf("beyond the seats $%v becomes $%v; at the peak %v", cost(4), cost(5), *c.Peak.USDPerMillionOutput)
	}
}

// T12 of the theory: closed loops of any kind keep within the bounds that their demands set, measured request by
// request.
func TestClosedLoopsKeepWithinBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 12))
	between := func(low, high int) int { return low + rng.IntN(high-low+1) }
	for range testenv.Choose(8, 16) {
		a, b := between(2, 30), between(1, 900)
		text := fmt.Sprintf("step_time: {linear: {a_ms: %d, b_us: %d}}\nengine: {max_num_seqs: %d}\nworkload: {arrivals: {users: 1, think_time: {distribution: exponential, mean: %dms}}, input: {distribution: fixed, value: 8}, output: {distribution: lognormal, mean: %d, cv: 0.7, max: 500}}\nrun: {requests: 400, seed: %d}",
			a, b, between(2, 64), between(1, 4000), between(2, 60), between(1, 1000))
		s, err := scenario.Parse("s.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c, err := sweep.Run(context.Background(), s,
			sweep.Options{Over: scenario.UsersKey, Values: []string{"1", "8", "60"}, Jobs: 1})
		if err != nil || c.Bounds == nil {
			t.Fatalf("%v, %+v", err, c)
		}
		const chance = 1.2 // of 400 requests of unlike lengths
		for _, at := range c.Bounds.Points {
			i := slices.IndexFunc(c.Points, func(p curve.Point) bool { return p.Value == at.Value })
			p := c.Points[i].Summary
			if x := *p.Throughput.RequestsPerS; x > at.RequestsPerS*(1+1e-9) {
				t.Errorf("%v users: %v requests/s are above the bound %v\n%s", at.Value, x, at.RequestsPerS, text)
			}
			if x := *p.Throughput.OutputTokensPerS; x > at.OutputTokensPerS*(1+1e-9) {
				t.Errorf("%v users: %v tokens/s are above the bound %v\n%s", at.Value, x, at.OutputTokensPerS, text)
			}
			if r := *p.Latency.E2E.Mean / 1e3; r*chance < at.E2EMeanS {
				t.Errorf("%v users: %v s are below the bound %v\n%s", at.Value, r, at.E2EMeanS, text)
			}
		}
		// The demands themselves: an idle system's iterations of a + b each, and users who think as long as they were
		// told.
		if d := *c.Points[0].Summary.Latency.E2E.Mean / 1e3; math.Abs(c.Bounds.DemandS/d-1) > .2 {
			t.Errorf("a request takes %v s alone, the demand is %v\n%s", d, c.Bounds.DemandS, text)
		}
	}
}

// C2 to C9 and the two signs beyond, by their mechanism: admission without room for the prompt makes a full KV pool
// recompute more and more. Growth slows before it ends, the GPU is busy long before, KV usage swings and requests wait
// for KV though seats are free and the GPU is never idle. With room asked for first nothing is recomputed.
func TestSignsOfAFullPool(t *testing.T) {
	users := []string{"10", "40", "60", "80", "100", "120", "200"}
	base, err := scenario.Load("studies/cliffs/preempt.yaml")
	if err != nil {
		t.Fatal(err)
	}
	curve := func(sets ...scenario.Setting) *curve.Curve {
		s, err := base.With(sets...)
		if err != nil {
			t.Fatal(err)
		}
		c, err := sweep.Run(context.Background(), s, sweep.Options{Over: scenario.UsersKey, Values: users})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, twin := curve(), curve(scenario.Setting{Key: "engine.admission", Value: "full-length"})
	at := map[string]float64{}
	for _, s := range c.WarningSigns {
		at[s.Code] = s.Value
	}
	last := c.Points[len(c.Points)-1].Summary
	switch peak := c.Peak.Value; {
	case at["throughput_slows"] == 0 || at["throughput_slows"] >= peak:
		t.Errorf("C6: growth slows at %v, the peak is at %v", at["throughput_slows"], peak)
	case at["busy_but_flat"] == 0 || !strings.Contains(evidence(c, "busy_but_flat"), "MFU"):
		t.Errorf("C8: %v", signs(c))
	case at["kv_oscillates"] == 0 && *last.System.KVUsage.Max < .99:
		t.Errorf("C9: %v; KV %+v", signs(c), last.System.KVUsage)
	case at["recompute"] == 0 || at["gap"] == 0 || at["tail_level"] == 0:
		t.Errorf("C3, C7: %v", signs(c))
	case c.Collapse == nil || c.FirstLimit == nil || c.FirstLimit.Resource != "kv":
		t.Errorf("collapse %+v, limit %+v", c.Collapse, c.FirstLimit)
	}
	// A31: most of the time requests wait beside free seats, and never because the GPU has nothing to do.
	if g := last.System.GapByCause; *last.System.GapFractionSeed < .9 || *g.Idle > .01 ||
		*last.System.BusyFraction < .99 || *g.KV+*g.TokenBudget+*g.Policy < .8 {
		t.Errorf("gap %v, %+v", *last.System.GapFractionSeed, g)
	}
	if got := signs(twin); slices.Contains(got, "recompute") || twin.Collapse != nil {
		t.Errorf("with room: %v, %+v", got, twin.Collapse)
	}
	// C2: the bandwidth is used best before the pool is full, and arithmetic after.
	first := c.Points[0].Summary.System
	if *first.MBU/(*first.MFU) < 2**last.System.MBU/(*last.System.MFU) {
		t.Errorf("MBU %v and MFU %v become %v and %v", *first.MBU, *first.MFU, *last.System.MBU, *last.System.MFU)
	}
}

func evidence(c *curve.Curve, code string) string {
	for _, s := range c.WarningSigns {
		if s.Code == code {
			return s.Evidence
		}
	}
	return ""
}

// D7: tokens of one tokenizer are not those of another.
func TestTokenizersAreToldApart(t *testing.T) {
	compare := func(models ...string) []report.Warning {
		var variants []compare.Variant
		for _, m := range models {
			variants = append(variants, compare.Variant{Name: m,
				Scenario: mustParse(t, "model: "+m+"\ngpu: h200\nrun: {requests: 20}")})
		}
		v, err := compare.Run(context.Background(), variants, compare.Options{Replications: 2})
		if err != nil {
			t.Fatal(err)
		}
		return v.Warnings
	}
	mixed := func(w report.Warning) bool {
		return w.Code == "models_differ" &&
			strings.Contains(w.Text, "tokens per second of one are not those of the other")
	}
	if w := compare("llama-3.1-8b", "qwen3-8b"); !slices.ContainsFunc(w, mixed) {
		t.Errorf("%v", w)
	}
	if w := compare("llama-3.1-8b", "llama-3.1-8b"); slices.ContainsFunc(w, mixed) {
		t.Errorf("%v", w)
	}
}

// D13: models of 70, 235 and 671 billion parameters are known, and run on GPUs that they fit.
func TestLargeModelsRun(t *testing.T) {
	for text, billions := range map[string]float64{
		"{model: llama-3.1-70b, deployment: {tensor_parallel_size: 4}}":              70.6,
		"{model: qwen3-235b-a22b, gpu: h200, deployment: {tensor_parallel_size: 8}}": 235,
		"{model: deepseek-v3, gpu: h200, deployment: {tensor_parallel_size: 8}}":     671,
	} {
		u, err := mustParse(t, text, scenario.Setting{Key: "run.requests", Value: "20"}).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if total, _ := u.Pools[0].Deployment.Params(); math.Abs(total/1e9/billions-1) > .01 {
			t.Errorf("%s has %v parameters", text, total)
		}
		if res, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{}); err != nil ||
			res.Summary.Requests.Completed != 20 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func signs(c *curve.Curve) []string {
	var list []string
	for _, s := range c.WarningSigns {
		list = append(list, s.Code)
	}
	return list
}

func mustSweep(t testing.TB, text string, o sweep.Options) *curve.Curve {
	t.Helper()
	c, err := sweep.Run(context.Background(), mustParse(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The host's time for an iteration is paid by the synchronous loop and hidden by the asynchronous one. With it, a
// single user of Llama-3.2-1B has the time per token that was published for the synchronous loop, 2.73 ms (vLLM, pull
// request 17866); the constant is from that figure and from a comparison of both loops on another GPU.
func TestHostTime(t *testing.T) {
	run := func(async bool) float64 {
		return *mustRun(t, mustParse(t, fmt.Sprintf(`
model: llama-3.2-1b
gpu: h100-sxm
engine: {version: vllm-0.9, async_scheduling: %t}
workload: {arrivals: {rate: 0.92}, input: {distribution: fixed, value: 500}, output: {distribution: fixed, value: 50}}
run: {requests: 100, warmup: none}
`, async)), experiments.RunOptions{Check: true}).Summary.Latency.TPOT.Mean
	}
	sync, async := run(false), run(true)
	if math.Abs(sync-2.73) > 0.02*2.73 {
		t.Errorf("synchronous: a token each %.3f ms, want 2.73", sync)
	}
	if gain := sync - async; gain < 0.9 || gain > 1 {
		t.Errorf("asynchronous: a token each %.3f ms, %.3f less than synchronous (want about 0.95)", async, gain)
	}
}
