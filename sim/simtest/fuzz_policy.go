package simtest

import (
	"fmt"
	"math/rand/v2"

	"clifftop/sim/sched"
)

// FuzzPolicy is a policy that does at random all that a policy may do. What it does depends on the results of all
// queries of the view, so that a difference between an engine and the naive one changes the run. After a number of
// preemptions it only makes sure that every request is served.
var FuzzPolicy = Policy{"fuzz", func(k *Knobs) sched.Scheduler {
	return &fuzzPolicy{seed: uint64(k.Int("seed", 1, 1, 1<<30)), left: k.Int("disruptions", 20, 0, 60),
		calmness: k.Int("calmness", 2, 1, 4)}
}}

type fuzzPolicy struct {
	seed     uint64
	left     int // disruptions
	calmness int
	limits   sched.Limits

	rand *rand.Rand
	calm bool // this iteration is one of many alike
}

// Validate implements [sched.Scheduler].
func (c *fuzzPolicy) Validate(l sched.Limits) error {
	if l.Speculative {
		return fmt.Errorf("fuzz: no drafts")
	}
	if c.limits = l; l.Contiguous && l.NumGPUBlocks == 0 {
		return fmt.Errorf("fuzz: a contiguous pool needs a limit")
	}
	return nil
}

// Repeats implements [sched.Scheduler].
func (c *fuzzPolicy) Repeats(v sched.View) int {
	if c.calm {
		return 1 << 30
	}
	return 1
}

// Schedule implements [sched.Scheduler].
func (c *fuzzPolicy) Schedule(v sched.View) {
	head, waits := v.Waiting(0)
	lasting := hasher{c.seed}
	lasting.add(v.Departures(), int64(v.RunningLen()), int64(v.WaitingLen()), head.Request)
	c.rand = rand.New(rand.NewPCG(c.seed, lasting.sum))
	c.calm = v.Decoding() > 0 && v.NextPrefill(sched.None) == sched.None && c.rand.IntN(c.calmness) > 0
	if waits {
		v.Blocked(sched.HeldByPolicy)
	}
	full := v.Budget()
	if c.calm {
		pads := c.rand.IntN(4) == 0
		c.calm = c.decode(v, 1+c.rand.IntN(2))
		if c.calm && pads {
			v.Pad(2, 50+2*v.DecodeSteps())
		}
	} else {
		c.rand = rand.New(rand.NewPCG(c.seed, c.query(v)))
		c.preemptSome(v)
		c.decode(v, c.rand.IntN(4))
		c.prefill(v)
		c.preemptSome(v)
		c.admit(v)
		c.preemptSome(v)
		if c.rand.IntN(4) == 0 {
			v.Pad(c.rand.IntN(3), int64(c.rand.IntN(100)))
		}
		if c.rand.IntN(4) == 0 {
			v.PadChunks(v.Budget() + full)
		}
	}
	if v.Budget() == full {
		c.forceProgress(v)
	}
}

// query calls all queries of the view and hashes the results.
func (c *fuzzPolicy) query(v sched.View) uint64 {
	d := hasher{c.seed}
	d.add(int64(v.Now()), int64(v.Budget()), int64(v.Seats()), int64(v.RunningLen()), int64(v.Decoding()), v.Context(),
		int64(v.Blocks()),
		int64(v.FreeBlocks()), int64(v.LargestFree()), int64(v.Booked()), v.DecodeSteps(), v.Departures(),
		v.Remaining(5), v.Remaining(1<<30),
		int64(v.BlocksFor(17)))
	for s := v.First(); s != sched.None; s = v.Next(s) {
		p, u := v.Progress(s), v.Urgency(s)
		d.add(p.Request, int64(p.Prompt), int64(p.Generated), int64(p.MaxTokens), int64(p.Priority), u.Key, u.Arrival,
			u.Request, int64(v.Missing(s)), int64(v.Given(s)), int64(p.Adapter))
	}
	for s := v.Last(); s != sched.None; s = v.Prev(s) {
		d.add(v.Urgency(s).Request)
	}
	for s := v.NextPrefill(sched.None); s != sched.None; s = v.NextPrefill(s) {
		d.add(v.Progress(s).Request)
	}
	for i := range c.visible(v) {
		w, _ := v.Waiting(i)
		first, _ := v.Beginning(0, 4)
		if p, ok := v.Peek(i); ok {
			d.add(p.Request, int64(p.Generated), int64(p.Adapter))
		}
		if begins, ok := v.Beginning(i, 4); ok && begins == first {
			d.add(2)
		}
		d.add(w.Request, int64(len(v.Path(i, nil))), int64(w.Known), int64(w.Cached), int64(w.Computed),
			int64(w.Loadable), int64(w.Held), int64(w.Generated), w.Urgency.Key)
		if w.Preempted {
			d.add(1)
		}
	}
	return d.sum
}

