package model_test

import (
	"math"
	"strings"
	"testing"

	"clifftop/model"
	"clifftop/sim/clock"
)

func step(timer model.StepTimer, b model.Batch) float64 {
	first, _, _ := timer.Span(&b)
	return float64(first) / 1e15
}

func TestLinear(t *testing.T) {
	l := model.NewLinear(10*clock.Millisecond, 100*clock.Microsecond)
	first, slope, n := l.Span(&model.Batch{Decodes: 7, Context: 1e9, Emit: 7})
	if first != 10_700_000_000_000 || slope != 0 || n < 1<<20 {
		t.Errorf("span %d, %d, %d", first, slope, n)
	}
	first, _, n = l.Span(&model.Batch{Decodes: 7, Chunks: []model.Chunk{{New: 100}, {New: 1}}})
	if first != 10_900_000_000_000 || n != 1 {
		t.Errorf("chunks: %d, %d", first, n)
	}
	if first, _, _ = model.NewLinear(-1, -1).Span(&model.Batch{Decodes: 7}); first != 0 {
		t.Errorf("negative constants give %d", first)
	}
}

// TestRoofline recomputes two steps by hand: one limited by memory, one by arithmetic.
func TestRoofline(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	r, err := model.NewRoofline(d, model.DefaultRooflineOptions())
	if err != nil {
		t.Fatal(err)
	}
	const (
		layer  = 4096*(4096+2*1024) + 4096*4096 + 3*4096*14336 // weights
		head   = 4096 * 128256
		fixed  = 0.5e-3 + 32*80e-6
		memory = 0.8 * 3.35e12
		peak   = 0.6 * 989e12
	)
	bytes := 2*(32*layer+head) + 64*1000*131072.0
	near(t, "decode", step(r, model.Batch{Decodes: 64, Context: 64000, Emit: 64}), fixed+bytes/memory, 1e-6)
	flops := 2*(32.0*layer*8192+head) + 32*4*4096*8192*8192/2.0
	near(t, "prefill", step(r, model.Batch{Chunks: []model.Chunk{{New: 8192}}, Emit: 1}), fixed+flops/peak, 1e-6)

	for want, o := range map[string]model.RooflineOptions{
		"peak fraction is 0":       {BandwidthFraction: 1},
		"bandwidth fraction is 2":  {PeakFraction: 1, BandwidthFraction: 2},
		"peak fraction is NaN":     {PeakFraction: math.NaN(), BandwidthFraction: 1},
		"layer time is -1ns":       {PeakFraction: 1, BandwidthFraction: 1, LayerTime: -clock.Nanosecond},
		"step time is 1m0s (want ": {PeakFraction: 1, BandwidthFraction: 1, StepTime: clock.Minute},
	} {
		if _, err := model.NewRoofline(d, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestPadding(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	plain, padded := kernels(t, d, model.KernelOptions{}), kernels(t, d, model.KernelOptions{PadGraphs: true})
	for m, size := range map[int]int{2: 2, 3: 4, 4: 4, 5: 8, 9: 16, 33: 40, 248: 248, 249: 256, 257: 272, 512: 512,
		513: 513} {
		b := model.Batch{Decodes: 1, Context: 1, Emit: 1, Chunks: []model.Chunk{{New: int32(m - 1)}}}
		if e := step(padded, b) - step(plain, b); (e > 0) != (size != m) || e < 0 {
			t.Errorf("padding %d to %d costs %v s", m, size, e)
		}
	}
	// Steps that are padded to the same size cost the same, except for the overhead per sequence.
	a, b := step(padded, model.Batch{Decodes: 33, Emit: 40, Context: 33}),
		step(padded, model.Batch{Decodes: 40, Emit: 40, Context: 40})
	if b-a > 7*20e-6 {
		t.Errorf("33 and 40 sequences differ by %v s", b-a)
	}
	// With five drafts for each sequence the sizes are multiples of six, and no graph has size 30.
	drafting := kernels(t, d, model.KernelOptions{PadGraphs: true, Drafts: 5})
	for m, size := range map[int]int{1: 6, 6: 6, 7: 12, 12: 12, 13: 18, 19: 24, 24: 24, 25: 36, 30: 36, 37: 42,
		43: 48} {
		if got := drafting.GraphTokens(m); got != size {
			t.Errorf("%d tokens run in a graph of %d, want %d", m, got, size)
		}
	}
	// The engine captures no graph beyond twice its largest batch.
	small := kernels(t, d, model.KernelOptions{PadGraphs: true, MaxNumSeqs: 16})
	b33 := model.Batch{Decodes: 33, Emit: 33, Context: 33}
	near(t, "33 sequences, with graphs up to 32", step(small, b33), step(plain, b33), 3e-5)
}

// TestKernelOptions checks the direction and size of every knob.
func TestKernelOptions(t *testing.T) {
	dense := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	moe := deploy(t, "qwen3-30b-a3b", "h100", model.Options{TensorParallel: 2, ExpertParallel: 2})
	ada := deploy(t, "llama-3.1-8b", "l40s", model.Options{})
	decode := model.Batch{Decodes: 16, Context: 16000, Emit: 16}
	mixed := model.Batch{Decodes: 16, Context: 16000, Emit: 17, Chunks: []model.Chunk{{New: 512, Cached: 2048}}}
	base := func(d *model.Deployment, b model.Batch) float64 { return step(kernels(t, d, model.KernelOptions{}), b) }
	with := func(d *model.Deployment, o model.KernelOptions, b model.Batch) float64 {
		return step(kernels(t, d, o), b) - base(d, b)
	}
	near(t, "extra layer time", with(dense, model.KernelOptions{ExtraLayerTime: 66 * clock.Microsecond}, decode),
		32*66e-6, 1e-9)
	near(t, "overheads", with(dense, model.KernelOptions{Overheads: &model.Overheads{Step: 600 * clock.Microsecond,
		Sequence: 3 * clock.Microsecond}}, decode),
		0.6e-3-0.33e-3+16*(3e-6-7.7e-6), 1e-6)
	near(t, "top-p", with(dense, model.KernelOptions{TopP: true}, decode), 16*128256*350/3.35e12, 1e-4)
	near(t, "eager", step(kernels(t, dense, model.KernelOptions{EagerLayerTime: 300 * clock.Microsecond}), decode),
		0.33e-3+32*300e-6, 1e-9)
	if c := with(moe, model.KernelOptions{RoutingConcentration: 0.25}, decode); c > -1e-4 {
		t.Errorf("concentrated routing costs %v s", c)
	}
	if c := with(moe, model.KernelOptions{ExpertImbalance: 1.5}, mixed); c < 1e-5 {
		t.Errorf("imbalance costs %v s", c)
	}
	if c := with(moe, model.KernelOptions{RoutingDispersion: math.Inf(1)}, decode); c < 1e-6 {
		t.Errorf("uniform routing costs %v s", c)
	}
	if c := with(ada, model.KernelOptions{MixedEfficiency: 0.9}, mixed); c > -1e-4 {
		t.Errorf("efficient mixed attention costs %v s", c)
	}
	for want, o := range map[string]model.KernelOptions{
		"max_num_seqs is -1":                   {MaxNumSeqs: -1},
		"max_num_batched_tokens is -5":         {MaxNumBatchedTokens: -5},
		"routing concentration is 1.5":         {RoutingConcentration: 1.5},
		"routing dispersion is NaN":            {RoutingDispersion: math.NaN()},
		"expert imbalance is 0.5":              {ExpertImbalance: 0.5},
		"mixed attention efficiency is -0.1":   {MixedEfficiency: -0.1},
		"extra layer time is -1ns":             {ExtraLayerTime: -clock.Nanosecond},
		"step overhead is 1m0s (want 0s to 1s": {Overheads: &model.Overheads{Step: clock.Minute}},
	} {
		if _, err := model.NewKernels(dense, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLargeTables: limits far beyond any engine's neither take memory nor change a step.
func TestLargeTables(t *testing.T) {
	d := deploy(t, "mixtral-8x7b", "h100", model.Options{TensorParallel: 2})
	huge := kernels(t, d, model.KernelOptions{MaxNumBatchedTokens: math.MaxInt32, MaxNumSeqs: math.MaxInt32})
	small := kernels(t, d, model.KernelOptions{MaxNumBatchedTokens: 64, MaxNumSeqs: 8})
	for _, m := range []int32{1, 100, 5000, 20000, 100000, 10_000_000} {
		b := model.Batch{Decodes: 100, Context: 50000, Emit: 100, Chunks: []model.Chunk{{New: m}}}
		near(t, "large step", step(small, b), step(huge, b), 5e-5)
	}
}

// TestWork compares counts with the usual rules of thumb.
func TestWork(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	w := d.Work()
	// Two operations per parameter and token; the embedding is looked up, not multiplied.
	prefill := &model.Batch{Chunks: []model.Chunk{{New: 1000}}, Emit: 1000}
	near(t, "prefill FLOPs", w.FLOPs(prefill), 2*(8.03e9-0.525e9)*1000+32*4*4096*1000*500, 1e-3)
	decode := &model.Batch{Decodes: 10, Context: 10000, Emit: 10}
	near(t, "decode bytes", w.Bytes(decode), 2*(8.03e9-0.525e9)+10000*131072, 1e-3)
	near(t, "floor", w.Floor(decode), w.Bytes(decode)/3.35e12, 1e-9)
	near(t, "floor", w.Floor(prefill), w.FLOPs(prefill)/989e12, 1e-9)
	shared := *decode
	shared.SharedTokens = 4000
	near(t, "shared bytes", w.Bytes(decode)-w.Bytes(&shared), 4000*131072, 1e-9)
	if w.FLOPs(decode) != w.FLOPs(&shared) {
		t.Error("sharing spares arithmetic")
	}

	// A run's work is that of its mean context.
	sum := 0.0
	for k := range 11 {
		b := *decode
		b.Context += int64(10 * k)
		sum += w.FLOPs(&b)
	}
	mean := *decode
	mean.Context += 50
	near(t, "run", sum, 11*w.FLOPs(&mean), 1e-12)

	// Mixture of experts: two operations per active parameter, and few experts for few tokens.
	m := deploy(t, "mixtral-8x7b", "h100", model.Options{TensorParallel: 2}).Work()
	near(t, "experts' FLOPs", m.FLOPs(&model.Batch{Chunks: []model.Chunk{{New: 1}}, Emit: 1}), (12.88e9-0.131e9)*2/2,
		2e-3)
	one, many := m.Bytes(&model.Batch{Decodes: 1, Context: 1, Emit: 1}),
		m.Bytes(&model.Batch{Decodes: 512, Context: 512, Emit: 512})
	near(t, "all experts", many, 46.7e9, 0.05)
	near(t, "two experts", one, 12.75e9, 0.05)

	// Pipeline stages work one after the other, each on a share.
	pp := deploy(t, "llama-3.1-8b", "h100", model.Options{PipelineParallel: 2}).Work()
	near(t, "stage FLOPs", pp.FLOPs(decode), w.FLOPs(decode)/2, 1e-12)
	near(t, "stages' floor", pp.Floor(decode), w.Floor(decode), 1e-12)
}

func TestEmptyBatch(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "a100", model.Options{})
	r, err := model.NewRoofline(d, model.DefaultRooflineOptions())
	if err != nil {
		t.Fatal(err)
	}
	k := kernels(t, d, model.KernelOptions{})
	for _, timer := range []model.StepTimer{k, r} {
		for _, b := range []model.Batch{{}, {Chunks: []model.Chunk{{}}}} {
			if first, _, n := timer.Span(&b); first != 0 || n != 1 {
				t.Errorf("%T: %d, %d", timer, first, n)
			}
		}
	}
	if e := k.Explain(&model.Batch{}); e.Seconds != 0 || len(e.Terms) != 0 {
		t.Errorf("explained %+v", e)
	}
}
