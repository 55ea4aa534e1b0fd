package sim_test

import (
	"errors"
	"testing"

	"clifftop/sim/sched"
	"clifftop/sim/simtest"
)

// randomPolicy is a policy that uses every operation of the view at random. All that the view returns goes into its
// choices, so that a wrong result changes the run.
type randomPolicy struct {
	seed    uint64
	window  int64 // decode steps for which it keeps a decision to do nothing but decode
	limits  sched.Limits
	restful bool

	state  uint64 // of the random numbers of a composition
	given  int
	served map[sched.Seq]bool
	plain  bool
}

func (p *randomPolicy) Validate(l sched.Limits) error {
	if p.limits = l; l.Speculative {
		return errors.New("random: does not support drafts")
	}
	return nil
}

func (p *randomPolicy) Repeats(v sched.View) int {
	if !p.plain {
		return 1
	}
	return int(p.window - v.DecodeSteps()%p.window)
}

// learn lets the choices depend on a value.
func (p *randomPolicy) learn(values ...int64) {
	for _, x := range values {
		p.state ^= uint64(x)
		p.state += 0x9e3779b97f4a7c15
		p.state = (p.state ^ p.state>>30) * 0xbf58476d1ce4e5b9
		p.state = (p.state ^ p.state>>27) * 0x94d049bb133111eb
		p.state ^= p.state >> 31
	}
}

// of is a number in 0…n-1; once is true once in n times.
func (p *randomPolicy) of(n int) int {
	p.learn(1)
	return int(p.state >> 1 % uint64(n))
}
func (p *randomPolicy) once(n int) bool { return p.of(n) == 0 }

func (p *randomPolicy) Schedule(v sched.View) {
	p.state, p.given, p.plain = p.seed, 0, false
	p.served = make(map[sched.Seq]bool)
	p.learn(v.DecodeSteps()/p.window, v.Departures())
	if p.once(2) && v.Decoding() > 0 && v.DecodeFirst() {
		if rows := p.of(3); rows > 0 {
			v.Pad(rows, int64(7+rows)+int64(rows)*v.DecodeSteps())
		}
		v.Blocked(sched.HeldByPolicy)
		p.plain = true
		return
	}
	p.learn(int64(v.Now()), int64(v.RunningLen()), int64(v.FreeBlocks()), int64(v.Booked()),
		v.Remaining(int32(1+p.of(30))),
		v.Remaining(1<<30), int64(v.LargestFree()), int64(v.Decoding()), v.Context(), int64(v.WaitingLen()),
		int64(v.Budget()))
	p.preemptSome(v)
	p.look(v)
	p.decode(v)
	p.extend(v)
	p.admit(v)
	if p.once(4) {
		v.Pad(p.of(3), int64(p.of(50)))
	}
	if p.once(4) {
		v.PadChunks(int32(p.limits.MaxNumBatchedTokens + p.of(10)))
	}
	v.Blocked(sched.Cause(p.of(int(sched.NumberOfCauses))))
	p.progress(v)
}

// preemptSome preempts some.
func (p *randomPolicy) preemptSome(v sched.View) {
	if p.restful || v.Departures() > 150 {
		return
	}
	for s := v.First(); s != sched.None; s = v.Next(s) {
		if p.once(14) {
			p.remove(v, s)
		}
	}
}

func (p *randomPolicy) remove(v sched.View, s sched.Seq) {
	delete(p.served, s)
	switch p.of(4) {
	case 0:
		v.Preempt(s)
	case 1:
		v.PreemptToTail(s)
	default:
		if !v.SwapOut(s) {
			v.Preempt(s)
		}
	}
}

// look learns what can be seen of the running batch and of the queue.
func (p *randomPolicy) look(v sched.View) {
	for s := v.Last(); s != sched.None; s = v.Prev(s) {
		p.progressOf(v.Progress(s))
		p.learn(int64(v.Missing(s)), v.Urgency(s).Key)
	}
	for s := v.NextPrefill(sched.None); s != sched.None; s = v.NextPrefill(s) {
		p.learn(v.Progress(s).Request)
	}
	n := 3
	if p.limits.Ordered {
		n = 1
	}
	for i := range n {
		w, _ := v.Waiting(i)
		p.progressOf(w.Progress)
		p.learn(int64(w.Known), int64(w.Cached), int64(w.Held), int64(w.Computed), w.Urgency.Key)
	}
}

func (p *randomPolicy) progressOf(g sched.Progress) {
	p.learn(g.Request, int64(g.Prompt), int64(g.Generated), int64(g.MaxTokens), int64(g.Priority))
}

