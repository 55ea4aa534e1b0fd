package validation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readOne reads a file of one row.
func readOne(t *testing.T, head, cells string) *Row {
	t.Helper()
	ref, err := Read("runs.csv", strings.NewReader(head+"\n"+cells+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return ref.Rows[0]
}

func TestSpellings(t *testing.T) {
	const head = "model,gpu,engine,weight_dtype,kv_dtype,concurrency,gpu_mem_util,prefix_caching,dp_attention,spec_method"
	for _, c := range []struct{ cells, model, gpu, engine, weights, kv string }{
		{"openai/gpt-oss-120b,NVIDIA H100 80GB HBM3,vLLM,fp4,auto (bf16),\"1,024\",90%,True,0,none",
			"openai/gpt-oss-120b", "h100-sxm", "vllm", "mxfp4", "bf16"},
		{"deepseek-ai/DeepSeek-R1,b200-trt,trt,fp4,fp8_e4m3,1024,0.9,1,false,none",
			"deepseek-ai/DeepSeek-R1", "b200-sxm", trtllmEngine, "nvfp4", "fp8"},
		{"nvidia/DeepSeek-R1-0528-FP4-v2,H200 SXM,TensorRT-LLM,,auto,1024,.9,on,off,no",
			"nvidia/DeepSeek-R1", "h200-sxm", trtllmEngine, "nvfp4", "auto"},
		{"meta-llama/Llama-3.1-70B-Instruct-FP8,4x NVIDIA H200,TRT-LLM,FP8,FP8,1_024,90 %,yes,no,None",
			"meta-llama/Llama-3.1-70B-Instruct", "h200-sxm", trtllmEngine, "fp8", "fp8"},
		{"meta-llama/Meta-Llama-3.1-8B-Instruct,A100-SXM4-40GB,tensorrt-llm,bfloat16,float16,1024,0.90,enabled,n/a,-",
			"meta-llama/", "a100-40gb-sxm", trtllmEngine, "bf16", "fp16"},
		{"Qwen/Qwen3-32B-AWQ,NVIDIA RTX PRO 6000 Blackwell Server Edition,vllm 0.18.0,,bfloat16,1024.0,0.9,1.0,False,off",
			"Qwen/Qwen3-32B", "rtx-pro-6000-se", "vllm", "int4", "bf16"},
	} {
		r := readOne(t, head, c.cells)
		if r.Faults != nil || !strings.HasPrefix(r.Model, c.model) || r.Engine != c.engine ||
			r.WeightDtype != c.weights || r.KVDtype != c.kv {
			t.Errorf("%s: %q %q %q %q %q, faults %q", c.cells, r.Model, r.GPU, r.Engine, r.WeightDtype, r.KVDtype, r.Faults)
		}
		if g, _, err := r.gpu(); err != nil || g.Name != c.gpu {
			t.Errorf("%s: the GPU is %q, %v", c.cells, g.Name, err)
		}
		if *r.Concurrency != 1024 || *r.GPUMemUtil != 0.9 || r.PrefixCaching != "on" || r.DPAttention == "on" ||
			r.SpecMethod != "" && r.SpecMethod != "none" || r.LoadMode != "closed" {
			t.Errorf("%s: %+v", c.cells, r)
		}
	}
	if r := readOne(t, head, "llama-3.1-8b,H100,vllm 0.10.2,bf16,,4,,,,"); r.EngineVersion != "0.10.2" {
		t.Errorf("the version is %q", r.EngineVersion)
	}
}

func TestSpellingsThatAreNone(t *testing.T) {
	for cells, want := range map[string]string{
		"llama-3.1-8b,H100,vllm,,4,maybe,":      `prefix_caching: "maybe" is not allowed (want on or off)`,
		"llama-3.1-8b,H100,vllm,,4,,yesterday":  `date: "yesterday" is not a date`,
		"llama-3.1-8b,H100,,,4,,":               "engine: the cell is empty",
		"llama-3.1-8b,H100,vllm,,,,":            "load_mode: the cell is empty",
		"llama-3.1-8b,H100,vllm,,4 or 5,,":      `concurrency: "4 or 5" is not allowed`,
		"llama-3.1-8b,H100,vllm,,-4,,":          `concurrency: "-4" is not allowed`,
		"llama-3.1-8b,H100 NVL 94GBx,vllm,,4,,": "",
	} {
		r := readOne(t, "model,gpu,engine,weight_dtype,concurrency,prefix_caching,date", cells)
		if got := strings.Join(r.Faults, "; "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q (want %q)", cells, got, want)
		}
	}
}

// TestColumnsOfBenchmarks reads a row under the names of InferenceX, whose latencies are in seconds.
func TestColumnsOfBenchmarks(t *testing.T) {
	r := readOne(t, "hw,framework,precision,tp,ep,conc,model,isl,osl,mean_ttft,median_e2el,p99_tpot_ms,request_rate,mtp",
		"h200-cw,sglang,fp8,8,1,64,deepseek-ai/DeepSeek-R1,1024,1024,0.25,20.5,31,inf,off")
	if r.ID != "line-2" || r.Faults != nil || *r.TTFT.Mean != 250 || *r.E2E.P50 != 20_500 || *r.TPOT.P99 != 31 ||
		r.Rate != nil || r.LoadMode != "closed" || *r.Concurrency != 64 || r.SpecMethod != "none" || r.GPU != "h200-sxm" {
		t.Errorf("%+v, faults %q", r, r.Faults)
	}
	ref, err := Read("runs.csv", strings.NewReader("model,gpu,engine,conc,concurrency\nllama-3.1-8b,H100,vllm,1,2\n"))
	if err != nil || *ref.Rows[0].Concurrency != 2 || len(ref.Notes) != 1 {
		t.Errorf("%v: the column's own name is the one that counts", err)
	}
}

func TestLaunchOptions(t *testing.T) {
	const head = "model,gpu,engine,concurrency,kv_dtype,max_num_seqs,engine_flags"
	vllm := readOne(t, head, "llama-3.1-70b,H100,vllm,4,auto,,--gpu-memory-utilization=0.9 --tensor-parallel-size 2 "+
		"--enable-expert-parallel --max-num-seqs=512 | kv-cache-dtype: fp8; async-scheduling: true; "+
		"no-enable-prefix-caching: true; max-num-batched-tokens: 8192")
	if *vllm.TP != 2 || *vllm.EP != 2 || *vllm.MaxNumSeqs != 512 || vllm.KVDtype != "fp8" || vllm.AsyncScheduling != "on" ||
		vllm.PrefixCaching != "off" || *vllm.MaxNumBatchedTokens != 8192 || *vllm.GPUMemUtil != 0.9 {
		t.Errorf("vllm: %+v", vllm)
	}
	sglang := readOne(t, head, "deepseek-r1,B200,sglang,4,,64,--tp-size=8 --max-running-requests=128 --disable-radix-cache "+
		"--chunked-prefill-size=32768 --scheduler-recv-interval=30 --stream-interval=10 --kv-cache-dtype=fp8_e4m3 "+
		"--num-continuous-decode-steps=4")
	if *sglang.TP != 8 || *sglang.MaxNumSeqs != 64 || *sglang.ChunkedPrefillSize != 32768 || *sglang.RecvInterval != 30 ||
		*sglang.StreamInterval != 10 || sglang.KVDtype != "fp8" || sglang.PrefixCaching != "off" ||
		*sglang.ContinuousDecodes != 4 {
		t.Errorf("sglang: %+v", sglang)
	}
	trt := readOne(t, head, "deepseek-r1,B200,trt,4,,,trtllm-serve --max_num_tokens=1152 --max_seq_len=2248 | "+
		"cuda_graph_config:; max_batch_size: 128; enable_attention_dp: true; kv_cache_config:; dtype: fp8; "+
		"enable_block_reuse: false; free_gpu_memory_fraction: 0.75; stream_interval: 10")
	f := trt.Launch.fraction("kv_cache_config.free_gpu_memory_fraction")
	if *trt.MaxNumTokens != 1152 || *trt.MaxModelLen != 2248 || trt.KVDtype != "fp8" || trt.PrefixCaching != "off" ||
		*trt.StreamInterval != 10 || trt.DPAttention != "on" || trt.MaxNumSeqs != nil || f == nil || *f != 0.75 {
		t.Errorf("trtllm: %+v", trt)
	}
}

// TestSidecar fills cells from the file of launch options beside a file of runs.
func TestSidecar(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("runs.csv", "run_id,model,gpu,engine,concurrency,max_num_seqs\na,deepseek-r1,B200,sglang,4,\n"+
		"b,deepseek-r1,B200,sglang,4,7\n")
	write("runs-flags.csv", "run_id,max_num_seqs,engine_flags\nb,8,--stream-interval=10\n")
	ref, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := ref.Rows[0], ref.Rows[1]
	if a.MaxNumSeqs != nil || a.StreamInterval != nil || *b.MaxNumSeqs != 7 || *b.StreamInterval != 10 {
		t.Errorf("a %+v, b %+v", a, b)
	}
	write("runs-flags.csv", "run,max_num_seqs\nb,8\n")
	if _, err := open(path); err == nil || !strings.Contains(err.Error(), "no column run_id") {
		t.Errorf("a file without run_id: %v", err)
	}
}

// TestScenarioOfRow checks the lines that rules write.
func TestScenarioOfRow(t *testing.T) {
	for _, c := range []struct{ name, head, cells, want string }{
		{"TensorRT-LLM's budget is of an iteration", "engine,max_num_tokens,max_num_seqs", "trt,1152,128",
			"max_num_batched_tokens: 1152"},
		{"clients are shared among ranks", "engine,dp,ep,dp_attention", "sglang,32,8,true", "users: 2"},
		{"the release of the image", "engine,image", "vllm,vllm/vllm-openai:v0.10.2", "version: \"vllm-0.10.2\""},
		{"the release of the day", "engine,date", "vllm,2026-04-05", "version: \"vllm-0.19\""},
		{"what the script asks for", "engine,engine_version,engine_flags", "vllm,0.15,--no-async-scheduling",
			"async_scheduling: false"},
		{"early asynchronous scheduling hides the host", "engine,engine_version,engine_flags",
			"vllm,0.10.2,--async-scheduling", "overheads: {cpu: 0"},
		{"fusion by the script", "engine,engine_version,engine_flags",
			`vllm,0.16.0,"--compilation-config='{""pass_config"":{""fuse_allreduce_rms"":true}}'"`, "fuse_allreduce_rms: true"},
		{"captured graphs by the script", "engine,engine_version,engine_flags",
			"vllm,0.18.0,--max-num-seqs=8 | max-cudagraph-capture-size: 2048", "max_cudagraph_capture_size: 2048"},
		{"fusion by a dotted option", "engine,engine_version,engine_flags",
			"vllm,0.17.0,--compilation_config.pass_config.fuse_allreduce_rms=true", "fuse_allreduce_rms: true"},
	} {
		ref, err := Read("runs.csv", strings.NewReader("run_id,model,gpu,tp,concurrency,n_requests,input_tokens_mean,"+
			"output_tokens_nominal,"+c.head+"\na,mixtral-8x7b,H200,2,64,640,1000,1000,"+c.cells+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		k := Plan(ref)[0]
		if k.Bad != "" || k.Refused != "" || !strings.Contains(string(k.YAML), c.want) {
			t.Errorf("%s: %s%s\n%s", c.name, k.Bad, k.Refused, k.YAML)
		}
	}
}

// TestFusion: before vLLM 0.16 the fusion of all-reduces does not act on a mixture of experts.
func TestFusion(t *testing.T) {
	const option = "--compilation_config.pass_config.fuse_allreduce_rms=true"
	for cells, want := range map[string]string{
		"mixtral-8x7b,0.15.1," + option: "off", "mixtral-8x7b,0.17.0," + option: "on", "llama-3.1-70b,0.10.2," + option: "on",
		"mixtral-8x7b,0.15.1,": "", "llama-3.1-70b,0.17.0,--pass='{fuse_allreduce_rms: false}'": "off",
	} {
		r := readOne(t, "gpu,engine,concurrency,model,engine_version,engine_flags", "B200,vllm,4,"+cells)
		if got := r.fusedAllReduce(); got != want {
			t.Errorf("%s: %q, want %q", cells, got, want)
		}
	}
}
