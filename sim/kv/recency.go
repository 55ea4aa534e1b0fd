package kv

import "clifftop/sim/clock"

// Recency is the order in which blocks were last used, by their keys. It also has runs of blocks without keys, which
// are never looked up. The zero Recency is empty.
type Recency struct {
	table table
	used  []use // by entry of the table: a ring; entry 0 is between the newest and the oldest
	// Blocks is the number of blocks.
	Blocks int64
}

// use is a block, or a run of blocks without keys.
type use struct {
	older, newer int32 // neighbours
	blocks       int64
	at           clock.Time
}

// Touch makes the block of a key the newest one, and adds it if it is new.
func (c *Recency) Touch(key uint64, now clock.Time) {
	i := c.table.find(key)
	if i == 0 {
		c.link(c.table.add(key), 1, now)
		return
	}
	c.unlink(i)
	c.Blocks--
	c.link(i, 1, now)
}

// Push adds a run of blocks as the newest.
func (c *Recency) Push(blocks int64, now clock.Time) { c.link(c.table.take(), blocks, now) }

// Oldest is when the oldest block, which must exist, was last used.
func (c *Recency) Oldest() clock.Time { return c.used[c.used[0].newer].at }

// Pop removes the oldest block, or up to the given number of a run. It returns the block's key, if it has one.
func (c *Recency) Pop(most int64) (key uint64, ok bool) {
	i := c.used[0].newer
	u := &c.used[i]
	if u.blocks > most {
		u.blocks -= most
		c.Blocks -= most
		return 0, false
	}
	c.Blocks -= u.blocks
	c.unlink(i)
	key, ok = c.table.key(i)
	c.table.drop(i)
	return key, ok
}

func (c *Recency) unlink(i int32) {
	u := &c.used[i]
	c.used[u.older].newer = u.newer
	c.used[u.newer].older = u.older
}

// link makes entry i, with its number of blocks, the newest.
func (c *Recency) link(i int32, blocks int64, now clock.Time) {
	for int(i) >= len(c.used) {
		c.used = append(c.used, use{})
	}
	newest := c.used[0].older
	c.used[i] = use{older: newest, blocks: blocks, at: now}
	c.used[newest].newer = i
	c.used[0].older = i
	c.Blocks += blocks
}
