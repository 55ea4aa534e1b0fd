package validation

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
)

// On runs that use all of them, taking any part away changes the result.
func TestEveryPartMatters(t *testing.T) {
	ref := table(t, openHead+",tp,ep,sampling,tpot_mean_ms,e2e_mean_ms,input_token_spec,kv_dtype,dp,engine_flags"+
		",prefill_workers,prefill_gpus,decode_workers,decode_gpus",
		"run,inference-sim/training,run,0,vllm,,mixtral-8x7b,H100,open,6,30,180,700,60,200,60,,2,1,top_p,20,1300,,,,,,,,",
		"new,made,new,0,vllm,0.18.0,gpt-oss-120b,H200,open,6,10,60,700,60,200,60,,2,1,greedy,20,1300,,,,,,,,",
		"wide,made,wide,0,vllm,0.18.0,minimax-m2.5,H100,open,2,10,20,700,60,200,60,,8,8,greedy,20,1300,,,,,,,,",
		"hybrid,made,hybrid,0,vllm,0.19.0,qwen3.6-35b-a3b,H100,open,2,10,20,700,60,200,60,,2,1,greedy,20,1300,,,,,,,,",
		"small,made,small,0,vllm,0.15.1,llama-3.1-8b,L40S,open,2,10,20,700,60,200,60,,1,1,greedy,20,1300,,,,,,,,",
		"long,made,long,0,vllm,0.20.1,qwen3-32b,B300,open,4,10,40,700,60,,60,,2,1,greedy,20,1300,\"uniform[100,30000]\",,,,,,,",
		"latent,made,latent,0,vllm,0.20.1,deepseek-r1-nvfp4,B200,open,4,10,40,7000,60,200,60,,4,1,greedy,20,1300,,fp8,,,,,,",
		"ranks,made,ranks,0,vllm,0.15.1,qwen3-30b-a3b,H100,open,6,10,60,700,60,,60,,1,4,greedy,20,1300,,,4,"+
			"--all2all-backend=deepep_low_latency,,,,",
		"apart,made,apart,0,vllm,0.19.0,qwen3-30b-a3b,H100,open,6,10,60,7000,60,,60,,1,4,greedy,20,1300,,,4,,,,,",
		"pools,made,pools,0,dynamo-sglang,,qwen3-30b-a3b,H100,open,2,10,20,700,60,,60,,1,1,greedy,6,450,,,,,1,2,1,2")
	cases := Plan(ref)
	for _, c := range cases {
		if c.Refused+c.Bad != "" {
			t.Fatal(c.Refused + c.Bad)
		}
	}
	keep := func(r *Row) bool { return OpenLoop(r) || r.Pools() }
	a, err := Ablate(context.Background(), ref, cases, keep, Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Run(context.Background(), ref, cases, keep, Options{})
	if err != nil {
		t.Fatal(err)
	}
	nothing := a.Parts[0]
	var all []*Result
	for i := range whole.Rows {
		all = append(all, &whole.Rows[i])
	}
	if a.Rows != len(all) || len(a.Parts) != len(allParts())+1 || !reflect.DeepEqual(nothing.Errors, spreads(all)) {
		t.Fatalf("%d rows, %d parts, %+v", a.Rows, len(a.Parts), nothing)
	}
	for _, p := range a.Parts[1:] {
		if reflect.DeepEqual(p.Errors, nothing.Errors) {
			t.Errorf("without %s nothing changes", p.Part)
		}
	}
	for _, want := range []struct {
		part, metric string
		lower        bool
	}{
		{"streaming delay", "ttft_mean_ms", true}, {"front end", "ttft_mean_ms", true},
		{"cold start", "ttft_mean_ms", true},
		{"prefix cache", "ttft_mean_ms", false}, {"shared KV read once", "tpot_mean_ms", false},
		{"sampler sort", "tpot_mean_ms", true},
	} {
		for _, p := range a.Parts {
			lower := *of(p.Errors, want.metric).Bias < *of(nothing.Errors, want.metric).Bias
			if p.Part == want.part && lower != want.lower {
				t.Errorf("without %s, %s is lower: %v", p.Part, want.metric, lower)
			}
		}
	}
	var b bytes.Buffer
	if err := a.WriteTable(&b); err != nil || !strings.Contains(b.String(), "async loop") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
