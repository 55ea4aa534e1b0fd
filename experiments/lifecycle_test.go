package experiments_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/experiments/sweep"
	"clifftop/internal/testenv"
	"clifftop/sim"
	"clifftop/sim/clock"
)

// A fleet that meets everything that replicas can meet.
const troubled = `
deployment: {router: least-requests}
pools:
  - {name: large, replicas: 3}
  - {name: small, replicas: 4, engine: {max_num_seqs: 8}}
step_time: {linear: {a_ms: 20, b_us: 500}}
engine: {max_num_seqs: 32, num_gpu_blocks_override: 400, max_num_queued_reqs: 40}
workload:
  arrivals: {process: poisson, rate: 25}
  input: {distribution: lognormal, mean: 100, cv: 1}
  output: {distribution: lognormal, mean: 100, cv: 1}
clients: {timeout: 20s, ttft_timeout: 6s, retries: 2, backoff: {base: 100ms}, cancel: {probability: 0.05, after: 2s}}
lifecycle:
  cold_start: {distribution: exponential, mean: 5s}
  grace: 2s
  probe: 3s
  hold: 50
  failures:
    - {kind: crash, at: 10s, replica: 0, for: 5s}
    - {kind: crash, at: 31s, pool: small, replica: 0}
    - {kind: drain, at: 20s, replica: 1, for: 3s}
    - {kind: slow, at: 40s, pool: large, replica: 2, for: 30s, factor: 4}
    - {kind: link-loss, at: 50s, replica: 2, for: 10s}
    - {kind: rolling-restart, at: 70s, pool: large}
    - {kind: crash, at: 100s, replica: 0, for: 8s}
    - {kind: crash, at: 100s, replica: 1, for: 8s}
    - {kind: crash, at: 100s, replica: 2, for: 8s}
  random_crashes: {mtbf: 60s, mttr: 4s}
  autoscale:
    - {policy: knative, pool: small, min: 0, target: 12, window: 10s}
run: {requests: 4000, duration: 300s, warmup: none}
`

// The same for pools that divide prompts and answers among them, with tiers, of which one outlives its replica.
const troubledDivision = `
deployment: {router: least-tokens}
pools:
  - {name: prompts, role: prefill, replicas: 3}
  - {name: answers, role: decode, replicas: 3, engine: {num_gpu_blocks_override: 1500}}
disaggregation: {mode: push, link_gb_per_s: 2, lease: 4s, min_tokens: 100, kv_load_failure_policy: %s, router: least-requests, outages: [{at: 90s, for: 3s, pool: answers}]}
offload: {tiers: [{name: host, size: 8GiB, bandwidth: 25GB/s}, {name: store, size: 64GiB, bandwidth: 2GB/s, latency: 1ms, persistent: true}]}
engine: {max_num_queued_reqs: 60}
workload:
  arrivals: {process: poisson, rate: 12}
  input: {distribution: lognormal, mean: 1000, cv: 1}
  output: {distribution: lognormal, mean: 200, cv: 1}
  prefix: {groups: 20, prompts_per_group: 5, shared_tokens: 500}
clients: {timeout: 20s, ttft_timeout: 6s, retries: 2, backoff: {base: 100ms}, cancel: {probability: 0.05, after: 2s}}
lifecycle:
  cold_start: {distribution: exponential, mean: 5s}
  grace: 4s
  probe: 3s
  hold: 50
  failures:
    - {kind: crash, at: 10s, pool: prompts, replica: 0, for: 5s}
    - {kind: crash, at: 31s, pool: answers, replica: 0, for: 20s}
    - {kind: drain, at: 20s, pool: prompts, replica: 1, for: 3s}
    - {kind: slow, at: 40s, pool: prompts, replica: 2, for: 30s, factor: 4}
    - {kind: link-loss, at: 50s, pool: prompts, replica: 2, for: 10s}
    - {kind: rolling-restart, at: 70s, pool: answers}
    - {kind: crash, at: 100s, pool: answers, replica: 0, for: 8s}
    - {kind: crash, at: 100s, pool: answers, replica: 1, for: 8s}
    - {kind: crash, at: 100s, pool: answers, replica: 2, for: 8s}
  random_crashes: {mtbf: 60s, mttr: 4s}
  autoscale:
    - {policy: knative, pool: prompts, min: 0, max: 3, target: 4, window: 10s}
    - {policy: keda, pool: answers, max: 3, target: 5, metric: concurrency, scrape: 5s}
run: {requests: 2500, duration: 300s, warmup: none}
`

