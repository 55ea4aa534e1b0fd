package model

import "math"

// unequal is the lower bound of decode attention in kernels that give each sequence and key head to one thread block,
// or to a few while multiprocessors are free. The block of the longest sequence then ends last:
//
//	t = longest / blocks · bytes per token / rate of a block
//
// The batch has the standard deviation of its KV lengths. The longest one is taken as longestDeviations above the mean.
type unequal struct {
	full *curve // decode attention of the layers that attend to all tokens; nil if these are all layers
	// By number of decodes: in a CUDA graph, whose size sets the number of blocks, and in a step with prefill.
	graph, mixed []unequalRow
}

// unequalRow applies to a number of decodes.
type unequalRow struct {
	perToken     int64 // femtoseconds per token of the summed context
	perDeviation int64 // per token of the deviation
	fixed        int64 // femtoseconds
}

// longestDeviations is the distance of the longest KV length from the mean in standard deviations, fitted to the
// iterations that gave the rate of a block (see kernels/global.yaml of the catalog): 2.5 at TP 1, 2.7 at TP 2.
const longestDeviations = 2.6

// maxUnequal is the summed context up to which a deviation is known: see [ContextDeviation].
const maxUnequal = 1<<32 - 1

// prepareUnequal prepares the bound for GPUs whose kernel has it.
func (k *Kernels) prepareUnequal() {
	p := k.ops
	if !(p.c.DecodeBlock > 0) || p.o.EqualContexts {
		return
	}
	var full []layerClass
	for _, c := range p.classes {
		if c.Kind == Attention && c.window == noWindow && c.Indexer.TopK == 0 && !c.compressed() {
			full = append(full, c)
		}
	}
	if len(full) == 0 {
		return
	}
	u, row := &unequal{}, p.unequalRow
	if p.d.LLM.UsesMLA() {
		row = func(full []layerClass, n, padded float64, _ bool) unequalRow { return latentRow(p, full, n, padded) }
	}
	if len(full) < len(p.classes) {
		c := p.decodeCurve(full)
		u.full = &c
	}
	for n := range min(p.o.MaxNumSeqs, tableLimit) + 1 {
		graph := max(n, k.GraphTokens(n))
		u.graph = append(u.graph, row(full, float64(n), float64(graph), true))
		u.mixed = append(u.mixed, row(full, float64(n), float64(n), false))
	}
	k.unequal = u
}

// unequalRow returns the bound for n decodes in a batch that the kernel takes as padded to a size. In a graph, blocks
// beyond one per multiprocessor share it; the measured steps with prefill do not show that.
func (o *ops) unequalRow(full []layerClass, n, padded float64, graph bool) unequalRow {
	if n < 2 {
		return unequalRow{}
	}
	sms, seconds := float64(o.d.GPU.SMs), 0.0
	for i := range full {
		c := &full[i]
		blocks := max(1, math.Floor(sms/(padded*c.kv)))
		sharing := 1.0
		if graph { // the longest sequence has kv blocks, each of which may share its multiprocessor
			sharing += float64(1 - math.Pow(1-min(1, max(0, n*c.kv-sms)/sms), c.kv))
		}
		token := (c.hd + c.vd) * o.kvb / o.c.DecodeBlock
		seconds += float64(token * sharing / blocks * c.layers)
	}
	z := min(math.Sqrt(n-1), longestDeviations)
	return unequalRow{perToken: roundFemtos(seconds / n * femtosPerSecond),
		perDeviation: roundFemtos(seconds * z * femtosPerSecond)}
}

// latentRow is unequalRow of latent attention. The kernel divides its blocks, one per multiprocessor, evenly
// among the sequences of the graph. All blocks together reach the rate of equal sequences, so that each has an equal
// part of it, and those of short sequences then idle:
//
//	t = longest · min(padded, SMs) · time per token
//
// Sequences that started at different times are spread evenly, so that the longest of n is √3 · (n − 1)/(n + 1)
// deviations above the mean. Recorded sessions of DeepSeek-R1 with 10 to 35 sequences have 1.3 to 1.7.
func latentRow(o *ops, full []layerClass, n, padded float64) unequalRow {
	if n < 2 {
		return unequalRow{}
	}
	token, fixed := 0.0, 0.0
	for i := range full {
		c := o.mlaDecodeSequence(&full[i], 1)
		token += float64((c.seconds - c.latency) * min(padded, float64(o.d.GPU.SMs)) * full[i].layers)
		fixed += float64(n * c.latency * full[i].layers)
	}
	z := math.Sqrt(3) * (n - 1) / (n + 1)
	return unequalRow{perToken: roundFemtos(token / n * femtosPerSecond),
		perDeviation: roundFemtos(token * z * femtosPerSecond), fixed: roundFemtos(fixed * femtosPerSecond)}
}

func rowOf(rows []unequalRow, decodes int64) unequalRow {
	return rows[min(decodes, int64(len(rows)-1))]
}

// linear returns the time of the longest sequence.
func (r unequalRow) linear(b *Batch) linear {
	decodes := int64(b.Decodes)
	mean := saturate(r.fixed, b.Context, r.perToken)
	return linear{value: saturate(mean, b.ContextDeviation, r.perDeviation), slope: decodes * r.perToken,
		run: min(maxRun, max(0, maxUnequal-b.Context)/decodes+1)}
}

// extend bounds l, the decode attention of all layers, which reads the given number of tokens, by the longest sequence.
func (u *unequal) extend(l linear, b *Batch, rows []unequalRow, read int64) linear {
	decodes := int64(b.Decodes)
	row := rowOf(rows, decodes)
	long := row.linear(b)
	if u.full == nil {
		return l.max(long)
	}
	mean := read / decodes
	p := u.full.find(mean)
	full := linear{decodes*p.value + (read-decodes*p.start)*p.slope, decodes * p.slope, p.end - mean}
	if read == mean*decodes {
		full.run++
	}
	m := full.max(long)
	sum := linear{l.value - full.value + m.value, l.slope - full.slope + m.slope, min(l.run, m.run)}
	if sum.slope < 0 { // rounding of curves
		sum.slope, sum.run = 0, 1
	}
	return sum
}
