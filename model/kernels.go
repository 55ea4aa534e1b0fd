package model

import (
	"fmt"
	"math"
)

// Kernels is the calibrated step timer. A step is the sum over layers of matrix products, attention, experts, small
// kernels and communication. Each is a fixed latency plus a soft maximum of arithmetic and memory time, with
// constants measured on the GPU.
//
// Decode attention depends on the number of decodes and their summed context, prefill attention on each chunk,
// everything else on the number of tokens in the step or of sequences that emit. The latter are tabulated when they are
// first used, so that a step takes a few integer operations.
//
// With pipeline parallelism the time is that of one batch through all stages; Stages divides it. The caller models
// the overlap of batches.
//
// The batch is that of one rank of data-parallel attention. If ranks share the experts, [Batch] has the tokens of all
// ranks; otherwise the other ranks are assumed to have the same load.
type Kernels struct {
	ops *ops // for Explain; not used by Span

	tokens     table // by tokens in the step: all layers without attention, and without what ranks share
	group      rankGroup
	emit       table // by sequences that emit: output head and sampler
	fixed      int64 // per step
	sequence   int64 // per sequence
	eagerFloor int64 // minimum time of a step

	hop hopTime

	decode        curve // by mean context: decode attention of one sequence in all layers
	decodeLaunch  int64
	decodeLatency *curve      // by mean context: parts of decode attention that take as long for any batch
	arithmetic    windowRates // of decode attention
	draft         int64       // of decode attention per draft, without its context
	draftRow      int64       // minimum per token of a decoding sequence

	prefillLaunch int64
	windows       []windowPairs
	newToken      fraction       // per new token
	up            *curve         // by tokens in context: up-projection of latent attention
	images        imageCost      // encoder of images
	sparse        *sparsePrefill // nil without sparse attention
	recurrent     []recurrentPrefill
	compressed    []compressedPrefill

	mixed []mixedClass // kernels that mix prefill and decode; nil if they run separately

	unequal  *unequal // nil if the longest sequence does not set the time of decode attention
	launches launches
}

// windowPairs is the prefill attention of layers with the same window.
type windowPairs struct {
	window int64
	pair   fraction // per (new token, context token), halved
	read   fraction // per token of KV read
}

// tableLimit is the maximum size of tables; curves continue them.
const tableLimit = 16384

// NewKernels precomputes the coefficients of a deployment, which must not change afterwards. It returns an error for
// invalid options and for iterations that are too slow for the time resolution.
func NewKernels(d *Deployment, o KernelOptions) (*Kernels, error) {
	if o.RoutingDispersion == 0 {
		o.RoutingDispersion = d.LLM.RoutingDispersion
	}
	if o.RoutingDispersion == 0 {
		o.RoutingDispersion = d.GPU.constants(o.Tables).MoE[d.MoEDtype].Dispersion
	}
	o, err := o.resolve(&d.GPU.Kernels.Common)
	if err != nil {
		return nil, fmt.Errorf("kernels of %v: %w", d, err)
	}
	p := newOps(d, o)
	k := &Kernels{ops: p}
	k.tokens = newTable(func(m float64) float64 {
		if graph := k.GraphTokens(int(m)); graph > 0 {
			m = float64(graph)
		}
		return total(func(v termFunc) { p.tokenTerms(m, v) })
	}, min(o.MaxNumBatchedTokens, tableLimit)+1, p.reduceJumps(2*p.h)...)
	k.group = newRankGroup(p, o.MaxNumBatchedTokens)
	k.emit = newTable(func(n float64) float64 { return total(func(v termFunc) { p.emitTerms(n, v) }) },
		min(o.MaxNumSeqs, tableLimit)+1, p.reduceJumps(2*p.voc)...)
	k.fixed = roundFemtos(total(p.fixedTerms) * femtosPerSecond)
	k.sequence = roundFemtos(o.Overheads.Sequence.Seconds() * femtosPerSecond)
	if o.EagerLayerTime > 0 {
		k.eagerFloor = roundFemtos((o.Overheads.Step.Seconds() +
			float64(o.EagerLayerTime.Seconds()*float64(d.LLM.Layers))) * femtosPerSecond)
	}
	k.prepareAttention()
	k.prepareUnequal()
	k.prepareLaunches()
	k.images = newImageCost(p)
	k.prepareHops()
	n := min(o.MaxNumSeqs, countedSeqs)
	if seconds := k.fullBatchSeconds(n); !(seconds <= slowestStep) {
		return nil, fmt.Errorf("kernels of %v: an iteration of %d sequences takes %.3g s or more (want at most %d: "+
			"see the memory bandwidth, %.3g GB/s, and the peak of bf16, %.3g TFLOPS)",
			d, n, seconds, slowestStep, d.GPU.HBMBytesPerSecond/1e9, d.GPU.BF16FLOPs/1e12)
	}
	return k, nil
}

