package experiments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clifftop/experiments"
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/sweep"
	"clifftop/report/collect"
)

func mustParse(t testing.TB, text string, sets ...scenario.Setting) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("s.yaml", []byte(text), sets...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRun(t testing.TB, s *scenario.Scenario, o experiments.RunOptions) *experiments.Result {
	t.Helper()
	res, err := experiments.Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRunDefault(t *testing.T) {
	res := mustRun(t, mustParse(t, "run: {requests: 2000}"), experiments.RunOptions{Check: true})
	if n := res.Summary.Requests.Completed; n != 2000 {
		t.Errorf("%d requests completed", n)
	}
	s := res.Summary.Scenario.(*scenario.Scenario)
	for key, missing := range map[string]bool{
		"engine.max_model_len":          s.Engine.MaxModelLen == nil,
		"engine.gpu_memory_utilization": s.Engine.GPUMemoryUtilization == nil,
		"engine.async_scheduling":       s.Engine.AsyncScheduling != scenario.On,
		"engine.reserve_full_isl":       s.Engine.SchedulerReserveFullISL != scenario.On,
		"overheads.frontend":            s.Overheads.Frontend == nil,
		"workload.arrivals":             s.Workload.Arrivals == nil || s.Workload.Arrivals.Stages[0].Process != "cox",
		"workload.preset":               optional.Value(s.Workload.Preset) != scenario.DefaultPreset,
		"cost.gpu_hour":                 s.Cost.GPUHour == nil,
		"deployment.dtype":              s.Deployment.Dtype != "bf16",
	} {
		if missing {
			t.Errorf("%s is not filled in", key)
		}
	}
}

// TestResolvedScenarioReadsBack wants that what a summary repeats is itself a scenario with the same result.
func TestResolvedScenarioReadsBack(t *testing.T) {
	first := mustRun(t, mustParse(t, "run: {requests: 500}\nslo: {ttft_p95: 300ms}\nclients: {timeout: 30s}"),
		experiments.RunOptions{})
	text, err := json.Marshal(first.Summary.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(`"name":"",`), nil)
	second := mustRun(t, mustParse(t, string(text)), experiments.RunOptions{})
	a, _ := json.Marshal(first.Summary.Latency)
	b, _ := json.Marshal(second.Summary.Latency)
	if !bytes.Equal(a, b) {
		t.Errorf("got\n%s\nwant\n%s", b, a)
	}
}

func TestScenariosRun(t *testing.T) {
	files, _ := filepath.Glob("examples/*.yaml")
	if len(files) < 6 {
		t.Fatalf("only %d scenarios", len(files))
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			s, err := scenario.Load(f, scenario.Setting{Key: "run.requests", Value: "200"})
			if err != nil {
				t.Fatal(err)
			}
			if n := mustRun(t, s, experiments.RunOptions{Check: true}).Summary.Requests.Completed; n != 200 {
				t.Errorf("%d of 200 requests completed", n)
			}
		})
	}
}

// TestMD1 holds the example of theory against the exact mean wait of M/D/1.
func TestMD1(t *testing.T) {
	s, err := scenario.Load("examples/theory-md1.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sum := mustRun(t, s, experiments.RunOptions{}).Summary
	if wait := *sum.Latency.Queue.Mean / 1e3; math.Abs(wait-2) > 0.1 {
		t.Errorf("the mean wait is %.3f s, want 2", wait)
	}
	if p95 := *sum.Latency.Queue.P95 / 1e3; math.Abs(p95-6.6203) > 0.35 {
		t.Errorf("the 95th percentile of the wait is %.3f s, want 6.62", p95)
	}
}

// TestClosedLoopIsExact is throughput N/(a + b·N) of a loop without think time.
func TestClosedLoopIsExact(t *testing.T) {
	for _, n := range []float64{10, 50, 100} {
		s := mustParse(t, `
step_time: {linear: {a_ms: 10, b_us: 100}}
engine: {max_num_seqs: 1000}
workload:
  arrivals: {process: closed, users: 1}
  input: {distribution: fixed, value: 1}
  output: {distribution: fixed, value: 200}
run: {duration: 200s, warmup: 20s}`, scenario.Setting{Key: scenario.UsersKey,
			Value: json.Number(jsonNumber(n)).String()})
		got := *mustRun(t, s, experiments.RunOptions{}).Summary.Throughput.OutputTokensPerS
		if want := n / (0.010 + 0.0001*n); math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%v users: %.2f tokens/s, want %.2f", n, got, want)
		}
	}
}

