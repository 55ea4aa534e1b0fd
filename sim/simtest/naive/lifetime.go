package naive

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Lifetime is what happens to an engine.
type Lifetime struct {
	// Crash is when it ends; Never if it does not.
	Crash clock.Time
	// Slow are the times at which it is slow.
	Slow []Slowdown
	// Tiers has an entry for each tier of its connector. Those that persist begin with what is there, if that is not
	// nil, and leave what they have at the end.
	Tiers []*Tier
}

// Slowdown makes the GPU take Permille thousandths of its time for iterations composed at From or later, before To.
type Slowdown struct {
	From, To clock.Time
	Permille int64
}

// slowed is the time of an iteration that is composed at an instant.
func (l *Lifetime) slowed(femtos int64, at clock.Time) int64 {
	for _, s := range l.Slow {
		if s.From <= at && at < s.To {
			return femtos * s.Permille / 1000
		}
	}
	return femtos
}

// crash ends all requests at an instant, before anything else happens at it. What the engine has launched is counted;
// its tokens are dropped. Those whose answer was delivered are complete.
func (n *Engine) crash(at clock.Time) {
	n.crashed = true
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
			n.finish(s, event.Completed, at)
			continue
		}
		n.fail(s, at)
		n.finish(s, event.Failed, at)
	}
}

// fail tells the client of s, unless it has left, that there will be no more.
func (n *Engine) fail(s *sequence, at clock.Time) {
	if s.clientLeft() {
		return
	}
	end := workload.End{How: workload.Disconnected, At: at.Add(n.cfg.NetworkOut), First: s.rec.ClientFirst,
		Tokens: s.delivered}
	if end.First != clock.Never {
		end.At = max(end.At, end.First)
	}
	n.notifyClient(s, end)
}

// end is when the engine has crashed, or has nothing left to do.
func (n *Engine) end() {
	at := n.life.Crash
	if n.remote == nil {
		return
	}
	for at != clock.Never && n.remote.network.Next() <= at {
		n.advanceTransfers(n.remote.network.Next())
	}
	if at == clock.Never {
		n.leaveTiers(false)
		return
	}
	n.advanceTransfers(at)
	n.leaveTiers(true)
	n.stopTransfers(at)
}

// leaveTiers leaves the tiers that persist as they are: of what was being copied there when the engine crashed, the
// chunks are torn that had not come.
func (n *Engine) leaveTiers(crashed bool) {
	e := n.remote
	for k, t := range e.tiers {
		if t.Persistent {
			n.life.Tiers[k] = t.chunks
		}
		if crashed && t.copies != nil {
			t.tear(int64(max(e.ChunkBlocks, 1)) * e.BlockBytes)
		}
	}
}

// stopTransfers ends what is on its way to the engine and to its tiers.
func (n *Engine) stopTransfers(at clock.Time) {
	for _, l := range n.remote.loads {
		for _, t := range l.parts {
			n.remote.network.Stop(t)
		}
	}
	for _, t := range n.remote.tiers {
		if t.copies != nil {
			n.remote.network.Stop(t.copies)
		}
	}
	n.reportLinks(at)
}

// tear makes the chunks of so many bytes useless that have not come to the tier.
func (t *tier) tear(bytes int64) {
	left := t.copies.bytesLeft()
	for _, key := range slices.Backward(t.copied) {
		if left > 0 {
			t.chunks.Tear(key)
		}
		left -= bytes
	}
}