// slowestStep is the maximum time of an iteration in seconds. Femtoseconds overflow at nine times that.
const slowestStep = 1000

// countedSeqs is the largest batch for which slowestStep is checked.
const countedSeqs = 1 << 20

// fullBatchSeconds returns the time of an iteration in which n sequences fill the memory.
func (k *Kernels) fullBatchSeconds(n int) float64 {
	d := k.ops.d
	context := max(d.GPU.MemoryBytes/float64(max(1, d.KVBytesPerToken())), float64(n))
	mean := int64(min(context/float64(n), curveEnd))
	attention := 0.0
	for i := range k.ops.classes {
		attention += float64(k.ops.classes[i].layers * k.ops.decodeSequence(&k.ops.classes[i], float64(mean)).seconds)
	}
	fs := float64(k.fixed) + float64(k.decodeLaunch) + float64(k.tokens.at(int64(n))) + float64(k.emit.at(int64(n))) +
		float64(k.shared(&Batch{}, int64(n)))
	return fs/femtosPerSecond + float64(n)*(attention+float64(k.sequence)/femtosPerSecond)
}

func (k *Kernels) prepareAttention() {
	p := k.ops
	k.decode = p.decodeCurve(p.classes)
	launch, draft, prefillLaunch, newToken := 0.0, 0.0, 0.0, 0.0
	for i := range p.classes {
		c := &p.classes[i]
		launch += float64(p.decodeLaunch(c).seconds * c.layers)
		if c.Kind.Recurrent() {
			draft += float64(p.decodeSequence(c, 0).seconds / 2 * c.layers) // each draft writes a state
			k.recurrent = append(k.recurrent, p.recurrentPrefill(c))
			continue
		}
		k.arithmetic.add(c.window, int64(math.Ceil(p.decodeCompute(c)*c.layers*femtosPerSecond)))
		if c.compressed() {
			draft += float64(p.decodeSequence(c, draftContext).seconds * c.layers)
			k.prepareCompressed(c)
			continue
		}
		draft += float64(draftShare * p.decodeSequence(c, 0).latency * c.layers)
		prefillLaunch += float64(p.prefillLaunch() * c.layers)
		if c.Indexer.TopK > 0 {
			k.prepareSparse(c)
			continue
		}
		pair, delta := p.prefillPair(c)
		newToken += float64(pair * delta * c.layers)
		k.addWindow(c, pair)
	}
	k.decodeLaunch = roundFemtos(launch * femtosPerSecond)
	k.draft = roundFemtos(draft * femtosPerSecond)
	k.prefillLaunch = roundFemtos(prefillLaunch * femtosPerSecond)
	k.newToken += newFraction(newToken)
	k.prepareLatent()
	if p.usesMixed() {
		k.prepareMixed()
	}
}

