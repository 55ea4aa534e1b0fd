package validation

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/experiments/scenario"
)

// table makes a reference of the given lines.
func table(t *testing.T, lines ...string) *Reference {
	t.Helper()
	ref, err := Read(filepath.Join(t.TempDir(), "runs.csv"), strings.NewReader(strings.Join(lines, "\n")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

const openHead = "run_id,source,experiment,stage,engine,engine_version,model,gpu,load_mode,rate_rps,duration_s,n_requests,input_tokens_mean,output_tokens_nominal,shared_prefix_tokens,ttft_mean_ms,request_level_file"

func TestStagesAreOneSimulation(t *testing.T) {
	ref := table(t, openHead,
		"run-1,here,run,1,vllm,0.15.1,llama-3.1-8b,H100,open,4,30,,500,50,,40,",
		"run-0,here,run,0,vllm,0.15.1,llama-3.1-8b,H100,open,2,30,,500,50,,40,",
		"lone,here,other,1,vllm,0.15.1,llama-3.1-8b,H100,open,2,30,,500,50,,40,")
	cases := Plan(ref)
	if len(cases) != 2 || len(cases[0].Rows) != 2 || cases[0].Rows[0].ID != "run-0" {
		t.Fatalf("%d cases", len(cases))
	}
	if !strings.Contains(cases[1].Refused, "stage 0 is missing") {
		t.Errorf("a second stage without the first: %q", cases[1].Refused)
	}
	r, err := Run(context.Background(), ref, cases, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ttft []float64
	for _, row := range r.Rows[:2] {
		if row.Status != Scored {
			t.Fatalf("%s: %s", row.RunID, row.Reason)
		}
		ttft = append(ttft, *row.Metrics[0].Simulated)
	}
	if !(ttft[0] < ttft[1]) {
		t.Errorf("TTFT %g ms at 2 and %g ms at 4 requests/s", ttft[0], ttft[1])
	}
}

func TestRowsThatCannotBeExpressed(t *testing.T) {
	const head = "run_id,engine,model,gpu,load_mode,concurrency,rate_rps,input_tokens_mean,output_tokens_nominal,n_requests,tp,ttft_mean_ms,ttft_p50_ms,ttft_p90_ms"
	for line, want := range map[string]string{
		"a,tgi-x,llama-3.1-8b,H100,closed,4,,100,10,8,1,5,,":          "engine.policy",
		"a,vllm,Qwen/Qwen3.5-397B-A17B,H100,closed,4,,100,10,8,1,5,,": "does not fit",
		"a,vllm,llama-3.1-8b,H1000,closed,4,,100,10,8,1,5,,":          "gpu",
		"a,vllm,llama-3.1-8b,H100,closed,,,100,10,8,1,5,,":            "concurrency",
		"a,vllm,llama-3.1-8b,H100,open,,,100,10,8,1,5,,":              "rate_rps",
		"a,vllm,llama-3.1-8b,H100,open,,3,100,10,,1,5,,":              "duration_s and n_requests",
		"a,vllm,llama-3.1-8b,H100,sideways,,3,100,10,8,1,5,,":         "load_mode",
		"a,vllm,llama-3.1-8b,H100,trace,,3,100,10,8,1,5,,":            "request_level_file",
		"a,vllm,llama-3.1-8b,H100,closed,4,,,10,8,1,5,,":              "input_token_spec",
		"a,vllm,llama-3.1-8b,H100,closed,4,,100,10,8,3,5,,":           "tensor_parallel_size",
		"a,vllm,llama-3.1-8b,H100,closed,4,,100,10,8,1,5,7,6":         "ttft_p90_ms 6 is less than ttft_p50_ms 7",
	} {
		c := Plan(table(t, head, line))[0]
		if got := c.Refused + c.Bad; !strings.Contains(got, want) {
			t.Errorf("%s\n  says %q (want %q)", line, got, want)
		}
	}
}

func TestReplayOfRecordedRequests(t *testing.T) {
	ref := table(t, openHead+",dp,ep",
		"run-0,here,run,0,vllm,0.15.1,llama-3.1-8b,H100,open,1,3,3,,5,16,40,requests.csv,,",
		"run-1,here,run,1,vllm,0.15.1,llama-3.1-8b,H100,open,1,2,2,,5,16,40,requests.csv,,")
	file := filepath.Join(ref.folder, "requests.csv")
	text := "arrival_s,input_tokens,output_tokens,has_error\n0,40,5,0\n1,41,5,0\n2,42,5,0\n5,43,5,0\n6,0,0,1\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := Plan(ref)
	c := cases[0]
	if c.Refused != "" || len(c.list) != 4 || c.list[3].InputTokens != 43 ||
		c.list[0].Content.Segments[0] != c.list[1].Content.Segments[0] {
		t.Fatalf("%q: %d requests", c.Refused+c.Bad, len(c.list))
	}
	r, err := Run(context.Background(), ref, cases, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if row.Status != Scored || row.Metrics[0].Simulated == nil {
			t.Errorf("%s: %s %s", row.RunID, row.Status, row.Reason)
		}
	}
	if err := os.WriteFile(file, []byte("arrival_s,input_tokens,output_tokens\n0,40,five\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := Plan(ref)[0]; !strings.Contains(c.Refused, `line 2: output_tokens: "five"`) {
		t.Errorf("a bad request says %q", c.Refused)
	}
}

func TestColdStartLengthensTheFirstPrompts(t *testing.T) {
	line := "run,inference-sim/training,run,0,vllm,,mixtral-8x7b,H100,open,0.5,60,30,500,20,,40,,2"
	r := func(line string) float64 {
		ref := table(t, openHead+",tp", line)
		rep, err := Run(context.Background(), ref, Plan(ref), nil, Options{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Rows[0].Status != Scored {
			t.Fatal(rep.Rows[0].Reason)
		}
		return *rep.Rows[0].Metrics[0].Simulated
	}
	cold, warm := r(line), r(strings.Replace(strings.Replace(line, "inference-sim/training", "elsewhere", 1), "vllm,,",
		"vllm,0.15,", 1))
	// Seven of about 30 requests wait half a second longer.
	if extra := cold - warm; math.Abs(extra-7*500.0/30) > 60 {
		t.Errorf("cold %g ms, warm %g ms", cold, warm)
	}
}

func TestLittlesLawFindsWrongConcurrency(t *testing.T) {
	const head = "run_id,engine,model,gpu,load_mode,concurrency,n_requests,req_per_s,e2e_mean_ms,input_tokens_mean,output_tokens_nominal"
	right := Plan(table(t, head, "a,vllm,llama-3.1-8b,H100,closed,4,40,0.8,5000,100,10"))[0]
	wrong := Plan(table(t, head, "a,vllm,llama-3.1-8b,H100,closed,4,40,8,5000,100,10"))[0]
	tokens := Plan(table(t, strings.Replace(head, "req_per_s", "output_tok_per_s", 1),
		"a,vllm,llama-3.1-8b,H100,closed,4,40,80,5000,100,10"))[0]
	if !strings.Contains(tokens.Bad, "Little") {
		t.Errorf("80 tokens/s of 10 each are 40 in the system: %q", tokens.Bad)
	}
	if right.Bad != "" || !strings.Contains(wrong.Bad, "Little") {
		t.Errorf("4 in the system: %q; 40: %q", right.Bad, wrong.Bad)
	}
}

func TestFilter(t *testing.T) {
	ref := table(t, "run_id,engine,model,gpu,load_mode,tp,tier",
		"aa-1,vllm,meta-llama/Llama-3.1-8B-Instruct,H100,open,1,A",
		"ab-2,vllm,openai/gpt-oss-120b,H200,closed,8,B",
		"bc-3,sglang,openai/gpt-oss-120b,H200,closed,1,D")
	for conditions, want := range map[string]string{
		"":                   "aa-1 ab-2 bc-3",
		"a":                  "aa-1 ab-2",
		"*-3":                "bc-3",
		"gpu=H100":           "aa-1",
		"gpu=h200-sxm,tp=8":  "ab-2",
		"model=llama":        "aa-1",
		"tier=A,tier=D":      "aa-1 bc-3",
		"load=open":          "aa-1",
		"load=closed,b?-*":   "bc-3",
		"engine=vllm,tp=1.0": "aa-1",
		"model=openai/gpt*":  "ab-2 bc-3",
		"load=closed,tier=A": "",
		"gpu=H":              "",
	} {
		var list []string
		if conditions != "" {
			list = strings.Split(conditions, ",")
		}
		f, err := ParseFilter(list)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range ref.Rows {
			if f.Keeps(r) {
				got = append(got, r.ID)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q (want %s)", conditions, got, want)
		}
	}
	for _, bad := range []string{"colour=red", "", "a[=b"} {
		if _, err := ParseFilter([]string{bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSpread(t *testing.T) {
	s := NewSpread("x", []float64{-0.1, 0.2, 0.3, -0.4})
	if s.N != 4 || math.Abs(*s.Median-0.25) > 1e-12 || math.Abs(*s.Mean-0.25) > 1e-12 || math.Abs(*s.Bias) > 1e-12 {
		t.Errorf("%+v", s)
	}
	if s := NewSpread("x", nil); s.Median != nil {
		t.Error("a median of nothing")
	}
}

// What is run can be written as a scenario, which says the same.
func TestScenariosCanBeRead(t *testing.T) {
	ref := table(t, openHead+",tp",
		"a-0,inference-sim/training,a,0,vllm,,llama-3.1-70b,H100,open,3,60,180,,247,100,40,,4",
		"a-1,inference-sim/training,a,1,vllm,,llama-3.1-70b,H100,open,6,60,360,,247,100,40,,4")
	ref.Rows[0].InputSpec = "system 100 + question 466 nominal"
	c := Plan(ref)[0]
	if c.Refused+c.Bad != "" {
		t.Fatal(c.Refused + c.Bad)
	}
	var b strings.Builder
	if err := WriteScenarios(&b, []*Case{c}); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse("again.yaml", []byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	w := s.Workload
	if len(w.Arrivals.Stages) != 2 || *w.Arrivals.Stages[1].Rate != 6 || *w.Input.Min != 582 || *w.Input.Max != 606 ||
		w.Prefix.SharedTokens != 100 || w.Sampling != "top_p" ||
		*s.Engine.Version != "vllm-0.15" || *s.Engine.MaxNumSeqs != 128 || s.Deployment.TensorParallelSize != 4 {
		t.Errorf("%s", b.String())
	}
}

// Times between chunks of several tokens are not those between tokens.
func TestChunksOfTokensAreNotCompared(t *testing.T) {
	const head = "run_id,engine,model,gpu,load_mode,concurrency,n_requests,input_tokens_mean,output_tokens_nominal,tpot_mean_ms,itl_mean_ms"
	ref := table(t, head,
		"one,vllm,llama-3.1-8b,H100,closed,4,8,100,20,7,7.1",
		"ten,vllm,llama-3.1-8b,H100,closed,4,8,100,20,7,70")
	r, err := Run(context.Background(), ref, Plan(ref), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rows[0].Error("itl_mean_ms") == nil || r.Rows[1].Error("itl_mean_ms") != nil ||
		r.Rows[1].Error("tpot_mean_ms") == nil {
		t.Errorf("%+v", r.Rows)
	}
}
