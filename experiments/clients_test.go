package experiments_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/traces"
	"clifftop/internal/testenv"
	"clifftop/report"
	"clifftop/sim/engine"
)

// rows are those of requests.csv, by column.
func rows(t *testing.T, text string) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]string
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, name := range all[0] {
			m[name] = row[i]
		}
		list = append(list, m)
	}
	return list
}

func float(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestClosedLoopLaw: 64 users who think 10 s about answers that take 6 s send 4 requests per second.
func TestClosedLoopLaw(t *testing.T) {
	sum := mustRun(t, mustParse(t, `
step_time: {linear: {a_ms: 6, b_us: 0}}
workload:
  arrivals: {users: 64, think_time: {distribution: exponential, mean: 10s}}
  input: {distribution: fixed, value: 10}
  output: {distribution: fixed, value: 1000}
run: {duration: 20000s, warmup: 100s}
`), experiments.RunOptions{}).Summary
	residence := *sum.Latency.E2E.Mean / 1000
	x := *sum.Throughput.RequestsPerS
	if math.Abs(residence-6) > 0.01 || math.Abs(x-4) > 0.04 || math.Abs(x*(residence+10)/64-1) > 0.01 {
		t.Errorf("X = %g, R = %g", x, residence)
	}
	if sum.PaceSurplus != nil {
		t.Error("a surplus over nothing")
	}
}

// TestReadingClosesTheLoop: who reads at 50 tokens/s needs 20 s for the answer that comes in 6.
func TestReadingClosesTheLoop(t *testing.T) {
	sum := mustRun(t, mustParse(t, `
step_time: {linear: {a_ms: 6, b_us: 0}}
workload:
  arrivals: {users: 64, think_time: 10s, ramp: 30s}
  input: {distribution: fixed, value: 10}
  output: {distribution: fixed, value: 1001}
clients: {reading: 50}
run: {duration: 1200s, warmup: 100s}
`), experiments.RunOptions{Check: true}).Summary
	if x := *sum.Throughput.RequestsPerS; math.Abs(x*30/64-1) > 0.01 {
		t.Errorf("X = %g, want 64/(10 + 20)", x)
	}
	if p := *sum.PaceSurplus.P50; math.Abs(p/(1001/6.0/50)-1) > 0.01 {
		t.Errorf("answers come %g times as fast as they are read", p)
	}
}

// TestQueueLimit: of five requests at once three are taken in and two refused, which come back within half a second.
func TestQueueLimit(t *testing.T) {
	var b bytes.Buffer
	res := mustRun(t, mustParse(t, `
step_time: {linear: {a_ms: 10, b_us: 0}}
engine: {max_num_queued_reqs: 3}
workload: {arrivals: {process: all-at-once}, input: {distribution: fixed, value: 10}, output: {distribution: fixed, value: 100}}
clients: {retries: 9, backoff: {base: 500ms, jitter: full}}
run: {requests: 5}
`), experiments.RunOptions{Check: true, Requests: &b})
	refused := map[string]bool{}
	waits := 0
	for _, r := range rows(t, b.String()) {
		switch {
		case r["arrival_s"] == "0.000000000" && r["ending"] == "busy":
			refused[r["request"]] = true
			if r["again"] != "true" || r["reason"] != "busy" {
				t.Errorf("%v", r)
			}
		case r["attempt"] == "1":
			waits++
			if w := float(t, r["arrival_s"]); w <= 0 || w > 0.5 || !refused[r["request"]] ||
				r["retry_causes"] != "busy" {
				t.Errorf("the first retry of request %s after %g s: %v", r["request"], w, r)
			}
		}
	}
	n := res.Summary.Requests
	if len(refused) != 2 || waits != 2 || n.Completed != 5 || n.RetriedAfter.Busy != n.Retries {
		t.Errorf("%d refused, %d retries: %+v", len(refused), waits, n)
	}
}

// TestRetryAfter: what the server asks for takes the place of the backoff.
func TestRetryAfter(t *testing.T) {
	var b bytes.Buffer
	mustRun(t, mustParse(t, `
step_time: {linear: {a_ms: 10, b_us: 0}}
engine: {max_num_queued_reqs: 3, retry_after: 7s}
workload: {arrivals: {process: all-at-once}, input: {distribution: fixed, value: 10}, output: {distribution: fixed, value: 100}}
clients: {retries: 1}
run: {requests: 5}
`), experiments.RunOptions{Check: true, Requests: &b})
	for _, r := range rows(t, b.String()) {
		if r["attempt"] == "1" && r["arrival_s"] != "7.000000000" {
			t.Errorf("a retry at %s s", r["arrival_s"])
		}
	}
}

// TestRetryStorm: without timeouts the backlog of an outage drains at 2 per second, in 120 s. With timeouts and retries
// it never does. With a limit of the queue, or a budget of retries, the system recovers.
func TestRetryStorm(t *testing.T) {
	after := func(keys ...scenario.Setting) (*report.Summary,
		func(from, to float64) (completed float64, queue float64)) {
		s, err := scenario.Load("examples/retry-storm.yaml", keys...)
		if err != nil {
			t.Fatal(err)
		}
		res := mustRun(t, s, experiments.RunOptions{Check: true})
		return res.Summary, func(from, to float64) (completed, queue float64) {
			n := 0.0
			for _, p := range res.Series {
				if p.StartS >= from && p.EndS <= to {
					completed += float64(p.Completions)
					queue += p.QueueMean
					n++
				}
			}
			return completed / (to - from), queue / n
		}
	}
	sum, at := after(scenario.Setting{Key: "clients", Value: "null"})
	if sum.Requests.Retries+sum.Requests.TimedOut != 0 {
		t.Errorf("%+v", sum.Requests)
	}
	if x, _ := at(70, 170); math.Abs(x-10) > 0.3 {
		t.Errorf("a backlog drains at %g requests/s, want 10", x)
	}
	_, half := at(115, 125)
	_, drained := at(182, 200)
	if math.Abs(half-120) > 12 || drained > 1 {
		t.Errorf("%g wait after 60 s and %g after 120 s, want 120 and none", half, drained)
	}

	sum, at = after()
	if x, _ := at(300, 900); x > 1 {
		t.Errorf("with timeouts and retries %g requests/s complete long after the outage", x)
	}
	if x := sum.Requests; x.Retries < 10*x.Completed || *sum.System.ErrorRate < 0.8 {
		t.Errorf("%+v", x)
	}

	_, at = after(scenario.Setting{Key: "clients.retry_budget", Value: "0.1"})
	if x, queue := at(150, 900); math.Abs(x-8) > 0.1 || queue > 1 {
		t.Errorf("with a budget of retries %g requests/s complete after the outage, and %g wait", x, queue)
	}
	sum, at = after(scenario.Setting{Key: "engine.max_num_queued_reqs", Value: "50"})
	x, queue := at(90, 900)
	if math.Abs(x-8) > 0.1 || queue > 1 {
		t.Errorf("with a limit of the queue %g requests/s complete after the outage, and %g wait", x, queue)
	}
	if *sum.System.ErrorRate > 0.05 || sum.Requests.TimedOut > 0 {
		t.Errorf("%+v", sum.Requests)
	}
}

// TestUsefulThroughput has the shape of what timeouts do to a saturated server: what it emits stays the same, and what
// is of use goes, to nothing where it is not told that clients have left.
func TestUsefulThroughput(t *testing.T) {
	const chat = `
engine: {max_num_seqs: 64}
workload:
  input: {distribution: lognormal, mean: 300, cv: 0.5}
  output: {distribution: lognormal, mean: 250, cv: 0.3}
`
	run := func(users int, clients string) *report.Summary {
		text := chat + fmt.Sprintf("  arrivals: {users: %d, ramp: 3s}\nclients: %s\nrun: {duration: 200s, warmup: 40s}\n", users, clients)
		return mustRun(t, mustParse(t, text), experiments.RunOptions{Check: true}).Summary
	}
	useful := func(s *report.Summary) float64 { return *s.Throughput.SuccessfulOutputTokensPerS }
	emitted := func(s *report.Summary) float64 { return *s.Throughput.OutputTokensPerS }

	light, full := run(10, "{}"), run(200, "{}")
	residence := *full.Latency.E2E.Mean / 1000 // three times what an answer takes once it is admitted
	total, tight := fmt.Sprintf("%.3gs", 0.75*residence), fmt.Sprintf("%.3gs", 0.25*residence)

	polite := run(200, fmt.Sprintf("{ttft_timeout: %s, retries: 3}", tight))
	if useful(polite) < 0.9*useful(full) || useful(polite) < 0.99*emitted(polite) ||
		polite.Requests.TimedOut+polite.Requests.Retries < 1000 {
		t.Errorf("a timeout in the queue costs the server nothing, but %.0f tokens/s become %.0f: %+v", useful(full),
			useful(polite), polite.Requests)
	}
	abort := run(200, fmt.Sprintf("{timeout: %s}", total))
	if useful(abort) > 0.6*useful(full) || emitted(abort) < 0.9*emitted(full) {
		t.Errorf("a timeout in mid-stream wastes what was computed: %.0f of %.0f tokens/s are of use, want fewer than of %.0f", useful(abort), emitted(abort), useful(full))
	}
	silent := run(200, fmt.Sprintf("{timeout: %s, retries: 3, cancel_on_timeout: false}", total))
	if useful(silent) > 0.02*useful(full) || emitted(silent) < 0.95*emitted(full) {
		t.Errorf("retries without cancellation: %.0f of %.0f tokens/s are of use, want none", useful(silent),
			emitted(silent))
	}
	if x := run(10, fmt.Sprintf("{timeout: %s, retries: 3, cancel_on_timeout: false}",
		total)); useful(x) < 0.95*useful(light) {
		t.Errorf("at a light load nobody times out, but %.0f tokens/s become %.0f", useful(light), useful(x))
	}
	t.Logf("emitted and useful tokens/s: %.0f %.0f, ttft timeout %.0f %.0f, timeout %.0f %.0f, "+
		"without cancellation %.0f %.0f",
		emitted(full), useful(full),
		emitted(polite), useful(polite), emitted(abort), useful(abort), emitted(silent), useful(silent))
}

// TestDepartures: a request whose client leaves while it waits is let go at the next end of an iteration, and has cost
// nothing.
func TestDepartures(t *testing.T) {
	var b bytes.Buffer
	res := mustRun(t, mustParse(t, `
step_time: {linear: {a_ms: 1000, b_us: 0}}
engine: {max_num_seqs: 1}
workload: {arrivals: {process: all-at-once}, input: {distribution: fixed, value: 10}, output: {distribution: fixed, value: 30}}
clients: {ttft_timeout: 9500ms}
run: {requests: 2}
`), experiments.RunOptions{Check: true, Requests: &b})
	left := rows(t, b.String())[0]
	if left["ending"] != "ttft_timeout" || left["outcome"] != "timed_out" || left["released_s"] != "10.000000000" ||
		left["scheduled_s"] != "" {
		t.Errorf("%v", left)
	}
	if s := res.Summary; s.Requests.Completed != 1 || s.Requests.TimedOut != 1 || s.Tokens.Input != 10 ||
		s.Tokens.Output != 30 || s.Tokens.Wasted != 0 {
		t.Errorf("%+v, %+v", s.Requests, s.Tokens)
	}
}

// TestChunkedDeparture: a client leaves while chunk 3 of 5 of its prompt is computed. The step ends, three chunks are
// wasted, and the next attempt finds them in the prefix cache.
func TestChunkedDeparture(t *testing.T) {
	var b bytes.Buffer
	res := mustRun(t, mustParse(t, `
step_time: {linear: {a_ms: 4000, b_us: 0}}
engine: {max_num_seqs: 4, max_num_batched_tokens: 64, num_gpu_blocks_override: 1000, enable_prefix_caching: true}
workload: {arrivals: {process: constant, rate: 1}, input: {distribution: fixed, value: 320}, output: {distribution: fixed, value: 1}}
clients: {timeout: 10s, retries: 1, backoff: {base: 3s, jitter: none}}
run: {requests: 1}
`), experiments.RunOptions{Check: true, Requests: &b})
	list := rows(t, b.String())
	if len(list) != 2 {
		t.Fatalf("%v", list)
	}
	sent := float(t, list[0]["arrival_s"])
	if list[0]["ending"] != "timeout" || float(t, list[0]["released_s"]) != sent+12 ||
		list[1]["cached_tokens"] != "192" {
		t.Errorf("%v", list)
	}
	if e2e := float(t, list[1]["e2e_ms"]); list[1]["ending"] != "answered" || e2e != 10e3+3e3+8e3 {
		t.Errorf("answered after %g ms: %v", e2e, list[1])
	}
	if n := res.Summary.Requests; n.Completed != 1 || n.Retries != 1 || *res.Summary.Latency.E2E.Max != 21e3 {
		t.Errorf("%+v", n)
	}
}

// TestNetwork: the way there and back is part of every latency.
func TestNetwork(t *testing.T) {
	const text = "run: {requests: 300}\nworkload: {arrivals: {process: poisson, rate: 1}}\n"
	near := mustRun(t, mustParse(t, text), experiments.RunOptions{Check: true}).Summary
	far := mustRun(t, mustParse(t, text+"overheads: {network_in: 30ms, network_out: 20ms}"),
		experiments.RunOptions{Check: true}).Summary
	for _, x := range [][2]*float64{{near.Latency.TTFT.P50, far.Latency.TTFT.P50},
		{near.Latency.E2E.P50, far.Latency.E2E.P50}} {
		if d := *x[1] - *x[0]; math.Abs(d-50) > 5 {
			t.Errorf("%g ms become %g, want 50 more", *x[0], *x[1])
		}
	}
}

// randomClients draws keys of clients and a system for them.
func randomClients(rng *rand.Rand) string {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	engine := pick("{max_num_seqs: 8}", "{max_num_seqs: 64, num_gpu_blocks_override: 600}",
		"{max_num_seqs: 16, max_num_queued_reqs: 30}",
		"{max_num_seqs: 32, max_num_queued_tokens: 20000, retry_after: 2s}", "{max_num_seqs: 32, policy: sglang}",
		"{max_num_seqs: 8, async_scheduling: false}")
	arrivals := pick("{process: poisson, rate: 12}", "{users: 60, think_time: {distribution: exponential, mean: 1s}}",
		"{users: 30}",
		"{process: on-off, rate: 10, on_mean: 5s, off_mean: 5s}",
		"[{duration: 20s, process: poisson, rate: 2}, {duration: 5s, process: poisson, rate: 40}, {duration: 20s, "+
			"process: poisson, rate: 2}]")
	timeouts := pick("timeout: 3s", "timeout: 9s, ttft_timeout: 1500ms", "ttft_timeout: 800ms", "timeout: 20s")
	extra := pick("", "retry_budget: 0.2,", "cancel: {probability: 0.3, after: {distribution: exponential, mean: 4s}},",
		"reading: 30,",
		"cancel: {probability: 0.5, after: {distribution: lognormal, mean: 2s, cv: 1}}, reading: 100,")
	return fmt.Sprintf(`
engine: %s
workload: {arrivals: %s, input: {distribution: lognormal, mean: 300, cv: 1}, output: {distribution: lognormal, mean: 150, cv: 1}}
clients: {%s, %s retries: %d, retry_on: %s, backoff: {base: %s, jitter: %s}, cancel_on_timeout: %v}
overheads: {network_in: %s, network_out: %s}
slo: {ttft_p95: 1s}
run: {%s, seed: %d}
`, engine, arrivals, timeouts, extra, rng.IntN(4), pick("[timeout, busy]", "[timeout]", "[busy]"),
		pick("0", "100ms", "1s"), pick("none", "full", "equal", "openai"),
		rng.IntN(2) == 0, pick("0", "15ms"), pick("0", "15ms"),
		pick("requests: 400", "requests: 400, duration: 30s", "duration: 40s"), rng.IntN(1000))
}

// TestRandomClients: no logical request is lost or counted twice, whatever clients do, and what stands in the rows
// agrees with the counts.
func TestRandomClients(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	var retries, left, cancelled, busy int64
	const all = 40
	n := testenv.Choose(20, all)
	for range n {
		text := randomClients(rng)
		var b bytes.Buffer
		res, err := experiments.Run(t.Context(), mustParse(t, text), experiments.RunOptions{Check: true, Requests: &b})
		if err != nil {
			t.Fatalf("%s%v", text, err)
		}
		n := res.Summary.Requests
		if n.Offered != n.Completed+n.Rejected+n.TimedOut+n.Cancelled+n.InSystemAtEnd ||
			n.Attempts != n.Offered+n.Retries {
			t.Fatalf("%s%+v", text, n)
		}
		last, again := map[string]int{}, int64(0)
		for _, r := range rows(t, b.String()) {
			if r["again"] == "true" {
				again++
			} else if last[r["request"]]++; last[r["request"]] > 1 {
				t.Fatalf("%srequest %s ends twice", text, r["request"])
			}
		}
		if int64(len(last)) != n.Offered-n.InSystemAtEnd ||
			again != n.RetriedAfter.FirstTimeout+n.RetriedAfter.Timeout+n.RetriedAfter.Busy {
			t.Fatalf("%s%d requests end in rows, %d attempts are followed by others: %+v", text, len(last), again, n)
		}
		x := res.Summary.Throughput
		if *x.SuccessfulOutputTokensPerS > *x.OutputTokensPerS {
			t.Errorf("%semitted %g, successful %g tokens/s", text, *x.OutputTokensPerS, *x.SuccessfulOutputTokensPerS)
		}
		retries, left, cancelled, busy = retries+n.Retries, left+n.TimedOut, cancelled+n.Cancelled, busy+n.RejectedBusy
	}
	if part := int64(all / n); retries < 1000/part || left < 500/part || cancelled < 100/part || busy < 100/part {
		t.Errorf("%d retries, %d timeouts, %d cancellations, %d refusals: too few to mean much", retries, left,
			cancelled, busy)
	}
}

// TestClientsAreDeterministic: outputs that are watched change nothing, nor does stepping through iterations.
func TestClientsAreDeterministic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 8 {
		text := randomClients(rng)
		var summaries, tables [][]byte
		for i := range 3 {
			var b bytes.Buffer
			o := experiments.RunOptions{Check: i == 1, Progress: func(experiments.Progress) {}}
			if i > 0 {
				o.Requests = &b
			}
			u, err := mustParse(t, text).Resolve()
			if err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				u = u.Configured(func(c *engine.Config) { c.MaxSpan = 1 })
			}
			res, err := experiments.RunSetup(t.Context(), u, o)
			if err != nil {
				t.Fatal(err)
			}
			s, _ := json.Marshal(res.Summary)
			summaries, tables = append(summaries, s), append(tables, b.Bytes())
		}
		if !bytes.Equal(summaries[0], summaries[1]) || !bytes.Equal(tables[1], tables[2]) {
			t.Errorf("%sthe same scenario gives different results", text)
		}
	}
}

