package model

// Bound names the bottleneck of an operation.
type Bound string

// The bottlenecks.
const (
	ComputeBound       Bound = "compute"
	MemoryBound        Bound = "memory"
	LatencyBound       Bound = "latency"       // launches, prologues, host
	CommunicationBound Bound = "communication" // links between GPUs
)

// Term is a part of a step's time.
type Term struct {
	Name    string
	Seconds float64
	BoundBy Bound
	Row     string // origin of the constants, such as "h100-sxm gemm fp8"
}

// Explanation is the breakdown of the time of a step without drafts.
type Explanation struct {
	Terms   []Term
	Seconds float64 // sum of the terms

	FLOPs float64 // per GPU
	Bytes float64 // per GPU, from memory
	// MFU and MBU are the model FLOPs and memory bandwidth utilisation: the fractions of the step that its
	// arithmetic would take at peak, and its memory traffic at full bandwidth.
	MFU, MBU float64
	// Intensity is FLOPs per byte. Ridge is the intensity above which a GPU is compute bound: PeakFLOPs per
	// BytesPerSecond. The peak is that of the step's mix of formats.
	Intensity, Ridge          float64
	PeakFLOPs, BytesPerSecond float64
	Floor                     float64 // lower bound in seconds
}

// add adds a term; terms of the same name and origin are summed.
func (e *Explanation) add(name, row string, c cost) {
	if c.seconds == 0 {
		return
	}
	bound := ComputeBound
	switch {
	case name == termAllReduce || name == termExchange || name == termHops:
		if bound = CommunicationBound; c.latency > c.memory {
			bound = LatencyBound
		}
	case c.latency >= max(c.compute, c.memory):
		bound = LatencyBound
	case c.memory >= c.compute:
		bound = MemoryBound
	}
	e.Seconds += c.seconds
	for i := range e.Terms {
		if t := &e.Terms[i]; t.Name == name && t.Row == row {
			t.Seconds += c.seconds
			return
		}
	}
	e.Terms = append(e.Terms, Term{Name: name, Seconds: c.seconds, BoundBy: bound, Row: row})
}

// finish sets the fields that follow from the sum and the work.
func (e *Explanation) finish(w *Work, b *Batch) {
	e.FLOPs, e.Bytes, e.Floor = w.FLOPs(b), w.Bytes(b), w.Floor(b)
	e.BytesPerSecond = w.d.GPU.HBMBytesPerSecond
	e.PeakFLOPs = w.d.GPU.BF16FLOPs
	if s := w.ComputeSeconds(b); s > 0 {
		e.PeakFLOPs = e.FLOPs / s
	}
	e.Ridge = e.PeakFLOPs / e.BytesPerSecond
	if e.Bytes > 0 {
		e.Intensity = e.FLOPs / e.Bytes
	}
	if e.Seconds > 0 {
		e.MFU = w.ComputeSeconds(b) / e.Seconds
		e.MBU = w.MemorySeconds(b) / e.Seconds
	}
}

// Work returns the minimal work of steps, with the timer's routing of experts.
func (k *Kernels) Work() *Work { return newWork(k.ops) }

// Explain returns the breakdown of the time of one step. The terms sum to the result of Span, up to the rounding of
// tables and curves.
func (k *Kernels) Explain(b *Batch) Explanation {
	var e Explanation
	p := k.ops
	tokens := b.Decodes
	for _, c := range b.Chunks {
		tokens += int(c.New)
	}
	if tokens == 0 {
		return e
	}
	k.explainAttention(&e, b)
	if t := float64(k.images.femtos(b)) / femtosPerSecond; t > 0 {
		e.add(termImages, p.c.GEMM[BF16].Row, cost{seconds: t, compute: t})
	}
	m := tokens
	if graph := k.GraphTokens(tokens); graph > 0 {
		m = graph
	}
	p.tokenTerms(float64(m), e.add)
	if k.group.ranks > 1 {
		all, busiest := k.groupTokens(b, int64(tokens))
		p.groupTerms(float64(all), e.add)
		exchanger{p}.exchangeTerms(float64(all), float64(busiest), e.add)
		if both := float64(k.shared(b, int64(tokens)) - k.apart(all, busiest)); p.d.DualBatch {
			e.Terms = append(e.Terms, Term{Name: termOverlap, Seconds: both / femtosPerSecond,
				BoundBy: CommunicationBound, Row: "option"})
			e.Seconds += both / femtosPerSecond
		}
	}
	p.emitTerms(float64(b.Emit), e.add)
	p.fixedTerms(e.add)
	e.add(termSequences, "common", latency(p.o.Overheads.Sequence.Seconds()*float64(b.Decodes+len(b.Chunks))))
	if wait := k.explainWait(b, e.Seconds); wait > 0 {
		e.add(termEager, "common", latency(wait))
	}
	e.finish(newWork(p), b)
	return e
}

