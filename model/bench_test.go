package model_test

import (
	"testing"

	"clifftop/model"
)

// BenchmarkKernelsSpan times the planning of a span for a decode batch. The contexts vary as in a run.
func BenchmarkKernelsSpan(b *testing.B) {
	k := kernels(b, deploy(b, "llama-3.1-8b", "h100", model.Options{}), model.KernelOptions{})
	batch := model.Batch{Decodes: 61, Emit: 61}
	b.ReportAllocs()
	var sum int64
	for i := range b.N {
		batch.Context = 61*300 + int64(i%4096)*117
		first, slope, n := k.Span(&batch)
		sum += first + slope + int64(n)
	}
	sink = sum
}

// BenchmarkKernelsChunk times a step of decodes with one prefill chunk.
func BenchmarkKernelsChunk(b *testing.B) {
	for _, gpu := range []string{"h100", "a100"} {
		b.Run(gpu, func(b *testing.B) {
			k := kernels(b, deploy(b, "llama-3.1-8b", gpu, model.Options{}), model.KernelOptions{})
			chunks := []model.Chunk{{New: 512}}
			batch := model.Batch{Decodes: 61, Emit: 62, Chunks: chunks}
			b.ReportAllocs()
			var sum int64
			for i := range b.N {
				batch.Context = 61*300 + int64(i%4096)*117
				chunks[0].Cached = int32(i % 4096)
				first, _, _ := k.Span(&batch)
				sum += first
			}
			sink = sum
		})
	}
}

// BenchmarkNewKernels times the construction of the tables.
func BenchmarkNewKernels(b *testing.B) {
	for _, llm := range []string{"llama-3.1-8b", "gpt-oss-120b", "deepseek-v3"} {
		b.Run(llm, func(b *testing.B) {
			d := deploy(b, llm, "h200", model.Options{TensorParallel: 8})
			for range b.N {
				if _, err := model.NewKernels(d, model.KernelOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var sink int64