// TestSameClients: two policies meet the same users.
func TestSameClients(t *testing.T) {
	sent := func(policy string) map[string]string {
		var b bytes.Buffer
		mustRun(t, mustParse(t, "engine: {max_num_seqs: 8, policy: "+policy+`}
workload: {arrivals: {process: poisson, rate: 10}}
clients: {ttft_timeout: 1s, retries: 2, backoff: {base: 1s, jitter: full}}
run: {requests: 500}
`), experiments.RunOptions{Requests: &b})
		waits := map[string]string{}
		list := rows(t, b.String())
		arrived := map[string]float64{}
		for _, r := range list {
			arrived[fmt.Sprint(r["sent_s"], " ", r["attempt"])] = float(t, r["arrival_s"])
		}
		for _, r := range list {
			if r["attempt"] != "0" {
				k := int(float(t, r["attempt"]))
				before := arrived[fmt.Sprint(r["sent_s"], " ", k-1)]
				waits[fmt.Sprint(r["sent_s"], " ", k)] = fmt.Sprintf("%.9f", float(t, r["arrival_s"])-before)
			}
		}
		return waits
	}
	a, b := sent("vllm"), sent("orca")
	same := 0
	for key, wait := range a {
		if other, ok := b[key]; ok {
			same++
			if math.Abs(float(t, wait)-float(t, other)) > 2e-9 {
				t.Errorf("%s waits %s and %s", key, wait, other)
			}
		}
	}
	if same < 100 {
		t.Errorf("%d of %d and %d retries compared", same, len(a), len(b))
	}
}

