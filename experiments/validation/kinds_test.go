package validation

import (
	"compress/gzip"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// read makes a reference of a text, beside the files in a folder.
func read(t *testing.T, folder string, lines ...string) *Reference {
	t.Helper()
	ref, err := Read(filepath.Join(folder, "runs.csv"), strings.NewReader(strings.Join(lines, "\n")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

const poolsHead = "run_id,engine,model,gpu,concurrency,n_requests,input_tokens_mean,output_tokens_nominal,spec_method," +
	"prefill_workers,prefill_tp,prefill_ep,prefill_gpus,prefill_dp_attention,decode_workers,decode_tp,decode_ep," +
	"decode_gpus,decode_dp_attention,ttft_p50_ms,tpot_p50_ms,weight_dtype"

// TestPools: a worker with data-parallel attention has a rank on each of its GPUs, whatever tp says.
func TestPools(t *testing.T) {
	ref := read(t, t.TempDir(), poolsHead,
		"wide,dynamo-trtllm,deepseek-r1,GB200,64,128,1000,50,none,2,4,4,8,True,1,1,1,16,True,500,20,nvfp4",
		"narrow,dynamo-sglang,deepseek-r1,B200,8,16,1000,50,mtp,1,8,1,8,False,2,8,8,16,False,200,7,fp8",
		"unknown,dynamo-sglang,deepseek-r1,B200,8,16,1000,50,none,0,8,1,8,False,2,8,8,16,False,200,7,fp8",
		"uneven,dynamo-sglang,deepseek-r1,B200,8,16,1000,50,none,3,8,1,8,False,2,8,8,16,False,200,7,fp8")
	cases := Plan(ref)
	for i, want := range [][]string{
		{"replicas: 2, deployment: {tensor_parallel_size: 1, data_parallel_size: 4, expert_parallel_size: 4, all2all",
			"replicas: 1, deployment: {tensor_parallel_size: 1, data_parallel_size: 16, expert_parallel_size: 16, all2all",
			"kv_cache_dtype: \"fp8\"", "flashinfer_all2allv", "kernels: trtllm", "enable_chunked_prefill: false"},
		{"replicas: 1, deployment: {tensor_parallel_size: 8, data_parallel_size: 1, expert_parallel_size: 1}",
			"replicas: 2, deployment: {tensor_parallel_size: 8, data_parallel_size: 1, expert_parallel_size: 8}",
			"num_speculative_tokens: 2", "cpu_per_sequence: ", "kernels: sglang"},
	} {
		for _, text := range want {
			if !strings.Contains(string(cases[i].YAML), text) {
				t.Errorf("%s lacks %s:\n%s%s", cases[i].Rows[0].ID, text, cases[i].YAML, cases[i].Refused)
			}
		}
	}
	for i, want := range map[int]string{2: "prefill_workers: the number of engines is not known",
		3: "prefill_gpus: 8 GPUs do not divide among 3 workers"} {
		if !strings.Contains(cases[i].Refused+cases[i].Bad, want) {
			t.Errorf("%s: %q %q (want %s)", cases[i].Rows[0].ID, cases[i].Refused, cases[i].Bad, want)
		}
	}
	r, err := Run(context.Background(), ref, cases[:2], nil, Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if row.Status != Scored || row.Kind != kindPools || row.Error("tpot_p50_ms") == nil || row.Layout == "" {
			t.Errorf("%+v", row)
		}
	}
}

// TestDecodeSeqs: 16 on each of 32 ranks are 512, and recipes ask for up to 1.3 times as many users. With 700 the size
// is not known, and neither is that of tensor parallelism.
func TestDecodeSeqs(t *testing.T) {
	wide := parallelism{workers: 1, tp: 1, dp: 32, ep: 32}
	for _, c := range []struct {
		engine string
		p      parallelism
		users  int
		want   int
		ruled  bool
	}{
		{trtllmEngine, wide, 512, 16, true},
		{trtllmEngine, wide, 563, 16, true},
		{trtllmEngine, wide, 666, 16, true},
		{trtllmEngine, wide, 700, poolSeqs, false},
		{trtllmEngine, parallelism{workers: 5, tp: 1, dp: 4, ep: 4}, 16130, 768, true},
		{trtllmEngine, parallelism{workers: 5, tp: 8, dp: 1, ep: 8}, 90, poolSeqs, false},
		{"sglang", wide, 15000, 256, true},
		{"sglang", parallelism{workers: 1, tp: 1, dp: 4, ep: 4}, 8192, 2048, false},
	} {
		w := &writer{row: &Row{Engine: c.engine, GPU: "GB200", Concurrency: &c.users}}
		if n, ruled := w.decodeSeqs(c.p); n != c.want || ruled != c.ruled {
			t.Errorf("%s, %d users on %+v: %d, by recipes %t (want %d, %t)", c.engine, c.users, c.p, n, ruled, c.want,
				c.ruled)
		}
	}
}

const sessionsHead = "session,turn,trace_id,arrival_s,input_tokens,output_tokens,expected_cached_blocks,last_token_s," +
	"think_s_recorded,has_error\n"

// TestParts: of 2 workers of 4 ranks and one of 16, with 2,048 users, an eighth has one rank and two.
func TestParts(t *testing.T) {
	prefill, decode := parallelism{workers: 2, tp: 1, dp: 4, ep: 4}, parallelism{workers: 1, tp: 1, dp: 16, ep: 16}
	n := parts(prefill, decode, 2048)
	if a, b := prefill.divide(n), decode.divide(n); n != 8 || a != 4 || prefill.workers != 1 || b != 8 ||
		decode.workers != 1 {
		t.Errorf("%d parts, of %d and %d: %+v %+v", n, a, b, prefill, decode)
	}
	if n := parts(prefill, decode, 511); n != 1 {
		t.Errorf("%d parts of few users", n)
	}
	tensor := parallelism{workers: 3, tp: 8, dp: 1, ep: 1}
	if n := parts(prefill, tensor, 5000); n != 1 {
		t.Errorf("%d parts of 8 ranks and 3 workers", n)
	}
}

// TestInTurn: of three sessions of two users the third one follows the session that ended first, 2 s after its end.
func TestInTurn(t *testing.T) {
	session := func(trace string, arrival, last float64) []turn {
		return []turn{{recorded: recorded{arrival: arrival, last: last, input: 640}, trace: trace, pause: arrival, cached: 64}}
	}
	list := inTurn([][]turn{session("a", 0, 50), session("b", 1, 8), session("c", 10, 20)}, 2)
	if len(list) != 2 || len(list[0]) != 1 || len(list[1]) != 2 || list[1][1].trace != "c" || list[1][1].pause != 2 ||
		list[1][1].cached != 0 {
		t.Errorf("%+v", list)
	}
	served(list[1])
	if first, second := list[1][0].input, list[1][1].input; first != 669 || second != 669 { // 1.045 · 640
		t.Errorf("prompts of %d and %d tokens", first, second)
	}
}

// TestSessions: the second turn of a session repeats the first prompt, comes 5 s after its end, and finds it in the
// cache; the other session shares nothing with it.
func TestSessions(t *testing.T) {
	folder := t.TempDir()
	f, err := os.Create(filepath.Join(folder, "turns.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(sessionsHead + "a,3,t1,0,6400,100,50,10,0,0\nb,0,t2,1,640,100,0,12,0,0\na,4,t1,15,6464,,100,,7,1\n"))
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	ref := read(t, folder,
		"run_id,engine,engine_version,model,gpu,tp,users,duration_s,kv_offload,host_kv_gb,prefix_caching,ttft_p50_ms,"+
			"gpu_hit_rate,host_hit_rate,output_tokens_mean,request_level_file",
		"own,vllm,0.19.1,llama-3.1-8b,H100,1,2,60,on,100,on,50,0.5,0,100,turns.csv.gz",
		"others,vllm,0.19.1,llama-3.1-8b,H100,1,1,60,off,0,on,50,0.5,,100,",
		"many,vllm,0.19.1,llama-3.1-8b,H100,1,3,60,off,0,on,50,0.5,,100,")
	cases := Plan(ref)
	if c := cases[2]; len(c.sessions) != 3 || c.sessions[0][0].trace == c.sessions[2][0].trace {
		t.Errorf("%q %d", c.Refused, len(c.sessions))
	}
	a := cases[0].sessions[0]
	if a[1].pause != 5 || a[1].cached != 6688 || a[0].input != 6688 || a[1].input != 6688+45+1500 || a[0].pause != 0 || cases[0].output != 100 || len(a) != 2+moreTurns {
		t.Errorf("%+v, %d tokens, %d turns", a[:2], cases[0].output, len(a))
	}
	src, err := newTalks(cases[0].sessions, 77, 60)
	if err != nil {
		t.Fatal(err)
	}
	first := src.Next()
	other := src.Next()
	if _, ok := src.Peek(); ok || other.Session == first.Session {
		t.Errorf("a turn is sent before the one before it has ended: %+v %+v", first, other)
	}
	end := clock.Time(20 * clock.Second)
	src.Done(&first, workload.End{At: end})
	next := src.Next()
	if next.Arrival != end.Add(5*clock.Second) || next.Turn != 1 || next.OutputTokens != 77 || next.ID != 2 ||
		len(next.Content.Segments) != 2 || next.Content.Segments[0] != first.Content.Segments[0] ||
		next.Content.Segments[1].Tokens != 45+1500 {
		t.Errorf("%+v of %v", next, next.Content)
	}
	r, err := Run(context.Background(), ref, cases[:2], nil, Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		e := row.Error("gpu_hit_rate")
		if row.Status != Scored || row.Kind != kindSessions || e == nil || math.Abs(*e) > 0.5 {
			t.Errorf("%+v", row)
		}
	}
}
