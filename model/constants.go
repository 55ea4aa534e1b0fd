package model

import "clifftop/internal/faults"

// KernelConstants are the resolved kernel measurements of a GPU. Each row comes from the GPU itself, from its class
// or from the medians over other GPUs, and names its origin. Times are in seconds; fractions refer to the
// datasheet's peak or bandwidth.
type KernelConstants struct {
	GEMM      [precisions]GEMMConstants   // by format of the weights
	Decode    [precisions]DecodeConstants // by format of the KV cache: BF16 and FP8
	Prefill   PrefillConstants
	Mixed     MixedConstants
	MoE       [precisions]MoEConstants // by format of the expert weights
	Recurrent [mixerKinds]RecurrentConstants
	Sparse    SparseConstants
	// Compressed and Streams are those of DeepSeek-V4.
	Compressed CompressedConstants
	Streams    HyperConstants
	AllReduce  AllReduceConstants
	Exchange   [exchanges]ExchangeConstants
	// ExchangeRow is the origin of Exchange; empty if there are no measurements.
	ExchangeRow string
	Common      CommonConstants
	// DecodeBlock is the rate in bytes per second at which one thread block of the decode attention reads KV; 0 if the
	// kernel balances sequences of unequal lengths.
	DecodeBlock float64
}

// GEMMConstants describe a dense matrix product:
//
//	t = Launch + k·PerK + ((flops/(peak·Compute))^p + (bytes/(bandwidth·Memory))^p)^(1/p)
type GEMMConstants struct {
	Row        string    // origin, such as "h100-sxm gemm fp8"
	Arithmetic Precision // format of the multiplication: BF16, FP8 or NVFP4
	Launch     float64
	Compute    float64
	Memory     float64
	Exponent   float64 // p; 1 is the sum of both times, large values approach their maximum
	PerK       float64 // seconds per element of the inner dimension
}

// DecodeConstants describe the attention kernel of decoding sequences.
type DecodeConstants struct {
	Row      string
	Launch   float64
	Sequence float64 // per sequence and KV head
	Memory   float64
}

// PrefillConstants describe the attention kernel of prefill chunks.
type PrefillConstants struct {
	Row     string
	Launch  float64
	Compute float64
	Delta   float64 // tokens added to the mean context of a chunk
}

// MixedConstants describe the attention kernel that runs prefill and decode together on FA2 GPUs.
type MixedConstants struct {
	Row     string
	Compute float64
}

// MoEConstants describe the grouped product over experts:
//
//	t = Launch + activations/(0.9·bandwidth)
//	  + ((flops·(1+ShortK/I)/(peak·Compute))^p + (weights/(bandwidth·Memory))^p)^(1/p)
//
// TileRows rows of padding per active expert count as work.
type MoEConstants struct {
	Row        string
	Arithmetic Precision
	Launch     float64
	Memory     float64 // up to 1.05, because the number of distinct experts is slightly overestimated
	Compute    float64
	TileRows   float64
	ShortK     float64 // width at which a narrow expert runs at half speed
	Exponent   float64
	// Dispersion is that of the routing with which the row was fitted (see [KernelOptions.RoutingDispersion]); 0 means
	// the default.
	Dispersion float64
}

// RecurrentConstants describe the kernels of a kind of recurrent layers, with heads of 128·128 numbers.
type RecurrentConstants struct {
	Row          string
	DecodeLaunch float64 // of the recurrence and the short convolution of a decode
	DecodeMemory float64 // traffic of the states
	ConvLaunch   float64 // of the convolution of a prefill
	ConvMemory   float64
	Prefill      ChunkConstants // fused kernels
	Triton       ChunkConstants // a sequence of Triton kernels
}

// ChunkConstants describe the recurrence of prefill chunks: see [recurrentPrefill].
type ChunkConstants struct {
	Launch  float64
	Chain   float64 // per token of one head
	Compute float64 // of the 16-bit peak, at 6 operations per number of the state and token
	Padding float64 // tokens that the start of a chunk costs
}

