package model_test

import (
	"encoding/json"
	"os"
	"testing"

	"clifftop/model"
)

// stepVector is a line of testdata/step-vectors.json.
type stepVector struct {
	ID      string
	GPU     string
	Model   string
	Decodes int
	Context int64
	Chunks  [][2]int32
	Options struct {
		TP, DP, EP    int
		WQ, MoEQ, KVQ string
	}
	MS map[string]float64
}

func (v *stepVector) deployment(t *testing.T) *model.Deployment {
	t.Helper()
	precision := func(s string) model.Precision {
		switch s {
		case "":
			return model.Auto
		case "fp4":
			return model.NVFP4
		}
		p, err := model.ParsePrecision(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return deploy(t, v.Model, v.GPU, model.Options{
		TensorParallel: v.Options.TP, DataParallel: v.Options.DP, ExpertParallel: v.Options.EP,
		Dtype: precision(v.Options.WQ), MoEDtype: precision(v.Options.MoEQ), KVDtype: precision(v.Options.KVQ),
	})
}

func (v *stepVector) batch() *model.Batch {
	b := &model.Batch{Decodes: v.Decodes, Context: v.Context, Emit: v.Decodes + len(v.Chunks)}
	for _, c := range v.Chunks {
		b.Chunks = append(b.Chunks, model.Chunk{New: c[0], Cached: c[1]})
	}
	return b
}

// tables selects the constants that the vectors use.
var tables = model.Tables{GEMM: true, MixedAttention: true, MoE: true, AllReduce: true}

// TestStepVectors compares the parts of steps with those of another implementation.
func TestStepVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/step-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Source string
		Steps  []stepVector
		Units  map[string]float64 `json:"units_seconds"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Steps) != 18 || len(vectors.Units) != 5 {
		t.Fatalf("%d steps and %d units", len(vectors.Steps), len(vectors.Units))
	}
	const tolerance = 1e-4
	for _, v := range vectors.Steps {
		d, b := v.deployment(t), v.batch()
		m := float64(b.Decodes)
		for _, c := range b.Chunks {
			m += float64(c.New)
		}
		near(t, v.ID+" lin", 1e3*model.Projections(d, m), v.MS["lin"], tolerance)
		near(t, v.ID+" dense", 1e3*model.DenseLayers(d, m), v.MS["dense"], tolerance)
		near(t, v.ID+" head", 1e3*model.Head(d, float64(b.Emit)), v.MS["head"], tolerance)
		near(t, v.ID+" ar", 1e3*model.AllReduce(d, 2*m*float64(d.LLM.Hidden)), v.MS["ar"], tolerance)
		if want, ok := v.MS["prefill"]; ok {
			got := 0.0
			for _, term := range kernels(t, d, model.KernelOptions{Tables: tables}).Explain(b).Terms {
				switch term.Name {
				case "prefill attention", "mixed attention", "latent up-projection":
					got += 1e3 * term.Seconds
				}
			}
			near(t, v.ID+" prefill", got, want, tolerance)
		}
	}

	h100 := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	near(t, "gemm", model.GEMM(h100, 1, 6144, 4096, model.BF16), vectors.Units["gemm_1_6144_4096_bf16"], tolerance)
	near(t, "gemm", model.GEMM(h100, 2048, 6144, 4096, model.BF16), vectors.Units["gemm_2048_6144_4096_bf16"],
		tolerance)
	near(t, "gemm", model.GEMM(h100, 64, 10240, 8192, model.FP8), vectors.Units["gemm_64_10240_8192_fp8"], tolerance)
	tp8 := deploy(t, "llama-3.1-8b", "h100", model.Options{TensorParallel: 8})
	near(t, "all-reduce", model.AllReduce(tp8, 1<<20), vectors.Units["allreduce_1MiB_tp8"], tolerance)
}

// TestExperts checks single grouped products, and one of the older, additive form.
func TestExperts(t *testing.T) {
	for _, c := range []struct {
		llm, gpu       string
		o              model.Options
		tokens         float64
		micros, active float64
	}{
		{"mixtral-8x7b", "h100", model.Options{TensorParallel: 2}, 16, 450.54, 7.7466},
		{"mixtral-8x7b", "h100", model.Options{TensorParallel: 2}, 104, 489.49, 0},
		{"mixtral-8x7b", "h100", model.Options{TensorParallel: 2}, 2048, 1450.42, 0},
		{"qwen3-30b-a3b", "h100", model.Options{}, 16, 262.57, 79.015},
		{"gpt-oss-120b", "h200", model.Options{}, 64, 583.04, 0},
	} {
		d := deploy(t, c.llm, c.gpu, c.o)
		seconds, active := model.Experts(d, c.tokens)
		near(t, c.llm, 1e6*seconds, c.micros, 1e-4)
		if c.active > 0 {
			near(t, c.llm+" active experts", active, c.active, 1e-4)
		}
	}

	// The older form: 45.65 µs, 98.85 % of the bandwidth, 48.15 % of the peak; the vector has
	// uniform routing, and therefore more experts, and counts the activations a little differently.
	d := deploy(t, "qwen3-30b-a3b", "h100", model.Options{})
	d.GPU.Tables = model.KernelConstants{}
	d.GPU.Kernels.MoE[model.BF16] = model.MoEConstants{Launch: 45.65e-6, Memory: 0.9885, Compute: 0.4815, Exponent: 1}
	seconds, _ := model.Experts(d, 16)
	near(t, "additive form", seconds, 0.000283575, 0.035)
}
