package model_test

import (
	"strings"
	"testing"

	"clifftop/model"
)

func kernels(t testing.TB, d *model.Deployment, o model.KernelOptions) *model.Kernels {
	t.Helper()
	k, err := model.NewKernels(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestServedVectors checks whole steps of the form that was scored against served runs: no padding, default overheads,
// and the kernel tables' constants.
func TestServedVectors(t *testing.T) {
	chunk := func(n, cached int32) []model.Chunk { return []model.Chunk{{New: n, Cached: cached}} }
	for _, c := range []struct {
		id, llm, gpu string
		o            model.Options
		topP         bool
		b            model.Batch
		ms           float64
	}{
		{"F1", "llama-3.1-8b", "h100", model.Options{}, false, model.Batch{Decodes: 16, Context: 11200, Emit: 16},
			7.2757},
		{"F2", "llama-3.1-8b", "h100", model.Options{}, true, model.Batch{Decodes: 16, Context: 11200, Emit: 16},
			7.4901},
		{"F3", "llama-3.1-8b", "h100", model.Options{}, true,
			model.Batch{Decodes: 48, Context: 33600, Chunks: chunk(15, 560), Emit: 49}, 9.8847},
		{"F4", "llama-2-7b", "h100", model.Options{}, false, model.Batch{Decodes: 80, Context: 56000, Emit: 80},
			17.0768},
		{"F5", "mixtral-8x7b", "h100", model.Options{TensorParallel: 2}, false,
			model.Batch{Decodes: 10, Context: 7000, Emit: 10}, 15.8337},
		{"F6", "mixtral-8x7b", "h100", model.Options{TensorParallel: 2}, false,
			model.Batch{Decodes: 104, Context: 72800, Emit: 104}, 20.6961},
		{"F7", "mixtral-8x7b", "h100", model.Options{TensorParallel: 2}, false,
			model.Batch{Chunks: chunk(2048, 0), Emit: 1}, 59.6308},
		{"F8", "gpt-oss-120b", "h200", model.Options{}, false, model.Batch{Decodes: 32, Context: 246400, Emit: 32},
			20.2785},
		{"F9", "gpt-oss-120b", "h200", model.Options{}, false, model.Batch{Chunks: chunk(7245, 0), Emit: 1}, 235.3830},
		{"F10", "llama-3.1-70b", "h100", model.Options{TensorParallel: 4, Dtype: model.FP8}, false,
			model.Batch{Decodes: 64, Context: 320000, Emit: 64}, 22.6342},
		{"F11", "codellama-34b", "a100", model.Options{TensorParallel: 2}, false,
			model.Batch{Decodes: 16, Context: 11200, Chunks: chunk(15, 560), Emit: 17}, 30.9839},
		{"F12", "codellama-34b", "h100", model.Options{TensorParallel: 2}, false,
			model.Batch{Decodes: 38, Context: 26600, Emit: 38}, 15.5284},
	} {
		k := kernels(t, deploy(t, c.llm, c.gpu, c.o), model.KernelOptions{TopP: c.topP, Tables: tables})
		first, _, _ := k.Span(&c.b)
		near(t, c.id, float64(first)/1e12, c.ms, 1e-4)
		if testing.Verbose() {
			t.Logf("%s %.6f ms, error %+.1e", c.id, float64(first)/1e12, float64(first)/1e12/c.ms-1)
		}
	}
}

// TestSlowGPU: a GPU whose step times would overflow gives an error of one line.
func TestSlowGPU(t *testing.T) {
	for name, slow := range map[string]func(*model.GPU){
		"bandwidth": func(g *model.GPU) { g.HBMBytesPerSecond = 100 },
		"peak":      func(g *model.GPU) { g.BF16FLOPs = 1e5 },
		"both":      func(g *model.GPU) { g.HBMBytesPerSecond, g.BF16FLOPs = 1e-300, 1e-300 },
	} {
		d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
		slow(&d.GPU)
		_, err := model.NewKernels(d, model.KernelOptions{})
		if err == nil || !strings.Contains(err.Error(), "an iteration of 256 sequences takes ") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	d.GPU.HBMBytesPerSecond = 1e9
	kernels(t, d, model.KernelOptions{})
}

// TestSwitches: each refinement changes only the steps that it is about, and its switch removes it.
func TestSwitches(t *testing.T) {
	decodes := model.Batch{Decodes: 16, Context: 16 * 1000, Emit: 16}
	prefill := model.Batch{Chunks: []model.Chunk{{New: 8000}}, Emit: 1}
	tp := func(n int) model.Options { return model.Options{TensorParallel: n} }
	for _, c := range []struct {
		name, llm, gpu string
		o              model.Options
		b              model.Batch
		with, without  model.KernelOptions
		micros         float64 // that the refinement adds
	}{
		{"fused all-reduce", "llama-3.1-70b", "b200", tp(2), decodes, model.KernelOptions{FuseAllReduce: true},
			model.KernelOptions{}, -160 * (6.81 - 4.86 + (5.72-1.42)/4 + 2)}, // 256 KiB
		{"fused all-reduce, one latency", "llama-3.1-70b", "b200", tp(2), decodes,
			model.KernelOptions{FuseAllReduce: true, Tables: tables}, model.KernelOptions{Tables: tables}, -160 * (4 + 2)},
		{"two steps of 256 KiB over 8 GPUs", "llama-3.1-70b", "h100", tp(8), decodes, model.KernelOptions{},
			model.KernelOptions{Tables: model.Tables{AllReduce: true}}, 160*(8.82+4.94/4-5.3-1e6*2*7/8.*(256<<10)/323e9) +
				3.157}, // of the logits: 501 KiB
		{"the older two steps", "llama-3.1-70b", "h100", tp(8), decodes,
			model.KernelOptions{AllReduce: model.ReduceCustom}, model.KernelOptions{}, 160*(13+4.78/4-8.82-4.94/4) + 4.102},
		{"fused all-reduce of a long message", "llama-3.1-70b", "h200", tp(8), prefill,
			model.KernelOptions{FuseAllReduce: true}, model.KernelOptions{}, 0},
		{"fused all-reduce on Ampere", "llama-3.1-70b", "a100", tp(4), decodes,
			model.KernelOptions{FuseAllReduce: true}, model.KernelOptions{}, 0},
		{"unfused kernels", "minimax-m2.5", "h200", tp(4), decodes, model.KernelOptions{},
			model.KernelOptions{FuseLayerKernels: true}, 62 * (25 + 16*0.15)},
		{"imbalance of one rank", "minimax-m2.5", "h200", tp(4), decodes, model.KernelOptions{},
			model.KernelOptions{ExpertImbalance: 1}, 0},
		{"tables of Hopper's attention", "llama-3.1-8b", "h100", tp(1), prefill, model.KernelOptions{},
			model.KernelOptions{Tables: tables}, 0},
	} {
		d := deploy(t, c.llm, c.gpu, c.o)
		a, _, _ := kernels(t, d, c.with).Span(&c.b)
		b, _, _ := kernels(t, d, c.without).Span(&c.b)
		if got := float64(a-b) / 1e9; got < c.micros-0.01 || got > c.micros+0.01 {
			t.Errorf("%s adds %v µs, want %v", c.name, got, c.micros)
		}
	}
	d := deploy(t, "minimax-m2.5", "h200", model.Options{TensorParallel: 4, ExpertParallel: 4})
	chance, _, _ := kernels(t, d, model.KernelOptions{}).Span(&decodes)
	even, _, _ := kernels(t, d, model.KernelOptions{ExpertImbalance: 1}).Span(&decodes)
	if ratio := float64(chance) / float64(even); ratio < 1.02 || ratio > 1.3 {
		t.Errorf("chance makes the ranks' busiest last %v times as long as all in balance", ratio)
	}
}