// TestNothingIsLost follows requests and tokens over crashes, drains and all else, over several seeds: every attempt
// ends once, and what was emitted is what the attempts got.
func TestNothingIsLost(t *testing.T) {
	for name, text := range map[string]string{
		"both": troubled,
		"ranks": strings.NewReplacer("least-requests}", "vllm-dp, data_parallel_size: 2}", "reqs: 40",
			"reqs: 10").Replace(troubled),
		"ranks in lock step": strings.NewReplacer("least-requests}",
			"vllm-dp, data_parallel_size: 2}\nmodel: qwen3-30b-a3b", "step_time: {linear: {a_ms: 20, b_us: 500}}",
			"gpu: h100-sxm", "reqs: 40", "reqs: 5").Replace(troubled),
		"recompute": fmt.Sprintf(troubledDivision, "recompute"),
		"fail":      fmt.Sprintf(troubledDivision, "fail"),
		"divided ranks": strings.NewReplacer("%s", "fail", "least-tokens}", "least-tokens, data_parallel_size: 2}",
			"reqs: 60", "reqs: 10").Replace(troubledDivision),
	} {
		t.Run(name, func(t *testing.T) { nothingIsLost(t, text) })
	}
}

func nothingIsLost(t *testing.T, text string) {
	var failed, rejected, again int64
	for _, seed := range []string{"1", "2", "3", "4"}[:testenv.Choose(2, 4)] {
		var rows bytes.Buffer
		sum := mustRun(t, mustParse(t, text, scenario.Setting{Key: "run.seed", Value: seed}),
			experiments.RunOptions{Check: true, Requests: &rows}).Summary
		r := sum.Requests
		if r.Offered != r.Completed+r.Rejected+r.TimedOut+r.Cancelled+r.Failed+r.InSystemAtEnd {
			t.Errorf("seed %s: %+v do not add up", seed, r)
		}
		records, err := csv.NewReader(&rows).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		column := map[string]int{}
		for i, name := range records[0] {
			column[name] = i
		}
		ends := map[string]bool{} // attempts
		outcomes := map[string]int64{}
		tokens, retries := int64(0), int64(0)
		for _, row := range records[1:] {
			attempt := row[column["request"]] + "/" + row[column["attempt"]]
			if ends[attempt] {
				t.Fatalf("seed %s: attempt %s ends twice", seed, attempt)
			}
			ends[attempt] = true
			n, _ := strconv.ParseInt(row[column["output_tokens"]], 10, 64)
			tokens += n
			if row[column["again"]] == "true" {
				retries++
			} else {
				outcomes[row[column["outcome"]]]++
			}
		}
		if outcomes["completed"] != r.Completed || outcomes["failed"] != r.Failed ||
			outcomes["rejected"] != r.Rejected || retries != r.Retries {
			t.Errorf("seed %s: requests.csv has %v with %d to be tried again, the summary %+v", seed, outcomes, retries,
				r)
		}
		if r.InSystemAtEnd != 0 || tokens != sum.Tokens.Output {
			t.Errorf("seed %s: %d tokens were emitted, attempts that ended have %d; %d requests have not ended", seed,
				sum.Tokens.Output, tokens, r.InSystemAtEnd)
		}
		sent := int64(0)
		for i := range sum.Replicas {
			sent += sum.Replicas[i].Requests.Sent - sum.Replicas[i].Requests.HandedOn
		}
		if sent > r.Attempts || sent < r.Completed {
			t.Errorf("seed %s: %d attempts were sent to replicas, of %d", seed, sent, r.Attempts)
		}
		failed, rejected, again = failed+r.Failed, rejected+r.Rejected, again+r.Retries
	}
	if failed == 0 || again == 0 || rejected == 0 {
		t.Errorf("%d requests failed, %d were rejected, %d sent again: the test shows nothing", failed, rejected, again)
	}
}

