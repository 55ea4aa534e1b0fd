package engine

import (
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/kv"
)

// KV cleanup after an engine stops: transfers are cancelled, leases are dropped, and only persistent tiers keep their
// KV.

// Retired reports whether another engine has taken the place of this one.
func (r *Engine) Retired() bool { return r.retired }

// Drained reports whether an engine that drains has nothing left to do: it has no requests, no other engine will load
// the KV that it keeps, and tiers that outlive it have all that was copied there.
func (r *Engine) Drained() bool {
	if r.levels.System > 0 {
		return false
	}
	c := r.conn
	return c == nil || !slices.ContainsFunc(c.leases, func(l *lease) bool { return !l.over }) &&
		!slices.ContainsFunc(c.tiers, func(t tier) bool { return t.Persistent && t.flow != none })
}

// Abandon gives up what is on its way at the instant at, when no request is left, and frees the blocks that are kept.
func (r *Engine) Abandon(at clock.Time) {
	c := r.conn
	if c == nil {
		return
	}
	r.transfers.abandon(at, r)
	for k := range c.tiers {
		c.reportBusy(r, at, k)
	}
	for _, l := range c.loads {
		r.release(&l.heldBlocks)
	}
	for _, l := range c.leases {
		l.over = true
		r.release(&l.heldBlocks)
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

// cutOff ends a load from a replica that has ended.
func (r *Engine) cutOff(at clock.Time, l *load) {
	l.fails, l.read, l.parts = true, nil, 0
	r.conn.due = true
	r.cut(at)
	r.host.Changed(r.index)
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
