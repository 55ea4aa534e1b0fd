package sim

import (
	"math/bits"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/kv"
)

// What is left of KV elsewhere when an engine ends: nothing is on its way to it or from it any more, nobody's blocks are
// kept, and only the tiers that persist have what they had.

// ended reports whether the life of the replica is over.
func (r *Engine) ended() bool { return r.host.replicas[r.index] != r }

// atPeace reports whether nothing is left to do for a replica that drains: no requests are there, nobody will load the
// KV that it keeps, and tiers that outlive it have all that was copied there.
func (r *Engine) atPeace() bool {
	if r.levels.System > 0 {
		return false
	}
	c := r.conn
	return c == nil || !slices.ContainsFunc(c.leases, func(l *lease) bool { return !l.over }) &&
		!slices.ContainsFunc(c.tiers, func(t tier) bool { return t.Persistent && t.flow != none })
}

// abandon gives up what is on its way at the instant at, when no request is left, and frees the blocks that are kept.
func (r *Engine) abandon(at clock.Time) {
	c := r.conn
	if c == nil {
		return
	}
	r.host.wires.abandon(at, r)
	for k := range c.tiers {
		c.tellBusy(r, at, k)
	}
	for _, l := range c.loads {
		r.release(&l.kept)
	}
	for _, l := range c.leases {
		l.over = true
		r.release(&l.kept)
	}
	c.loads, c.leases, c.due = nil, nil, false
}

// inherit takes over the links of the engine that was here before, and what it has left in tiers that persist.
func (c *connector) inherit(before *connector) {
	c.links = before.links
	for _, t := range before.tiers {
		after := tier{Tier: t.Tier, chunks: t.chunks, link: t.link, flow: none, torn: t.torn}
		if !t.Persistent {
			after.chunks = kv.NewTier(t.Chunks, t.Eviction)
		}
		c.tiers = append(c.tiers, after)
	}
}

// abandon stops the transfers and forgets the leases of a replica.
func (w *wires) abandon(at clock.Time, r *Engine) {
	for i := range w.transfers {
		c := &w.cargoes[i]
		if w.transfers[i].serial == 0 {
			continue
		}
		switch {
		case c.replica == r:
			w.Stop(at, int32(i))
			w.stopped(int32(i), c)
		case c.load != nil && c.load.from == r:
			w.Stop(at, int32(i))
			w.stopped(int32(i), c)
			c.replica.cutOff(at, c.load)
		}
	}
	w.reminders.keep(func(x entry) bool {
		if w.reminded[x.ref].replica != r {
			return true
		}
		w.awaited--
		w.reminded[x.ref] = reminder{}
		w.vacancies = append(w.vacancies, x.ref)
		return false
	})
}

// cutOff ends a load from a replica that has ended.
func (r *Engine) cutOff(at clock.Time, l *load) {
	l.fails, l.read, l.parts = true, nil, 0
	r.conn.due = true
	r.cut(at)
	r.host.sync(r)
}

// stopped counts what transfer i, which was stopped, has brought: of copies, the chunks that are whole.
func (w *wires) stopped(i int32, c *cargo) {
	came := int64(0)
	if c.load != nil {
		w.awaited--
	} else {
		conn, t := c.replica.conn, &c.replica.conn.tiers[c.tier]
		chunk := int64(conn.chunkBlocks()) * conn.BlockBytes
		whole := (c.bytes - w.transfers[i].bytesLeft()) / chunk
		came = whole * chunk
		t.flow = none
		if t.Persistent {
			t.tear(t.copied[whole:])
		}
	}
	w.count(i, func(u *LinkUse) {
		u.Received += came
		u.Dropped += c.bytes - came
	})
}

// tear makes chunks useless, as far as they are in the tier.
func (t *tier) tear(keys []uint64) {
	for _, key := range keys {
		if t.chunks.Has(key) {
			if t.torn == nil {
				t.torn = make(map[uint64]bool)
			}
			t.torn[key] = true
		}
	}
	t.copied = nil
}

// bytesLeft is the number of bytes that have not been sent, a part of one as a whole.
func (t *transfer) bytesLeft() int64 {
	bytes, part := bits.Div64(t.left.Hi, t.left.Lo, uint64(clock.Second))
	if part > 0 {
		bytes++
	}
	return int64(bytes)
}