// TestLifecycleReadsBack runs what a summary says that was run, and one setup twice.
func TestLifecycleReadsBack(t *testing.T) {
	u, err := mustParse(t, troubled).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	result := func(u *scenario.Setup) string {
		r, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.Summary.Scenario, r.Summary.Warnings = nil, nil
		text, _ := json.Marshal(r.Summary)
		return string(text)
	}
	scenario, _ := json.Marshal(u.Scenario)
	first := result(u)
	if second := result(u); second != first {
		t.Error("run again, it gives something else")
	}
	text := strings.Replace(string(scenario), `"name":"",`, "", 1)
	v, err := mustParse(t, text).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(v.Scenario); string(again) != string(scenario) {
		t.Errorf("read back:\n%s\nwritten:\n%s", again, scenario)
	}
	if third := result(v); third != first {
		t.Error("read back, it gives something else")
	}
}

// TestEmptyLifecycle: a replica that nothing happens to serves as one without a lifecycle.
func TestEmptyLifecycle(t *testing.T) {
	const text = "run: {requests: 500, warmup: none}\nworkload: {arrivals: {process: poisson, rate: 20}}\n"
	plain, quiet := mustRun(t, mustParse(t, text), experiments.RunOptions{Check: true}).Summary,
		mustRun(t, mustParse(t, text+"lifecycle: {}"), experiments.RunOptions{Check: true}).Summary
	for _, k := range []struct {
		name string
		a, b any
	}{
		{"latency", plain.Latency, quiet.Latency}, {"throughput", plain.Throughput, quiet.Throughput},
		{"requests", plain.Requests, quiet.Requests}, {"cost", plain.Cost, quiet.Cost},
	} {
		a, _ := json.Marshal(k.a)
		b, _ := json.Marshal(k.b)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: with a lifecycle\n%s\nwithout\n%s", k.name, b, a)
		}
	}
	if r := quiet.System.Replicas; plain.System.Replicas != nil || r == nil || *r.Mean != 1 || *r.Ready != 1 ||
		r.Max != 1 {
		t.Errorf("replicas: %+v, without a lifecycle %+v", r, plain.System.Replicas)
	}
}

// TestRandomCrashes: as many as the means say, the same for a replica whatever others there are, and up to the end.
func TestRandomCrashes(t *testing.T) {
	draw := func(replicas, seed string) []sim.Failure {
		_, err := mustParse(t, "lifecycle: {random_crashes: {mtbf: 50s, mttr: 10s}}\nrun: {duration: 100h}",
			scenario.Setting{Key: "deployment.replicas", Value: replicas},
			scenario.Setting{Key: "run.seed", Value: seed}).Resolve()
		if err == nil {
			t.Fatal("60,000 crashes are accepted")
		}
		u, err := mustParse(t, "lifecycle: {random_crashes: {mtbf: 50m, mttr: 10m}}\nrun: {duration: 500h}",
			scenario.Setting{Key: "deployment.replicas", Value: replicas},
			scenario.Setting{Key: "run.seed", Value: seed}).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		return u.Failures
	}
	of := func(replica int, all []sim.Failure) (some []sim.Failure) {
		for _, f := range all {
			if f.Replica == replica {
				some = append(some, f)
			}
		}
		return some
	}
	few, many, other := draw("2", "1"), draw("5", "1"), draw("2", "2")
	if n := float64(len(many)); math.Abs(n-2500) > 5*math.Sqrt(2500) {
		t.Errorf("%v crashes of 5 replicas in 500 h, want about 2500", n)
	}
	down := clock.Duration(0)
	end := clock.Time(0)
	for _, f := range of(1, many) {
		if f.At < end || f.Kind != sim.Crash || f.For <= 0 || f.At >= clock.Time(500*clock.Hour) {
			t.Fatalf("%+v, after a repair that ends at %v", f, end)
		}
		down += f.For
		end = f.At.Add(f.For)
	}
	if share := down.Seconds() / (500 * 3600); math.Abs(share-1./6) > .03 {
		t.Errorf("down for %.3f of the time, want 1/6", share)
	}
	a, b := of(1, few), of(1, many)
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("crash %d of replica 1: %+v of two, %+v of five", i, a[i], b[i])
		}
	}
	if o := of(1, other); o[0] == a[0] {
		t.Errorf("another seed has the same crash, %+v", o[0])
	}
}

// TestProbesSeeTheWholeFleet: loads of a sweep are chosen for all replicas.
func TestProbesSeeTheWholeFleet(t *testing.T) {
	const text = "step_time: {linear: {a_ms: 20, b_us: 100}}\nengine: {max_num_seqs: 16}\nworkload: {input: 20, output: 50}\nrun: {duration: 100s}\n"
	whole, err := steady.Throughput(context.Background(), mustParse(t, text+"deployment: {replicas: 4}"))
	if err != nil {
		t.Fatal(err)
	}
	scaled, err := steady.Throughput(context.Background(),
		mustParse(t, text+"lifecycle: {autoscale: {policy: hpa, max: 4, target: 5}, failures: [{kind: crash, at: 0, "+
			"replica: 1}]}"))
	if err != nil || scaled != whole {
		t.Errorf("saturates at %v, %v; four replicas that are always there at %v", scaled, err, whole)
	}
}

