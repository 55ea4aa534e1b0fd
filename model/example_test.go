package model_test

import (
	"fmt"

	"clifftop/model"
	"clifftop/model/catalog"
)

// llama70B is Llama 3.1 70B in fp8 on four H100, for the examples.
func llama70B() *model.Deployment {
	llm, err := catalog.LLM("meta-llama/Llama-3.1-70B-Instruct")
	if err != nil {
		panic(err)
	}
	gpu, err := catalog.GPU("H100")
	if err != nil {
		panic(err)
	}
	d, err := model.NewDeployment(llm, gpu, model.Options{TensorParallel: 4, Dtype: model.FP8})
	if err != nil {
		panic(err)
	}
	return d
}

func ExampleNewDeployment() {
	d := llama70B()
	total, _ := d.Params()
	fmt.Println(d)
	fmt.Printf("%.1f billion parameters, %.1f GB of weights per GPU\n", total/1e9, d.WeightBytesPerRank()/1e9)
	fmt.Printf("%d bytes of KV cache per token and GPU\n", d.KVBytesPerToken())
	// Output:
	// llama-3.1-70b fp8 on 4 × h100-sxm (TP 4)
	// 70.6 billion parameters, 18.2 GB of weights per GPU
	// 81920 bytes of KV cache per token and GPU
}

func ExampleDeployment_KVBlocks() {
	b, err := llama70B().KVBlocks(model.DefaultMemoryKnobs())
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f GB of %.1f GB for the KV cache: %d blocks of %d tokens\n", b.KVCache/1e9, b.Requested/1e9,
		b.Blocks, b.BlockSize)
	fmt.Println(b.UsableTokens, "tokens")
	// Output:
	// 56.6 GB of 78.2 GB for the KV cache: 43216 blocks of 16 tokens
	// 691440 tokens
}

func ExampleDeployment_KVBlocks_doesNotFit() {
	llm, _ := catalog.LLM("llama-3.1-70b")
	gpu, _ := catalog.GPU("h100")
	d, err := model.NewDeployment(llm, gpu, model.Options{})
	if err != nil {
		panic(err)
	}
	_, err = d.KVBlocks(model.DefaultMemoryKnobs())
	fmt.Println(err)
	// Output:
	// llama-3.1-70b bf16 on 1 × h100-sxm does not fit: 66.9 GB too much per GPU (fits with tensor_parallel_size 2, or with dtype fp8)
}

func ExampleKernels_Span() {
	k, err := model.NewKernels(llama70B(), model.KernelOptions{})
	if err != nil {
		panic(err)
	}
	// 32 sequences decode, with 2,048 tokens of context each.
	first, slope, n := k.Span(&model.Batch{Decodes: 32, Context: 32 * 2048, Emit: 32})
	fmt.Printf("%.2f ms, then %.2f µs more each time, for %d iterations\n", float64(first)/1e12, float64(slope)/1e9, n)
	// Output:
	// 14.62 ms, then 0.84 µs more each time, for 100 iterations
}

func ExampleKernels_Explain() {
	k, err := model.NewKernels(llama70B(), model.KernelOptions{})
	if err != nil {
		panic(err)
	}
	e := k.Explain(&model.Batch{Decodes: 32, Context: 32 * 2048, Emit: 32})
	for _, t := range e.Terms {
		if t.Seconds > 0.5e-3 {
			fmt.Printf("%-22s %5.2f ms  %-7s %s\n", t.Name, t.Seconds*1e3, t.BoundBy, t.Row)
		}
	}
	fmt.Printf("MFU %.0f %%, MBU %.0f %%\n", 100*e.MFU, 100*e.MBU)
	// Output:
	// decode attention        2.68 ms  memory  h100-sxm attn_decode bf16
	// attention projections   2.26 ms  latency h100-sxm gemm fp8
	// mlp                     6.29 ms  memory  h100-sxm gemm fp8
	// elementwise             0.98 ms  latency common
	// all-reduce              1.63 ms  latency hopper allreduce
	// MFU 4 %, MBU 47 %
}
