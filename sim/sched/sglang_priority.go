package sched

import "slices"

// note notes how many tokens of w, which was tried, are to be computed.
func (a *pass) note(w Waiting, why Cause) {
	switch {
	case !a.PreemptByPriority:
	case why == NotBlocked:
		delete(a.matched, w.Request)
	default:
		if a.matched == nil {
			a.SGLang.matched = make(map[int64]int32)
		}
		a.matched[w.Request] = w.Known - w.Cached
	}
}

// preemptFor retracts running sequences of lower priority than waiting request w, the least urgent first, if what is
// reserved for their outputs makes enough room for it. It reports whether it did. As in SGLang, w is not matched: its
// prompt counts as when it was last tried, or not at all.
func (a *pass) preemptFor(w Progress) bool {
	v := a.v
	ratio := a.ratio.at(v.DecodeSteps())
	short := float64(a.matched[w.Request]+min(w.MaxTokens, clipMaxNewTokens)) - a.room()
	victims := a.lesser(w.Priority)
	for i, s := range victims {
		short -= float64(ratio * float64(expected(v.Progress(s))))
		if short <= 0 {
			victims = victims[:i+1]
			break
		}
	}
	if len(victims) == 0 || short > 0 {
		return false
	}
	for _, s := range victims {
		p := v.Progress(s)
		a.reserved -= float64(ratio * float64(expected(p)))
		a.evicted = append(a.evicted, p.Request)
		a.seats++
		v.PreemptToTail(s)
		delete(a.matched, p.Request)
		v.MakeRoom(retractionTokens * (v.Decoding() + a.running.ended))
	}
	return true
}

// lesser lists the sequences, except those of the batch, whose priority is worse than a given one by more than the
// threshold, the least urgent first.
func (a *pass) lesser(than int16) []Seq {
	var list []candidate
	for s := a.v.First(); s != None; s = a.v.Next(s) {
		p := a.v.Progress(s)
		if s != a.unfinished && expected(p) > 0 && !slices.Contains(a.batch, s) &&
			int32(p.Priority)-int32(than) > a.PreemptionThreshold {
			u := a.v.Urgency(s)
			u.Key = int64(p.Priority)
			list = append(list, candidate{s, u})
		}
	}
	slices.SortFunc(list, func(x, y candidate) int { return y.compare(x.Urgency) })
	seqs := make([]Seq, len(list))
	for i, c := range list {
		seqs[i] = c.seq
	}
	return seqs
}

// blockedFor returns the number of decode iterations for which the head w, which was not admitted, certainly stays
// blocked: while no sequence can be retracted for it, and the room that the falling ratio may leave is less than it
// needs.
func (p *SGLang) blockedFor(v View, w Waiting) int {
	need := float64(w.Known - w.Cached + expected(w.Progress) + p.page)
	free := float64(v.FreeBlocks()) * float64(p.page)
	remaining, decodes := v.Remaining(clipMaxNewTokens), int64(v.Decoding())
	blocked := func(k int64) bool {
		ratio := p.ratio.at(v.DecodeSteps() + k)
		return need >= free-float64(ratio*float64(max(remaining-k*decodes, 0)))
	}
	k := int64(1)
	for k < forever && blocked(2*k) {
		k *= 2
	}
	for step := k / 2; step > 0; step /= 2 {
		if blocked(k + step) {
			k += step
		}
	}
	return int(min(k, forever))
}