// explainWait returns the seconds that launches add to a step whose kernels take the given seconds.
func (k *Kernels) explainWait(b *Batch, seconds float64) float64 {
	tokens, before := stepTokens(b), seconds
	floor := k.floor(tokens)
	if len(b.Chunks)+b.Drafts > 0 {
		p := k.parts(b, tokens)
		seconds += float64(k.launchWait(p.recurrent, p.sum(), tokens, len(b.Chunks) > 0)) / femtosPerSecond
		floor = k.eagerFloor
	}
	return max(seconds, float64(floor)/femtosPerSecond) - before
}

func (k *Kernels) explainAttention(e *Explanation, b *Batch) {
	p := k.ops
	seconds := func(fs int64) float64 { return float64(fs) / femtosPerSecond }
	if len(b.Chunks) > 0 {
		for i := range k.recurrent {
			t := seconds(k.recurrent[i].femtos(b))
			e.add(termRecurrence, p.c.Recurrent[p.classes[len(p.attention())+i].Kind].Row, cost{seconds: t, compute: t})
		}
	}
	if len(b.Chunks) > 0 && k.mixed != nil {
		t := int64(0)
		for i := range k.mixed {
			t += k.mixed[i].femtos(b)
		}
		e.add(termMixed, p.c.Mixed.Row, cost{seconds: seconds(t), compute: seconds(t)})
		return
	}
	decodeRow, prefillRow := p.c.Decode[p.d.KVDtype].Row, p.c.Prefill.Row
	switch {
	case len(p.attention()) == 0:
		decodeRow = p.c.Recurrent[p.classes[0].Kind].Row
	case p.d.LLM.compressed():
		decodeRow, prefillRow = p.c.Compressed.Row, p.c.Compressed.Row
	case p.classes[0].Indexer.TopK > 0:
		decodeRow, prefillRow = p.c.Sparse.Row, p.c.Sparse.Row
	case p.d.LLM.UsesMLA():
		decodeRow, prefillRow = "common mla_decode", "common mla_prefill"
	}
	if b.Decodes > 0 {
		read, _ := readContext(b)
		n := float64(b.Decodes)
		var c cost
		for i := range p.classes {
			x := &p.classes[i]
			c = c.plus(p.decodeLaunch(x).times(x.layers))
			c = c.plus(p.decodeSequence(x, float64(read)/n).times(n * x.layers))
		}
		c.seconds = seconds(k.decodeAttention(b))
		e.add(termDecode, decodeRow, c)
	}
	if len(b.Chunks) > 0 {
		pairs, reads, context := k.prefill(b)
		c := cost{latency: seconds(k.prefillLaunch), compute: seconds(pairs), memory: seconds(reads)}
		c.seconds = seconds(max(k.prefillLaunch+pairs, reads))
		for i := range k.compressed {
			t := seconds(k.compressed[i].femtos(b))
			c.compute, c.seconds = c.compute+t, c.seconds+t
		}
		e.add(termPrefill, prefillRow, c)
		if k.up != nil && context > 0 {
			c := p.upProjection(float64(context)).times(p.attentionLayers())
			c.seconds = seconds(k.up.at(context))
			e.add(termUp, p.c.GEMM[p.d.AttentionDtype].Row, c)
		}
	}
}