// TestStranded: what nobody will serve is an error with a way out, and not a run without end.
func TestStranded(t *testing.T) {
	const text = "run: {requests: 100}\nlifecycle: {probe: 0, failures: [{kind: crash, at: 1s, replica: 0}]}"
	if _, err := experiments.Run(context.Background(), mustParse(t, text), experiments.RunOptions{}); err == nil ||
		!strings.Contains(err.Error(), "lifecycle.hold: 0") {
		t.Errorf("requests for a replica that will not come: %v", err)
	}
	for _, every := range []string{"100ms", "15s", "1h"} {
		text := "run: {requests: 100}\nlifecycle: {autoscale: {policy: keda, min: 1, max: 1, metric: concurrency, target: 25, polling_interval: " + every +
			"}, failures: [{kind: drain, at: 1s, replica: 0}]}"
		if _, err := experiments.Run(context.Background(), mustParse(t, text), experiments.RunOptions{}); err == nil ||
			!strings.Contains(err.Error(), "no replica will accept them") {
			t.Errorf("an autoscaler that looks every %s, and may not replace the one replica: %v", every, err)
		}
	}
	sum := mustRun(t, mustParse(t, text, scenario.Setting{Key: "lifecycle.hold", Value: "0"}),
		experiments.RunOptions{Check: true}).Summary
	if r := sum.Requests; r.Rejected == 0 || r.Failed == 0 || r.Offered != r.Completed+r.Failed+r.Rejected {
		t.Errorf("without waiting: %+v", r)
	}
}

// TestRefusedUsersGoOn: users who are turned away at the instant at which they ask come back a connection later, in
// every kind of fleet, so that time passes and the run goes on after the crash.
func TestRefusedUsersGoOn(t *testing.T) {
	testenv.NeedsLong(t, "refusals in every kind of fleet")
	const (
		users = "workload: {arrivals: {process: closed, users: 30}, input: 100, output: 100}\n"
		kinds = "workload: {arrivals: {process: closed, users: 30}, classes: [{name: a, weight: 1, input: 100, output: 100}, {name: b, weight: 1, input: 200, output: 100}]}\n"
		crash = "failures: [{kind: crash, at: 5s, replica: 0, for: 5s}]}\n"
	)
	for _, text := range []string{
		users + "run: {duration: 20s}\nlifecycle: {hold: 5, cold_start: 1s, " + crash,
		kinds + "run: {duration: 20s}\nlifecycle: {probe: 3s, cold_start: 1s, " + crash,
		users + "run: {duration: 20s}\nengine: {max_num_queued_reqs: 5}\nstep_time: {linear: {a_ms: 10, b_us: 0}}",
		users + "run: {duration: 20s}\noverheads: {network_out: 1ms}\nlifecycle: {hold: 5, cold_start: 1s, " + crash,
		users + "run: {requests: 3000}\nlifecycle: {hold: 5, cold_start: 1s, " + crash,
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		r, err := experiments.Run(ctx, mustParse(t, text), experiments.RunOptions{})
		cancel()
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		// In 20 s 30 users ask at most 1000 times a second each.
		if n := r.Summary.Requests; n.Completed < 30 || n.Offered > 30*20_000 {
			t.Errorf("%s\n%+v", text, n)
		}
	}
}