// addWindow adds the prefill attention of a class of layers.
func (k *Kernels) addWindow(c *layerClass, pair float64) {
	k.windows = append(k.windows, windowPairs{c.window, newFraction(pair / 2 * c.layers),
		newFraction(k.ops.kvSeconds(c) * c.layers)})
}

// prepareLatent adds the projections of latent attention, which apply to every row of a decode and to the context of
// prefill chunks.
func (k *Kernels) prepareLatent() {
	p := k.ops
	if !p.d.LLM.UsesMLA() {
		return
	}
	layers := p.attentionLayers()
	seconds := 2 * p.mlaUpParams() / (mlaProjectionCompute * p.d.GPU.BF16FLOPs) * layers
	project := int64(math.Ceil(seconds * femtosPerSecond))
	k.draft, k.draftRow = k.draft+project, project
	up := newCurve(func(tokens float64) float64 { return p.upProjection(tokens).seconds * layers }, 0, nil, true)
	k.up = &up
}

// draftShare is the relative increase of a sequence's decode attention per draft that it verifies.
const draftShare = 0.1

// decodeCurve returns the decode attention of a sequence by its context, summed over the layers.
func (o *ops) decodeCurve(classes []layerClass) curve {
	var kinks []int64
	for i := range classes {
		if w := classes[i].span(); w != noWindow {
			kinks = append(kinks, w)
		}
		if classes[i].compressed() {
			kinks = append(kinks, int64(classes[i].Window))
		}
	}
	f := func(context float64) float64 {
		sum := 0.0
		for i := range classes {
			sum += float64(classes[i].layers * o.decodeSequence(&classes[i], context).seconds)
		}
		return sum
	}
	// Latent attention is linear and needs no centring.
	return newCurve(f, 0, kinks, !o.d.LLM.UsesMLA())
}

// GraphTokens returns the size of the CUDA graph that runs a step with the given number of tokens; 0 if none is
// large enough. The step takes as long as one of that size.
func (k *Kernels) GraphTokens(tokens int) int {
	if !k.ops.o.PadGraphs || tokens < 1 || tokens > k.padLimit() {
		return 0
	}
	return min(graphSize(tokens, k.ops.o.Drafts+1), int(k.tokens.n)-1)
}

// RankTokens implements [Padder].
func (k *Kernels) RankTokens(busiest int) int {
	if graph := k.GraphTokens(busiest); graph > 0 || !k.ops.o.PadRanks {
		return graph
	}
	return busiest
}

// Padding implements [Padder].
func (k *Kernels) Padding(from, to int) int64 {
	return k.tokens.at(int64(to)) - k.tokens.at(int64(from))
}

var _ Padder = (*Kernels)(nil)

// padLimit returns the largest batch for which a CUDA graph is captured.
func (k *Kernels) padLimit() int {
	limit := k.ops.o.MaxCapture
	if limit == 0 {
		limit = min(512, 2*k.ops.o.MaxNumSeqs*(k.ops.o.Drafts+1))
	}
	return min(limit, int(k.tokens.n)-1)
}

// graphSize returns the smallest captured batch size that holds m tokens. Sizes are rounded up to a multiple of the
// tokens per sequence in a step: one plus its drafts.
func graphSize(m, each int) int {
	for size := usualSize(max(1, m-each+1)); ; size = usualSize(size + 1) {
		if size := (size + each - 1) / each * each; size >= m {
			return size
		}
	}
}

// usualSize returns the smallest batch size captured without drafts that holds m tokens: 1, 2, 4, multiples of 8 up
// to 256, and of 16 beyond (vLLM's default capture sizes).
func usualSize(m int) int {
	switch {
	case m <= 2:
		return m
	case m <= 4:
		return 4
	case m <= 256:
		return (m + 7) / 8 * 8
	}
	return (m + 15) / 16 * 16
}

