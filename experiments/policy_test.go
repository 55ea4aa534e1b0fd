package experiments_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// TestPolicies runs every policy of the catalog, and the invariants with it.
func TestPolicies(t *testing.T) {
	for _, p := range scenario.BuiltIn().Policies {
		order := "fcfs"
		if p.Name == "preemptive" {
			order = "srpt"
		}
		s, err := scenario.Parse("s.yaml",
			[]byte("{engine: {policy: "+p.Name+", order: "+order+"}, workload: {arrivals: {process: poisson, rate: 6}, "+
				"max_tokens: 600}, run: {requests: 60}}"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Check: true})
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		if n := r.Summary.Requests.Completed; n != 60 {
			t.Errorf("%s: %d of 60 requests completed", p.Name, n)
		}
		if p.Does == "" || p.Source == "" {
			t.Errorf("%s: it does not say what it does, or whence it is", p.Name)
		}
	}
}

// TestOrders runs every order of the queue, in its short form and with options.
func TestOrders(t *testing.T) {
	for _, order := range []string{
		"fcfs", "priority", "sjf", "srpt", "ljf", "vtc",
		"{rule: sjf, size: both, output_weight: 20, error: 0.5, ageing: 1s}", "{rule: srpt, size: prompt}",
		"{rule: edf, within: 2s}", "{rule: least-slack, within: 5s, token_time: 10ms}", "{rule: vtc, clients: class}",
	} {
		s, err := scenario.Parse("s.yaml",
			[]byte("{engine: {max_num_seqs: 4, order: "+order+"}, workload: {arrivals: {process: poisson, rate: 20}}, run: "+
				"{requests: 60}}"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Check: true})
		if err != nil {
			t.Errorf("%s: %v", order, err)
			continue
		}
		if n := r.Summary.Requests.Completed; n != 60 {
			t.Errorf("%s: %d of 60 requests completed", order, n)
		}
	}
}

// TestPreemptionAndAdmission combines vLLM's policy with every rule for victims, admission and what becomes of a
// victim, in a pool that is too small.
func TestPreemptionAndAdmission(t *testing.T) {
	for _, c := range []struct {
		knobs   string
		preempt bool
	}{
		{"admission: first-chunk", true}, {"admission: full-prompt", true}, {"admission: full-length", false},
		{"preemption: never", false},
		{"preemption: swap, enable_prefix_caching: false", true}, {"victim: most-remaining", true},
		{"victim: least-progress", true}, {"victim: longest", true},
		{"order: srpt, victim: least-urgent", true}, {"policy: preemptive, order: sjf, preemption_threshold: 10", true},
		{"policy: vllm-v0, preemption: swap, max_model_len: 8192", true},
	} {
		s, err := scenario.Parse("s.yaml",
			[]byte("{engine: {num_gpu_blocks_override: 700, max_model_len: 8192, "+strings.Replace(c.knobs,
				", max_model_len: 8192", "",
				1)+"}, workload: {arrivals: {process: poisson, rate: 30}, output: {distribution: uniform, min: 100, max: 600}}, "+
				"run: {requests: 150}}"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Check: true})
		if err != nil {
			t.Errorf("%s: %v", c.knobs, err)
			continue
		}
		if n, done := r.Summary.System.Preemptions, r.Summary.Requests.Completed; (n > 0) != c.preempt || done != 150 {
			t.Errorf("%s: %d preemptions, %d of 150 requests completed", c.knobs, n, done)
		}
	}
}