// TestClientWarnings: what has no effect, and what is dangerous.
func TestClientWarnings(t *testing.T) {
	for text, want := range map[string]string{
		"clients: {retries: 2}":                                "unused: clients.retries has no effect: no event triggers a retry",
		"clients: {retries: 2, retry_on: [busy], timeout: 5s}": "unused: clients.retries has no effect",
		"clients: {timeout: 5s, retry_budget: 0.1}":            "unused: clients.retry_budget has no effect: clients.retries is 0",
		"clients: {timeout: 5s, backoff: {base: 1s}}":          "unused: clients.backoff has no effect: clients.retries is 0",
		"clients: {cancel_on_timeout: false}":                  "unused: clients.cancel_on_timeout has no effect: clients have no timeout",
		"engine: {retry_after: 5s}":                            "unused: engine.retry_after has no effect: no queue limit",
		"engine: {retry_after: 5s, max_num_queued_reqs: 9}":    "unused: engine.retry_after has no effect: no client retries after a rejection",
		"workload: {classes: [{name: a, weight: 1, clients: {retries: 1, timeout: 3s, backoff: {base: 0}}}, {name: b, weight: 1}]}": "metastable: workload.classes.0.clients.retries without",
		"engine: {retry_after: 5m, max_num_queued_reqs: 9}\nclients: {retries: 1}":                                                  "unused: engine.retry_after has no effect: clients honor 1m at most",
		"clients: {timeout: 5s, retries: 1, backoff: {base: 0}}":                                                                    "metastable: clients.retries without backoff are sent at once",
		"clients: {timeout: 5s, retries: 1}":                                                                                        "",
		"clients: {timeout: 5s, retries: 1, backoff: {base: 20s}}":                                                                  "",
		"engine: {retry_after: 5s, max_num_queued_reqs: 9}\nclients: {retries: 1}":                                                  "",
	} {
		u, err := mustParse(t, text).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range u.Warnings {
			if w.Code == "unused" || w.Code == "metastable" {
				got = append(got, w.Code+": "+w.Text)
			}
		}
		if want == "" && len(got) > 0 || want != "" && !slices.ContainsFunc(got, func(s string) bool {
			return strings.HasPrefix(s, want)
		}) {
			t.Errorf("%s: warnings %q, want %q", text, got, want)
		}
	}
}