// Span implements [StepTimer]. A sequence of decodes ends where their mean context passes the end of a linear piece
// of the attention's cost.
func (k *Kernels) Span(b *Batch) (first, slope int64, n int) {
	if len(b.Chunks) > 0 || b.Drafts > 0 {
		return k.chunked(b), 0, 1
	}
	decodes := int64(b.Decodes)
	if decodes <= 0 {
		return 0, 0, 1
	}
	context, exact := readContext(b)
	mean := int64(uint64(context) / uint64(decodes))
	p := k.decode.find(mean)
	value, run := decodes*p.value+(context-decodes*p.start)*p.slope, p.end-mean
	slope = decodes * p.slope
	if context == mean*decodes { // the mean of the last iteration is at most the joint
		run++
	}
	if k.unequal != nil || k.decodeLatency != nil || b.SharedTokens > 0 {
		t := k.boundDecodes(linear{value, slope, run}, b, context)
		value, slope, run = t.value, t.slope, t.run
	}
	first = k.fixed + k.decodeLaunch + decodes*k.sequence + k.tokens.at(decodes) + k.emit.at(int64(b.Emit)) + value
	if k.group.ranks > 1 {
		first += k.shared(b, decodes)
	}
	switch floor := k.floor(decodes); {
	case !exact:
		return max(first, floor), 0, 1
	case first < floor:
		return launchBound(first, slope, run, floor)
	}
	if run > longRun {
		run = bound(first, slope, run)
	}
	return first, slope, int(run)
}

// boundDecodes bounds t, the decode attention of all layers, which reads the KV of a number of tokens: by arithmetic if
// sequences share KV, and by the longest sequence. It adds what takes as long for any batch.
func (k *Kernels) boundDecodes(t linear, b *Batch, context int64) linear {
	decodes := int64(b.Decodes)
	if b.SharedTokens > 0 {
		t = t.max(k.arithmetic.linear(b.Context, decodes))
	}
	if k.unequal != nil && b.ContextDeviation > 0 {
		t = k.unequal.extend(t, b, k.unequal.graph, context)
	}
	if k.decodeLatency != nil {
		mean := int64(uint64(b.Context) / uint64(decodes))
		p := k.decodeLatency.find(mean)
		t = linear{t.value + p.value + (mean-p.start)*p.slope, t.slope + p.slope, min(t.run, p.end-mean)}
	}
	return t
}

// verifyAttention adds the rows of drafts to the decode attention t of all layers: draftShare per draft, and at
// least the arithmetic of all rows.
func (k *Kernels) verifyAttention(b *Batch, t int64) int64 {
	decodes := int64(b.Decodes)
	arithmetic := saturate(0, b.decodeTokens(), k.draftRow)
	for _, r := range k.arithmetic {
		arithmetic = saturate(arithmetic, b.rows(inWindow(b.Context, decodes, r.window)), r.perToken)
	}
	return max(saturate(t, int64(b.Drafts), k.draft), arithmetic)
}

func (k *Kernels) decodeAttention(b *Batch) int64 {
	decodes := int64(b.Decodes)
	read, _ := readContext(b)
	t := k.decode.sum(decodes, read)
	if b.SharedTokens > 0 {
		t = max(t, k.arithmetic.value(b.Context, decodes))
	}
	if k.unequal != nil && b.ContextDeviation > 0 {
		rows := k.unequal.graph
		if len(b.Chunks) > 0 {
			rows = k.unequal.mixed
		}
		t = k.unequal.extend(linear{value: t, run: 1}, b, rows, read).value
	}
	if b.Drafts > 0 {
		t = k.verifyAttention(b, t)
	}
	t += k.decodeLaunch
	if k.decodeLatency != nil {
		t += k.decodeLatency.at(b.Context / decodes)
	}
	return t
}

// launchBound returns a sequence of iterations that the host's launches limit.
func launchBound(first, slope, run, floor int64) (int64, int64, int) {
	if slope > 0 {
		run = min(run, (floor-first)/slope+1)
	}
	return floor, 0, int(min(run, maxRun))
}

