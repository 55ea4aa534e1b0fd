package report

import (
	"clifftop/sim"
	"clifftop/sim/clock"
)

// What the time of an iteration is lost to.
const (
	lostRecompute = iota // tokens computed again after a preemption
	lostMiss             // tokens computed because the prefix cache had lost them
	lostDrafts           // drafts that were rejected
	lostPadding          // rows and tokens computed for nobody
	lostSwap             // copies of KV to and from host memory
	lostHost             // waits for the host
	losses
)

// lost is the part of a span's time that goes to each loss, in femtoseconds. Copies and the host's time are told by the
// span; what is left is shared out by tokens computed, as [sim.Span.Share] does.
func lost(s *sim.Span) (parts [losses]int64) {
	padded := s.PaddedRows + s.PaddedTokens
	counts := s.RecomputedTokens | s.LostTokens | s.Drafts | padded
	if counts|s.SwappedBlocks == 0 && s.HostFemtos == 0 {
		return
	}
	n := int64(s.N)
	parts[lostSwap] = n * s.SwapFemtos
	parts[lostHost] = n*s.HostFemtos + n*(n-1)/2*s.HostSlope
	if counts == 0 {
		return
	}
	each := s.Share(s.N)
	parts[lostRecompute] = each * int64(s.RecomputedTokens)
	parts[lostMiss] = each * int64(s.LostTokens)
	parts[lostDrafts] = each * int64(s.Rejected())
	parts[lostPadding] = each * int64(padded)
	return
}

// Attempts that did not complete give up what they took: for the first time, and of three losses.
const vainUseful = lostDrafts + 1

// vain is the GPU time of attempts that did not complete, by what it would count as if they had: recompute, misses,
// drafts, or useful.
type vain [vainUseful + 1]sim.Uint128

// add adds the time of an attempt.
func (v *vain) add(t *sim.GPUTime) {
	for i, femtos := range [...]int64{lostRecompute: t.Recomputed, lostMiss: t.Lost, lostDrafts: t.Drafts, vainUseful: t.Prefill + t.Decode} {
		add(&v[i], femtos)
	}
}

// gpuTime divides the time of the engines in a window, in femtoseconds: the parts add up to the whole.
type gpuTime struct {
	whole, useful, cancelled, idle sim.Uint128
	lost                           [losses]sim.Uint128
	nobody                         sim.Uint128 // of idle: while no request was in the system
}

// gpuTime divides the time of a window. An attempt that did not complete is known as such when it ends, and all that
// it took counts then, though at most what there is of its kind in the window.
func (c *Collector) gpuTime(w *window, sum *bucket, d *detail) (t gpuTime) {
	const femtos = clock.FemtosPerPico
	replicas := uint64(c.opts.Replicas)
	t.whole = sim.Mul64(uint64(w.end.Sub(w.start)), femtos*replicas)
	if sum.busy.Cmp(t.whole) < 0 {
		t.idle = t.whole.Sub(sum.busy)
	}
	t.useful = t.whole.Sub(t.idle)
	for i, part := range sum.lost {
		t.lost[i] = least(part, t.useful) // an iteration may end after the window
		t.useful = t.useful.Sub(t.lost[i])
	}
	for i, part := range sum.vain {
		from := &t.useful
		if i < vainUseful {
			from = &t.lost[i]
		}
		part = least(part, *from)
		*from = from.Sub(part)
		t.cancelled = t.cancelled.Add(part)
	}
	t.nobody = least(t.idle, sim.Mul64(d.levels[inSystem].weightOfZero(), femtos*replicas))
	return t
}

// least is the smaller of two numbers.
func least(a, b sim.Uint128) sim.Uint128 {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// gpuSeconds is the division in GPU seconds, if there is a window.
func (c *Collector) gpuSeconds(w *window, sum *bucket, d *detail) GPUSeconds {
	if w.end <= w.start {
		return GPUSeconds{}
	}
	t := c.gpuTime(w, sum, d)
	perReplica := float64(c.opts.GPUs) / float64(c.opts.Replicas)
	seconds := func(femtos sim.Uint128) *float64 { return number(femtos.Float64() / 1e15 * perReplica) }
	return GPUSeconds{
		Useful: seconds(t.useful), Recompute: seconds(t.lost[lostRecompute]), CacheMiss: seconds(t.lost[lostMiss]),
		Cancelled: seconds(t.cancelled), Rejected: seconds(t.lost[lostDrafts]), Padding: seconds(t.lost[lostPadding]),
		Swap: seconds(t.lost[lostSwap]), Host: seconds(t.lost[lostHost]), Idle: seconds(t.idle),
		IdleByCause: IdleByCause{NoRequests: seconds(t.nobody), FrontEnd: seconds(t.idle.Sub(t.nobody))},
	}
}
