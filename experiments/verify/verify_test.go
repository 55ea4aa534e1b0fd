package verify_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/experiments/verify"
)

const traffic = `model: llama-3.1-8b
gpu: h100
workload: {arrivals: {process: poisson, rate: 8}, input: 1024, output: 200}
run: {requests: 400, warmup: none}
`

// machine simulates a machine with settings that the scenario does not have, and returns its result as vllm bench
// would write it.
func machine(t *testing.T, sets ...string) *measured.Result {
	t.Helper()
	var list []scenario.Setting
	for _, text := range sets {
		s, err := scenario.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	s, err := scenario.Parse("machine.yaml", []byte(traffic), list...)
	if err != nil {
		t.Fatal(err)
	}
	run, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(run.VLLMBench())
	if err != nil {
		t.Fatal(err)
	}
	r, err := measured.Read("result.json", data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func promise(t *testing.T, yaml string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("scenario.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHiddenTruth changes one thing of the machine: the verdict is outside, and the thing is named with its value.
func TestHiddenTruth(t *testing.T) {
	for _, c := range []struct {
		set, key, to string
	}{
		{"run.seed=1", "", ""}, // nothing differs
		{"overheads.frontend=200ms", "overheads.frontend", "200 ms"},
		{"deployment.dtype=fp8", "deployment.dtype", "fp8"},
	} {
		r, err := verify.New(context.Background(), promise(t, "model: llama-3.1-8b\ngpu: h100"),
			[]*measured.Result{machine(t, c.set)}, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		run := &r.Runs[0]
		if c.key == "" {
			if r.Verdict != verify.Within {
				t.Errorf("%s: %s", c.set, r.Verdict)
			}
			continue
		}
		if r.Verdict != verify.Outside || len(run.Causes) == 0 {
			t.Errorf("%s: %s, %d causes", c.set, r.Verdict, len(run.Causes))
			continue
		}
		found := false
		for _, cause := range run.Causes {
			found = found || cause.Key == c.key && cause.To == c.to && cause.Inside
		}
		if !found {
			t.Errorf("%s: %+v", c.set, run.Causes)
		}
	}
}

// TestOwn adds the errors of runs to those of earlier ones.
func TestOwn(t *testing.T) {
	r, err := verify.New(context.Background(), promise(t, "model: llama-3.1-8b\ngpu: h100"),
		[]*measured.Result{machine(t), machine(t, "run.seed=2")}, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	once, err := r.Own(nil)
	if err != nil || len(once.Kinds) != 1 || once.Kinds[0].Runs != 2 {
		t.Fatalf("%+v %v", once, err)
	}
	again, err := r.Own(once) // a run counts once
	if err != nil || again.Kinds[0].Runs != 2 || len(again.Kinds[0].Errors["tpot_mean"]) != 2 {
		t.Errorf("%+v %v", again, err)
	}
	other, err := verify.New(context.Background(), promise(t, "model: llama-3.1-8b\ngpu: h100"),
		[]*measured.Result{machine(t, "run.seed=3")}, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	more, err := other.Own(again)
	if err != nil || more.Kinds[0].Runs != 3 || len(more.Kinds[0].Errors["tpot_mean"]) != 3 {
		t.Errorf("%+v %v", more, err)
	}
}

// TestNotComparable: what cannot be judged says why.
func TestNotComparable(t *testing.T) {
	for text, want := range map[string]string{
		`{"request_rate": 8, "completed": 50, "num_prompts": 50, "total_input_tokens": 51200, "total_output_tokens": 10000,
"mean_ttft_ms": 60, "p99_ttft_ms": 90}`: "50 requests are too few for a 99th percentile (want 100)",
		`{"request_rate": 8, "completed": 5, "num_prompts": 5, "total_input_tokens": 5120, "total_output_tokens": 1000,
"mean_ttft_ms": 60}`: "5 requests are too few (want 10)",
		`{"request_rate": 80, "completed": 200, "num_prompts": 200, "total_input_tokens": 204800,
"total_output_tokens": 40000, "mean_ttft_ms": 9000, "request_throughput": 20}`: "the system is overloaded",
	} {
		m, err := measured.Read("r.json", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := verify.New(context.Background(), promise(t, "model: llama-3.1-8b\ngpu: h100"), []*measured.Result{m},
			verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("want %q in\n%s", want, b.String())
		}
	}
	m, err := measured.Read("r.json", []byte(`{"model_id": "Qwen/Qwen3-32B", "mean_ttft_ms": 5, "completed": 20}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = verify.New(context.Background(), promise(t, "model: llama-3.1-8b"), []*measured.Result{m}, verify.Options{})
	if err == nil || !strings.Contains(err.Error(), "llama-3.1-8b, but qwen3-32b was measured") {
		t.Error(err)
	}
}
