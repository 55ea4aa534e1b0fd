package estimate

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"clifftop/experiments/scenario"
)

// want checks numbers of a result by name.
func want(t *testing.T, r *Result, err error, values map[string]float64) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range values {
		got := r.Find(name)
		if got == nil || math.Abs(*got-v) > 5e-5*math.Max(1, math.Abs(v)) {
			t.Errorf("%s is %v, want %v", name, deref(got), v)
		}
	}
}

func deref(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// A9: four requests a minute with a duration of 30 s are 2 concurrent requests, with percentiles.
// A5, A6: fewer requests are in decode than in the system.
func TestConcurrency(t *testing.T) {
	r, err := Concurrency(Demand{PerMinute: 4, StreamSeconds: 30}, nil)
	want(t, r, err, map[string]float64{
		"mean_requests": 2, "above_mean_fraction": .323324, "p95_requests": 5, "p99_requests": 6, "p99_9_requests": 8,
	})
	r, err = Concurrency(Demand{PerMinute: 4, TTFTSeconds: 4, StreamSeconds: 30}, nil)
	want(t, r, err, map[string]float64{"mean_requests": 34. / 15, "decoding_requests": 2, "duration_s": 34})
	for _, d := range []Demand{{}, {PerMinute: -1, StreamSeconds: 1}, {PerMinute: 1},
		{PerMinute: math.NaN(), StreamSeconds: 1}, {PerMinute: 1, StreamSeconds: math.Inf(1)}} {
		if _, err := Concurrency(d, nil); err == nil {
			t.Errorf("%+v is accepted", d)
		}
	}
}

// D11: the rate of requests follows from the number of active people and the time between their requests.
func TestCrowd(t *testing.T) {
	c := &Crowd{People: 100, Active: .2, EverySeconds: 300}
	d, err := c.Demand(0, 34)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Concurrency(d, c)
	want(t, r, err, map[string]float64{"active_people": 20, "requests_per_minute": 4, "mean_requests": 2.266667})
	for _, c := range []Crowd{{}, {People: 1, Active: 2, EverySeconds: 1}, {People: 1, Active: .5}} {
		if _, err := c.Demand(0, 1); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// B13: every number of requests has one tier, edges belong to the upper tier, and 30 to 50 has a name. B14: a note
// gives the number that most companies have, and nothing uses it.
func TestTiers(t *testing.T) {
	tiers := tiers()
	if tiers[0].From != 0 || !math.IsInf(tiers[len(tiers)-1].Below, 1) {
		t.Error("the tiers do not cover everything")
	}
	for i, tier := range tiers[1:] {
		if tiers[i].Below != tier.From {
			t.Errorf("a hole or an overlap at %v", tier.From)
		}
	}
	for mean, from := range map[float64]float64{0: 0, .5: 0, 1: 1, 2.99: 1, 3: 3, 10: 10, 29.9: 10, 30: 30, 49: 30,
		50: 50, 1e9: 50} {
		if got := tierOf(mean); got.From != from {
			t.Errorf("%v is in %+v", mean, got)
		}
	}
	if !strings.Contains(tierOf(40).Name, "large department") {
		t.Error("30 to 50 has no name of its own")
	}
	r, err := Concurrency(Demand{PerMinute: 6000, StreamSeconds: 30}, nil)
	if err != nil || !strings.Contains(strings.Join(r.Notes, " "), "between 1 and 10") {
		t.Errorf("%v", err)
	}
}

// Quantiles of a Poisson variable, compared with sums of probabilities, and for a large mean.
func TestPoisson(t *testing.T) {
	for _, mean := range []float64{.01, .5, 2, 7.3, 40} {
		p, sum := math.Exp(-mean), 0.0
		for n := 0; n < 100; n++ {
			sum += p
			if got := exceeds(mean, n); math.Abs(got-(1-sum)) > 1e-9 {
				t.Errorf("P(N > %d) of mean %v is %v, want %v", n, mean, got, 1-sum)
			}
			p *= mean / float64(n+1)
		}
	}
	if q := quantile(1e6, .99); math.Abs(float64(q)-1e6-2326) > 10 {
		t.Errorf("the 99th percentile of mean a million is %d", q)
	}
	if quantile(0, .999) != 0 {
		t.Error("nothing exceeds 0")
	}
}

// A16: $3 an hour at 4,000 tokens/s is $0.2083 per million tokens. A17: $10 at 10,000 is $0.000278 per thousand, not
// the common $0.001, and a tenth of the throughput costs ten times as much. C13: at 30 % load a token costs 3.3 times
// as much.
func TestCost(t *testing.T) {
	r, err := Cost(Price{USDPerGPUHour: 3, GPUs: 1, TokensPerSecond: 4000})
	want(t, r, err, map[string]float64{"tokens_per_hour": 14.4e6, "usd_per_million_tokens_at_capacity": 3 / 14.4})
	if !strings.Contains(strings.Join(r.Notes, " "), "$0.000278") {
		t.Error("no note names the common mistake")
	}
	r, err = Cost(Price{USDPerGPUHour: 10, GPUs: 1, TokensPerSecond: 10_000})
	want(t, r, err, map[string]float64{"usd_per_million_tokens_at_capacity": .277778,
		"usd_per_thousand_tokens_at_capacity": .000277778})
	if v := *r.Find("usd_per_thousand_tokens_at_capacity"); math.Abs(.001/v-3.6) > 1e-9 {
		t.Errorf("%v", v)
	}
	slow, err := Cost(Price{USDPerGPUHour: 10, GPUs: 1, TokensPerSecond: 1000})
	want(t, slow, err, map[string]float64{"usd_per_million_tokens_at_capacity": 2.77778})
	for tps, usd := range map[float64]float64{600: 1.388889, 2832: .294256} {
		r, err := Cost(Price{USDPerGPUHour: 3, GPUs: 1, TokensPerSecond: tps, Utilisation: .3})
		want(t, r, err, map[string]float64{"usd_per_million_tokens_at_capacity": usd,
			"usd_per_million_tokens_at_load": usd / .3})
	}
	four, err := Cost(Price{USDPerGPUHour: 3, GPUs: 4, TokensPerSecond: 16_000})
	want(t, four, err, map[string]float64{"usd_per_hour": 12, "usd_per_million_tokens_at_capacity": 3 / 14.4})
	for _, p := range []Price{{}, {GPUs: 1}, {GPUs: 1.5, TokensPerSecond: 1},
		{GPUs: 1, TokensPerSecond: 1, Utilisation: 2}, {GPUs: 1, TokensPerSecond: math.NaN()}} {
		if _, err := Cost(p); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

func answer(tokens int, ttft float64, speed string, against *Stream) Output {
	s, err := ParseSpeed(speed)
	if err != nil {
		panic(err)
	}
	return Output{Tokens: tokens, Stream: Stream{ttft, s}, Against: against, WordsPerMinute: ReadingWordsPerMinute,
		TokensPerWord: TokensPerWord}
}

// A8: 4 s and 300 tokens at 10 tokens/s take 34.0 s by the rule of thumb and 33.9 s exactly. A10: systems A and B.
func TestLatency(t *testing.T) {
	r, err := Latency(answer(300, 4, "10tok/s", nil))
	want(t, r, err, map[string]float64{"e2e_s": 33.9, "e2e_rule_of_thumb_s": 34, "tpot_ms": 100})
	fast, _ := ParseSpeed("25ms")
	r, err = Latency(answer(400, .5, "10tok/s", &Stream{3, fast}))
	want(t, r, err, map[string]float64{
		"e2e_s": 40.4, "e2e_rule_of_thumb_s": 40.5, "e2e_s_against": 12.975, "e2e_rule_of_thumb_s_against": 13,
		"tokens_per_s_against": 40, "break_even_tokens": 1 + 2.5/.075,
	})
	// A13: the rule of thumb is always one time per token too long.
	for _, n := range []int{1, 2, 57, 1000} {
		r, err := Latency(answer(n, .3, "40ms", nil))
		if err != nil || math.Abs(*r.Find("e2e_rule_of_thumb_s")-*r.Find("e2e_s")-.04) > 1e-12 {
			t.Errorf("%d tokens: %v and %v", n, *r.Find("e2e_rule_of_thumb_s"), *r.Find("e2e_s"))
		}
	}
	for _, a := range []Output{{}, answer(0, 0, "1s", nil), answer(1, -1, "1s", nil), answer(1, math.Inf(1), "1s", nil),
		answer(1, 0, "1s", &Stream{})} {
		if _, err := Latency(a); err == nil {
			t.Errorf("%+v is accepted", a)
		}
	}
}

// A37: an output that arrives at once after 12 s, and one that streams from 200 ms on and ends at the same time.
func TestEqualEndToEnd(t *testing.T) {
	dump := Stream{12 - 1e-6, 1e-6 / 649}
	stream := Stream{.2, Speed(11.8 / 649)}
	a := Output{Tokens: 650, Stream: dump, Against: &stream, WordsPerMinute: 250, TokensPerWord: 1.3}
	r, err := Latency(a)
	want(t, r, err, map[string]float64{"e2e_s": 12, "e2e_s_against": 12, "saved_s": 0})
	if *r.Find("ttft_ms") < 50**r.Find("ttft_ms_against") {
		t.Error("the wait for the first token does not differ")
	}
}

// B5: 250 words per minute are 5.417 tokens/s, 184.6 ms each. B6: a speed takes either unit, and a unit is required.
// A2: characters per second only if characters per token are given.
func TestReading(t *testing.T) {
	r, err := Latency(answer(100, 1, "10tok/s", nil))
	want(t, r, err, map[string]float64{"reading_tokens_per_s": 5.416667, "reading_ms_per_token": 184.615385,
		"pace_surplus": 1.846154, "words_per_s": 10 / 1.3})
	if r.Find("chars_per_s") != nil {
		t.Error("characters without a tokenizer")
	}
	a := answer(100, 1, "40tok/s", nil)
	a.CharsPerToken = 1
	r, err = Latency(a)
	want(t, r, err, map[string]float64{"chars_per_s": 40})

	for text, ms := range map[string]float64{"200ms": 200, "5tok/s": 200, "3tok/s": 1000. / 3, " 40 tok/s": 25,
		"0.05s": 50} {
		s, err := ParseSpeed(text)
		if err != nil || math.Abs(s.Milliseconds()-ms) > 1e-9 || math.Abs(s.TokensPerSecond()-1000/ms) > 1e-9 {
			t.Errorf("%q is %v ms: %v", text, s.Milliseconds(), err)
		}
	}
	for _, text := range []string{"5", "5.5", "", "tok/s", "-5tok/s", "0tok/s", "0", "5tok", "Inftok/s", "5 apples"} {
		if _, err := ParseSpeed(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, err := ParseSpeed("5"); !strings.Contains(err.Error(), "no unit") {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	for text, v := range map[string]float64{"20%": .2, "0.2": .2, "100 %": 1, "0": 0} {
		if got, err := ParseShare(text); err != nil || math.Abs(got-v) > 1e-12 {
			t.Errorf("%q is %v: %v", text, got, err)
		}
	}
	if v, err := ParseRate("4000tok/s"); v != 4000 || err != nil {
		t.Error(v, err)
	}
	for _, text := range []string{"4000", "-1tok/s", "NaNtok/s", ""} {
		if _, err := ParseRate(text); err == nil {
			t.Errorf("the rate %q is accepted", text)
		}
	}
	for _, text := range []string{"120%", "2", "x", "NaN", "-1%"} {
		if _, err := ParseShare(text); err == nil {
			t.Errorf("the share %q is accepted", text)
		}
	}
}

// B8: the durations of typical outputs are compared with typical durations.
func TestUsualAnswers(t *testing.T) {
	r, err := Latency(answer(100, .5, "50ms", nil))
	want(t, r, err, map[string]float64{"e2e_chat_s": .5 + 99*.05, "e2e_code_s": .5 + 499*.05,
		"e2e_document_s": .5 + 1999*.05})
	for _, l := range r.Lines {
		if strings.HasPrefix(l.Name, "e2e_c") && !strings.HasPrefix(l.Says, "usual") {
			t.Errorf("%s: %s", l.Name, l.Says)
		}
	}
}

func loaded(t *testing.T, sets ...string) *scenario.Scenario {
	t.Helper()
	var settings []scenario.Setting
	for _, text := range sets {
		s, err := scenario.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		settings = append(settings, s)
	}
	s, err := scenario.Load("", settings...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// B9: a model of 70 billion parameters in fp16 does not fit one GPU of 80 GB or 141 GB, but two.
func TestDoesNotFit(t *testing.T) {
	for gpu, missing := range map[string]float64{"h100": 67.65, "h200": 7.85} {
		r, err := KV(loaded(t, "model=llama-3.1-70b", "gpu="+gpu, "deployment.dtype=fp16"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Find("missing_gb"); got == nil || math.Abs(*got-missing) > .05 ||
			!strings.Contains(strings.Join(r.Notes, " "), "--tp 2") {
			t.Errorf("%s: %v GB are missing; %v", gpu, deref(got), r.Notes)
		}
		if w := r.Find("weights_gb"); w == nil || math.Abs(*w-141.1) > .1 {
			t.Errorf("%s: weights of %v GB", gpu, deref(w))
		}
	}
	r, err := KV(loaded(t, "model=llama-3.1-70b", "deployment.tensor_parallel_size=4"), []int{4096, 500_000})
	want(t, r, err, map[string]float64{"kv_bytes_per_token": 2 * 80 * 2 * 128 * 2, "requests_of_500000_tokens": 0})
	if r.Find("missing_gb") != nil || *r.Find("requests_of_4096_tokens") != math.Floor(*r.Find("kv_tokens")/4096) {
		t.Errorf("%+v", r)
	}
}

// T21: the number of requests that fit, at the lengths of the traffic.
func TestKVOfTraffic(t *testing.T) {
	r, err := KV(loaded(t, "workload={input: {distribution: fixed, value: 1000}, output: {distribution: fixed, value: 24}}"), nil)
	want(t, r, err, map[string]float64{"kv_bytes_per_token": 131072})
	for _, name := range []string{"requests_at_p50", "requests_at_p95"} {
		if got := r.Find(name); got == nil || *got != math.Floor(*r.Find("kv_blocks")/64) {
			t.Errorf("%s is %v", name, deref(got))
		}
	}
	if _, err := KV(loaded(t, "step_time={linear: {a_ms: 1}}"), nil); err == nil {
		t.Error("an unlimited pool is sized")
	}
	if _, err := KV(loaded(t, "gpu=nothing"), nil); err == nil {
		t.Error("an unknown GPU is accepted")
	}
	if _, err := KV(loaded(t), []int{0}); err == nil {
		t.Error("a request of nothing is accepted")
	}
	for _, model := range []string{"deepseek-v3", "gemma-3-27b"} {
		r, err := KV(loaded(t, "model="+model, "gpu=h200", "deployment.tensor_parallel_size=8"), []int{10_000})
		if err != nil || *r.Find("requests_of_10000_tokens") < 1 {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// A9: the duration of a request depends on the load. If an iteration takes a + b·n, N = λ·W(N) has the exact solution
// n = λoa/(1-λob), here 400 concurrent requests.
func TestFixedPoint(t *testing.T) {
	s := loaded(t, "step_time={linear: {a_ms: 10, b_us: 100}}", "engine.max_num_seqs=4096",
		"engine.max_num_batched_tokens=8192",
		"workload={arrivals: {process: poisson, rate: 1}, input: {distribution: fixed, value: 1}, output: {distribution: fixed, value: 1000}}", "run.warmup=200s")
	r, err := AtLoad(context.Background(), s, Demand{PerMinute: 8 * 60}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mean, idle, measured := r.Find("mean_requests"), r.Find("mean_idle_requests"), r.Find("measured_requests")
	if mean == nil || math.Abs(*mean-400) > 40 || math.Abs(*measured-*mean) > .03**mean {
		t.Errorf("%v requests at once, counted %v, want 400", deref(mean), deref(measured))
	}
	if math.Abs(*idle-8*10.1) > 1 {
		t.Errorf("%v requests at once if nothing slowed down, want 80.8", *idle)
	}
	// Above λo = 1/b there is no solution.
	r, err = AtLoad(context.Background(), s, Demand{PerMinute: 11 * 60}, nil)
	if err != nil || r.Find("mean_requests") != nil || !strings.Contains(r.Lines[len(r.Lines)-1].Says, "not settled") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := AtLoad(context.Background(), s, Demand{}, nil); err == nil {
		t.Error("no demand is accepted")
	}
}

func TestWrite(t *testing.T) {
	fast, _ := ParseSpeed("40tok/s")
	r, err := Latency(answer(400, .5, "10tok/s", &Stream{3, fast}))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > tableWidth {
			t.Errorf("a line of more than %d: %s", tableWidth, line)
		}
	}
	if !strings.Contains(b.String(), "= 0.5 + (400 - 1) × 0.1") {
		t.Errorf("no numbers in the formula:\n%s", &b)
	}
	b.Reset()
	if err := r.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(r.Lines)+1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if err := r.WriteMarkdown(&b); err != nil || strings.Count(b.String(), "\n| ") < len(r.Lines) {
		t.Errorf("%v\n%s", err, &b)
	}
	if text, err := json.Marshal(r); err != nil || !bytes.Contains(text, []byte(`"schema":"clifftop.estimate/1"`)) {
		t.Errorf("%v", err)
	}
	names := map[string]bool{}
	for _, l := range r.Lines {
		if names[l.Name] {
			t.Errorf("%s comes twice", l.Name)
		}
		names[l.Name] = true
	}
}

func TestAmount(t *testing.T) {
	for v, text := range map[float64]string{0: "0", 2: "2", 2.26666: "2.267", 14.4e6: "14,400,000",
		.000277778: "0.0002778", 1000: "1,000", 999.99999: "1,000", 12.975: "12.97",
		-66.85: "-66.85", -1234567.8: "-1,234,568", 1e20: "1e+20", .1: "0.1", math.Inf(1): "–"} {
		if got := amount(v); got != text {
			t.Errorf("%v is %q, want %q", v, got, text)
		}
	}
}