// TestAutoscalersTellTheirDefaults: a resolved scenario says what a rule does.
func TestAutoscalersTellTheirDefaults(t *testing.T) {
	for policy, want := range map[string]string{
		"hpa": `{"policy":"hpa","min":1,"max":4,"initial":1,"metric":"waiting","target":5,"scrape":"15s","sync_period":"15s","tolerance":0.1,` +
			`"scale_up_pods":4,"scale_up_period":"15s","stabilization_window":"5m"}`,
		"keda": `{"policy":"keda","min":1,"max":4,"initial":1,"metric":"waiting","target":5,"scrape":"15s","sync_period":"15s","tolerance":0.1,` +
			`"scale_up_pods":4,"scale_up_period":"15s","stabilization_window":"5m","polling_interval":"30s","cooldown_period":"5m","activation_threshold":0}`,
		"knative": `{"policy":"knative","min":1,"max":4,"initial":1,"metric":"concurrency","target":5,"scrape":"1s","window":"1m","target_utilization":0.7,` +
			`"panic_window":0.1,"panic_threshold":2,"max_scale_up_rate":1000,"max_scale_down_rate":2,"scale_to_zero_grace_period":"30s","tick_interval":"2s"}`,
	} {
		u, err := mustParse(t, "lifecycle: {autoscale: {policy: "+policy+", max: 4, target: 5}}").Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(u.Scenario.Lifecycle.Autoscale); string(got) != want {
			t.Errorf("%s:\n%s\nwant\n%s", policy, got, want)
		}
		if n := u.Scenario.Deployment.Replicas; n != 4 {
			t.Errorf("%s: %d replicas, want 4", policy, n)
		}
	}
}