// decode gives all decoding sequences their token, or none of them, or leaves it to extend to choose.
func (p *randomPolicy) decode(v sched.View) {
	before := v.Budget()
	switch p.of(4) {
	case 0:
		v.DecodeAll()
	case 1:
		v.DecodeFirst()
	case 2:
		return
	}
	p.given += int(before - v.Budget())
	if p.once(3) { // single sequences, decoding or not
		for s := v.First(); s != sched.None && v.Budget() > 0; s = v.Next(s) {
			if v.Missing(s) > 0 && !p.once(3) {
				p.give(v, s)
			}
		}
	}
}

// give gives s some of what it misses, if the pool has room.
func (p *randomPolicy) give(v sched.View, s sched.Seq) {
	n := int32(1 + p.of(int(min(v.Missing(s), v.Budget()))))
	if p.served[s] || !v.Grow(s, n) {
		return
	}
	if p.once(20) && !p.restful {
		p.remove(v, s)
		return
	}
	v.Give(s, n)
	p.served[s] = true
	p.given++
	if p.once(30) && !p.restful {
		p.remove(v, s)
		p.given--
	}
}

// extend gives some prefills another chunk, and books blocks for some.
func (p *randomPolicy) extend(v sched.View) {
	for s := v.NextPrefill(sched.None); s != sched.None && v.Budget() > 0; s = v.NextPrefill(s) {
		if v.Missing(s) > 0 && !p.once(3) {
			p.give(v, s)
		}
	}
	if !p.once(3) {
		return
	}
	for s := v.First(); s != sched.None; s = v.Next(s) {
		if p.once(3) {
			p.book(v, s)
		}
	}
}

// book reserves or promises blocks for s.
func (p *randomPolicy) book(v sched.View, s sched.Seq) {
	g := v.Progress(s)
	tokens := int32(1 + p.of(int(g.Prompt+g.MaxTokens)))
	if p.once(2) {
		v.Book(s, tokens)
	} else if !p.limits.Contiguous {
		v.Reserve(s, tokens)
	}
}

// admit admits some, from the first places of the queue.
func (p *randomPolicy) admit(v sched.View) {
	for range p.of(4) {
		place := p.of(3)
		if p.limits.Ordered {
			place = 0
		}
		p.admitAt(v, place)
	}
}

// admitAt admits the request at a place, if there is one and everything it takes.
func (p *randomPolicy) admitAt(v sched.View, place int) bool {
	w, ok := v.Waiting(place)
	if !ok || v.Seats() == 0 || v.Budget() == 0 {
		return false
	}
	has := w.Cached + w.Computed
	n := int32(1 + p.of(int(min(w.Known-has, v.Budget()))))
	whole := w.Prompt + w.MaxTokens - 1
	switch {
	case p.limits.Contiguous && v.BlocksFor(whole) > v.LargestFree():
		return false
	case v.BlocksFor(v.Slots(has+n))-w.Held > v.FreeBlocks():
		return false
	}
	s := v.Admit(place, n)
	p.served[s] = true
	p.given++
	p.learn(v.Progress(s).Request)
	if p.limits.Contiguous {
		if p.once(3) {
			whole = 1 + int32(p.of(int(whole)))
		}
		v.Reserve(s, whole)
	}
	if p.once(2) {
		p.book(v, s)
	}
	return true
}

// progress ensures that some sequence is given a token.
func (p *randomPolicy) progress(v sched.View) {
	for p.given == 0 {
		s := v.First()
		for s != sched.None && v.Missing(s) == 0 {
			s = v.Next(s)
		}
		switch {
		case s == sched.None:
			p.admitAt(v, 0)
			return
		case v.Grow(s, 1):
			v.Give(s, 1)
			return
		case v.Last() == s:
			v.Preempt(s)
		default:
			v.Preempt(v.Last())
		}
	}
}

// TestView checks that the naive engine and the engine give the same recordings for policies that use all operations,
// with all features of the engine.
func TestView(t *testing.T) {
	t.Run("fuzz", func(t *testing.T) { simtest.Verify(t, simtest.FuzzPolicy) })
	t.Run("random", func(t *testing.T) {
		simtest.Verify(t, simtest.Policy{Name: "random", New: func(k *simtest.Knobs) sched.Scheduler {
			return &randomPolicy{
				seed:    uint64(k.Int("seed", 1, 1, 1<<30)),
				window:  int64(k.Int("window", 10, 1, 40)),
				restful: k.Flag("restful"),
			}
		}})
	})
}
