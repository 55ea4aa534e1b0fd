package export_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/export"
	"clifftop/experiments/launch/manifest"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model/catalog"
)

var update = flag.Bool("update", false, "write golden files")

// deployments are the parts of scenarios that a deployment can carry, with the formats that carry all of it besides
// command and kubernetes.
var deployments = []struct{ name, yaml, formats string }{
	{"plain", "{model: llama-3.1-8b, gpu: h100}", "compose helm llm-d dynamo"},
	{"tensor parallel", "{model: llama-3.3-70b, gpu: h200, deployment: {tensor_parallel_size: 4}}",
		"compose helm llm-d dynamo"},
	{"pipeline", "{model: llama-3.3-70b, gpu: h100, deployment: {tensor_parallel_size: 2, pipeline_parallel_size: 2}}",
		"compose helm llm-d dynamo"},
	{"fp8 weights and KV", "{model: llama-3.3-70b, gpu: h100, deployment: {tensor_parallel_size: 2, dtype: fp8, " +
		"kv_cache_dtype: fp8}}", "compose helm llm-d dynamo"},
	{"int4", "{model: llama-3.3-70b, gpu: h100, deployment: {dtype: int4}}", "compose helm llm-d dynamo"},
	{"limits", "{model: qwen3-32b, gpu: h200, engine: {max_num_seqs: 128, max_num_batched_tokens: 4096, " +
		"max_model_len: 16384, gpu_memory_utilization: 0.85, block_size: 32}}", "compose helm llm-d dynamo"},
	{"switches", "{model: qwen3-32b, gpu: h200, engine: {enable_prefix_caching: false, async_scheduling: false}}",
		"compose llm-d dynamo"},
	{"release", "{model: llama-3.1-8b, gpu: h100, engine: {version: vllm-0.15}}", "compose"},
	{"eager", "{model: llama-3.1-8b, gpu: a100-80gb, engine: {max_cudagraph_capture_size: 1}}", "compose llm-d dynamo"},
	{"experts", "{model: qwen3-235b-a22b, gpu: h200, deployment: {tensor_parallel_size: 8, expert_parallel_size: 8}}",
		"compose helm llm-d dynamo"},
	{"wide experts", "{model: deepseek-v3, gpu: h200, deployment: {tensor_parallel_size: 1, data_parallel_size: 8, " +
		"expert_parallel_size: 8, all2all_backend: deepep_low_latency}}", "compose llm-d dynamo"},
	{"drafts", "{model: deepseek-v3, gpu: h200, deployment: {tensor_parallel_size: 8}, engine: {speculative: " +
		"{method: mtp, num_speculative_tokens: 1, acceptance: 0.7}}}", "compose llm-d dynamo"},
	{"host memory", "{model: llama-3.1-8b, gpu: h100, offload: {tiers: [{name: cpu, size: 64GiB, bandwidth: 25GB/s}]}}",
		"compose llm-d dynamo"},
	{"replicas", "{model: llama-3.1-8b, gpu: l40s, deployment: {replicas: 3, router: round-robin}}", "compose helm"},
	{"prefixes", "{model: llama-3.1-8b, gpu: h100, deployment: {replicas: 2, router: prefix}}", "compose helm"},
	{"pools", "{model: llama-3.1-8b, gpu: h100, pools: [{name: prefill, role: prefill, replicas: 1}, {name: decode, " +
		"role: decode, replicas: 2}]}", "llm-d"},
	{"AMD", "{model: llama-3.3-70b, gpu: mi300x, engine: {max_num_seqs: 512}}", "helm compose"},
	{"replicas on two machines", "{model: llama-3.1-8b, gpu: l4, deployment: {replicas: 12}}", "helm"},
	{"pools of SGLang", "{model: deepseek-v3, gpu: h200, engine: {kernels: sglang}, pools: [{name: prefill, role: " +
		"prefill, replicas: 2, deployment: {tensor_parallel_size: 8}}, {name: decode, role: decode, replicas: 1, " +
		"deployment: {data_parallel_size: 8, expert_parallel_size: 8}}], disaggregation: {}}", "dynamo"},
	{"pools of TensorRT-LLM", "{model: llama-3.1-8b, gpu: h100, engine: {kernels: trtllm}, pools: [{name: prefill, " +
		"role: prefill, replicas: 2}, {name: decode, role: decode, replicas: 1, engine: {max_num_seqs: 64}}], " +
		"disaggregation: {}}", "compose"},
	{"sglang", "{model: qwen3-32b, gpu: h100, engine: {policy: sglang}}", "compose dynamo"},
	{"sglang's options", "{model: qwen3-32b, gpu: h200, deployment: {kv_cache_dtype: fp8}, engine: {policy: sglang, " +
		"max_num_seqs: 256, sglang: {chunked_prefill_size: 8192, mem_fraction_static: 0.85, schedule_policy: lpm, " +
		"scheduler_recv_interval: 10}, enable_prefix_caching: false, stream_interval: 4}}", "compose dynamo"},
	{"sglang's ranks", "{model: deepseek-v3, gpu: h200, deployment: {tensor_parallel_size: 1, data_parallel_size: 8, " +
		"expert_parallel_size: 8, all2all_backend: deepep}, engine: {policy: sglang, max_num_seqs: 64, " +
		"sglang: {chunked_prefill_size: 4096, schedule_conservativeness: 0.3}}}", "compose dynamo"},
	{"TensorRT-LLM", "{model: llama-3.3-70b, gpu: h100, deployment: {tensor_parallel_size: 4}, engine: {policy: " +
		"trtllm-guaranteed-no-evict, max_num_seqs: 256, max_num_batched_tokens: 4096, max_model_len: 16384}}", "compose"},
	{"TensorRT-LLM's options", "{model: llama-3.3-70b, gpu: h200, deployment: {tensor_parallel_size: 2, " +
		"kv_cache_dtype: fp8}, engine: {policy: trtllm-max-utilization, enable_prefix_caching: false, block_size: 64, " +
		"enable_chunked_prefill: true, trtllm: {free_gpu_memory_fraction: 0.8}}}", "compose"},
	{"TensorRT-LLM's ranks", "{model: deepseek-v3, gpu: b200, deployment: {tensor_parallel_size: 1, " +
		"data_parallel_size: 8, expert_parallel_size: 8}, engine: {policy: trtllm-guaranteed-no-evict, trtllm: " +
		"{attention_dp_enable_balance: true}}}",
		"compose"},
	{"machines", "{model: deepseek-v3, gpu: h100, deployment: {tensor_parallel_size: 16}, engine: {policy: sglang}}",
		"dynamo"},
}

