package model

// imageCost is the time of the encoder of images in an iteration:
//
//	t = launch + Σ images·(perToken·n + perSquare·n²)
//
// for images of n tokens in the language model. It is zero for models without an encoder.
type imageCost struct {
	launch    int64    // of an iteration with images
	perToken  fraction // per token of an image
	perSquare fraction // per squared number of tokens
}

// Constants of the encoder, which no run measured. Its products run at the rate that the tables give for 16 bits, and
// its attention at that of prefill attention. It runs eagerly: each layer launches four products, the attention and
// about seven small kernels.
const (
	encoderKernels = 12
	encoderLaunch  = 5e-6 // seconds, of an eager kernel
)

// patchesPerToken returns the patches of the encoder per token of an image in the language model.
func (e *Encoder) patchesPerToken() float64 {
	if e.TokensPerImage == 0 || e.PatchesPerImage == 0 {
		return 4 // two by two patches are merged
	}
	return float64(e.PatchesPerImage) / float64(e.TokensPerImage)
}

// newImageCost returns the time of the encoder, whose weights are divided over the tensor-parallel ranks. Each layer
// ends with two all-reduces.
func newImageCost(o *ops) imageCost {
	e := &o.d.LLM.Encoder
	if e.Params == 0 {
		return imageCost{}
	}
	tp := float64(o.d.TensorParallel)
	layers, hidden, patches := float64(e.Layers), float64(e.Hidden), e.patchesPerToken()
	peak := o.d.GPU.BF16FLOPs * tp
	products := 2 * e.Params * patches / (peak * o.c.GEMM[BF16].Compute)
	attention := 4 * layers * hidden * patches * patches / (peak * o.c.Prefill.Compute)
	launch := layers * encoderKernels * encoderLaunch
	const many = 1 << 26 // bytes, of the rate of large messages
	if o.d.TensorParallel > 1 {
		one, two := o.comm.allReduce(many, o.d.TensorParallel), o.comm.allReduce(2*many, o.d.TensorParallel)
		products += 2 * layers * patches * hidden * 2 * (two.seconds - one.seconds) / many
		launch += 2 * layers * o.comm.allReduce(2, o.d.TensorParallel).seconds
	}
	return imageCost{roundFemtos(launch * femtosPerSecond), newFraction(products), newFraction(attention)}
}

// femtos returns the time of the encoder for a batch.
func (c *imageCost) femtos(b *Batch) int64 {
	var sum uint128
	any := false
	for _, ch := range b.Chunks {
		if ch.Images == 0 {
			continue
		}
		any = true
		tokens := int64(ch.Images) * int64(ch.ImageTokens)
		sum.add(tokens, c.perToken)
		sum.add(saturate(0, tokens, int64(ch.ImageTokens)), c.perSquare)
	}
	if !any {
		return 0
	}
	return min(c.launch+sum.femtos(), maxFemtos)
}