// visible is how many requests of the queue can be seen, at most three.
func (c *fuzzPolicy) visible(v sched.View) int {
	if c.limits.Ordered {
		return min(v.WaitingLen(), 1)
	}
	return min(v.WaitingLen(), 3)
}

// preemptSome preempts sequences now and then.
func (c *fuzzPolicy) preemptSome(v sched.View) {
	for c.left > 0 && v.RunningLen() > 0 && c.rand.IntN(5) == 0 {
		c.left--
		s := v.First()
		for range c.rand.IntN(v.RunningLen()) {
			s = v.Next(s)
		}
		switch c.rand.IntN(4) {
		case 0:
			v.Preempt(s)
		case 1:
			v.PreemptToTail(s)
		default:
			v.SwapOut(s)
		}
	}
}

// decode gives the decoding sequences their tokens in one of the ways that there are, and reports whether it
// gave all of them theirs.
func (c *fuzzPolicy) decode(v sched.View, way int) bool {
	switch way {
	case 1:
		return v.DecodeFirst()
	case 2:
		decodes, before := v.Decoding(), v.Budget()
		v.DecodeAll()
		return int(before-v.Budget()) == decodes
	case 3:
		for s := v.First(); s != sched.None; s = v.Next(s) {
			if v.Missing(s) == 1 && v.Budget() > 0 && c.rand.IntN(3) > 0 && v.Grow(s, 1) {
				v.Give(s, 1)
			}
		}
	}
	return false
}

// prefill gives chunks to some sequences in prefill.
func (c *fuzzPolicy) prefill(v sched.View) {
	for s := v.NextPrefill(sched.None); s != sched.None && v.Budget() > 0; s = v.NextPrefill(s) {
		n := min(v.Missing(s), v.Budget())
		if c.rand.IntN(3) == 0 {
			continue
		}
		if c.rand.IntN(2) == 0 {
			n = 1 + c.rand.Int32N(n)
		}
		if v.Grow(s, n) {
			v.Give(s, n)
		}
	}
}

// admit admits some requests of the queue.
func (c *fuzzPolicy) admit(v sched.View) {
	for c.rand.IntN(4) > 0 {
		if c.left > 0 && v.RunningLen() > 0 && c.rand.IntN(4) == 0 {
			c.left--
			v.Skip()
		}
		most := c.visible(v)
		if most == 0 {
			return
		}
		i := c.rand.IntN(most)
		w, _ := v.Waiting(i)
		if w.Loadable > 0 && c.rand.IntN(4) > 0 && v.Load(i) {
			continue
		}
		n := min(w.Known-w.Cached-w.Computed, v.Budget())
		if n > 1 && c.rand.IntN(2) == 0 {
			n = 1 + c.rand.Int32N(n)
		}
		if !c.tryAdmit(v, i, n) {
			return
		}
	}
	for s := v.First(); s != sched.None; s = v.Next(s) {
		if v.Given(s) == 0 && v.Missing(s) > 0 && c.rand.IntN(4) == 0 {
			v.Blocked(sched.LacksBudget)
		}
	}
}

// tryAdmit admits the i-th request with n tokens, if there is room for it.
func (c *fuzzPolicy) tryAdmit(v sched.View, i int, n int32) bool {
	w, _ := v.Waiting(i)
	whole := w.Prompt + w.MaxTokens - 1 // the last output token is not computed
	need, free := w.Cached+w.Computed+n, v.FreeBlocks()
	if c.limits.Contiguous {
		need, free = whole, v.LargestFree()
	}
	if n < 1 || v.Seats() == 0 || v.BlocksFor(need)-w.Held > free {
		return false
	}
	s := v.Admit(i, n)
	if c.limits.Contiguous || c.rand.IntN(3) == 0 {
		v.Reserve(s, whole)
	}
	if c.rand.IntN(3) == 0 {
		v.Book(s, whole)
	}
	return true
}

// forceProgress gives tokens to a sequence, and preempts others if necessary. No sequence has been given any.
func (c *fuzzPolicy) forceProgress(v sched.View) {
	for s := v.First(); s != sched.None && v.Budget() > 0; s = v.Next(s) {
		n := min(v.Missing(s), v.Budget())
		if n == 0 {
			continue
		}
		for !v.Grow(s, n) {
			last := v.Last()
			v.Preempt(last)
			if last == s {
				return
			}
		}
		v.Give(s, n)
	}
	if w, ok := v.Waiting(0); ok && v.RunningLen() == 0 {
		c.tryAdmit(v, 0, min(w.Known-w.Cached-w.Computed, v.Budget()))
	}
}

// hasher folds numbers.
type hasher struct{ sum uint64 }

func (d *hasher) add(list ...int64) {
	for _, x := range list {
		d.sum = (d.sum ^ uint64(x)) * 0x9e3779b97f4a7c15
		d.sum ^= d.sum >> 29
	}
}
