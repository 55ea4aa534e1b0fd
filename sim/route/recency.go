package route

import "clifftop/sim/clock"

// recency is the order in which the blocks of one endpoint were last used.
type recency struct {
	entries []used          // a ring; entry 0 stands between the newest and the oldest
	at      map[int32]int32 // entries by place
	vacant  []int32
	blocks  int64 // in all
}

// used is a block, or a run of blocks that have no place.
type used struct {
	place        int32
	older, newer int32 // neighbours
	blocks       int64
	at           clock.Time
}

// nowhere is the place of blocks that nobody will look for.
const nowhere = int32(-1)

// touch makes the block of a place the newest one.
func (c *recency) touch(place int32, now clock.Time) {
	i, ok := c.at[place]
	if !ok {
		i = c.push(place, 1, now)
		c.at[place] = i
		return
	}
	c.unlink(i)
	c.link(i)
	c.entries[i].at = now
}

// push adds so many blocks as the newest, and returns their entry.
func (c *recency) push(place int32, blocks int64, now clock.Time) int32 {
	if c.entries == nil {
		c.entries, c.at = make([]used, 1), make(map[int32]int32)
	}
	i := int32(len(c.entries))
	if n := len(c.vacant); n > 0 {
		i, c.vacant = c.vacant[n-1], c.vacant[:n-1]
	} else {
		c.entries = append(c.entries, used{})
	}
	c.entries[i] = used{place: place, blocks: blocks, at: now}
	c.blocks += blocks
	c.link(i)
	return i
}

// oldest is the entry used least recently, where there is one.
func (c *recency) oldest() *used { return &c.entries[c.entries[0].newer] }

// pop removes the oldest entry, or as much of it as is wanted, and returns its place.
func (c *recency) pop(most int64) int32 {
	i := c.entries[0].newer
	e := &c.entries[i]
	if e.blocks > most {
		e.blocks -= most
		c.blocks -= most
		return nowhere
	}
	c.blocks -= e.blocks
	c.unlink(i)
	c.vacant = append(c.vacant, i)
	if e.place != nowhere {
		delete(c.at, e.place)
	}
	return e.place
}

func (c *recency) unlink(i int32) {
	e := &c.entries[i]
	c.entries[e.older].newer = e.newer
	c.entries[e.newer].older = e.older
}

// link makes entry i the newest.
func (c *recency) link(i int32) {
	e, newest := &c.entries[i], c.entries[0].older
	e.older, e.newer = newest, 0
	c.entries[newest].newer = i
	c.entries[0].older = i
}
