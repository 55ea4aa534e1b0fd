package engine

import (
	"math"
	"slices"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// Data-parallel ranks of a mixture-of-experts model iterate in lock step, because all ranks take part in each exchange
// between the experts. An iteration lasts as long as that of the slowest rank. The experts compute the tokens of all
// ranks, so that each rank's batch has the numbers of all. If a CUDA graph runs it, and in older releases of vLLM
// always, all ranks are padded to the number of tokens of the largest rank. A rank with no work runs a dummy batch of
// one token. The ranks agree on whether any of them has work left only once in agreeEvery steps. Until then dummy
// batches follow the last real batch of a wave. After the agreement all ranks sleep until a request arrives.

// agreeEvery is the number of steps from one agreement to the next, as in vLLM.
const agreeEvery = 32

// lockstep is a group of engines that iterate together. Invariant: spans, iterations in flight and boundaries are the
// same for all of them.
type lockstep struct {
	ranks    []*Engine
	steps    int    // of the current wave, which began when all ranks slept
	answered bool   // as in timeline
	lines    []line // scratch
	waits    contextWaits
	padder   model.Padder // the timer, if it is a [model.Padder]; else nil
}

// NewGroup makes engines iterate in lock step from now on.
func NewGroup(ranks []*Engine) {
	g := &lockstep{ranks: slices.Clone(ranks)}
	g.padder, _ = ranks[0].cfg.Timer.(model.Padder)
	if p, ok := ranks[0].cfg.Scheduler.(sched.ContextHolder); ok {
		g.waits.ContextWaits = p.ContextWaits()
	}
	for _, r := range ranks {
		r.lock = g
	}
}

// contextWaits is the state of ranks that wait for contexts of each other: prompts that wait or are in prefill.
type contextWaits struct {
	sched.ContextWaits
	since    int64 // iteration from which the timeout counts
	batching int   // iterations for which contexts of all ranks have waited for more
}

// hold decides whether the next iteration leaves contexts out, and returns for how many iterations at most that does
// not change. The iterations are counted, with or without contexts, and the count begins anew at the timeout.
func (g *lockstep) hold() (most int) {
	w := &g.waits
	if w.Timeout == 0 {
		return math.MaxInt
	}
	some, all, decode, seats := false, true, true, true
	for _, r := range g.ranks {
		contexts := r.queue.Len() > 0 || len(r.running.prefills) > 0
		some, all = some || contexts, all && contexts
		decode, seats = decode && r.cohort.size > 0, seats && r.cohort.size < r.cfg.MaxNumSeqs
	}
	now := g.ranks[0].gpu.batches
	phase := int((now - w.since) % int64(w.Timeout))
	hold := false
	if most = 1; !some {
		most = math.MaxInt
	}
	switch {
	case seats && all:
		w.since = now + 1
		if hold = decode && w.batching < w.Batching; hold {
			w.batching++
		} else if decode {
			w.batching = 0
		}
	case !decode:
		w.since = now + 1
	case phase+1 < w.Timeout:
		hold = true
		if some {
			most = w.Timeout - 1 - phase
		}
	}
	for _, r := range g.ranks {
		r.cfg.Scheduler.(sched.ContextHolder).HoldContexts(hold)
	}
	return most
}

// cut makes the first boundary at or after t the next one.
func (g *lockstep) cut(t clock.Time) {
	if g.answered {
		return
	}
	for _, r := range g.ranks {
		r.cutOwn(t)
	}
}

// boundary is [Engine.Boundary] for all ranks.
func (g *lockstep) boundary() error {
	first := g.ranks[0]
	for _, r := range g.ranks {
		r.now = r.next
	}
	if !g.answered {
		for _, r := range g.ranks {
			r.results()
			g.answered = g.answered || r.answered
			r.answered = false
		}
		if g.answered && first.host.ArrivalDue() {
			return nil
		}
	}
	g.answered = false
	for first.inFlight.n < first.depth && first.ahead.N == 0 {
		if !g.compose() {
			break
		}
	}
	for _, r := range g.ranks {
		if err := r.plan(); err != nil {
			return err
		}
	}
	return nil
}

// compose lets all policies compose an iteration, and launches it on all ranks. It reports whether an iteration, which
// may be a dummy on all ranks, was launched.
func (g *lockstep) compose() bool {
	alive, any := false, false
	most := g.hold()
	for _, r := range g.ranks {
		r.effort.general(HasPart)
		some := r.decide()
		for !some && r.again() {
			some = r.decide()
		}
		if r.fault != nil {
			return false
		}
		any = any || some
		alive = alive || r.running.size > 0 || r.queue.Len() > 0
	}
	switch {
	case !any && g.ranks[0].inFlight.n > 0: // the results in flight may allow more work
		return false
	case !alive && g.steps%agreeEvery == 0:
		g.steps = 0
		return false
	}
	first, slope, n := g.pace()
	n = min(n, most)
	if !alive {
		n = min(n, agreeEvery-g.steps%agreeEvery)
	}
	for _, r := range g.ranks {
		if r.fault != nil {
			return false
		}
		n = min(n, g.inLockstep(r, n))
	}
	n = clock.CapN(first, slope, n)
	for _, r := range g.ranks {
		r.launch(first, slope, n)
	}
	return true
}

// inLockstep returns for how many iterations, at most n, rank r repeats the composed iteration, which may be a dummy.
func (g *lockstep) inLockstep(r *Engine, n int) int {
	if r.it.decodes > 0 || len(r.it.chunks) > 0 {
		return r.repeat(n)
	}
	if r.queue.Len() > 0 || r.running.size > 0 || r.inFlight.n < r.depth-1 {
		return 1
	}
	return min(n, r.maxSpan)
}

// tokens returns the number of tokens of the composed iteration, with the padding of its own batch.
func (it *batchBuilder) tokens() int {
	n := it.decodes + it.drafts + it.padRows
	for _, c := range it.chunks {
		n += int(max(c.New, it.padTo))
	}
	return n
}

// pace is gpu.pace for the slowest rank: n is limited to the iterations in which that rank stays the slowest. It gives
// all ranks the numbers of tokens of the group, and pads them.
func (g *lockstep) pace() (first, slope int64, n int) {
	all, most := int64(0), 1
	for _, r := range g.ranks {
		tokens := max(1, r.it.tokens())
		all += int64(tokens)
		most = max(most, tokens)
	}
	busiest, padTo := int64(most), 1
	if g.padder != nil {
		if n := g.padder.RankTokens(most); n > 0 {
			busiest, padTo = int64(n), most
			all = busiest * int64(len(g.ranks))
		}
	}
	n = math.MaxInt
	lines := g.lines[:0]
	for _, r := range g.ranks {
		b := &r.gpu.batch
		b.GroupTokens, b.BusiestTokens = all, busiest
		l, k := g.paddedPace(r, padTo)
		lines = append(lines, l)
		n = min(n, k)
		if l.first > first || l.first == first && l.slope > slope {
			first, slope = l.first, l.slope
		}
	}
	g.lines = lines
	for _, l := range lines {
		if l.slope > slope { // this rank becomes the slowest later
			n = int(min(int64(n), (first-l.first)/(l.slope-slope)+1))
		}
	}
	return first, slope, n
}

// line is the length of the first iteration, and the growth from each iteration to the next, in femtoseconds.
type line struct{ first, slope int64 }

// paddedPace returns the lengths of n iterations like the composed one on a rank that is padded to a number of tokens,
// or that runs a dummy batch.
func (g *lockstep) paddedPace(r *Engine, padTo int) (l line, n int) {
	it := &r.it
	tokens := it.tokens()
	if tokens > 0 {
		l.first, l.slope, n = r.pace()
	} else {
		b := &r.gpu.batch
		*b = model.Batch{Decodes: 1, Context: 1, GroupTokens: b.GroupTokens, BusiestTokens: b.BusiestTokens}
		l.first, _, _ = r.cfg.Timer.Span(b)
		s := &r.span
		s.SwapFemtos, s.HostFemtos, s.HostSlope = 0, 0, 0
		it.padTokens, tokens, n = 1, 1, math.MaxInt
	}
	if more := padTo - tokens; more > 0 {
		l.first += g.padder.Padding(tokens, padTo)
		it.padTokens += more
	}
	return l, n
}
