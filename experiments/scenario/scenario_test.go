package scenario

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/report"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
)

func TestEmptyScenarioIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "{}", "# nothing\n", "engine:\n", "null"} {
		s, err := Parse("s.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got, _ := json.Marshal(s)
		want, _ := json.Marshal(Default())
		if string(got) != string(want) {
			t.Errorf("%q gives\n%s, want\n%s", text, got, want)
		}
	}
}

// TestFaults gives files with faults and wants each line of the message.
func TestFaults(t *testing.T) {
	for _, test := range []struct{ name, yaml, want string }{
		{"unknown key", "engin: {}\n", `s.yaml:1:1: engin: unknown key`},
		{"binary", "name: a\x00b\n", `s.yaml: this is not text (want YAML in UTF-8)`},
		{"no UTF-8", "name: \xff\n", `s.yaml: this is not text (want YAML in UTF-8)`},
		{"large number", "run: {requests: 1e308}\n",
			`s.yaml:1:17: run.requests: 1e308 is not allowed (want a whole number, 1 to 1000000000)`},
		{"unknown key inside", "engine:\n  max_num_seq: 3\n", `s.yaml:2:3: engine.max_num_seq: unknown key`},
		{"wrong type", "engine:\n  max_num_seqs: many\n",
			`s.yaml:2:17: engine.max_num_seqs: "many" is a text (want a whole number, 1 to 1048576)`},
		{"quoted number", "engine: {block_size: '16'}\n",
			`s.yaml:1:22: engine.block_size: "16" is a text (want a whole number, 1 to 4096)`},
		{"not allowed", "engine: {max_num_seqs: 0}\n",
			`s.yaml:1:24: engine.max_num_seqs: 0 is not allowed (want 1 to 1048576)`},
		{"fraction", "engine: {max_num_seqs: 1.5}\n",
			`s.yaml:1:24: engine.max_num_seqs: 1.5 is not allowed (want a whole number, 1 to 1048576)`},
		{"NaN rate", "workload: {arrivals: {process: poisson, rate: .nan}}\n",
			`s.yaml:1:47: workload.arrivals.rate: .nan is not allowed (want a number, more than 0, at most 10000000)`},
		{"infinite rate", "workload: {arrivals: {process: poisson, rate: .inf}}\n",
			`s.yaml:1:47: workload.arrivals.rate: .inf is not allowed (want a number, more than 0, at most 10000000)`},
		{"negative rate", "workload: {arrivals: {process: poisson, rate: -3}}\n",
			`s.yaml:1:47: workload.arrivals.rate: -3 is not allowed (want a number, more than 0, at most 10000000)`},
		{"duration without unit", "overheads: {frontend: 4}\n",
			`s.yaml:1:23: overheads.frontend: 4 has no unit (want a duration with a unit of ns, us, ms, s, m or h, such as 60s)`},
		{"negative duration", "clients: {timeout: -4s}\n",
			`s.yaml:1:20: clients.timeout: -4s is not allowed (want 0 or more)`},
		{"no duration", "clients: {timeout: soon}\n",
			`s.yaml:1:20: clients.timeout: "soon" is not a duration (want a duration with a unit of ns, us, ms, s, m or h, such as 60s)`},
		{"too long", "run: {duration: 9999h}\n",
			`s.yaml:1:17: run.duration: 9999h is not allowed (want at most 100 days)`},
		{"twice", "name: a\nname: b\n", `s.yaml:2:1: name: the key is given twice (first at s.yaml:1:1)`},
		{"users and rate", "workload: {arrivals: {users: 3, rate: 4}}\n",
			`s.yaml:1:30: workload.arrivals.users: users and rate are given together (want one: users make a closed loop, a rate an open one)`},
		{"rate in a closed loop", "workload: {arrivals: {process: closed, users: 3, rate: 4}}\n",
			`s.yaml:1:50: workload.arrivals.rate: this key is not allowed with process closed (want process, users, think_time, ramp, name or duration)`},
		{"missing rate", "workload: {arrivals: {process: poisson}}\n",
			`s.yaml:1:22: workload.arrivals: rate is missing (process poisson needs it)`},
		{"unknown process", "workload: {arrivals: {process: poison, rate: 3}}\n",
			`s.yaml:1:32: workload.arrivals.process: "poison" is not known (want constant, poisson, gamma, weibull, all-at-once, closed, on-off, cox, profile or superposed)`},
		{"step time", "step_time: {linear: {a_ms: 1, b: 3}}\n", `s.yaml:1:31: step_time.linear.b: unknown key`},
		{"two step times", "step_time: {linear: {a_ms: 1}, kernels: {}}\n",
			`s.yaml:1:12: step_time: the map has 2 keys (want kernels, roofline, or a map such as {linear: {a_ms: 10, b_us: ` +
				`100}} or {table: steps.csv})`},
		{"slo key", "slo: {ttft_q42: 3s}\n",
			`s.yaml:1:7: slo.ttft_q42: unknown key (want a metric and a statistic, such as ttft_p95, or attainment or wait_probability)`},
		{"slo percentile of the fast requests", "slo: {ttft_p9: 3s}\n",
			`s.yaml:1:7: slo.ttft_p9: unknown key (want a metric and a statistic, such as ttft_p95, or attainment or ` +
				`wait_probability)`},
		{"version", "engine: {version: vllm-0.3}\n",
			`s.yaml:1:19: engine.version: "vllm-0.3" is not known (want vllm-0.8 or a later release, or one such as sglang-0.5.9)`},
		{"version of another engine too", "engine: {version: trtllm-1.1, policy: sglang}\n",
			`s.yaml:1:19: engine.version: "trtllm-1.1" is not a release of policy sglang`},
		{"version of another engine", "engine: {version: sglang-0.5.9}\n",
			`s.yaml:1:19: engine.version: "sglang-0.5.9" is not a release of policy vllm`},
		{"negative carbon", "energy: {carbon_g_per_kwh: -400}\n",
			`s.yaml:1:28: energy.carbon_g_per_kwh: -400 is not allowed (want a number, 0 to 100000)`},
		{"a list for a map", "engine: [1]\n", `s.yaml:1:9: engine: this is a list (want a map)`},
		{"a text for all", "hello\n", `s.yaml:1:1: "hello" is a text (want a map)`},
		{"two documents", "name: a\n---\nname: b\n", `s.yaml:3:5: a second document starts here (want one)`},
		{"anchor", "name: &a b\n", `s.yaml:1:7: anchors and aliases are not read; write the value out`},
		{"trace and preset", "workload: {preset: chat-azure23, trace: {file: a.csv}}\n",
			`s.yaml:1:20: workload.preset: preset and trace are given together (want one: a trace brings its own)`},
		{"stage without duration", "workload: {arrivals: [{process: poisson, rate: 1}, {rate: 2}]}\n",
			`s.yaml:1:23: workload.arrivals.0: duration is missing (only the last phase may have no end)`},
		{"no timeout", "clients: {timeout: 0}\n", `s.yaml:1:20: clients.timeout: 0 is not allowed (want more than 0)`},
		{"backoff", "clients: {backoff: {base: 2s, cap: 1s}}\n",
			`s.yaml:1:36: clients.backoff.cap: 1s is not allowed (want base, 2s, or more)`},
		{"negative timeout", "clients: {ttft_timeout: -2s}\n",
			`s.yaml:1:25: clients.ttft_timeout: -2s is not allowed (want 0 or more)`},
		{"negative backoff", "clients: {backoff: {base: -1s}}\n",
			`s.yaml:1:27: clients.backoff.base: -1s is not allowed (want 0 or more)`},
		{"TTFT timeout", "clients: {timeout: 5s, ttft_timeout: 6s}\n",
			`s.yaml:1:38: clients.ttft_timeout: 6s is not allowed (want at most timeout, 5s, which ends the wait for the first token too)`},
		{"TTFT timeout beside one with a fault", "clients: {timeout: 5, ttft_timeout: 6s}\n",
			`s.yaml:1:20: clients.timeout: 5 has no unit (want a duration with a unit of ns, us, ms, s, m or h, such as 60s)`},
		{"nothing to retry on", "clients: {retries: 2, retry_on: []}\n",
			`s.yaml:1:33: clients.retry_on: the list is empty, but retries is 2 (want timeout, busy, connection or several)`},
		{"retry on what", "clients: {retries: 2, retry_on: [timeout, error]}\n",
			`s.yaml:1:43: clients.retry_on.1: "error" is not known (want timeout, busy or connection)`},
		{"retry budget", "clients: {retry_budget: 20}\n",
			`s.yaml:1:25: clients.retry_budget: 20 is not allowed (want a number, more than 0, at most 1)`},
		{"cancel", "clients: {cancel: {probability: 0.2}}\n",
			`s.yaml:1:19: clients.cancel: after is missing (want {probability: 0.05, after: 10s})`},
		{"cancellation", "clients: {cancel: {probability: 5, after: 3s}}\n",
			`s.yaml:1:33: clients.cancel.probability: 5 is not allowed (want a number, 0 to 1)`},
		{"an unknown role", `
pools: [{role: prompts}]
run: {replications: two}
`,
			"s.yaml:2:16: pools.0.role: \"prompts\" is not known (want both, prefill or decode)\n" +
				"s.yaml:3:21: run.replications: \"two\" is a text (want a whole number, 1 to 1000)"},
		{"quoted", "deployment: {replicas: '1'}\nengine: {speculative: 'null'}\n",
			`s.yaml:1:24: deployment.replicas: "1" is a text (want a whole number, 1 to 4096)` + "\n" +
				`s.yaml:2:23: engine.speculative: "null" is a text (want a map)`},
		{"several", "engine: {block_size: 0, max_num_seqs: x}\nrun: {seed: -1}\n",
			"s.yaml:1:22: engine.block_size: 0 is not allowed (want 1 to 4096)\n" +
				`s.yaml:1:39: engine.max_num_seqs: "x" is a text (want a whole number, 1 to 1048576)` + "\n" +
				"s.yaml:2:13: run.seed: -1 is not allowed (want 0 to 9007199254740991)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("s.yaml", []byte(test.yaml))
			if err == nil {
				t.Fatal("no fault found")
			}
			if err.Error() != test.want {
				t.Errorf("got\n%s\nwant\n%s", err, test.want)
			}
			if !yamldoc.BadInput(err) {
				t.Error("not told as bad input")
			}
		})
	}
}