// SparseConstants describe sparse attention with an indexer.
type SparseConstants struct {
	Row            string
	Heads          float64 // query heads to which the kernel pads
	IndexLaunch    float64 // small kernels of the indexer in a decode
	IndexMemory    float64 // of the indexer's cache in a decode
	IndexCompute   float64 // of the 8-bit peak
	TopKLaunch     float64 // of the selection in a decode
	TopKLatency    float64 // per token of context beyond TopK, in a decode
	TopKToken      float64 // per token of a prefill
	TopKPair       float64 // per (new token, context token) of a prefill
	DecodeCompute  float64
	DecodeMemory   float64
	PrefillCompute float64
	// PrefillCompute8 is PrefillCompute with KV in 8 bits.
	PrefillCompute8 float64
	PrefillMemory   float64 // relative to HBM; neighbouring queries share tokens in the L2 cache
	// Unfused8 and Unfused16 are the times of what vLLM's decode layers have more than fused ones, with KV in 8 and in
	// 16 bits, in seconds: see [KernelOptions.UnfusedSparse].
	Unfused8, Unfused16 float64
}

// CompressedConstants describe compressed attention: see [Compression] and compressedPrefill. Products are apart.
type CompressedConstants struct {
	Row           string
	Launch        float64 // small kernels of a decode; without an indexer
	IndexedLaunch float64 // the same with an indexer
	Sequence      float64 // per sequence of a decode
	Decode        float64 // of the peak or the bandwidth, in a decode
	Index         float64 // of the bandwidth, for the scores and the selection in a decode
	Selection     float64 // of the entries in a decode, if there are more than are selected

	PrefillLaunch, PrefillToken float64 // per layer; per new token and 64 heads
	Prefill, PrefillIndex       float64 // of the 16-bit peak; of the 8-bit peak
	// EntryRow is the time of the selection for a token on one multiprocessor, per entry; LongRow the time of a token
	// with more than 8,192 tokens of context. The latencies hold for a single token.
	EntryRow, LongRow, RowLatency, LongRowLatency float64
}

// HyperConstants describe the kernels of residual streams before and after a mixer or MLP.
type HyperConstants struct {
	Row       string
	Pre, Post StreamConstants
}

// StreamConstants describe a kernel of residual streams: the soft maximum, with an exponent, of a latency
// Launch + PerHidden·hidden and its memory traffic.
type StreamConstants struct{ Launch, PerHidden, Memory, Exponent float64 }

// ReduceKernels names the all-reduce of an engine.
type ReduceKernels uint8

// The kernels whose times were measured apart. Each engine runs different algorithms for small, medium and large
// messages: one step in which all ranks read all inputs, two steps, and NCCL.
const (
	ReduceVLLM   ReduceKernels = iota // of vLLM from 0.18: medium messages go through symmetric memory
	ReduceCustom                      // of vLLM before, and of SGLang before 0.5.14: in one or two steps up to 8 MiB
	ReduceTRTLLM                      // also of kernels that are fused with the norm, in all engines
	reduceKernels
)

// reduceRegimes is the maximum number of regimes of an all-reduce.
const reduceRegimes = 5

// ReduceRegime is the all-reduce of messages below a size: Latency + bytes·SecondsPerByte.
type ReduceRegime struct {
	Below          float64 // bytes; the largest float64 for the last regime, 0 for none
	Latency        float64
	SecondsPerByte float64
}

// AllReduceConstants are latency and bus bandwidth of an all-reduce over 2, 4 and 8 GPUs.
type AllReduceConstants struct {
	// Regimes are the measured times by kernels, group of 2, 4 or 8 GPUs, and size. Without them Latency and
	// BusBytesPerSecond apply to all sizes.
	Regimes           [reduceKernels][3][reduceRegimes]ReduceRegime
	Row               string
	Latency           [3]float64
	BusBytesPerSecond [3]float64
	// FusedBytes is the largest message of the kernel that is fused with the norm; 0 if there is none.
	FusedBytes   [3]float64
	FusedLatency float64
	NCCLLatency  [3]float64 // of an all-gather or reduce-scatter
}

