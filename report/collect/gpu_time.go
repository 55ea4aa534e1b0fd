package collect

import (
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// What the time of an iteration is lost to.
const (
	lostRecompute = iota // tokens computed again after a preemption
	lostMiss             // tokens computed because the prefix cache had lost them
	lostDrafts           // drafts that were rejected
	lostPadding          // rows and tokens computed for no request
	lostSwap             // copies of KV to and from host memory
	lostHost             // waits for the host
	losses
)

// loses reports whether some of a span's time is lost.
func loses(s *event.Span) bool {
	return s.RecomputedTokens|s.LostTokens|s.Drafts|s.PaddedRows|s.PaddedTokens|s.SwappedBlocks != 0 ||
		s.HostFemtos != 0
}

// hostFemtos is the time of a span in which the GPU waits for the host, in femtoseconds.
func hostFemtos(s *event.Span) int64 {
	n := int64(s.N)
	return n*s.HostFemtos + int64(uint64(n*(n-1))/2)*s.HostSlope
}

// lost is the part of the time of a span that goes to each loss, in femtoseconds. Copies and the host's time are told
// by the span; what is left is shared out by tokens computed, as [event.Span.Share] does.
func lost(s *event.Span) (parts [losses]int64) {
	padded := s.PaddedRows + s.PaddedTokens
	parts[lostSwap] = int64(s.N) * s.SwapFemtos
	parts[lostHost] = hostFemtos(s)
	if s.RecomputedTokens|s.LostTokens|s.Drafts|padded == 0 {
		return
	}
	each := s.Share(s.N)
	parts[lostRecompute] = each * int64(s.RecomputedTokens)
	parts[lostMiss] = each * int64(s.LostTokens)
	parts[lostDrafts] = each * int64(s.Rejected())
	parts[lostPadding] = each * int64(padded)
	return
}

// The parts of the GPU time of attempts that did not complete: useful work and three losses.
const cancelledUseful = lostDrafts + 1

// cancelledTime is the GPU time of attempts that did not complete, in femtoseconds, by the part that it would count in
// if they had completed.
type cancelledTime [cancelledUseful + 1]clock.Uint128

// add adds the time of an attempt.
func (v *cancelledTime) add(t *event.GPUTime) {
	add(&v[lostRecompute], t.Recomputed)
	add(&v[lostMiss], t.Lost)
	add(&v[lostDrafts], t.Drafts)
	add(&v[cancelledUseful], t.Prefill+t.Decode)
}

// gpuTime divides the time of the engines in a window, or of all their stages, in femtoseconds: the parts add up to the
// whole.
type gpuTime struct {
	whole, useful, cancelled, idle clock.Uint128
	bubble                         clock.Uint128 // stages that wait while others work
	lost                           [losses]clock.Uint128
	unrequested                    clock.Uint128 // of idle: while no request was in the system
	starting, down                 clock.Uint128 // of idle: while the replica was that
}

// gpuTime divides the time of a unit in a window. An attempt that did not complete is known as such when it ends, and
// all that it took counts then, though at most what there is of its kind in the window.
func (u *unit) gpuTime(w *window) (t gpuTime) {
	const femtos = clock.FemtosPerPico
	paid, _ := u.paidPicos(w)
	stages := uint64(u.PipelineStages)
	t.whole = paid.Mul(femtos).Mul(stages)
	busy := u.sum.busy.Mul(stages)
	if busy.Cmp(t.whole) < 0 {
		t.idle = t.whole.Sub(busy)
	}
	t.useful = t.whole.Sub(t.idle)
	if stages > 1 {
		t.bubble = u.sum.bubble(t.useful)
		t.useful = t.useful.Sub(t.bubble)
	}
	for i, part := range u.sum.lost {
		t.lost[i] = least(part, t.useful) // an iteration may end after the window
		t.useful = t.useful.Sub(t.lost[i])
	}
	for i, part := range u.sum.vain {
		from := &t.useful
		if i < cancelledUseful {
			from = &t.lost[i]
		}
		part = least(part, *from)
		*from = from.Sub(part)
		t.cancelled = t.cancelled.Add(part)
	}
	starting, down, off := u.asleep()
	t.starting = least(t.idle, clock.Mul64(starting, femtos*stages))
	t.down = least(t.idle.Sub(t.starting), clock.Mul64(down, femtos*stages))
	vacant := u.vacant - min(u.vacant, starting+down+off)
	t.unrequested = least(t.idle.Sub(t.starting).Sub(t.down), clock.Mul64(vacant, femtos*stages*uint64(u.Replicas)))
	return t
}

// least is the smaller of two numbers.
func least(a, b clock.Uint128) clock.Uint128 {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// gpuSeconds is the division in GPU seconds, if there is a window. The time in which a replica has nothing to do is
// split by whether others have.
func (c summariser) gpuSeconds(w *window, units []unit, d *detail) (g report.GPUSeconds) {
	if w.end <= w.start {
		return report.GPUSeconds{}
	}
	add := func(to **float64, femtos clock.Uint128, gpus float64) {
		v := femtos.Float64() / 1e15 * gpus
		if *to != nil {
			v += **to
		}
		*to = stats.Finite(v)
	}
	for i := range units {
		u := &units[i]
		stages := u.PipelineStages
		t, gpus := u.gpuTime(w), float64(u.GPUs)/float64(u.Replicas*stages)
		unrequested := t.unrequested
		if len(units) > 1 {
			unrequested = least(unrequested,
				clock.Mul64(d.levels[inSystem].WeightOfZero(), clock.FemtosPerPico*uint64(stages)))
			add(&g.IdleByCause.Elsewhere, t.unrequested.Sub(unrequested), gpus)
		}
		add(&g.Useful, t.useful, gpus)
		add(&g.Recompute, t.lost[lostRecompute], gpus)
		add(&g.CacheMiss, t.lost[lostMiss], gpus)
		add(&g.Cancelled, t.cancelled, gpus)
		add(&g.Rejected, t.lost[lostDrafts], gpus)
		add(&g.Padding, t.lost[lostPadding], gpus)
		add(&g.Swap, t.lost[lostSwap], gpus)
		add(&g.Host, t.lost[lostHost], gpus)
		if stages > 1 {
			add(&g.Bubble, t.bubble, gpus)
		}
		add(&g.Idle, t.idle, gpus)
		add(&g.IdleByCause.NoRequests, unrequested, gpus)
		add(&g.IdleByCause.FrontEnd, t.idle.Sub(t.unrequested).Sub(t.starting).Sub(t.down), gpus)
		if u.Lifecycle {
			add(&g.IdleByCause.Starting, t.starting, gpus)
			add(&g.IdleByCause.Down, t.down, gpus)
		}
	}
	return g
}