// readContext returns the number of tokens whose KV decode attention reads: shared blocks once, but at least a
// tenth of the total. exact means that the number grows like the context.
func readContext(b *Batch) (context int64, exact bool) {
	if b.SharedTokens == 0 {
		return b.Context, true
	}
	context = b.Context - b.SharedTokens
	if least := b.Context / 10; context < least {
		return least, false
	}
	return context, true
}

// chunked returns the time of a step with prefill chunks or drafts.
func (k *Kernels) chunked(b *Batch) int64 {
	tokens := stepTokens(b)
	if tokens == 0 {
		return k.eagerFloor
	}
	p := k.parts(b, tokens)
	t := p.sum()
	if k.launches.known {
		t += k.launchWait(p.recurrent, t, tokens, len(b.Chunks) > 0)
	}
	return max(t, k.eagerFloor)
}

func stepTokens(b *Batch) int64 {
	tokens := b.decodeTokens()
	for i := range b.Chunks {
		tokens += int64(b.Chunks[i].New)
	}
	return tokens
}

// parts returns the times of the kernels of a step with prefill chunks or drafts.
func (k *Kernels) parts(b *Batch, tokens int64) (p stepParts) {
	decodes := int64(b.Decodes)
	p.rest = k.fixed + (decodes+int64(len(b.Chunks)))*k.sequence + k.tokens.at(tokens) + k.emit.at(int64(b.Emit))
	if k.group.ranks > 1 {
		p.rest += k.shared(b, tokens)
	}
	if k.images.perToken > 0 {
		p.rest += k.images.femtos(b)
	}
	if len(b.Chunks) > 0 {
		if len(k.recurrent)+len(k.mixed)+len(k.compressed) > 0 {
			p.attention, p.recurrent = k.mixers(b)
		}
		if k.mixed != nil {
			return p
		}
		pairs, reads, context := k.prefill(b)
		p.attention += max(k.prefillLaunch+pairs, reads)
		if k.up != nil && context > 0 {
			p.attention += k.up.at(context)
		}
	}
	if decodes > 0 {
		p.attention += k.decodeAttention(b)
	}
	return p
}

// mixers returns the times of layers that are not plain attention in a step with prefill chunks.
func (k *Kernels) mixers(b *Batch) (attention, recurrent int64) {
	for i := range k.recurrent {
		recurrent += k.recurrent[i].femtos(b)
	}
	for i := range k.mixed {
		attention += k.mixed[i].femtos(b)
	}
	if k.mixed != nil {
		return attention + int64(b.Drafts)*k.draft, recurrent
	}
	for i := range k.compressed {
		attention += k.compressed[i].femtos(b)
	}
	return attention, recurrent
}

// prefill returns the arithmetic of the chunks' attention, the time to read their KV, which is its lower bound, and
// the number of tokens in contexts whose latent vectors are expanded.
func (k *Kernels) prefill(b *Batch) (pairs, reads, context int64) {
	var read uint128
	for i := range b.Chunks {
		c := &b.Chunks[i]
		n, cached := int64(c.New), int64(c.Cached)
		span := 2*cached + n // twice the mean context
		var chunk uint128    // rounded separately
		for i := range k.windows {
			w := &k.windows[i]
			chunk.add(n*min(span, 2*w.window), w.pair)
			read.add(min(n+cached, w.window), w.read)
		}
		chunk.add(n, k.newToken)
		if k.sparse == nil || k.sparse.add(&chunk, n, cached) {
			context += n + cached
		}
		pairs = min(pairs+chunk.femtos(), maxFemtos)
	}
	return pairs, read.femtos(), context
}

// sum returns the cost of n sequences with the given summed context.
func (c *curve) sum(n, context int64) int64 {
	p := c.find(context / n)
	return n*p.value + (context-n*p.start)*p.slope
}