// LaunchConstants describe how the host launches kernels without a CUDA graph.
type LaunchConstants struct {
	Eager float64 // seconds per kernel
	// Kernels of a layer's parts. With tensor parallelism two all-reduces are added.
	Attention, LatentAttention, SparseAttention, Recurrent, MLP, Experts float64
	// Exchange is the exchange of tokens between data-parallel ranks.
	Exchange float64
	// Seconds of the parts of a layer that piecewise graphs leave out.
	PiecewiseAttention, PiecewiseRecurrent float64
}

// CommonConstants apply to all GPUs.
type CommonConstants struct {
	ElementwiseKernels float64 // small kernels per layer
	ElementwiseLaunch  float64 // each
	ElementwiseMemory  float64

	SamplerLaunch    float64
	SamplerBytes     float64 // bytes moved per logit
	SamplerTopPBytes float64 // additional bytes per logit under top-p or top-k

	FA2TileRows float64
	FA2Delta    float64 // tokens

	MLADecodeLaunch, MLADecodeSequence float64
	MLADecodeCompute, MLADecodeMemory  float64
	// MLADecodeFP8 is the fraction of the 8-bit peak with a KV cache in fp8; 0 for kernels that multiply in 16 bits.
	MLADecodeFP8 float64
	// MLADecode32Heads is the fraction of the bandwidth with 17 to 32 heads on a rank; 0 means MLADecodeMemory.
	MLADecode32Heads                   float64
	MLAPrefillLaunch                   float64
	MLAPrefillCompute, MLAPrefillDelta float64

	Launch LaunchConstants

	StepOverhead     float64 // per step
	SequenceOverhead float64 // per sequence in the step
}

// Tables selects groups of constants from the kernel measurements alone, without corrections from served runs. It
// shows the effect of each correction.
type Tables struct {
	GEMM           bool // bandwidth of dense products
	MixedAttention bool // rate of attention that mixes prefill with decode
	MoE            bool // kernels of the experts
	AllReduce      bool // one latency and bandwidth of all-reduces for all engines and sizes
}

// constants returns the constants of the GPU, with the given groups uncorrected.
func (g *GPU) constants(t Tables) *KernelConstants {
	if g.Tables.isZero() || t == (Tables{}) {
		return &g.Kernels
	}
	k := g.Kernels
	if t.GEMM {
		k.GEMM = g.Tables.GEMM
	}
	if t.MixedAttention {
		k.Mixed = g.Tables.Mixed
	}
	if t.MoE {
		k.MoE = g.Tables.MoE
	}
	if t.AllReduce {
		k.AllReduce.Regimes = [reduceKernels][3][reduceRegimes]ReduceRegime{}
	}
	return &k
}

func (k *KernelConstants) isZero() bool { return *k == KernelConstants{} }

// validate rejects constants that would make an operation instantaneous or faster than the hardware.
func (k *KernelConstants) validate() error {
	var f faults.List
	fraction := func(row, name string, v, limit float64) {
		f.Check(v > 0 && v <= limit, "%s: %s is %v (want above 0, at most %v)", row, name, v, limit)
	}
	atLeast := func(row, name string, v, least float64) { f.AtLeast(row+": "+name, v, least) }
	for _, p := range []Precision{BF16, FP16, FP8, INT4, NVFP4, MXFP4} {
		g, m := &k.GEMM[p], &k.MoE[p]
		fraction(g.Row, "ec", g.Compute, 1)
		fraction(g.Row, "em", g.Memory, 1)
		atLeast(g.Row, "t0", g.Launch, 0)
		atLeast(g.Row, "p", g.Exponent, 1)
		atLeast(g.Row, "t_per_k_ns", g.PerK, 0)
		fraction(m.Row, "ec", m.Compute, 1)
		fraction(m.Row, "em", m.Memory, moeMemoryLimit)
		atLeast(m.Row, "t0", m.Launch, 0)
		atLeast(m.Row, "tile_rows", m.TileRows, 0)
		atLeast(m.Row, "i0", m.ShortK, 0)
		atLeast(m.Row, "p", m.Exponent, 1)
	}
	for _, p := range []Precision{BF16, FP8} {
		d := &k.Decode[p]
		fraction(d.Row, "e", d.Memory, 1)
		atLeast(d.Row, "t0", d.Launch, 0)
		atLeast(d.Row, "cs", d.Sequence, 0)
	}
	k.validateLayers(fraction, atLeast)
	fraction(k.Prefill.Row, "e", k.Prefill.Compute, 1)
	atLeast(k.Prefill.Row, "t0", k.Prefill.Launch, 0)
	atLeast(k.Prefill.Row, "delta_tokens", k.Prefill.Delta, 0)
	fraction(k.Mixed.Row, "e", k.Mixed.Compute, 1)
	if k.AllReduce.Row != "" {
		for i := range k.AllReduce.Latency {
			atLeast(k.AllReduce.Row, "latency", k.AllReduce.Latency[i], 0)
			atLeast(k.AllReduce.Row, "nccl latency", k.AllReduce.NCCLLatency[i], 0)
			atLeast(k.AllReduce.Row, "bus bandwidth", k.AllReduce.BusBytesPerSecond[i], 1)
		}
		for _, kernels := range k.AllReduce.Regimes {
			for _, regimes := range kernels {
				for _, r := range regimes {
					atLeast(k.AllReduce.Row, "latency", r.Latency, 0)
					atLeast(k.AllReduce.Row, "seconds per byte", r.SecondsPerByte, 0)
				}
			}
		}
	}
	return f.Err()
}