func jsonNumber(x float64) string { b, _ := json.Marshal(x); return string(b) }

func TestResolveFaults(t *testing.T) {
	for _, test := range []struct{ name, yaml, want string }{
		{"model", "model: llama-3.1-7b", `s.yaml:1:8: model: no model "llama-3.1-7b"; nearest: `},
		{"gpu", "gpu: h1000", `s.yaml:1:6: gpu: no gpu "h1000"; nearest: `},
		{"both", "model: nonesuch\ngpu: nonesuch", "\ns.yaml:2:6: gpu: "},
		{"tensor parallel", "deployment: {tensor_parallel_size: 3}",
			"s.yaml:1:36: deployment.tensor_parallel_size: 3 does not divide the 32 heads (8 KV heads) of llama-3.1-8b (want 1, 2, 4, 8, 16 or 32)"},
		{"does not fit", "model: llama-3.1-70b", "does not fit"},
		{"sequence", "engine: {max_model_len: 130000, gpu_memory_utilization: 0.3}",
			"s.yaml:1:25: engine.max_model_len: 130000 tokens do not fit the KV pool"},
		{"budget", "engine: {max_num_seqs: 512, max_num_batched_tokens: 256}",
			"s.yaml:1:53: engine.max_num_batched_tokens: max_num_batched_tokens 256 is less than max_num_seqs 512 (want as " +
				"many or more)"},
		{"chunks", "engine: {enable_chunked_prefill: false}",
			"s.yaml:1:34: engine.enable_chunked_prefill: false needs max_num_batched_tokens 8192 to be at least " +
				"max_model_len 131072 (set one of them)"},
		{"preset", "workload: {preset: chat-azur}", `s.yaml:1:20: workload.preset: "chat-azur" is not known (want `},
		{"preset without arrivals", "workload: {preset: code-azure24}", "s.yaml:1:11: workload.arrivals: this preset"},
		{"trace", "workload: {trace: {file: nosuch.csv}}",
			"s.yaml:1:26: workload.trace.file: nosuch.csv: no such file or directory"},
		{"all at once without number", "workload: {arrivals: {process: all-at-once}}\nrun: {duration: 10s}",
			"s.yaml:2:6: run.requests: is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := mustParse(t, test.yaml).Resolve()
			if err == nil {
				t.Fatal("no fault found")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got\n%s\nwant\n%s", err, test.want)
			}
			if !yamldoc.BadInput(err) {
				t.Error("not told as bad input")
			}
		})
	}
}

func TestMaxModelLenIsLowered(t *testing.T) {
	u, err := mustParse(t, "engine: {gpu_memory_utilization: 0.3}").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	room := (u.Pools[0].Config.NumGPUBlocks - 1) * 16
	if *u.Scenario.Engine.MaxModelLen != room || len(u.Warnings) != 1 || u.Warnings[0].Code != "max_model_len" {
		t.Errorf("max_model_len %d, room %d, warnings %v", *u.Scenario.Engine.MaxModelLen, room, u.Warnings)
	}
}

func TestLinearDefaults(t *testing.T) {
	linear := "step_time: {linear: {a_ms: 1}}\n"
	u, err := mustParse(t, linear).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if c := &u.Pools[0].Config; c.NumGPUBlocks != 0 || c.Frontend != 0 || c.AsyncScheduling || u.Report.Work != nil {
		t.Errorf("not the bare queue: %+v", c)
	}
	u, err = mustParse(t, linear+"overheads: {frontend: 1ms}\nengine: {async_scheduling: true, num_gpu_blocks_override: 100}").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if c := &u.Pools[0].Config; c.NumGPUBlocks != 100 || c.Frontend == 0 || !c.AsyncScheduling || !c.PrefixCaching {
		t.Errorf("what is set does not hold: %+v", c)
	}
}