// carried are the parts of a scenario that a deployment carries, as resolved.
func carried(t *testing.T, yaml []byte) string {
	t.Helper()
	s, err := scenario.Parse("scenario.yaml", yaml)
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	type part struct {
		GPU, Model         string
		Deployment, Engine any
		Offload            any
		Replicas           int
		Role               string
	}
	var parts []part
	for i := range u.Pools {
		p := u.Pools[i].Scenario
		d := p.Deployment
		d.Router, d.Replicas = scenario.Router{}, 1
		x := part{p.GPU, p.Model, d, p.Engine, nil, u.Scenario.Deployment.Replicas, ""}
		if p.Offload != nil {
			x.Offload = p.Offload.Tiers[0].Size
		}
		if len(u.Scenario.Pools) > 0 {
			x.Replicas, x.Role = u.Scenario.Pools[i].Replicas, u.Scenario.Pools[i].Role
		}
		parts = append(parts, x)
	}
	data, err := json.MarshalIndent(parts, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// imported reads exported files back. TensorRT-LLM's options are beside a script.
func imported(t *testing.T, file export.File, gpu string) []byte {
	t.Helper()
	s, err := manifest.Read(file.Name, file.Data, manifest.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, file.Data)
	}
	m, err := s.Scenario(launch.ImportOptions{DefaultGPU: gpu, Source: file.Name})
	if err != nil {
		t.Fatalf("%v\n%s", err, file.Data)
	}
	return yamldoc.Marshal(m.Root)
}

// TestRoundTrip exports scenarios and imports them again: the deployment and the engine are the same.
func TestRoundTrip(t *testing.T) {
	for _, d := range deployments {
		want := carried(t, []byte(d.yaml))
		s, err := scenario.Parse("scenario.yaml", []byte(d.yaml))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		formats := append([]string{"kubernetes"}, strings.Fields(d.formats)...)
		if d.name != "release" { // which no launch line has
			formats = append(formats, "command")
		}
		for _, format := range formats {
			t.Run(d.name+"/"+format, func(t *testing.T) {
				files, err := export.Write(format, u, nil)
				if err != nil {
					t.Fatal(err)
				}
				got := carried(t, imported(t, files[0], s.GPU))
				if got != want {
					t.Errorf("%s\n%s", differing(want, got), files[0].Data)
				}
			})
		}
	}
}

// TestRandom exports random deployments of each engine as scripts and imports them again.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(r, name) }
		policy := pick("policy", "vllm", "sglang", "trtllm-guaranteed-no-evict", "trtllm-max-utilization")
		model := pick("model", "llama-3.1-8b", "qwen3-32b", "llama-3.3-70b", "qwen3-235b-a22b")
		var deployment, engine []string
		maybe := func(to *[]string, key string, values ...string) {
			if v := pick(key, append(values, "")...); v != "" {
				*to = append(*to, key+": "+v)
			}
		}
		deployment = append(deployment, "tensor_parallel_size: "+pick("tp", "8", "4"))
		if policy == "vllm" {
			maybe(&deployment, "pipeline_parallel_size", "2")
		}
		maybe(&deployment, "replicas", "2", "3")
		maybe(&deployment, "kv_cache_dtype", "fp8")
		maybe(&deployment, "dtype", "fp8")
		maybe(&engine, "max_num_seqs", "16", "300")
		maybe(&engine, "max_model_len", "8192", "16384")
		maybe(&engine, "enable_prefix_caching", "false", "true")
		maybe(&engine, "stream_interval", "1", "10")
		if policy == "vllm" {
			maybe(&engine, "max_num_batched_tokens", "16384")
			maybe(&engine, "gpu_memory_utilization", "0.85")
			maybe(&engine, "scheduling_policy", "priority")
			maybe(&engine, "async_scheduling", "false", "true")
		}
		yaml := fmt.Sprintf("{model: %s, gpu: h200, deployment: {%s}, engine: {%s}}", model, strings.Join(deployment, ", "),
			strings.Join(append(engine, "policy: "+policy), ", "))
		u := resolved(t, yaml)
		files, err := export.Write("command", u, nil)
		if err != nil {
			r.Fatal(err)
		}
		if want, got := carried(t, []byte(yaml)), carried(t, imported(t, files[0], "h200")); got != want {
			r.Fatalf("%s\n%s\n%s", yaml, differing(want, got), files[0].Data)
		}
	})
}

