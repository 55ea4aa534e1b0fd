package collect

import (
	"math/bits"

	"clifftop/model"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Span implements [event.SpanObserver].
func (c *Collector) Span(s *event.Span) {
	femtos, end := s.Femtos(s.N), s.End(s.N)
	add(&c.totals.busy, femtos)
	c.now = max(c.now, end)
	if k := &c.line.last; s.Start >= k.start && uint64(end-k.start)-1 < uint64(k.width) {
		k.bucket.span(k.gaps, s, femtos, c.opts.Power)
	} else {
		c.line.spanAcross(s, c.opts.Power)
	}
	if c.divided || !s.Plain {
		c.divide(s, femtos)
	}
}

// divide counts a span of so many femtoseconds in the stages of a pipeline, and in parts of the run.
func (c *Collector) divide(s *event.Span, femtos int64) {
	if s.Passages != nil {
		c.line.countPassages(s.Passages)
		c.totals.further = c.totals.further.Add(clock.Mul64(uint64(femtos), uint64(len(s.Passages)-1)))
	}
	if c.stages != nil {
		c.stages.span(c.opts.Power, *s)
	}
	if c.sloHours != nil && c.sloHours.gaps {
		c.sloHours.span(*s)
	}
	if c.opts.Gantt != nil {
		keepIterations(c.opts.Gantt, s)
	}
}

// span counts a span of so many femtoseconds that lies in the bucket, with the gaps in itl if that is kept.
func (b *bucket) span(itl *stats.Histogram, s *event.Span, femtos int64, power *model.StepPower) {
	add(&b.busy, femtos)
	b.blocks = b.blocks.Add(s.BlockFemtos)
	b.maxBlocks = max(b.maxBlocks, int64(s.MostBlocks))
	n, decodes, prefill, context := int64(s.N), int64(s.Decodes), int64(s.PrefillTokens), s.Context
	b.iterations += n
	b.decodes += n * decodes
	b.output += n * (decodes + int64(s.FirstTokens))
	b.prefill += n * prefill
	computed := decodes + prefill
	if !s.Plain {
		b.further(s)
		context -= s.Shared
		computed = int64(s.Computed())
	} else if s.HostFemtos != 0 {
		add(&b.lost[lostHost], hostFemtos(s))
	}
	b.context += n*context + int64(uint64(n*(n-1))/2)*decodes
	if power != nil && !power.Below(b.power.energy.Peak, computed, context+(n-1)*decodes, s.First) {
		b.power.powered(power, s)
	}
	switch d := &s.Delivery; {
	case itl == nil:
		b.gapped(s)
	case len(d.Others) == 0 && s.Wait|d.Cycle == 0 && (d.First == d.Later || n == 1) && decodes > 0:
		itl.RecordProgression(s.First, s.Slope, s.N, uint64(d.First))
	default:
		recordGaps(itl, s)
	}
}

// further counts what a span has that plain ones do not have, and the time that it loses.
func (b *bucket) further(s *event.Span) {
	if s.EmptyFemtos != (clock.Uint128{}) {
		b.empty = b.empty.Add(s.EmptyFemtos)
	}
	if loses(s) {
		b.lose(lost(s))
	}
	n := int64(s.N)
	b.output += n * int64(s.Accepted-s.Discarded)
	b.recomputed += n * int64(s.RecomputedTokens)
	b.drafted += n * int64(s.Drafts)
	b.accepted += n * int64(s.Accepted)
	b.discarded += n * int64(s.Discarded)
}

// longestGap is the longest gap between chunks whose femtoseconds fit an int64: 2.5 hours.
const longestGap = clock.Duration(1<<63-1) / clock.FemtosPerPico

// recordGaps counts the gaps between the chunks that clients get in a span.
func recordGaps(itl *stats.Histogram, s *event.Span) {
	d := &s.Delivery
	for _, g := range d.Others {
		itl.Record(int64(min(g.Length, longestGap))*clock.FemtosPerPico, uint64(g.N))
	}
	first, later := uint64(d.First), uint64(d.Later)
	switch {
	case s.Decodes == 0:
	case d.Cycle > 0:
		itl.Record(int64(d.Cycle)*clock.FemtosPerPico, s.Cycles())
	default: // after the first iteration the decoding sequences are level with each other
		itl.Record(s.First+int64(s.Wait)*clock.FemtosPerPico, first)
		if s.N > 1 {
			itl.RecordProgression(s.First+s.Slope, s.Slope, s.N-1, later)
		}
	}
}

// lose counts time that is lost.
func (b *bucket) lose(parts [losses]int64) {
	for i, part := range parts {
		if part > 0 {
			add(&b.lost[i], part)
		}
	}
}

// spanAcross counts a span that may reach over edges. Iterations within a bucket are counted there. Of
// one that lies across an edge the time is divided, and the rest counts in the bucket of its end.
func (t *timeline) spanAcross(whole *event.Span, power *model.StepPower) {
	s := *whole
	t.find(max(s.End(s.N), 1) - 1) // makes room once, so that the width stays
	for {
		// An iteration that takes no time at an edge belongs before it.
		k := t.enter(min(s.Start, max(s.End(1), 1)-1))
		n := s.FirstEndAtOrAfter(k.end + 1)
		if s.End(n) > k.end {
			n--
		}
		switch n {
		case s.N:
			k.bucket.span(k.gaps, &s, s.Femtos(s.N), power)
			return
		case 0:
			last := s.N == 1
			one := head(&s, 1)
			t.iterationAcross(k, &one, power)
			if last {
				return
			}
		default:
			first := head(&s, n)
			k.bucket.span(k.gaps, &first, first.Femtos(n), power)
		}
	}
}

// head takes the first n iterations off s. The integral of blocks is divided as the time is, which is
// exact for single iterations; an engine that heeds Edge reports no others here.
func head(s *event.Span, n int) event.Span {
	h := *s
	if n == s.N {
		return h
	}
	h.Progression = s.Head(n)
	h.BlockFemtos = share(s.BlockFemtos, uint64(s.Femtos(n)), uint64(s.Femtos(s.N)))
	h.EmptyFemtos = share(s.EmptyFemtos, uint64(s.Femtos(n)), uint64(s.Femtos(s.N)))
	s.BlockFemtos, s.EmptyFemtos = s.BlockFemtos.Sub(h.BlockFemtos), s.EmptyFemtos.Sub(h.EmptyFemtos)
	s.Progression = s.Tail(n)
	s.Context += int64(n) * int64(s.Decodes)
	s.Carry = h.CarryAfter(n)
	s.HostFemtos += int64(n) * s.HostSlope
	s.Wait, s.Gaps, s.Delivery.First, s.Delivery.Others = 0, s.Decodes, s.Delivery.Later, nil
	return h
}

// share is u·part/whole, rounded down, for part ≤ whole.
func share(u clock.Uint128, part, whole uint64) clock.Uint128 {
	if whole == 0 {
		return clock.Uint128{}
	}
	// u = q·whole + r, so that u·part/whole = q·part + r·part/whole.
	qhi, r := u.Hi/whole, u.Hi%whole
	qlo, r := bits.Div64(r, u.Lo, whole)
	hi, lo := bits.Mul64(r, part)
	rest, _ := bits.Div64(hi, lo, whole)
	return clock.Uint128{Hi: qhi, Lo: qlo}.Mul(part).Add(clock.Uint128{Lo: rest})
}

// iterationAcross counts one iteration that begins in bucket k and ends in a later one. What goes to the
// buckets before an edge is the part of the whole up to there, rounded down once; so it does not depend on
// the edges between, which widths of buckets decide.
func (t *timeline) iterationAcross(k cursor, s *event.Span, power *model.StepPower) {
	var losses [losses]int64
	if loses(s) {
		losses = lost(s)
	}
	whole := uint64(s.First)
	var done uint64 // of the iteration's time, and what was counted by then
	var blocks, empty clock.Uint128
	counted := losses
	clear(counted[:])
	at, remainder, end := s.Start, s.Remainder, s.End(1)
	for end > k.end {
		b := k.bucket
		part := int64(k.end-at)*clock.FemtosPerPico - remainder
		add(&b.busy, part)
		done += uint64(part)
		kv, vacant := share(s.BlockFemtos, done, whole), share(s.EmptyFemtos, done, whole)
		b.hold(kv.Sub(blocks), vacant.Sub(empty))
		b.maxBlocks = max(b.maxBlocks, int64(s.MostBlocks)) // they are held before the iteration ends, too
		blocks, empty = kv, vacant
		here := losses
		for i := range here {
			upTo := int64(share(clock.Uint128{Lo: uint64(losses[i])}, done, whole).Lo)
			here[i], counted[i] = upTo-counted[i], upTo
		}
		b.lose(here)
		at, remainder = k.end, 0
		k = t.enter(at)
	}
	b := k.bucket
	b.span(k.gaps, s, s.First, power)
	b.busy = b.busy.Sub(clock.Uint128{Lo: done})
	b.blocks, b.empty = b.blocks.Sub(blocks), b.empty.Sub(empty)
	for i, part := range counted {
		b.lost[i] = b.lost[i].Sub(clock.Uint128{Lo: uint64(part)})
	}
}