// validateLayers checks the constants of recurrent layers and of sparse attention.
func (k *KernelConstants) validateLayers(fraction func(row, name string, v, limit float64),
	atLeast func(row, name string, v, least float64)) {
	for kind := GatedDeltaNet; kind < mixerKinds; kind++ {
		r := &k.Recurrent[kind]
		fraction(r.Row, "decode: em", r.DecodeMemory, 1)
		fraction(r.Row, "conv: em", r.ConvMemory, 1)
		atLeast(r.Row, "decode: t0", r.DecodeLaunch, 0)
		atLeast(r.Row, "conv: t0", r.ConvLaunch, 0)
		for _, c := range []ChunkConstants{r.Prefill, r.Triton} {
			fraction(r.Row, "prefill: ec", c.Compute, 1)
			atLeast(r.Row, "prefill: t0", c.Launch, 0)
			atLeast(r.Row, "prefill: chain", c.Chain, 0)
			atLeast(r.Row, "prefill: pad_tokens", c.Padding, 0)
		}
	}
	s := &k.Sparse
	fraction(s.Row, "index: em", s.IndexMemory, 1)
	fraction(s.Row, "index: ec", s.IndexCompute, 1)
	fraction(s.Row, "decode: em", s.DecodeMemory, 1)
	fraction(s.Row, "decode: ec", s.DecodeCompute, 1)
	fraction(s.Row, "prefill: em", s.PrefillMemory, 1)
	fraction(s.Row, "prefill: ec", s.PrefillCompute, 1)
	fraction(s.Row, "prefill: ec_fp8", s.PrefillCompute8, 1)
	atLeast(s.Row, "heads", s.Heads, 1)
	c := &k.Compressed
	for _, v := range []float64{c.Decode, c.Index, c.Prefill, c.PrefillIndex} {
		fraction(c.Row, "fractions", v, 1.2)
	}
	for _, v := range []float64{c.Launch, c.IndexedLaunch, c.Sequence, c.Selection, c.PrefillLaunch, c.PrefillToken,
		c.EntryRow, c.LongRow, c.RowLatency, c.LongRowLatency} {
		atLeast(c.Row, "times", v, 0)
	}
	for _, h := range []StreamConstants{k.Streams.Pre, k.Streams.Post} {
		fraction(k.Streams.Row, "em", h.Memory, 1)
		atLeast(k.Streams.Row, "p", h.Exponent, 1)
		atLeast(k.Streams.Row, "t0", h.Launch, 0)
		atLeast(k.Streams.Row, "per hidden", h.PerHidden, 0)
	}
	for _, v := range []float64{s.IndexLaunch, s.TopKLaunch, s.TopKLatency, s.TopKToken, s.TopKPair, s.Unfused8,
		s.Unfused16} {
		atLeast(s.Row, "times", v, 0)
	}
}

// moeMemoryLimit is the maximum effective bandwidth of expert weights relative to the datasheet: the expected
// number of distinct experts overestimates the bytes read by about this factor.
const moeMemoryLimit = 1.05
