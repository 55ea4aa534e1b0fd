package model_test

import (
	"math"
	"strings"
	"testing"

	"clifftop/model"
	"clifftop/model/catalog"
)

func TestNewDeploymentFaults(t *testing.T) {
	for _, c := range []struct {
		llm, gpu string
		o        model.Options
		change   func(*model.LLM, *model.GPU)
		want     string
	}{
		{"llama-3.1-8b", "h100", model.Options{TensorParallel: 3}, nil,
			"tensor_parallel_size 3 does not divide the 32 heads (8 KV heads) of llama-3.1-8b (want 1, 2, 4, 8, 16 or 32)"},
		{"phi-4-14b", "h100", model.Options{TensorParallel: 4}, nil, "(want 1, 2, 5, 10, 20 or 40)"},
		{"llama-3.1-8b", "h100", model.Options{TensorParallel: -1}, nil,
			"tensor_parallel_size is -1 (want 1 to 65536)"},
		{"llama-3.1-8b", "h100", model.Options{PipelineParallel: 33}, nil,
			"pipeline_parallel_size 33 exceeds the 32 layers"},
		{"llama-3.1-8b", "h100", model.Options{TensorParallel: 2, ExpertParallel: 2}, nil,
			"llama-3.1-8b has no experts"},
		{"mixtral-8x7b", "h100", model.Options{TensorParallel: 4, ExpertParallel: 3}, nil,
			"expert_parallel_size 3 does not divide tensor_parallel_size·data_parallel_size = 4"},
		{"mixtral-8x7b", "h100", model.Options{TensorParallel: 16, ExpertParallel: 16}, nil,
			"expert_parallel_size 16 does not divide the 8 experts"},
		{"llama-3.1-8b", "gaudi-3", model.Options{TensorParallel: 8}, nil,
			"communication between GPUs is not modelled on gaudi-3"},
		{"llama-3.1-8b", "gh200", model.Options{TensorParallel: 8}, nil,
			"tensor_parallel_size 8 does not fit the machine: links join 1 × gh200-96 (want at most 1)"},
		{"llama-3.1-8b", "h100", model.Options{TensorParallel: 32}, func(m *model.LLM, g *model.GPU) {
			g.Node = model.NodeShape{GPUs: 12}
		}, "links join 12 × h100-sxm (want at most 12, or a multiple of it)"},
		{"llama-3.1-8b", "h100", model.Options{}, func(m *model.LLM, g *model.GPU) {
			g.Node = model.NodeShape{GPUs: 8, Domain: 12}
		}, "node.domain is 12 (want a multiple of the 8 GPUs of a node)"},
		{"llama-3.1-8b", "h100", model.Options{KVDtype: model.INT4}, nil, "kv_cache_dtype int4 is not supported"},
		{"llama-3.1-8b", "h100", model.Options{Dtype: 99}, nil, "unknown precision"},
		{"llama-3.1-8b", "h100", model.Options{}, func(m *model.LLM, g *model.GPU) {
			g.HBMBytesPerSecond = 0
		}, "memory bandwidth is 0"},
		{"llama-3.1-8b", "h100", model.Options{}, func(m *model.LLM, g *model.GPU) {
			g.MemoryBytes = math.NaN()
		}, "memory is NaN"},
		{"llama-3.1-8b", "h100", model.Options{}, func(m *model.LLM, g *model.GPU) {
			g.FP8FLOPs = -1
		}, "fp8 peak is -1"},
		{"llama-3.1-8b", "h100", model.Options{}, func(m *model.LLM, g *model.GPU) {
			g.Kernels = model.KernelConstants{}
		}, "no kernel constants"},
		{"llama-3.1-8b", "h100", model.Options{}, func(m *model.LLM, g *model.GPU) { m.Layers = 0 }, "layers is 0"},
		{"mixtral-8x7b", "h100", model.Options{}, func(m *model.LLM, g *model.GPU) {
			m.TopK = 9
		}, "top_k is 9 (want 1 to the 8 experts)"},
	} {
		m, err := catalog.LLM(c.llm)
		if err != nil {
			t.Fatal(err)
		}
		g, err := catalog.GPU(c.gpu)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(&m, &g)
		}
		if _, err = model.NewDeployment(m, g, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestPrecisions(t *testing.T) {
	for _, c := range []struct {
		llm  string
		o    model.Options
		want [3]model.Precision
	}{
		{"llama-3.1-8b", model.Options{}, [3]model.Precision{model.BF16, model.BF16, model.BF16}},
		{"llama-2-7b", model.Options{}, [3]model.Precision{model.FP16, model.FP16, model.BF16}},
		{"gpt-oss-120b", model.Options{}, [3]model.Precision{model.BF16, model.MXFP4, model.BF16}},
		{"gpt-oss-120b", model.Options{Dtype: model.FP8, KVDtype: model.FP8},
			[3]model.Precision{model.FP8, model.FP8, model.FP8}},
		{"mixtral-8x7b", model.Options{MoEDtype: model.INT4}, [3]model.Precision{model.BF16, model.INT4, model.BF16}},
		{"deepseek-v3", model.Options{TensorParallel: 8}, [3]model.Precision{model.FP8, model.FP8, model.BF16}},
	} {
		d := deploy(t, c.llm, "h100", c.o)
		if got := [3]model.Precision{d.Dtype, d.MoEDtype, d.KVDtype}; got != c.want {
			t.Errorf("%s: %v, want %v", c.llm, got, c.want)
		}
	}
	if _, err := model.ParsePrecision("fp6"); err == nil || !strings.Contains(err.Error(), `"fp6" (want auto, bf16, `) {
		t.Error(err)
	}
}

func TestWeightBytes(t *testing.T) {
	const gb = 1e9
	for _, c := range []struct {
		llm  string
		o    model.Options
		want float64
	}{
		{"llama-3.1-8b", model.Options{}, 16.06},
		{"llama-3.1-70b", model.Options{TensorParallel: 4}, 35.28},
		{"llama-3.1-70b", model.Options{TensorParallel: 2, PipelineParallel: 2}, 35.28 + 0.53},
		{"llama-3.1-8b", model.Options{Dtype: model.FP8}, 8.03 + 1.05},
		{"mixtral-8x7b", model.Options{TensorParallel: 2, ExpertParallel: 2}, 46.7},
		{"gpt-oss-120b", model.Options{}, 65.2}, // as published
		{"deepseek-v3", model.Options{TensorParallel: 1, DataParallel: 8, ExpertParallel: 8}, 671.03/8 + 0.98*17},
	} {
		near(t, c.llm, deploy(t, c.llm, "h100", c.o).WeightBytesPerRank(), c.want*gb, 0.02)
	}
}

func TestNotes(t *testing.T) {
	d := deploy(t, "deepseek-v3", "a100-40gb-sxm", model.Options{TensorParallel: 8})
	got := strings.Join(d.Notes(), "\n")
	for _, want := range []string{"a100-40gb-sxm is uncalibrated",
		"has no fp8 units: weights are stored in fp8 and computed in bf16"} {
		if !strings.Contains(got, want) {
			t.Errorf("notes %q lack %q", got, want)
		}
	}
	if s := deploy(t, "gpt-oss-120b", "h200",
		model.Options{TensorParallel: 2,
			ExpertParallel: 2}).String(); s != "gpt-oss-120b bf16/mxfp4 experts on 2 × h200-sxm (TP 2, EP 2)" {
		t.Error(s)
	}
	if n := deploy(t, "deepseek-v3", "h200",
		model.Options{TensorParallel: 8, PipelineParallel: 2, DataParallel: 2}).GPUs(); n != 32 {
		t.Errorf("%d gpus", n)
	}
}

// TestAttentionDtype: checkpoints of experts in NVFP4 keep attention in 16 bits; dense ones do not.
func TestAttentionDtype(t *testing.T) {
	for _, c := range []struct {
		llm        string
		o          model.Options
		want       model.Precision
		deployment string
	}{
		{llm: "llama-3.1-70b", o: model.Options{Dtype: model.NVFP4}, want: model.NVFP4,
			deployment: "llama-3.1-70b nvfp4 on 1 × b200-sxm"},
		{llm: "deepseek-r1", o: model.Options{Dtype: model.NVFP4, TensorParallel: 4}, want: model.BF16,
			deployment: "deepseek-r1 nvfp4/bf16 attention on 4 × b200-sxm (TP 4)"},
		{llm: "deepseek-r1", o: model.Options{Dtype: model.NVFP4, AttentionDtype: model.FP8, TensorParallel: 4},
			want: model.FP8, deployment: "deepseek-r1 nvfp4/fp8 attention on 4 × b200-sxm (TP 4)"},
		{llm: "deepseek-r1", o: model.Options{TensorParallel: 8}, want: model.FP8,
			deployment: "deepseek-r1 fp8 on 8 × b200-sxm (TP 8)"},
	} {
		d := deploy(t, c.llm, "b200", c.o)
		if d.AttentionDtype != c.want || d.String() != c.deployment {
			t.Errorf("%v of %v, want %v of %s", d.AttentionDtype, d, c.want, c.deployment)
		}
	}
	// DeepSeek-R1 has 11.4e9 weights around attention (187 M in each of 61 layers). The down-projections, 15.1 M in each
	// layer, are on every rank, so that one of 4 ranks holds 3.55e9. In 16 instead of 8 bits they take as many bytes more.
	bytes := func(p model.Precision) float64 {
		return deploy(t, "deepseek-r1", "b200", model.Options{Dtype: model.NVFP4, AttentionDtype: p,
			TensorParallel: 4}).WeightBytesPerRank()
	}
	near(t, "bytes of attention", bytes(model.BF16)-bytes(model.FP8), 3.55e9, 0.005)
}