// TestLifecycleFaults refuses what cannot be, with its place.
func TestLifecycleFaults(t *testing.T) {
	const pools = "pools: [{name: a, replicas: 2}, {name: b, replicas: 3}]\n"
	for _, test := range []struct{ yaml, want string }{
		{"lifecycle: 3", "s.yaml:1:12: lifecycle: 3 is a number (want a map)"},
		{"lifecycle: {probes: 3s}", "s.yaml:1:13: lifecycle.probes: unknown key"},
		{"lifecycle: {cold_start: {distribution: lognormal, mean: 0, cv: 1}}",
			"s.yaml:1:25: lifecycle.cold_start.mean: 0 is not possible for the lognormal distribution (want more than 0)"},
		{"lifecycle: {failures: [{at: 3s, replica: 0}]}", "s.yaml:1:24: lifecycle.failures.0: kind is missing"},
		{"lifecycle: {failures: [{kind: crash, at: 3s}]}",
			"s.yaml:1:24: lifecycle.failures.0: replica is missing (kind crash needs it)"},
		{"lifecycle: {failures: [{kind: crash, at: 3s, replica: 0, factor: 2}]}",
			"s.yaml:1:58: lifecycle.failures.0.factor: this key is not allowed with kind crash (want kind, at, replica, for or pool)"},
		{"lifecycle: {failures: [{kind: crash, at: 3s, replica: 1}]}",
			"s.yaml:1:55: lifecycle.failures.0.replica: there is no replica 1 (want 0 to 0)"},
		{pools + "lifecycle: {failures: [{kind: crash, at: 3s, pool: c, replica: 1}]}",
			`s.yaml:2:52: lifecycle.failures.0.pool: "c" is not the name of a pool (want a or b)`},
		{pools + "lifecycle: {failures: [{kind: crash, at: 3s, pool: a, replica: 2}]}",
			"s.yaml:2:64: lifecycle.failures.0.replica: there is no replica 2 of pool a (want 0 to 1)"},
		{"lifecycle: {failures: [{kind: crash, at: 3s, pool: a, replica: 2}]}",
			"s.yaml:1:52: lifecycle.failures.0.pool: there are no pools"},
		{pools + "lifecycle: {failures: [{kind: rolling-restart, at: 3s, replica: 3, last: 1}]}",
			"s.yaml:2:74: lifecycle.failures.0.last: 1 is before replica 3, the first (want that or more)"},
		{"lifecycle: {failures: [{kind: link-loss, at: 3s, replica: 0, for: 5s}, {kind: link-loss, at: 7s, replica: 0, for: 5s}]}",
			"s.yaml:1:94: lifecycle.failures.1.at: replica 0 is cut off twice at once, at 3s and at 7s (want one after the other)"},
		{"deployment: {replicas: 2, data_parallel_size: 2}\nlifecycle: {failures: [{kind: slow, at: 3s, replica: 1, for: 5s, factor: 2}, {kind: slow, at: 4s, replica: 2, for: 5s, factor: 2}, {kind: slow, at: 7s, replica: 0, for: 5s, factor: 2}]}",
			"s.yaml:2:149: lifecycle.failures.2.at: replica 0 is made slow twice at once, at 3s and at 7s (want one after the other)"},
		{"lifecycle: {random_crashes: {mtbf: 1h}}",
			"s.yaml:1:29: lifecycle.random_crashes: mttr is missing (want {mtbf: 6h, mttr: 5m})"},
		{"lifecycle: {random_crashes: {mtbf: 1h, mttr: 5m}}",
			"s.yaml:1:29: lifecycle.random_crashes: random crashes need a fixed end of the run (set run.duration)"},
		{"lifecycle: {autoscale: 3}", "s.yaml:1:24: lifecycle.autoscale: 3 is a number (want a map such as {policy: keda, max: 8, target: 5}, or a list of such)"},
		{"lifecycle: {autoscale: {max: 8, target: 5}}", "s.yaml:1:24: lifecycle.autoscale: policy is missing"},
		{"lifecycle: {autoscale: []}", "s.yaml:1:24: lifecycle.autoscale: the list is empty: list at least one autoscaler or remove the key"},
		{"lifecycle: {autoscale: {policy: hpa, max: 8, target: 0}}",
			"s.yaml:1:54: lifecycle.autoscale.target: 0 is not allowed (want a number, more than 0, at most 1000000000)"},
		{"lifecycle: {autoscale: {policy: hpa, min: 0, max: 8, target: 1}}",
			"s.yaml:1:43: lifecycle.autoscale.min: hpa: it cannot scale to zero (want min 1 or more, or keda or knative)"},
		{"lifecycle: {autoscale: {policy: keda, min: 3, max: 2, target: 1}}",
			"s.yaml:1:44: lifecycle.autoscale.min: 3 replicas are more than max, 2"},
		{"lifecycle: {autoscale: {policy: keda, initial: 3, max: 2, target: 1}}",
			"s.yaml:1:48: lifecycle.autoscale.initial: 3 replicas are more than max, 2"},
		{"lifecycle: {hold: 0, autoscale: {policy: keda, min: 0, max: 2, target: 1}}",
			"s.yaml:1:53: lifecycle.autoscale.min: min 0 needs requests that wait at the router to start the first replica (set lifecycle.hold above 0, or min to 1 or more)"},
		{"lifecycle: {autoscale: {policy: keda, min: 0, max: 2, target: 1, metric: running}}",
			"s.yaml:1:44: lifecycle.autoscale.min: nothing wakes the first replica: running of none is 0 (want metric waiting or concurrency, or min 1 or more)"},
		{"lifecycle: {autoscale: {policy: knative, max: 2, target: 1, metric: running}}",
			"s.yaml:1:69: lifecycle.autoscale.metric: knative does not scale by running (want concurrency)"},
		{"step_time: {linear: {a_ms: 1}}\nlifecycle: {autoscale: {policy: hpa, max: 2, target: 1, metric: kv-usage}}",
			"s.yaml:2:65: lifecycle.autoscale.metric: kv-usage needs a finite KV cache (want waiting, running or concurrency)"},
		{"deployment: {replicas: 3}\nlifecycle: {autoscale: {policy: hpa, max: 2, target: 1}}",
			"s.yaml:2:43: lifecycle.autoscale.max: 2 is not deployment.replicas, 3: both set the maximum number of replicas (set one of them)"},
		{pools + "lifecycle: {autoscale: {policy: hpa, target: 1}}",
			"s.yaml:2:24: lifecycle.autoscale: pool is missing (want a or b)"},
		{pools + "lifecycle: {autoscale: [{policy: hpa, target: 1, pool: a}, {policy: hpa, target: 1, pool: a}]}",
			"s.yaml:2:91: lifecycle.autoscale.1.pool: pool a has an autoscaler already (want one)"},
		{"lifecycle: {autoscale: [{policy: hpa, target: 1}, {policy: hpa, target: 1}]}",
			"s.yaml:1:51: lifecycle.autoscale.1: without pools there can be only one autoscaler"},
	} {
		s, err := scenario.Parse("s.yaml", []byte(test.yaml))
		if err == nil {
			_, err = s.Resolve()
		}
		var faults yamldoc.Faults
		if !errors.As(err, &faults) || faults.Error() != test.want {
			t.Errorf("%s\ngot\n%v\nwant\n%s", test.yaml, err, test.want)
		}
	}
	s := mustParse(t, "lifecycle: {}\nslo: {ttft_p95: 1s}")
	if _, err := sweep.Run(context.Background(), s, sweep.Options{}); err == nil ||
		!strings.Contains(err.Error(), "lifecycle: a sweep runs several loads") {
		t.Errorf("a sweep of runs without a common end: %v", err)
	}
}
