package model

import (
	"fmt"
	"math"

	"clifftop/internal/faults"
)

// KVBytesPerToken returns the bytes of one token's keys and values on one rank, over all layers of the longest
// pipeline stage, without the savings of sliding windows. The short windows beside compressed attention do not count.
func (d *Deployment) KVBytesPerToken() int64 {
	sum := int64(0)
	for _, g := range d.KVGroups() {
		if !g.state() && !(g.Kind == SlidingWindow && d.LLM.compressed()) {
			sum += g.bytes()
		}
	}
	return sum
}

// kvBytesPerTokenLayer returns the bytes of one token in the cache of an attention layer on one rank. Every rank holds
// the latent vector of MLA and the index of sparse attention, whose layers share the mean.
func (d *Deployment) kvBytesPerTokenLayer(x *Mixer) int64 {
	if d.LLM.UsesMLA() {
		bytes := d.latentBytes()
		if i := &x.Indexer; i.TopK > 0 {
			bytes += (i.indexBytes()*int64(i.Layers) + int64(x.Layers) - 1) / int64(x.Layers)
		}
		return bytes
	}
	return int64(max(1, x.KVHeads/d.TensorParallel)) * int64(x.HeadDim+x.ValueDim) * d.KVDtype.kvBytes()
}

// latentBytes returns the bytes of a latent vector of MLA. Kernels of sparse attention keep its positional part in 16
// bits, and a scale of 4 bytes for every 128 numbers.
func (d *Deployment) latentBytes() int64 {
	a := &d.LLM.MLA
	if d.KVDtype == FP8 && d.LLM.sparse() {
		return int64(a.KVRank + (a.KVRank+127)/128*4 + 2*a.RopeDim)
	}
	return int64(a.KVRank+a.RopeDim) * d.KVDtype.kvBytes()
}

// MemoryKnobs are the engine settings that determine the size of the KV cache. Start from [DefaultMemoryKnobs].
type MemoryKnobs struct {
	Utilization         float64 // fraction of the reported memory that the engine may use
	BlockSize           int     // tokens per block
	MaxNumBatchedTokens int     // token budget of a step, which sizes the activations
	MaxNumSeqs          int     // largest batch, which sizes the sampler's buffers
	CountGraphs         bool    // CUDA graphs count towards the budget, as in engines since 2026
	MaxCapture          int     // largest batch in tokens with a CUDA graph; 0 is 512
	BlocksOverride      int     // sets the number of blocks if positive
	// Pool returns the memory of the KV cache by another engine's rule, in bytes; nil is vLLM's.
	Pool    func(*Deployment, *KVBudget) float64
	Grouped bool // KV cache groups have block tables: see [Deployment.CacheGroups]
	Drafter DrafterMemory
}

// DefaultMemoryKnobs returns vLLM's defaults.
func DefaultMemoryKnobs() MemoryKnobs {
	return MemoryKnobs{
		Utilization: 0.92, BlockSize: 16, MaxNumBatchedTokens: 8192, MaxNumSeqs: 256, CountGraphs: true,
	}
}

func (k *MemoryKnobs) validate() error {
	var f faults.List
	f.Check(k.Utilization > 0 && k.Utilization <= 1, "gpu_memory_utilization is %v (want above 0, at most 1)",
		k.Utilization)
	faults.Within(&f, "block_size", k.BlockSize, 1, math.MaxInt32)
	faults.Within(&f, "max_num_batched_tokens", k.MaxNumBatchedTokens, 1, math.MaxInt32)
	faults.Within(&f, "max_num_seqs", k.MaxNumSeqs, 1, math.MaxInt32)
	f.Check(k.BlocksOverride >= 0 && k.BlocksOverride <= math.MaxInt32, "num_gpu_blocks_override is %d (want 1 to %d)",
		k.BlocksOverride, math.MaxInt32)
	f.AtLeast("drafter's weights", k.Drafter.Weights, 0)
	return f.Err()
}

// Memory besides weights and KV cache in bytes, fitted to five measured block counts.
const (
	runtimeBytes     = 0.6e9 // CUDA context, libraries, fragmentation
	collectivesBytes = 0.5e9 // communication buffers, with more than one tensor-parallel rank
	graphBytes       = 0.6e9 // captured CUDA graphs of the usual sizes, up to usualCapture tokens
	usualCapture     = 512
)

// capturedSizes returns the number of batch sizes for which CUDA graphs are captured up to a size: see [usualSize].
func capturedSizes(limit int) int {
	n := 0
	for m := 1; m <= limit; m = usualSize(m + 1) {
		n++
	}
	return n
}

