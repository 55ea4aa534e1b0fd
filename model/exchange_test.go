package model_test

import (
	"testing"

	"clifftop/model"
)

// exchanged returns the time of the exchange of one layer in a step of as many tokens on each rank, in microseconds.
func exchanged(t *testing.T, gpu string, o model.Options, tokens int) float64 {
	t.Helper()
	k := kernels(t, deploy(t, "deepseek-r1", gpu, o), model.KernelOptions{ExpertImbalance: 1})
	e := k.Explain(&model.Batch{Decodes: tokens, Context: int64(tokens), Emit: tokens})
	for _, term := range e.Terms {
		if term.Name == "expert exchange" {
			return term.Seconds * 1e6 / 58 // layers with experts
		}
	}
	t.Fatalf("no exchange in %+v", e.Terms)
	return 0
}

// TestExchange compares with times worked out by hand, which are near the kernel tables.
func TestExchange(t *testing.T) {
	for _, c := range []struct {
		gpu    string
		ranks  int
		way    model.Exchange
		tokens int
		want   float64
	}{
		// 25 µs, and 7 of 8 copies of 7,392 bytes at 268 GB/s and of 14,336 at 217 GB/s (table: 103 µs).
		{"h200", 8, model.ExchangeLowLatency, 128, 25 + 128*7*(7392/268e3+14336/217e3)},
		// Two nodes: 22 µs more, and 4 of 8 copies over 0.94 of 50 GB/s (table: 288 µs).
		{"h200", 16, model.ExchangeLowLatency, 128, 47 + 128*4*(7392+14336)/47e3},
		// A copy to each of the 4.598 other ranks that a token visits (table, 20 SMs: 2.8 ms).
		{"h200", 8, model.ExchangeThroughput, 8192, 90 + 8192*4.598*(7392/288e3+14336/317e3)},
		{"h200", 8, model.ExchangeDeepEP, 128, 25 + 128*7*(7392/268e3+14336/217e3)}, // the faster of both
		// 32 ranks are one domain of NVLink (table: 96 µs).
		{"gb200", 32, model.ExchangeNVLink, 128, 42 + 128*6.963*(7392/430e3+14336/420e3)},
	} {
		o := model.Options{DataParallel: c.ranks, ExpertParallel: c.ranks, Exchange: c.way}
		near(t, c.gpu+" "+c.way.String(), exchanged(t, c.gpu, o, c.tokens), c.want, 1e-3)
	}
}

// TestExchangeOptions checks what redundant experts and steps of two batches do.
func TestExchangeOptions(t *testing.T) {
	o := model.Options{DataParallel: 32, ExpertParallel: 32, Exchange: model.ExchangeNVLink}
	plain := deploy(t, "deepseek-r1", "gb200", o)
	o.RedundantExperts = 32 // 9 on each rank instead of 8
	redundant := deploy(t, "deepseek-r1", "gb200", o)
	near(t, "bytes of the ninth expert", redundant.WeightBytesPerRank()-plain.WeightBytesPerRank(), 58*3*7168*2048, 1e-9)
	o.DualBatch = true
	dual := deploy(t, "deepseek-r1", "gb200", o)
	many := model.Batch{Chunks: []model.Chunk{{New: 4096}}, Emit: 1}
	balanced, overlapped := step(kernels(t, redundant, model.KernelOptions{}), many),
		step(kernels(t, dual, model.KernelOptions{}), many)
	if overlapped >= balanced {
		t.Errorf("a prompt takes %v s in two batches, %v s in one", overlapped, balanced)
	}
	if _, err := model.NewDeployment(plain.LLM, plain.GPU, model.Options{DataParallel: 48, ExpertParallel: 48}); err == nil {
		t.Error("48 ranks divide 256 experts")
	}
	if _, err := model.NewDeployment(plain.LLM, plain.GPU, model.Options{DataParallel: 48, ExpertParallel: 48,
		RedundantExperts: 32}); err != nil {
		t.Error(err)
	}
}