// TestFullListing reads a scenario that spells nearly every key out.
func TestFullListing(t *testing.T) {
	const listing = `
name: chat on one H100
model: llama-3.1-8b
gpu: h100-sxm
deployment:
  tensor_parallel_size: 1
  dtype: auto
  kv_cache_dtype: auto
  replicas: 1
  router: round-robin
engine:
  policy: vllm
  version: null
  scheduling_policy: fcfs
  max_num_seqs: 256
  max_num_batched_tokens: 8192
  max_model_len: null
  block_size: 16
  gpu_memory_utilization: 0.92
  num_gpu_blocks_override: null
  enable_prefix_caching: true
  enable_chunked_prefill: true
  scheduler_reserve_full_isl: true
  long_prefill_token_threshold: 0
  watermark: 0
  async_scheduling: auto
  max_num_queued_reqs: null
  speculative: null
overheads: {frontend: 4.2ms, frontend_per_token: 2.8us, stream_per_sequence: 48us}
step_time: kernels
workload:
  preset: chat-azure23
  arrivals: {process: poisson, rate: 8}
  input:  {distribution: lognormal, mean: 512, cv: 0.8, max: 8192}
  output: {distribution: fixed, value: 247}
  prefix: {groups: 10, prompts_per_group: 10, shared_tokens: 100}
  sampling: greedy
clients: {timeout: 60s, ttft_timeout: null, retries: 0, backoff: {base: 500ms, cap: 8s}, cancel_on_timeout: true}
slo: {ttft_p95: 800ms, tpot_p95: 80ms, attainment: 0.95}
cost: {gpu_hour: 3.00}
run: {requests: 10000, duration: null, warmup: auto, seed: 1, replications: 1}
`
	s, err := Parse("s.yaml", []byte(listing))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if got := u.Traffic.clients[0].Timeout; got != clock.Minute {
		t.Errorf("clients wait %v, want a minute", got)
	}
}