// expertPadding returns the bytes that kernels for MXFP4 experts add to their weights on one rank. They round the
// hidden size up to a multiple of 256, and the width of an expert on a rank to one of 128, or of 256 on data-centre
// Blackwell (vLLM's Marlin and TensorRT-LLM's kernels, model_executor/layers/quantization/mxfp4.py).
func (d *Deployment) expertPadding() float64 {
	m := &d.LLM
	_, moe := m.floatMLPLayers()
	if d.MoEDtype != MXFP4 || moe == 0 {
		return 0
	}
	width, unit := float64(m.MoEIntermediate*d.ExpertParallel)/float64(d.moeRanks()), 128.0
	if d.GPU.Architecture == "blackwell_dc" {
		unit = 256
	}
	roundUp := func(x, unit float64) float64 { return math.Ceil(x/unit) * unit }
	h := float64(m.Hidden)
	padded := 3 * float64(roundUp(h, 256)*roundUp(width, unit))
	layers := moe * float64(d.stageLayers()) / float64(m.Layers)
	experts := float64(m.Experts+d.RedundantExperts) / float64(d.ExpertParallel)
	return math.Ceil(layers * experts * (padded - 3*float64(h*width)) * d.MoEDtype.WeightBytes())
}

// KVBudget is the breakdown of the memory of one GPU in bytes, with the resulting KV cache.
type KVBudget struct {
	Total       float64 // memory as the driver reports it
	Requested   float64 // memory that the engine may use
	Weights     float64
	Runtime     float64 // context and communication buffers
	Activations float64 // peak of a step with a full token budget
	Sampler     float64
	Graphs      float64 // CUDA graphs, when counted
	KVCache     float64 // the rest

	BlockSize  int   // tokens
	BlockBytes int64 // bytes of a block on one GPU
	// Blocks is the number of blocks that engines log. One of them is the null block, which holds no tokens.
	Blocks int
	// UsableTokens is the capacity of the usable blocks in tokens; windowed layers take some of it (see
	// [Deployment.Pages]).
	UsableTokens int64
}

// KVBlocks returns the size of the KV cache:
//
//	blocks = ⌊(utilization·reported − weights − reserve) / (KV bytes per token · block size)⌋
//	reserve = runtime + activations + sampler + graphs
//	activations = max_num_batched_tokens · (k·3·I/TP + 8·hidden) · 2, with an encoder's cache of images 9·hidden
//	sampler = max_num_seqs · vocab · 8
//
// where k·I is the MLP width per token: of its experts, or of the dense MLP. Weights and KV include those of a drafter.
// With windowed layers the cache is counted in pages of the full layers or, if knob Grouped is set, of the largest KV
// cache group. The error is a [*FitError] if the model does not fit: with a number of blocks given, if its weights do
// not.
func (d *Deployment) KVBlocks(k MemoryKnobs) (KVBudget, error) {
	if err := k.validate(); err != nil {
		return KVBudget{}, err
	}
	b := d.budget(k)
	if k.BlocksOverride > 0 {
		if b.Weights+b.Runtime > b.Total { // the engine does not get as far as the override
			return KVBudget{}, d.fitError(k, b)
		}
		b.setBlocks(float64(k.BlocksOverride))
		return b, nil
	}
	if b.Blocks < 2 {
		return KVBudget{}, d.fitError(k, b)
	}
	return b, nil
}

func (d *Deployment) budget(k MemoryKnobs) KVBudget {
	m := &d.LLM
	b := KVBudget{
		Total: d.GPU.reported(), Weights: d.WeightBytesPerRank() + d.expertPadding() + k.Drafter.Weights,
		Runtime:   runtimeBytes,
		BlockSize: k.BlockSize, BlockBytes: d.KVGroups().PoolBytesPerToken() * int64(k.BlockSize),
	}
	if k.Grouped {
		groups := d.CacheGroups(k.BlockSize)
		b.BlockBytes = groups.BlockBytes()
		if d.LLM.compressed() {
			b.BlockSize = compressedBlock // of the group that keeps all tokens
		}
	}
	b.BlockBytes += k.Drafter.KVPerToken * int64(b.BlockSize)
	b.Requested = float64(b.Total * k.Utilization)
	if d.TensorParallel > 1 {
		b.Runtime += collectivesBytes
	}
	width := float64(m.Intermediate)
	if m.Experts > 0 {
		width = float64(m.TopK) * float64(m.MoEIntermediate)
	}
	b.Activations = float64(float64(k.MaxNumBatchedTokens) * (3*width/float64(d.TensorParallel) +
		float64(8*float64(m.Hidden))) * 2)
	if m.Encoder.Params > 0 { // the encoder's cache holds as many tokens of images as an iteration has tokens
		b.Activations += float64(float64(k.MaxNumBatchedTokens) * float64(m.Hidden) * 2)
	}
	b.Sampler = float64(float64(k.MaxNumSeqs) * float64(m.Vocab) * 8)
	if k.CountGraphs {
		b.Graphs = graphBytes
		if k.MaxCapture > 0 {
			b.Graphs *= float64(capturedSizes(k.MaxCapture)) / float64(capturedSizes(usualCapture))
		}
	}
	b.KVCache = b.Requested - b.Weights - b.Runtime - b.Activations - b.Sampler - b.Graphs
	if k.Pool != nil {
		b.KVCache = k.Pool(d, &b)
	}
	b.setBlocks(math.Floor(b.KVCache / float64(b.BlockBytes)))
	return b
}