// TestBadPolicies says where, what was found and what is wanted.
func TestBadPolicies(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"engine: {policy: sglnag}", `s.yaml:1:18: engine.policy: "sglnag" is not known (want vllm, `},
		{"engine: {policy: orca, enable_chunked_prefill: true}",
			"s.yaml:1:48: engine.enable_chunked_prefill: true is not allowed (want false: policy orca does not divide prompts)"},
		{"engine: {policy: vllm, kv_allocation: contiguous, enable_prefix_caching: false}", "policy vllm"},
		{"engine: {policy: vllm-v0, max_model_len: 9000, max_num_batched_tokens: 8192}", "max_num_batched_tokens"},
		{"engine: {policy: vllm-v0, preemption: swap}\nstep_time: {linear: {a_ms: 1, b_us: 1}}",
			"s.yaml:1:39: engine.preemption: swap needs KV blocks"},
		{"engine: {policy: preemptive}", "the queue needs an order"},
		{"engine: {preemption: never, admission: first-chunk}",
			"s.yaml:1:22: engine.preemption: never is not possible with admission first-chunk"},
		{"engine: {preemption: swap}", "swap cannot be combined with prefix caching"},
		{"engine: {order: quickest}", `s.yaml:1:17: engine.order.rule: "quickest" is not known (want fcfs, `},
		{"engine: {order: {rule: edf}}", "s.yaml:1:17: engine.order: within is missing (rule edf needs it)"},
		{"engine: {order: {rule: fcfs, error: 1}}",
			"s.yaml:1:30: engine.order.error: this key is not allowed with rule fcfs"},
		{"engine: {order: {error: 1}}", "rule is missing"},
		{"engine: {policy: trtllm-static, trtllm: {context_chunking_policy: FAIR}}",
			`"FAIR" is not known (want FIRST_COME_FIRST_SERVED or EQUAL_PROGRESS)`},
		{"engine: {policy: sglang, sglang: {schedule_policy: lpm}, order: sjf}", "schedule_policy"},
	} {
		s, err := scenario.Parse("s.yaml", []byte(c.text))
		if err == nil {
			_, err = s.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestLongestSequenceOfWholePrompts holds the default of max_model_len where prompts are not divided: the
// model's, what the pool holds, or what an iteration has room for, whichever is least.
func TestLongestSequenceOfWholePrompts(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   int
		warned string
	}{
		{"{model: llama-2-7b, engine: {policy: orca}}", 4096, ""},
		{"{model: llama-2-7b, engine: {policy: static, max_num_batched_tokens: 2048}}", 2048,
			"the token budget of an iteration"},
		{"{engine: {policy: vllm-v0}}", 16384, "the token budget of an iteration"},
		{"{engine: {policy: vllm-v0, num_gpu_blocks_override: 900}}", 14384, "the size of the KV cache"},
	} {
		s, err := scenario.Parse("s.yaml", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		text := ""
		for _, w := range u.Warnings {
			if w.Code == "max_model_len" {
				text += w.Text + "\n"
			}
		}
		if got := *u.Scenario.Engine.MaxModelLen; got != c.want || !strings.Contains(text, c.warned) ||
			(c.warned == "") != (text == "") {
			t.Errorf("%s: max_model_len %d, warnings %q; want %d, %q", c.text, got, text, c.want, c.warned)
		}
	}
}

// TestPolicyWarnings tells of knobs without effect, and of policies that reserve what clients declare where clients
// declare the truth.
func TestPolicyWarnings(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"{engine: {policy: vllm}}", nil},
		{"{engine: {policy: orca}}", []string{"declared_lengths"}},
		{"{engine: {policy: trtllm-guaranteed-no-evict}}", []string{"declared_lengths"}},
		{"{engine: {policy: trtllm-max-utilization}}", nil},
		{"{engine: {policy: tgi, tgi: {max_waiting_tokens: 5}}, workload: {max_tokens: 900}}", nil},
		{"{engine: {preemption: never}}", []string{"declared_lengths"}},
		{"{engine: {sglang: {schedule_policy: lpm}, mlfq: {quantum: 9}}}", []string{"unused", "unused"}},
		{"{engine: {sglang: {schedule_policy: fcfs}, mlfq: {quantum: 256}}}", nil}, // as in a resolved scenario
	} {
		s, err := scenario.Parse("s.yaml", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var codes []string
		for _, w := range u.Warnings {
			if w.Code == "declared_lengths" || w.Code == "unused" {
				codes = append(codes, w.Code)
			}
		}
		if !slices.Equal(codes, c.want) {
			t.Errorf("%s: warnings %v, want %v", c.text, codes, c.want)
		}
	}
}

// TestPolicyDefaultsRespectPrograms keeps what a program sets without a file.
func TestPolicyDefaultsRespectPrograms(t *testing.T) {
	s := scenario.Default()
	s.Engine.Watermark, s.Engine.BlockSize = 0.2, 8
	s.Engine.Policy = "trtllm-max-utilization"
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if e := u.Scenario.Engine; e.Watermark != 0.2 || e.BlockSize != 8 {
		t.Errorf("watermark %v and block_size %d, want 0.2 and 8", e.Watermark, e.BlockSize)
	}
}