// resolved reads and resolves a scenario.
func resolved(t *testing.T, yaml string) *scenario.Setup {
	t.Helper()
	s, err := scenario.Parse("scenario.yaml", []byte(yaml))
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	return u
}

// TestNodeLabels: an import finds the GPU of the catalog by the node selector of an export.
func TestNodeLabels(t *testing.T) {
	for _, gpu := range catalog.GPUs() {
		u := resolved(t, fmt.Sprintf("{model: qwen3-0.6b, gpu: %s}", gpu.Name))
		files, err := export.Write("kubernetes", u, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := manifest.Read("k.yaml", files[0].Data, manifest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Scenario(launch.ImportOptions{DefaultGPU: "no label"})
		if err != nil {
			t.Fatalf("%s: %v", gpu.Name, err)
		}
		if got := m.Root.Get("gpu").Text; got != gpu.Name && got != "no label" {
			t.Errorf("%s is imported as %s", gpu.Name, got)
		}
	}
}

// TestMachines: replicas share a machine as long as it has GPUs, and none has part of its GPUs on another one.
func TestMachines(t *testing.T) {
	u := resolved(t, "{model: llama-3.3-70b, gpu: h100, deployment: {tensor_parallel_size: 4, replicas: 3}}")
	files, err := export.Write("command", u, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := shell.Run("serve.sh", files[0].Data, shell.Options{Env: map[string]string{"MACHINE_1": "10.0.0.2"}})
	if err != nil {
		t.Fatal(err)
	}
	var devices []string
	for _, c := range r.Commands[:3] {
		devices = append(devices, c.Env[0].Value)
	}
	if got := strings.Join(devices, " "); got != "0,1,2,3 4,5,6,7 0,1,2,3" {
		t.Errorf("GPUs %s\n%s", got, files[0].Data)
	}
	var words []string
	for _, w := range r.Commands[3].Args {
		words = append(words, w.Text)
	}
	const want = "http://machine-0:8001,http://machine-0:8002,http://10.0.0.2:8003"
	if router := strings.Join(words, " "); !strings.Contains(router, want) {
		t.Errorf("%s\nwant %s", router, want)
	}
	if _, err := export.Write("compose", u, nil); err == nil || !strings.Contains(err.Error(), "2 machines") {
		t.Errorf("compose: %v", err)
	}
}

// differing shows the lines that differ.
func differing(want, got string) string {
	var b strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := 0; i < max(len(w), len(g)); i++ {
		var x, y string
		if i < len(w) {
			x = w[i]
		}
		if i < len(g) {
			y = g[i]
		}
		if x != y {
			fmt.Fprintf(&b, "want %s\ngot  %s\n", x, y)
		}
	}
	return b.String()
}

// TestGolden shows one deployment in every format.
func TestGolden(t *testing.T) {
	s, err := scenario.Parse("scenario.yaml", []byte(`{name: chat, model: llama-3.3-70b, gpu: h200, deployment:
 {tensor_parallel_size: 4, kv_cache_dtype: fp8, replicas: 2, router: prefix}, engine: {max_num_seqs: 512, order: sjf},
 workload: {arrivals: {process: gamma, rate: 4, cv: 2}, input: 1024, output: 256}, run: {requests: 500}}`))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	target := &export.Target{Running: 40, Why: "simulated: an example"}
	for _, f := range export.Formats() {
		files, err := export.Write(f.Name, u, target)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range files {
			if i > 0 && f.Name != "command" {
				continue // the benchmark is the same for all
			}
			golden := filepath.Join("testdata", f.Name+"-"+x.Name)
			if *update {
				if err := os.WriteFile(golden, x.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != string(x.Data) {
				t.Errorf("%s is stale: go test ./experiments/launch/export -run Golden -update", golden)
			}
		}
	}
}

// TestHostile: names from outside stay data in every format.
func TestHostile(t *testing.T) {
	for _, name := range []string{"a'b", `a"b`, "$(touch x)", "`touch x`", "a; touch x", "a\nb: c", "{{ .Values.x }}",
		"# c", "%s", "- a", "é\u2028x", "a\\"} {
		yaml, _ := json.Marshal(map[string]any{"name": name, "model": "llama-3.1-8b", "gpu": "h100"})
		s, err := scenario.Parse("scenario.yaml", yaml)
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		u.Scenario.Model = "org/" + name // as of a path
		for _, f := range export.Formats() {
			files, err := export.Write(f.Name, u, &export.Target{Running: 1, Why: name})
			if err != nil {
				t.Fatal(err)
			}
			switch f.Name {
			case "command":
				r, err := shell.Run("serve.sh", files[0].Data, shell.Options{})
				if err != nil || len(r.Commands) != 1 || r.Commands[0].Args[2].Text != "org/"+name {
					t.Errorf("%q: %v %+v\n%s", name, err, r, files[0].Data)
				}
			default:
				docs, err := yamldoc.ParseAll("x.yaml", files[0].Data)
				if err != nil || len(docs) == 0 {
					t.Errorf("%q in %s: %v\n%s", name, f.Name, err, files[0].Data)
				}
			}
		}
	}
}

// TestRefused: a policy that no engine has is named.
func TestRefused(t *testing.T) {
	s, err := scenario.Parse("scenario.yaml", []byte("engine: {policy: orca}"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	_, err = export.Write("command", u, nil)
	if err == nil || !strings.Contains(err.Error(), "scenario.yaml:1:18: engine.policy: no engine has policy orca") {
		t.Errorf("%v", err)
	}
}