func (b *KVBudget) setBlocks(n float64) {
	b.Blocks = int(min(max(n, 0), math.MaxInt32))
	b.UsableTokens = int64(max(0, b.Blocks-1)) * int64(b.BlockSize)
}

// Pages returns the number of blocks of the pool that a sequence of the given tokens takes: a block for each
// blockSize tokens, and the charge of the groups that keep only some of them.
func (d *Deployment) Pages(tokens, blockSize int) int {
	blocks := (tokens + blockSize - 1) / blockSize
	groups := d.KVGroups()
	if len(groups) == 1 {
		if most, bounded := groups[0].most(blockSize); bounded {
			blocks = min(blocks, most)
		}
	}
	return blocks + groups.Charge(blocks, blockSize)
}

// FitError reports that a model does not fit on its GPUs, and what would fit.
type FitError struct {
	Deployment string
	// MissingBytes is the additional memory per GPU that the weights and the smallest KV cache need.
	MissingBytes float64
	// TensorParallel is the smallest size at which the model fits in its format; 0 if none does.
	TensorParallel int
	// Dtype is a smaller format in which the model fits on the given GPUs; Auto if none does.
	Dtype Precision
	// Budget is the breakdown of the memory; its KVCache is too small or negative.
	Budget KVBudget
}

func (e *FitError) Error() string {
	s := fmt.Sprintf("%s does not fit: %.1f GB too much per GPU", e.Deployment, e.MissingBytes/1e9)
	switch {
	case e.TensorParallel > 0 && e.Dtype != Auto:
		return s + fmt.Sprintf(" (fits with tensor_parallel_size %d, or with dtype %v)", e.TensorParallel, e.Dtype)
	case e.TensorParallel > 0:
		return s + fmt.Sprintf(" (fits with tensor_parallel_size %d)", e.TensorParallel)
	case e.Dtype != Auto:
		return s + fmt.Sprintf(" (fits with dtype %v)", e.Dtype)
	}
	return s + " (no tensor_parallel_size up to 64 and no smaller dtype fits)"
}

// fitError tries larger tensor-parallel sizes and smaller formats.
func (d *Deployment) fitError(k MemoryKnobs, b KVBudget) error {
	e := &FitError{Deployment: d.String(), MissingBytes: 2*float64(b.BlockBytes) - b.KVCache, Budget: b}
	fits := func(o Options) bool {
		t, err := NewDeployment(d.LLM, d.GPU, o)
		return err == nil && t.budget(k).Blocks >= 2
	}
	for _, tp := range d.LLM.tensorParallelSizes() {
		o := d.Options
		if o.TensorParallel = tp; o.ExpertParallel > 1 {
			o.ExpertParallel = tp * o.DataParallel // as engines set it
		}
		if tp > d.TensorParallel && tp <= 64 && fits(o) {
			e.TensorParallel = tp
			break
		}
	}
	for _, p := range []Precision{FP8, NVFP4, INT4} {
		if p == NVFP4 && d.GPU.FP4FLOPs == 0 || p == FP8 && d.GPU.FP8FLOPs == 0 {
			continue
		}
		o := d.Options
		o.Dtype, o.AttentionDtype = smaller(p, o.Dtype), Auto
		o.MoEDtype = smaller(p, o.MoEDtype)
		if (o.Dtype != d.Dtype || o.MoEDtype != d.MoEDtype) && fits(o) {
			e.Dtype = p
			break
		}
	}
	return e
}

func smaller(a, b Precision) Precision {
	if a.WeightBytes() < b.WeightBytes() {
		return a
	}
	return b
}
