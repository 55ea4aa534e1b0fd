package simtest

import (
	"cmp"
	"slices"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Life is what happens to an engine.
type Life struct {
	// Crash is when it ends; Never if it does not.
	Crash clock.Time
	// Slow are the times at which it is slow.
	Slow []Slowness
}

// Slowness makes the GPU take Permille thousandths of its time for iterations composed at From or later, before To.
type Slowness struct {
	From, To clock.Time
	Permille int64
}

// slowed is the time of an iteration that is composed at an instant.
func (l *Life) slowed(femtos int64, at clock.Time) int64 {
	for _, s := range l.Slow {
		if s.From <= at && at < s.To {
			return femtos * s.Permille / 1000
		}
	}
	return femtos
}

// crash ends all requests at an instant, before anything else happens at it. What the engine has launched is counted;
// its tokens are dropped. Those whose answer was delivered are complete.
func (n *naive) crash(at clock.Time) {
	var all []*sequence
	for _, s := range n.byID {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sequence) int { return cmp.Compare(a.rec.Request.ID, b.rec.Request.ID) })
	for _, s := range all {
		for _, it := range n.inFlight {
			for _, sh := range it.shares {
				if sh.seq == s && sh.emits {
					n.obs.Dropped(it.end, int(sh.produces))
				}
			}
		}
		if s.over {
			n.finish(s, sim.Completed, at)
			continue
		}
		n.fail(s, at)
		n.finish(s, sim.Failed, at)
	}
}

// fail tells the client of s, unless it has left, that there will be no more.
func (n *naive) fail(s *sequence, at clock.Time) {
	if s.gone() {
		return
	}
	end := workload.End{How: workload.Disconnected, At: at.Add(n.cfg.NetworkOut), First: s.rec.ClientFirst, Tokens: s.delivered}
	if end.First != clock.Never {
		end.At = max(end.At, end.First)
	}
	n.tell(s, end)
}