func TestSyntaxErrorHasItsPlace(t *testing.T) {
	_, err := Parse("s.yaml", []byte("name: a\nb: [1, 2\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "s.yaml:2:") || !strings.Contains(err.Error(), "not valid YAML") {
		t.Errorf("got %v", err)
	}
}

func TestHintAndExcerpt(t *testing.T) {
	_, err := Parse("s.yaml", []byte("engine:\n  max_num_sqes: 3\n"))
	var fs yamldoc.Faults
	if !errors.As(err, &fs) {
		t.Fatal(err)
	}
	if fs[0].Hint != "did you mean max_num_seqs?" {
		t.Errorf("hint %q", fs[0].Hint)
	}
	if want := "    2 |   max_num_sqes: 3\n      |   ^"; fs[0].Excerpt != want {
		t.Errorf("excerpt\n%s\nwant\n%s", fs[0].Excerpt, want)
	}
}

func TestSettings(t *testing.T) {
	const file = "workload:\n  arrivals: {process: gamma, rate: 3, cv: 2}\n  input: {distribution: fixed, value: 9}\n"
	for _, test := range []struct {
		name, file string
		sets       []Setting
		check      func(*Scenario) bool
	}{
		{"scalar", file, []Setting{{Key: "engine.block_size", Value: "32"}}, func(s *Scenario) bool {
			return s.Engine.BlockSize == 32
		}},
		{"later wins", file, []Setting{{Key: "run.seed", Value: "3"}, {Key: "run.seed", Value: "4"}},
			func(s *Scenario) bool {
				return s.Run.Seed == 4
			}},
		{"a map replaces the map", file,
			[]Setting{{Key: "workload.input", Value: "{distribution: uniform, min: 1, max: 5}"}},
			func(s *Scenario) bool { return s.Workload.Input.Law == "uniform" && s.Workload.Input.Value == nil }},
		{"null gives the default", file, []Setting{{Key: "workload.input", Value: "null"}}, func(s *Scenario) bool {
			return s.Workload.Input == nil
		}},
		{"rate keeps the process", file, []Setting{{Key: "rate", Value: "7"}},
			func(s *Scenario) bool {
				return s.Workload.Arrivals.Stages[0].Process == "gamma" && *s.Workload.Arrivals.Stages[0].Rate == 7
			}},
		{"rate of the preset's process", "", []Setting{{Key: "rate", Value: "7"}},
			func(s *Scenario) bool { a := s.Workload.Arrivals.Stages[0]; return a.Process == "" && *a.Rate == 7 }},
		{"rate of a trace", "workload: {trace: {file: t.csv, scale: 2}}", []Setting{{Key: "rate", Value: "7"}},
			func(s *Scenario) bool { return *s.Workload.Trace.Rate == 7 && s.Workload.Trace.Scale == nil }},
		{"users make a closed loop", file, []Setting{{Key: "users", Value: "7"}},
			func(s *Scenario) bool {
				a := s.Workload.Arrivals.Stages[0]
				return a.Process == "closed" && *a.Users == 7 && a.CV == nil
			}},
		{"users keep the think time", "workload: {arrivals: {users: 2, think_time: 3s}}",
			[]Setting{{Key: "users", Value: "7"}},
			func(s *Scenario) bool {
				a := s.Workload.Arrivals.Stages[0]
				return *a.Users == 7 && a.ThinkTime.Mean == yamldoc.Duration(3*clock.Second)
			}},
		{"index", "workload: {arrivals: [{duration: 1s, process: poisson, rate: 2}]}",
			[]Setting{{Key: "workload.arrivals.0.rate", Value: "7"}},
			func(s *Scenario) bool { return *s.Workload.Arrivals.Stages[0].Rate == 7 }},
		{"trace replaces the preset", "workload: {preset: code-azure23, arrivals: {rate: 3}}",
			[]Setting{{Key: "workload.trace.file", Value: "a.csv", Flag: "--trace"}},
			func(s *Scenario) bool { return s.Workload.Trace.File == "a.csv" && s.Workload.Preset == nil }},
		{"a scalar becomes a map", "step_time: kernels", []Setting{{Key: "step_time.linear.a_ms", Value: "3"}},
			func(s *Scenario) bool { return s.StepTime.Kind == "linear" && s.StepTime.Linear.AMilliseconds == 3 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Parse("s.yaml", []byte(test.file), test.sets...)
			if err != nil {
				t.Fatal(err)
			}
			if !test.check(s) {
				out, _ := json.Marshal(s)
				t.Errorf("got %s", out)
			}
		})
	}
}

func TestSettingFaults(t *testing.T) {
	for _, test := range []struct {
		file string
		set  Setting
		want string
	}{
		{"", Setting{Key: "engine.block_size", Value: "x"},
			`--set engine.block_size: "x" is a text (want a whole number, 1 to 4096)`},
		{"", Setting{Key: "engine.nope", Value: "1"}, `--set engine.nope: unknown key`},
		{"", Setting{Key: "rate", Value: "-1", Flag: "--rate"},
			`--rate: workload.arrivals.rate: -1 is not allowed (want a number, more than 0, at most 10000000)`},
		{"", Setting{Key: "name", Value: "[1"}, `--set name: this is not valid YAML: sequence end token ']' not found`},
		{"workload: {arrivals: {users: 3}}", Setting{Key: "rate", Value: "1"},
			`--set rate: a closed loop has users instead of a rate (set users, or another workload.arrivals.process)`},
		{"workload: {trace: {file: a}}", Setting{Key: "users", Value: "1", Flag: "--users"},
			`--users: a trace has its own arrivals (set workload.trace.rate or workload.trace.scale)`},
		{"workload: {arrivals: [{duration: 1s, rate: 2}]}", Setting{Key: "workload.arrivals.4.rate", Value: "7"},
			`--set workload.arrivals.4.rate: "4" is not an index of the list (want 0 to 0)`},
	} {
		_, err := Parse("s.yaml", []byte(test.file), test.set)
		if err == nil || err.Error() != test.want {
			t.Errorf("got\n%v\nwant\n%s", err, test.want)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]clock.Duration{
		"4.2ms": 4200 * clock.Microsecond, "2.8us": 2800 * clock.Nanosecond, "1h30m": 90 * clock.Minute, "0": 0,
		"48µs": 48 * clock.Microsecond,
		"0s":   0, ".5s": 500 * clock.Millisecond,
	} {
		d, ok := yamldoc.ParseDuration(text)
		if !ok || d.Clock() != want {
			t.Errorf("%s is %v, %v, want %v", text, d.Clock(), ok, want)
		}
		if again, ok := yamldoc.ParseDuration(d.String()); !ok || again != d {
			t.Errorf("%s prints as %s, which reads as %v", text, d, again)
		}
	}
	for _, text := range []string{"", "1", "s", "-1s", "1 s", "1e3s", "1d", "1.2.3s", "NaN", "9999999h"} {
		if d, ok := yamldoc.ParseDuration(text); ok {
			t.Errorf("%q reads as %v", text, d)
		}
	}
}

func TestRelativePaths(t *testing.T) {
	s, err := Parse("dir/s.yaml", []byte("workload: {trace: {file: a.csv}}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.path("workload.trace.file", s.Workload.Trace.File); got != "dir/a.csv" {
		t.Errorf("a file's path is %s", got)
	}
	s, err = s.With(Setting{Key: "workload.trace.file", Value: "b.csv"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.path("workload.trace.file", s.Workload.Trace.File); got != "b.csv" {
		t.Errorf("a flag's path is %s", got)
	}
}

func TestVersions(t *testing.T) {
	first := release{Frontend: 4200 * clock.Microsecond, FrontendPerToken: 2800 * clock.Nanosecond}
	later := release{Frontend: 12 * clock.Millisecond, FrontendPerToken: 4 * clock.Microsecond}
	for _, test := range []struct {
		version string
		want    release
	}{
		{"", release{Name: "vllm-0.32", LookaheadAtAdmission: true, PadAdmissions: true,
			GPUMemoryUtilization: 0.92, GraphsInBudget: true, AsyncScheduling: true,
			SchedulerReserveFullISL: true, FuseAllReduce: true, Frontend: later.Frontend,
			FrontendPerToken: later.FrontendPerToken}},
		{"vllm-0.27", release{Name: "vllm-0.27", LookaheadAtAdmission: true, PadAdmissions: true,
			GPUMemoryUtilization: 0.90, GraphsInBudget: true, AsyncScheduling: true,
			SchedulerReserveFullISL: true, FuseAllReduce: true, Frontend: later.Frontend,
			FrontendPerToken: later.FrontendPerToken, AppendUnkeyed: true}},
		{"vllm-0.20.1", release{Name: "vllm-0.20", GPUMemoryUtilization: 0.90, AsyncScheduling: true,
			SchedulerReserveFullISL: true, FuseAllReduce: true, Frontend: later.Frontend,
			FrontendPerToken: later.FrontendPerToken, AppendUnkeyed: true}},
		{"vllm-0.17", release{Name: "vllm-0.17", GPUMemoryUtilization: 0.90, AsyncScheduling: true,
			Frontend: later.Frontend, FrontendPerToken: later.FrontendPerToken, AppendUnkeyed: true}},
		{"vllm-0.15", release{Name: "vllm-0.15", GPUMemoryUtilization: 0.90, AsyncScheduling: true,
			Frontend: first.Frontend, FrontendPerToken: first.FrontendPerToken, AppendUnkeyed: true, PadRanks: true}},
		{"vllm-0.10", release{Name: "vllm-0.10", LookaheadAtAdmission: true, GPUMemoryUtilization: 0.90,
			Frontend: first.Frontend, FrontendPerToken: first.FrontendPerToken, AppendUnkeyed: true, PadRanks: true}},
	} {
		test.want.CPU, test.want.CPUPerSequence = hostStep, hostPerSequence // the same for all releases
		if test.want.ChunkedGroups = test.version == ""; test.version != "" {
			test.want.RetentionInterval = engine.DenseRetention
		}
		if test.want.A100Small = true; !test.want.FuseAllReduce { // both are of 0.18
			test.want.AllReduce = model.ReduceCustom
		}
		test.want.TritonRecurrence = test.version != "" && test.version != "vllm-0.27"
		got, err := releaseFor(test.version)
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v, want %+v", test.version, got, err, test.want)
		}
	}
	for _, bad := range []string{"vllm-0.7", "vllm", "0.15", "vllm-1.2", "vllm-0.x", "sglang-4", "tgi-0.4", "trtllm-1"} {
		if _, err := releaseFor(bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// TestEngineDefaults checks the sizes that follow from the engine's rules for the GPU and the release.
func TestEngineDefaults(t *testing.T) {
	for _, test := range []struct {
		text, want   string
		seqs, tokens int
	}{
		{"{}", "max_num_seqs 1024, max_num_batched_tokens 8192 (vllm-0.32 on h100-sxm)", 1024, 8192},
		{"gpu: l40s", "max_num_seqs 256, max_num_batched_tokens 2048 (vllm-0.32 on l40s)", 256, 2048},
		{"gpu: a100-80gb-sxm", "max_num_seqs 256, max_num_batched_tokens 2048 (vllm-0.32 on a100-80gb-sxm)", 256, 2048},
		{"{gpu: a100-80gb-sxm, engine: {version: vllm-0.8}}",
			"max_num_seqs 1024, max_num_batched_tokens 8192 (vllm-0.8 on a100-80gb-sxm)", 1024, 8192},
		{"engine: {max_num_seqs: 256, max_num_batched_tokens: 8192}", "", 256, 8192},
		{"engine: {max_num_batched_tokens: 512}", "max_num_seqs 512 (vllm-0.32 on h100-sxm)", 512, 512},
		{"step_time: {linear: {a_ms: 1}}", "", 256, 8192},
		{"engine: {policy: orca, max_model_len: 8192}", "", 256, 8192},
		{"engine: {policy: sglang}", "max_num_batched_tokens 8192, max_num_seqs 2048 (sglang on h100-sxm)", 2048, 8192},
		{"engine: {policy: sglang, max_model_len: 4096}",
			"max_num_batched_tokens 8192, max_num_seqs 4096 (sglang on h100-sxm)", 4096, 8192},
		{"{gpu: l40s, engine: {policy: sglang}}", "max_num_batched_tokens 4096, max_num_seqs 2048 (sglang on l40s)",
			2048, 4096},
		{"{deployment: {dtype: fp8}, engine: {policy: trtllm-static, enable_chunked_prefill: true}}",
			"kv_cache_dtype fp8, max_num_seqs 2048, max_num_batched_tokens 8192 (trtllm-static on h100-sxm)", 2048, 8192},
	} {
		s, err := Parse("test.yaml", []byte(test.text))
		if err != nil {
			t.Fatal(test.text, err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(test.text, err)
		}
		if u.EngineDefaults() != test.want || u.Pools[0].Config.MaxNumSeqs != test.seqs ||
			u.Pools[0].Config.MaxNumBatchedTokens != test.tokens {
			t.Errorf("%s: %q, %d and %d (want %q, %d and %d)", test.text, u.EngineDefaults(),
				u.Pools[0].Config.MaxNumSeqs, u.Pools[0].Config.MaxNumBatchedTokens, test.want, test.seqs, test.tokens)
		}
	}
	s, err := Parse("test.yaml", []byte("engine: {version: vllm-0.99}"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(u.Warnings, func(w report.Warning) bool { return w.Code == "version" }) {
		t.Errorf("no warning about an unknown release: %v", u.Warnings)
	}
}

// FuzzScenario wants no panic, faults with a text, and that a sound scenario can be printed.
func FuzzScenario(f *testing.F) {
	f.Add([]byte("engine: {max_num_seqs: 3}\nworkload: {arrivals: [{duration: 1s, rate: 2}]}"), "slo", "{ttft_p95: 3s}")
	f.Add([]byte("step_time: {linear: {a_ms: 1}}\nslo: {a: [}"), "workload.arrivals.0.rate", "3")
	f.Add(Example(), "rate", "8")
	f.Fuzz(func(t *testing.T, data []byte, key, value string) {
		s, err := Parse("s.yaml", data, Setting{Key: key, Value: value})
		if err != nil {
			if err.Error() == "" {
				t.Error("a fault without a text")
			}
			return
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	})
}

func TestExampleIsSound(t *testing.T) {
	if _, err := Parse("example.yaml", Example()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("example.yaml")
	if err != nil || string(data) != string(Example()) {
		t.Error("the embedded example is not the file")
	}
}
