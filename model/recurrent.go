package model

// Recurrent layers (Gated DeltaNet, KDA, Mamba-2) read and write a state of fixed size for each sequence instead of
// KV. A decode takes as long as that traffic, whatever the context. A prefill runs in chunks of tokens: each head of
// each sequence is a chain that one streaming multiprocessor works off, and all of them share the GPU.

// stateBytes returns the bytes of the state of a sequence in one layer on one of tp ranks.
func (r *Recurrence) stateBytes(tp int) float64 {
	return float64(r.ValueHeads*r.KeyDim*r.ValueDim*r.StateBytes) / float64(tp)
}

// convBytes returns the bytes of the inputs of the short convolution that a sequence keeps in one layer on one of tp
// ranks.
func (r *Recurrence) convBytes(tp int) float64 {
	return float64(r.channels()*(r.Conv-1)*2) / float64(tp)
}

// flopsPerToken returns the floating-point operations of the recurrence of a token in one layer on one of tp ranks:
// decay, update and query of each head's state take two each per number.
func (r *Recurrence) flopsPerToken(tp int) float64 {
	return float64(6*r.ValueHeads*r.KeyDim*r.ValueDim) / float64(tp)
}

// recurrentSequence returns the time that a decoding sequence adds in one layer: its state and the inputs of its
// convolution are read and written.
func (o *ops) recurrentSequence(x *layerClass) cost {
	if o.o.PlainLayers {
		return cost{}
	}
	c := &o.c.Recurrent[x.Kind]
	tp := o.d.TensorParallel
	t := 2 * (x.State.stateBytes(tp) + x.State.convBytes(tp)) / (c.DecodeMemory * o.bw)
	return cost{seconds: t, memory: t}
}

// recurrentPrefill is the time of the recurrence of prefill chunks in the layers of a class:
//
//	t = launch + convolution·tokens + max(chain·longest, token·(tokens + padding·chunks)) + state·chunks
type recurrentPrefill struct {
	launch      int64
	chain       int64    // per token of the longest chunk
	token       fraction // per token, if all multiprocessors are busy
	padding     int64    // tokens that a chunk's start costs
	convolution fraction // per token
	state       int64    // per chunk: its state is read and written
}

func (o *ops) recurrentPrefill(x *layerClass) recurrentPrefill {
	if o.o.PlainLayers {
		return recurrentPrefill{}
	}
	c := &o.c.Recurrent[x.Kind]
	k := &c.Prefill
	if o.o.TritonRecurrence {
		k = &c.Triton
	}
	tp := o.d.TensorParallel
	convolution := float64(x.State.channels()) / float64(tp) * 4 / (c.ConvMemory * o.bw) // read and written
	fs := func(seconds float64) int64 { return roundFemtos(seconds * x.layers * femtosPerSecond) }
	return recurrentPrefill{
		launch:      fs(k.Launch + c.ConvLaunch),
		chain:       fs(k.Chain * float64(x.State.KeyDim*x.State.ValueDim) / (128 * 128)),
		token:       newFraction(x.State.flopsPerToken(tp) / (k.Compute * o.d.GPU.BF16FLOPs) * x.layers),
		padding:     int64(k.Padding),
		convolution: newFraction(convolution * x.layers),
		state:       fs(o.recurrentSequence(x).seconds),
	}
}

func (r *recurrentPrefill) femtos(b *Batch) int64 {
	longest, tokens := int64(0), int64(0)
	for i := range b.Chunks {
		n := int64(b.Chunks[i].New)
		longest = max(longest, n)
		tokens += n
	}
	chunks := int64(len(b.Chunks))
	var all, convolution uint128
	all.add(tokens+r.padding*chunks, r.token)
	convolution.add(tokens, r.convolution)
	t := max(saturate(0, longest, r.chain), all.femtos())
	return min(r.launch+t+convolution.femtos()+chunks*r.state, maxFemtos)
}
