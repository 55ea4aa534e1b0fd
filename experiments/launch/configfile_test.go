package launch_test

import (
	"errors"
	"strings"
	"testing"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
)

// imported is the scenario of a script, as text.
func imported(t *testing.T, script, gpu string) string {
	t.Helper()
	commands, notes, err := launch.ReadScript("serve.sh", []byte(script), launch.ScriptOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := launch.Assemble("serve.sh", commands, notes, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Scenario(launch.ImportOptions{GPU: gpu})
	if err != nil {
		t.Fatal(err)
	}
	return string(yamldoc.Marshal(m.Root))
}

// An option on the command line and in the file: TensorRT-LLM takes the file's, SGLang that of the command line.
func TestWhichPlaceOfAnOptionHolds(t *testing.T) {
	trtllm := imported(t, `cat > o.yml << EOF
max_batch_size: 64
cuda_graph_config: null
kv_cache_config:
  free_gpu_memory_fraction: 0.5
  max_tokens: 3200
EOF
trtllm-serve Qwen/Qwen3-8B --max_batch_size 32 --kv_cache_free_gpu_memory_fraction 0.9 --config o.yml`, "h100")
	sglang := imported(t, `  cat > o.yml << EOF
  model-path: Qwen/Qwen3-8B
  max-running-requests: 64
  EOF
  python -m sglang.launch_server --max-running-requests 32 --config o.yml`, "h100")
	for text, want := range map[string][]string{
		trtllm: {"max_num_seqs: 64", "free_gpu_memory_fraction: 0.5", "num_gpu_blocks_override: 101", "block_size: 32"},
		sglang: {"max_num_seqs: 32"},
	} {
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in\n%s", w, text)
			}
		}
	}
}

// SGLang's limits of a server are shared by its data-parallel ranks, which reserve less for outputs.
func TestSGLangDividesLimitsAmongRanks(t *testing.T) {
	text := imported(t, `python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 16 --dp 8 \
  --enable-dp-attention --moe-a2a-backend deepep --deepep-mode low_latency --max-running-requests 1024 \
  --chunked-prefill-size 65536 --schedule-conservativeness 0.5 --max-total-tokens 100000 --page-size 64 \
  --enable-priority-scheduling`, "h200")
	for _, want := range []string{"tensor_parallel_size: 2 ", "data_parallel_size: 8", "expert_parallel_size: 16",
		"all2all_backend: deepep_low_latency", "max_num_seqs: 128", "chunked_prefill_size: 8192",
		"schedule_conservativeness: 0.15", "num_gpu_blocks_override: 1563", "block_size: 64", "scheduling_policy: priority",
		"priority_scheduling_preemption_threshold: 10"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// Documents ask for values with words in angle brackets, and options in JSON are given one by one.
func TestWordsOfDocuments(t *testing.T) {
	text := imported(t, `vllm serve Qwen/Qwen3-8B --port <my-port> --tensor-parallel-size 2`, "h100")
	if !strings.Contains(text, "tensor_parallel_size: 2") {
		t.Error(text)
	}
	_, err := (&launch.System{Notes: []launch.Note{{Text: "variable TP has no value in the script"}}}).
		Scenario(launch.ImportOptions{Source: "serve.sh"})
	var faults yamldoc.Faults
	if !errors.As(err, &faults) || faults[0].Hint != "the script asks for TP: --env NAME=VALUE sets a variable" {
		t.Error(err)
	}
}
