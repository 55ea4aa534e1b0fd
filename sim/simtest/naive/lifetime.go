package naive

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Lifetime is what happens to an engine besides its requests.
type Lifetime struct {
	// Crash is when it stops; Never if it does not.
	Crash clock.Time
	// Slow are the times at which it is slow.
	Slow []Slowdown
	// Tiers has an entry for each tier of its connector. Persistent tiers start with these contents, if not nil, and
	// leave theirs at the end.
	Tiers []*Tier
}

// Slowdown makes the GPU take Permille thousandths of its time for iterations composed at From or later, before To.
type Slowdown struct {
	From, To clock.Time
	Permille int64
}

// slowed is the time of an iteration that is composed at an instant.
func slowed(slow []Slowdown, femtos int64, at clock.Time) int64 {
	for _, s := range slow {
		if s.From <= at && at < s.To {
			return femtos * s.Permille / 1000
		}
	}
	return femtos
}

// crash ends all requests at an instant, before anything else happens at it. The iterations in flight are counted;
// their tokens are dropped. Requests whose output was delivered are complete.
func (n *Engine) crash(at clock.Time) {
	if n.remote != nil {
		n.remote.stopped = true
	}
	var all []*sequence
	for _, s := range n.byID {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sequence) int { return cmp.Compare(a.rec.Request.ID, b.rec.Request.ID) })
	for _, s := range all {
		n.drop(s)
		n.fail(s, at)
		n.finish(s, event.Failed, at)
	}
}

// fail fails s and notifies its client, unless it has left.
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

// end stops the engine, which has crashed or has nothing left to do.
func (n *Engine) end() {
	at := n.lifetime.Crash
	if n.remote == nil {
		return
	}
	for at != clock.Never && n.remote.network.Next() <= at {
		n.advanceTransfers(n.remote.network.Next())
	}
	if at == clock.Never {
		n.remote.leaveTiers(n.lifetime.Tiers, false)
		return
	}
	n.advanceTransfers(at)
	n.remote.leaveTiers(n.lifetime.Tiers, true)
	n.remote.stopTransfers(at)
}

// tear invalidates the chunks that have not been copied to the tier. A chunk has this many bytes.
func (t *tier) tear(bytes int64) {
	left := t.copies.bytesLeft()
	for _, key := range slices.Backward(t.copied) {
		if left > 0 {
			t.chunks.Tear(key)
		}
		left -= bytes
	}
}
