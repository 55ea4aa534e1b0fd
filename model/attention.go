package model

import (
	"cmp"
	"math"
	"slices"
)

// layerClass is a group of layers with the same attention cost: full attention, or a sliding window.
type layerClass struct {
	layers float64
	window int64 // tokens; noWindow for full attention
}

// noWindow is longer than any context and can be doubled without overflow.
const noWindow = math.MaxInt64 / 4

// classes returns the layer classes of the model; empty classes are omitted.
func (o *ops) classes() []layerClass {
	var cs []layerClass
	for _, x := range o.d.LLM.mixers() {
		c := layerClass{float64(x.Layers), noWindow}
		if x.Window > 0 {
			c.window = int64(x.Window)
		}
		cs = append(cs, c)
	}
	slices.SortStableFunc(cs, func(a, b layerClass) int { return cmp.Compare(b.window, a.window) })
	return cs
}

// kvSeconds returns the time to read one token's keys and values of a layer at full bandwidth.
func (o *ops) kvSeconds() float64 {
	if o.d.LLM.UsesMLA() {
		return float64(o.d.kvBytesPerTokenLayer()) / o.bw
	}
	return o.kv * o.hd * 2 * o.kvb / o.bw
}

// decodeLaunch returns the fixed latency of the decode attention of a layer.
func (o *ops) decodeLaunch() cost {
	if !o.d.LLM.UsesMLA() {
		return latency(o.c.Decode[o.d.KVDtype].Launch)
	}
	// The absorbed up-projections of queries and values are read for any batch.
	c := latency(o.c.Common.MLADecodeLaunch + mlaProjectionLaunch)
	c.memory = o.mlaUpParams() * 2 / (mlaProjectionMemory * o.bw)
	c.seconds += c.memory
	return c
}

// The absorbed up-projections of multi-head latent attention run as batched matrix products.
const (
	mlaProjectionLaunch  = 6e-6 // seconds
	mlaProjectionMemory  = 0.6  // fraction of the bandwidth
	mlaProjectionCompute = 0.5  // fraction of the peak
)

// mlaUpParams returns the number of parameters of a layer's up-projections from the latent vector on one rank.
func (o *ops) mlaUpParams() float64 {
	_, c, _, n, v := o.d.LLM.MLA.dims()
	return o.q * c * (n + v)
}

// decodeSequence returns the time that one decoding sequence with the given context adds to the decode attention of
// a layer: the soft maximum, with exponent 3/2, of a cost per sequence and the read of its KV, because the kernel's
// prologue overlaps with the read.
func (o *ops) decodeSequence(context float64) cost {
	if o.d.LLM.UsesMLA() {
		return o.mlaDecodeSequence(context)
	}
	k := &o.c.Decode[o.d.KVDtype]
	c := cost{
		latency: o.kv * k.Sequence,
		memory:  context * o.kvSeconds() / k.Memory,
		compute: context * 4 * o.q * o.hd / o.d.GPU.BF16FLOPs,
	}
	exponent := 1.5
	if o.o.AdditiveDecode {
		exponent = 1
	}
	c.seconds = softMax(c.latency, max(c.memory, c.compute), exponent)
	return c
}

func (o *ops) mlaDecodeSequence(context float64) cost {
	g, peak := &o.c.Common, o.d.GPU.BF16FLOPs
	_, c, r, _, _ := o.d.LLM.MLA.dims()
	attend := cost{
		compute: context * 2 * o.q * (2*c + r) / (g.MLADecodeCompute * peak),
		memory:  context * o.kvSeconds() / g.MLADecodeMemory,
	}
	project := 2 * o.mlaUpParams() / (mlaProjectionCompute * peak)
	attend.latency = g.MLADecodeSequence + project
	attend.seconds = attend.latency + math.Hypot(attend.compute, attend.memory)
	return attend
}

// prefillLaunch returns the fixed latency of the prefill attention of a layer.
func (o *ops) prefillLaunch() float64 {
	if o.d.LLM.UsesMLA() {
		return o.c.Common.MLAPrefillLaunch
	}
	return o.c.Prefill.Launch
}

// prefillPair returns the time of one (new token, context token) pair in the prefill attention of a layer, and the
// number of tokens added to the mean context of a chunk.
func (o *ops) prefillPair() (seconds, delta float64) {
	peak := o.d.GPU.BF16FLOPs
	if o.d.LLM.UsesMLA() {
		_, _, r, n, v := o.d.LLM.MLA.dims()
		return 2 * o.q * (n + r + v) / (o.c.Common.MLAPrefillCompute * peak), o.c.Common.MLAPrefillDelta
	}
	return 4 * o.q * o.hd / (o.c.Prefill.Compute * peak), o.c.Prefill.Delta
}

// upProjection expands the latent vectors of the given number of tokens to keys and values, in one layer of a
// prefill step.
func (o *ops) upProjection(tokens float64) cost {
	_, c, _, n, v := o.d.LLM.MLA.dims()
	return o.gemm(tokens, o.q*(n+v), c, o.d.Dtype)
}

// usesMixed reports whether decodes share the attention kernel of prefill chunks.
func (o *ops) usesMixed() bool {
	return o.d.GPU.AttentionBackend == FA2 && !o.d.LLM.UsesMLA()
}

// mixedTile returns the time of one (tile, context token) pair of the mixed kernel of a layer if all SMs are busy.
func (o *ops) mixedTile() float64 {
	e := o.c.Mixed.Compute
	if o.o.MixedEfficiency > 0 {
		e = o.o.MixedEfficiency
	}
	return 4 * o.c.Common.FA2TileRows * o.hd / (o.d.GPU.BF16FLOPs * e)
}

// mixedLaunch is the latency of the mixed kernel relative to the prefill kernel.
const mixedLaunch = 0.6