// TestHopelessTimeouts: who leaves within one iteration is never answered.
func TestHopelessTimeouts(t *testing.T) {
	for text, want := range map[string]string{
		"clients: {timeout: 5ms}": "s.yaml:1:20: clients.timeout: 5ms is too short for any response: one iteration takes ",
		"step_time: {linear: {a_ms: 10, b_us: 5}}\nworkload: {classes: [{name: a, weight: 1, clients: {timeout: 9ms}}]}": "s.yaml:2:62: workload.classes.0.clients.timeout: 9ms is too short",
		"step_time: {linear: {a_ms: 10, b_us: 5}}\nclients: {ttft_timeout: 9ms}": "s.yaml:2:25: clients.ttft_timeout: 9ms is too short for any response: " +
			"one iteration takes 10.005ms, network and front end 0 (want more than both)",
		"step_time: {linear: {a_ms: 10, b_us: 5}}\nclients: {ttft_timeout: 12ms}\noverheads: {network_in: 2ms, network_out: 3ms}": "s.yaml:2:25: clients.ttft_timeout: 12ms is too short for any response: " +
			"one iteration takes 10.005ms, network and front end 5ms (want more than both)",
	} {
		s, err := scenario.Parse("s.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Resolve()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestClientsByClass: each class has clients of its own, or the scenario's.
func TestClientsByClass(t *testing.T) {
	sum := mustRun(t, mustParse(t, `
engine: {max_num_seqs: 16}
workload:
  arrivals: {process: poisson, rate: 12}
  classes:
    - {name: people, weight: 1, clients: {ttft_timeout: 1s}}
    - {name: programs, weight: 1, clients: {timeout: 6s, retries: 5}}
    - {name: batch, weight: 1}
run: {requests: 900}
`), experiments.RunOptions{Check: true}).Summary
	for i, want := range []string{"people 0 true", "programs 1 true", "batch 0 false"} {
		c := sum.Classes[i]
		if got := fmt.Sprint(c.Name, " ", min(c.Requests.Retries, 1), " ",
			c.Requests.TimedOut+c.Requests.Retries > 0); got != want {
			t.Errorf("%s: %+v", got, c.Requests)
		}
		if c.Requests.Completed+c.Requests.TimedOut != c.Requests.Offered {
			t.Errorf("%s: %+v", c.Name, c.Requests)
		}
	}
}

// TestGenerateWithoutRetries: generated traffic is what clients ask for, not what becomes of it.
func TestGenerateWithoutRetries(t *testing.T) {
	trace := func(clients string) string {
		u, err := mustParse(t, "workload: {arrivals: {process: poisson, rate: 30}}\nrun: {requests: 300}\n"+clients).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if n, err := traces.Generate(t.Context(), u, &b, false); err != nil || n != 300 {
			t.Fatalf("%d rows, %v", n, err)
		}
		return b.String()
	}
	if trace("") != trace("clients: {timeout: 1s, retries: 3, cancel: {probability: 0.5, after: 1s}}") {
		t.Error("clients change generated traffic")
	}
}

// TestClientsReplicated: runs side by side give what they give one after another, and are pooled with what clients do.
func TestClientsReplicated(t *testing.T) {
	const text = `
engine: {max_num_seqs: 16}
workload: {arrivals: {process: poisson, rate: 8}}
clients: {timeout: 8s, ttft_timeout: 2s, retries: 2, reading: 10, cancel: {probability: 0.1, after: {distribution: exponential, mean: 5s}}}
run: {requests: 600}
`
	var all [][]byte
	var sum *report.Summary
	for _, jobs := range []int{1, 3} {
		var err error
		if sum, err = experiments.Replicate(t.Context(), mustParse(t, text),
			experiments.ReplicateOptions{Replications: 4, Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(sum)
		all = append(all, b)
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("the number of jobs changes the result")
	}
	n := sum.Requests
	if n.Offered != 2400 || n.Attempts != n.Offered+n.Retries || n.RetriedAfter.FirstTimeout == 0 || n.Cancelled == 0 ||
		sum.PaceSurplus == nil || *sum.PaceSurplus.P50 < 1 {
		t.Errorf("%+v, pace %+v", n, sum.PaceSurplus)
	}
}

// TestSilentUsersPileUp: users who give up without a word leave their requests in the queue, and ask again, so that
// even a closed loop has no steady state; where the server is told it has one.
func TestSilentUsersPileUp(t *testing.T) {
	const users = "clients: {timeout: 4s, cancel_on_timeout: %t}\nengine: {max_num_seqs: 16}\nstep_time: {linear: {a_ms: 10, b_us: 100}}\n" +
		"workload: {arrivals: {process: closed, users: 100}, input: {distribution: fixed, value: 100}, output: {distribution: lognormal, mean: 100, cv: 0.5}}\nrun: {requests: 4000}"
	for _, told := range []bool{true, false} {
		w := mustRun(t, mustParse(t, fmt.Sprintf(users, told)), experiments.RunOptions{}).Summary.Window
		piles := w.Stationary != nil && !*w.Stationary && w.GrowthRequestsPerS != nil && *w.GrowthRequestsPerS > 1
		if piles == told {
			t.Errorf("cancellation: %t; stationary %v, growth %v requests/s", told, w.Stationary,
				w.GrowthRequestsPerS)
		}
	}
}