func TestVersionChangesTheEngine(t *testing.T) {
	current, err := mustParse(t, "{}").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	old, err := mustParse(t, "engine: {version: vllm-0.10}").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if c := &old.Pools[0].Config; c.AsyncScheduling || !c.AppendUnkeyed ||
		*old.Scenario.Engine.GPUMemoryUtilization != 0.90 {
		t.Errorf("vllm-0.10: %+v", c)
	}
	if !current.Pools[0].Config.AsyncScheduling || current.Pools[0].Config.AppendUnkeyed ||
		current.Pools[0].Config.NumGPUBlocks == old.Pools[0].Config.NumGPUBlocks {
		t.Errorf("current: %+v", current.Pools[0].Config)
	}
}

func TestInterruptedRunIsPartial(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	finished := 0
	res, err := experiments.Run(ctx, mustParse(t, "run: {requests: 1000000}"),
		experiments.RunOptions{Progress: func(experiments.Progress) {
			if finished++; finished == 3 {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) || res == nil || !res.Summary.Partial {
		t.Fatalf("got %v, %v", res, err)
	}
	if n := res.Summary.Requests; n.Completed < 6000 || n.Completed+n.InSystemAtEnd != n.Offered {
		t.Errorf("requests %+v", n)
	}
}

func TestClientsLeave(t *testing.T) {
	sum := mustRun(t, mustParse(t, "workload: {arrivals: {process: poisson, rate: 30}}\nclients: {timeout: 4s}\nrun: {requests: 2000}"), experiments.RunOptions{Check: true}).Summary
	if sum.Requests.TimedOut == 0 || sum.Requests.Completed == 0 || *sum.Latency.E2E.Max > 4000 {
		t.Errorf("%+v", sum.Requests)
	}
}

func TestSweepFindsSaturation(t *testing.T) {
	s := mustParse(t, "workload: {arrivals: {process: poisson, rate: 1}}\nrun: {requests: 1500}")
	started := time.Now()
	one, err := sweep.Run(context.Background(), s, sweep.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d points in %v", len(one.Points), time.Since(started))
	four, err := sweep.Run(context.Background(), s, sweep.Options{Jobs: 4})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(one)
	b, _ := json.Marshal(four)
	if !bytes.Equal(a, b) {
		t.Error("the number of jobs changes the result")
	}
	first, last := one.Points[0], one.Points[len(one.Points)-1]
	if n := len(one.Points); n < 14-4 || n > 14 || last.Value < 20*first.Value {
		t.Errorf("%d points from %v to %v", len(one.Points), first.Value, last.Value)
	}
	if busy := *first.Summary.Concurrency.Running.Mean; busy > 5 {
		t.Errorf("the lowest load keeps %.1f requests running, which is not idle", busy)
	}
	if x := *last.Summary.Throughput.RequestsPerS; x > 0.85*last.Value {
		t.Errorf("the highest load, %v requests/s, is completed at %.1f: not beyond saturation", last.Value, x)
	}
	if one.Knee == nil || one.Peak == nil {
		t.Error("no knee or no peak")
	}
}

func TestSweepUsers(t *testing.T) {
	s := mustParse(t, "run: {requests: 1500}")
	c, err := sweep.Run(context.Background(), s, sweep.Options{Over: scenario.UsersKey})
	if err != nil {
		t.Fatal(err)
	}
	n := len(c.Points)
	first, last := c.Points[0], c.Points[n-1]
	if c.Over != scenario.UsersKey || n < 10 || *first.Summary.Concurrency.QueueDepth.Mean > 1 ||
		*last.Summary.Concurrency.QueueDepth.Mean < 10 {
		t.Errorf("%d points over %s from %v to %v do not go from idle to saturation", n, c.Over, first.Value,
			last.Value)
	}
}

func TestSweepOverKey(t *testing.T) {
	over, values, err := sweep.ParseOver("engine.max_num_seqs=4,8,16")
	if err != nil {
		t.Fatal(err)
	}
	c, err := sweep.Run(context.Background(), mustParse(t, "run: {requests: 300}"),
		sweep.Options{Over: over, Values: values})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Points) != 3 || c.Points[2].Value != 16 ||
		*c.Points[0].Summary.Scenario.(*scenario.Scenario).Engine.MaxNumSeqs != 4 {
		t.Errorf("got %d points", len(c.Points))
	}
}

func TestSweepFaultsShowAtOnce(t *testing.T) {
	_, err := sweep.Run(context.Background(), mustParse(t, "{}"),
		sweep.Options{Over: "engine.block_size", Values: []string{"0", "16", "x"}})
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !yamldoc.BadInput(err) {
		t.Errorf("got %v", err)
	}
	_, err = sweep.Run(context.Background(), mustParse(t, "{}"), sweep.Options{Over: "engine.block_size"})
	if err == nil || !yamldoc.BadInput(err) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptedSweepIsPartial(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c, err := sweep.Run(ctx, mustParse(t, "run: {requests: 300}"), sweep.Options{
		Over: scenario.RateKey, Values: []string{"1", "2", "3", "4", "5"}, Jobs: 1,
		Progress: func(done, total int) {
			if done == 2 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || c == nil || len(c.Points) != 2 {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestParseOver(t *testing.T) {
	for text, want := range map[string]string{
		"rate":                       "rate ",
		"rate=1,2.5":                 "rate 1 2.5",
		"users=10..50:5":             "users 10 20 30 40 50",
		"rate=1..2:3":                "rate 1 1.5 2",
		"engine.max_num_seqs=1..4:4": "engine.max_num_seqs 1 2 3 4",
		"clients.timeout=1s,2s":      "clients.timeout 1s 2s",
		"engine.order={rule: sjf, error: 1},[a,b],'c,d'": "engine.order {rule: sjf, error: 1} [a,b] 'c,d'",
	} {
		over, values, err := sweep.ParseOver(text)
		if got := over + " " + strings.Join(values, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "=1", "rate=", "rate=1,,2", "rate=3..1", "rate=a..b", "rate=1..2:1",
		"rate=NaN..2"} {
		if _, values, err := sweep.ParseOver(bad); err == nil {
			t.Errorf("%q gives %v", bad, values)
		}
	}
}

func TestRequestsFile(t *testing.T) {
	var b bytes.Buffer
	mustRun(t, mustParse(t, "run: {requests: 100}"), experiments.RunOptions{Requests: &b})
	if lines := strings.Count(b.String(), "\n"); lines != 101 ||
		!strings.HasPrefix(b.String(), collect.RequestColumns) {
		t.Errorf("%d lines", lines)
	}
}

// failing is a writer on a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestFullDiskIsAnError(t *testing.T) {
	if _, err := experiments.Run(context.Background(), mustParse(t, "run: {requests: 100}"),
		experiments.RunOptions{Requests: failing{}}); err == nil || yamldoc.BadInput(err) {
		t.Errorf("got %v", err)
	}
}

func TestCatalog(t *testing.T) {
	for _, kind := range experiments.CatalogKinds() {
		l, err := experiments.Catalog(kind)
		if err != nil || len(l.Items) == 0 {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		for _, e := range l.Items {
			if e.Name == "" || e.Source == "" {
				t.Errorf("%s: %+v lacks a name or a source", kind, e)
			}
		}
		if _, err := json.Marshal(l); err != nil {
			t.Error(err)
		}
	}
	if _, err := experiments.Catalog("modls"); err == nil || !yamldoc.BadInput(err) {
		t.Errorf("got %v", err)
	}
}

// TestMostUseOfKVInCutRun: the blocks of an iteration that the end of the run cuts count in the maximum as in the mean.
func TestMostUseOfKVInCutRun(t *testing.T) {
	for seed := range 5 {
		s := mustRun(t, mustParse(t, fmt.Sprintf(`
engine: {num_gpu_blocks_override: 100}
step_time: {linear: {a_ms: 900, b_us: 0}}
workload: {arrivals: {process: poisson, rate: 3}, input: 500, output: 20}
run: {duration: 1300ms, seed: %d}
`, seed)), experiments.RunOptions{}).Summary
		if u := s.System.KVUsage; *u.Mean > *u.Max {
			t.Errorf("seed %d: the mean use is %v and the maximum %v", seed, *u.Mean, *u.Max)
		}
	}
}
