package launch_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
)

// scenarioOf imports a script with files beside it.
func scenarioOf(script string, files map[string]string) (*launch.Imported, error) {
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	commands, notes, err := launch.ReadScript("serve.sh", []byte(script), launch.ScriptOptions{Read: read})
	if err != nil {
		return nil, err
	}
	s, err := launch.Assemble("serve.sh", commands, notes, 0)
	if err != nil {
		return nil, err
	}
	return s.Scenario(launch.ImportOptions{GPU: "h100"})
}

// Servers of TensorRT-LLM have no role themselves: the router's file lists their ports.
func TestServersAreKnownByTheirPorts(t *testing.T) {
	m, err := scenarioOf(`trtllm-serve Qwen/Qwen3-8B --port 8001 &
trtllm-serve Qwen/Qwen3-8B --port 8002 &
trtllm-serve Qwen/Qwen3-8B --port 8003 --max_batch_size 64 &
trtllm-serve disaggregated -c pools.yaml`, map[string]string{"pools.yaml": `
context_servers: {num_instances: 2, urls: ["localhost:8001", "localhost:8002"]}
generation_servers: {num_instances: 1, urls: ["localhost:8003"]}`})
	if err != nil {
		t.Fatal(err)
	}
	pools := m.Root.Get("pools")
	if pools == nil || len(pools.Items) != 2 {
		t.Fatalf("%s", yamldoc.Marshal(m.Root))
	}
	for i, want := range []struct {
		role     string
		replicas float64
	}{{"prefill", 2}, {"decode", 1}} {
		p := pools.Items[i]
		if p.Get("role").Text != want.role || p.Get("replicas").Number != want.replicas {
			t.Errorf("pool %d of\n%s\nis not %v", i, yamldoc.Marshal(m.Root), want)
		}
	}
}

// A file with a path of the container is found beside the script.
func TestConfigurationFileOfTheContainer(t *testing.T) {
	m, err := scenarioOf("trtllm-serve Qwen/Qwen3-8B --extra_llm_api_options /app/configs/qwen3.yaml",
		map[string]string{"qwen3.yaml": "max_batch_size: 77\n"})
	if err != nil || !strings.Contains(string(yamldoc.Marshal(m.Root)), "max_num_seqs: 77") {
		t.Errorf("%v %v", m, err)
	}
}

// VLLM_ALL2ALL_BACKEND needs the model and the groups of GPUs. A variable of the engine that no table has is reported,
// and one of another program is not.
func TestVariablesOfTheEngine(t *testing.T) {
	m, err := scenarioOf("FOO=1 VLLM_FOO=1 VLLM_ALL2ALL_BACKEND=deepep_low_latency "+
		"vllm serve deepseek-ai/DeepSeek-R1 -dp 8 --enable-expert-parallel", nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := m.Root.Lookup("deployment", "all2all_backend"); v == nil || v.Text != "deepep_low_latency" {
		t.Errorf("%s", yamldoc.Marshal(m.Root))
	}
	effects := map[string]flags.Effect{}
	for _, a := range m.Accounts {
		effects[a.Flag.Name] = a.Effect
	}
	if effects["VLLM_FOO"] != flags.Unmodelled || effects["FOO"] != "" {
		t.Errorf("effects are %v", effects)
	}
}

func TestTwoModelsAreAFault(t *testing.T) {
	_, err := scenarioOf("vllm serve Qwen/Qwen3-8B --model Qwen/Qwen3-32B", nil)
	var faults yamldoc.Faults
	if !errors.As(err, &faults) || !strings.Contains(err.Error(), "Qwen/Qwen3-32B is another model than Qwen/Qwen3-8B") {
		t.Errorf("%v", err)
	}
	if _, err := scenarioOf("vllm serve Qwen/Qwen3-8B --model Qwen/Qwen3-8B", nil); err != nil {
		t.Errorf("%v", err)
	}
}

// Any script is read or has faults, and a scenario that is made of it can be written.
func FuzzReadScript(f *testing.F) {
	for _, seed := range []string{"vllm serve Qwen/Qwen3-8B -tp 2", "for i in 1 2; do sglang serve x --tp=$i; done",
		"cat > a.yml <<E\nkv_cache_config: {dtype: fp8}\nE\ntrtllm-serve Qwen/Qwen3-8B --config a.yml",
		"vllm serve Qwen/Qwen3-8B --speculative-config.method mtp -O.mode=3 --kv-transfer-config '{\"kv_role\":1}'",
		"python -m sglang_router.launch_server --model-path Qwen/Qwen3-8B --dp-size 2 --router-cache-threshold 1e9",
		"trtllm-serve disaggregated -c a.yml", "docker run -e A=$B vllm/vllm-openai:v0.11.0 --model <model>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 1<<12 {
			return
		}
		if m, err := scenarioOf(script, map[string]string{"a.yml": script}); err == nil {
			yamldoc.Marshal(m.Root)
		}
	})
}

// Variables of each engine are in its table. One with the engine's prefix that no table has is reported by its name, and
// one of another program is not.
func TestVariablesOfEngines(t *testing.T) {
	for _, c := range []struct {
		script string
		want   map[string]flags.Effect
	}{
		{"NCCL_DEBUG=INFO SGLANG_USE_AITER=1 SGLANG_TORCH_PROFILER_DIR=/x SGL_FOO=1 SGLANG_FOO=1 " +
			"python -m sglang.launch_server --model-path Qwen/Qwen3-8B", map[string]flags.Effect{"SGLANG_USE_AITER": flags.Unmodelled,
			"SGLANG_TORCH_PROFILER_DIR": flags.None, "SGL_FOO": flags.Unmodelled, "SGLANG_FOO": flags.Unmodelled, "NCCL_DEBUG": ""}},
		{"TLLM_LOG_LEVEL=INFO TRTLLM_ENABLE_PDL=1 TLLM_FOO=1 SGLANG_FOO=1 trtllm-serve Qwen/Qwen3-8B",
			map[string]flags.Effect{"TLLM_LOG_LEVEL": flags.None, "TRTLLM_ENABLE_PDL": flags.Unmodelled,
				"TLLM_FOO": flags.Unmodelled, "SGLANG_FOO": ""}},
		{"DYN_FOO=1 DYN_NAMESPACE=x SGLANG_FOO=1 python -m dynamo.sglang --model-path Qwen/Qwen3-8B",
			map[string]flags.Effect{"DYN_FOO": flags.Unmodelled, "DYN_NAMESPACE": flags.None, "SGLANG_FOO": flags.Unmodelled}},
		{"DYN_FOO=1 VLLM_FOO=1 python -m dynamo.vllm --model Qwen/Qwen3-8B",
			map[string]flags.Effect{"DYN_FOO": flags.Unmodelled, "VLLM_FOO": flags.Unmodelled}},
		{"DYN_FOO=1 vllm serve Qwen/Qwen3-8B", map[string]flags.Effect{"DYN_FOO": ""}},
	} {
		m, err := scenarioOf(c.script, nil)
		if err != nil {
			t.Fatal(err)
		}
		effects := map[string]flags.Effect{}
		for _, a := range m.Accounts {
			effects[a.Flag.Name] = a.Effect
		}
		for name, want := range c.want {
			if effects[name] != want {
				t.Errorf("%s: %s is %q, want %q", c.script, name, effects[name], want)
			}
		}
	}
}
