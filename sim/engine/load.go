package engine

import (
	"slices"

	"clifftop/sim/clock"
)

// Requests whose KV is loaded before they are admitted.

// load is the KV of a request on its way.
type load struct {
	serial  int64
	seq     int32 // none if its client has left
	started clock.Time
	parts   int // transfers that have not come
	fails   bool
	remote  bool    // from another replica
	from    *Engine // that one, if it is of the same engine
	read    func(at clock.Time)
	lost    func() bool // whether what was to be read is not there any more

	heldBlocks // of a request whose client has left: kept until the KV has arrived
}

// lease is the blocks of a request that has ended, which are kept for another engine that loads them.
type lease struct {
	request int64
	serial  int64
	over    bool
	heldBlocks
}

// Load implements [sched.Admitter].
func (it *batchBuilder) Load(place int) bool {
	r := it.r
	if r.connector == nil {
		return false
	}
	d, ok := it.Waiting(place)
	if !ok || d.Loadable == 0 || r.cfg.pagesFor(d.Known)-d.Held > r.space.free() || r.connector.holdsBack() {
		return false
	}
	c := r.connector
	c.plan.valid = false
	i := r.take(place, r.queue.at(place))
	r.levels.Waiting++
	s := r.seqs.at(i)
	s.reused = r.space.takeCached(s)
	s.computed = min(s.reused+d.Loadable, d.Known-1)
	s.loaded, s.swapped, s.phase = s.computed-s.reused, false, loading
	r.uncomputed -= int64(min(s.computed, s.rec.Request.InputTokens))
	c.serials++
	l := &load{serial: c.serials, seq: i, started: r.now}
	s.load = l
	c.loads, c.parked = append(c.loads, l), append(c.parked, i)
	if c.plan.remote {
		c.plan.fetchRemote(c, s, l)
	} else {
		c.plan.start(c, l)
	}
	it.grow(i, s, r.cfg.blocksFor(d.Known))
	s.grown = false
	it.loads++
	return true
}

// holdsBack reports whether loading from another replica has to wait until loaded requests run.
func (c *connector) holdsBack() bool {
	if !c.plan.remote || c.PullPercent == 0 {
		return false
	}
	blocks := 0
	for _, i := range c.parked {
		blocks += c.e.space.held(c.e.seqs.at(i))
	}
	return 100*int64(blocks) >= int64(c.PullPercent)*int64(c.e.cfg.UsableBlocks())
}

// fetchRemote begins to transfer the KV of s from another replica.
func (p *plan) fetchRemote(c *connector, s *sequence, l *load) {
	handoff := c.handoffs[s.rec.Request.ID]
	remote := &handoff.Remote
	blocks := c.e.cfg.blocksFor(s.reused+p.tokens) - int(s.reused/c.e.cfg.BlockSize)
	bytes, layers := int64(blocks)*c.BlockBytes, max(remote.Layers, 1)
	l.parts, l.remote, l.read, l.lost, l.from = 1, true, remote.Read, remote.Lost, remote.From
	l.fails = remote.Fails || l.lost != nil && l.lost()
	if l.from != nil && l.from.Retired() {
		bytes = 0 // the other engine is gone
	}
	path := slices.Clone(remote.Via)
	for _, k := range remote.Path {
		path = append(path, c.links[k])
	}
	c.e.transfers.begin(c.e.now, payload{engine: c.e, load: l, tier: none}, (bytes+layers-1)/layers, remote.Latency, path...)
	handoff.Remote = Remote{}
	c.handoffs[s.rec.Request.ID] = handoff
}

// receive sees what has come, at a boundary, and which blocks need not be kept any more.
func (c *connector) receive() {
	if c != nil && c.due {
		c.receiveDue()
	}
}

func (c *connector) receiveDue() {
	c.due = false
	c.e.space.Settle()
	c.leases = slices.DeleteFunc(c.leases, func(l *lease) bool {
		if l.over {
			c.e.space.release(&l.heldBlocks)
		}
		return l.over
	})
	c.loads = slices.DeleteFunc(c.loads, func(l *load) bool {
		switch {
		case l.parts > 0:
			return false
		case l.seq == none:
			c.e.space.release(&l.heldBlocks)
		case l.fails && c.FailLost:
			c.e.seqs.at(l.seq).rec.Loading += c.e.now.Sub(l.started)
			c.e.Lose(l.seq)
			c.e.space.release(&l.heldBlocks)
		default:
			c.come(l)
		}
		return true
	})
}

// come puts the sequence of a load, whose KV is there, back into the queue.
func (c *connector) come(l *load) {
	s := c.e.seqs.at(l.seq)
	s.phase = loaded
	s.rec.Loading += c.e.now.Sub(l.started)
	if l.fails {
		c.e.uncomputed += int64(min(s.computed, s.rec.Request.InputTokens) - min(s.reused, s.rec.Request.InputTokens))
		s.computed, s.loaded = s.reused, 0
	} else {
		c.e.space.register(s, s.computed)
	}
	place := 0
	for _, w := range c.e.queue.loaded {
		if c.e.seqs.at(w.seq).load.serial < l.serial {
			place++
		}
	}
	req := &s.rec.Request
	c.e.queue.pushLoaded(place, req, l.seq, c.e.keyOf(req, l.seq))
}

// unpark notes that a sequence that was loaded is none of those any more.
func (c *connector) unpark(i int32) { c.parked = without(c.parked, i) }

// leaveParked ends the wait of sequence i, whose client has left: where its KV is still on its way, its blocks are
// kept.
func (c *connector) leaveParked(i int32) {
	s := c.e.seqs.at(i)
	c.e.levels.Waiting--
	c.e.uncomputed -= s.promptLeft()
	c.unpark(i)
	if s.phase == loaded {
		c.e.space.Settle()
		c.e.queue.takeLoaded(i)
		c.e.space.freeBlocks(s)
		return
	}
	s.load.seq = none
	s.load.heldBlocks = s.detach()
}

// keepUnderLease keeps the blocks of s, which has ended.
func (c *connector) keepUnderLease(s *sequence) {
	c.serials++
	l := &lease{request: s.rec.Request.ID, serial: c.serials, heldBlocks: s.detach()}
	c.leases = append(c.leases, l)
	if s.lease < clock.MaxRun {
		c.e.transfers.endLease(c.e.now.Add(s.lease), leaseEnd{c.e, l})
	}
}

// ReleaseHeld ends the lease of a request at the instant at, if it has one: the blocks are free from the next boundary
// on.
func (c *connector) ReleaseHeld(at clock.Time, request int64) {
	for _, l := range c.leases {
		if l.request == request {
			c.expire(at, l)
		}
	}
}

// expire ends a lease.
func (c *connector) expire(at clock.Time, l *lease) {
	if !l.over {
		l.over, c.due = true, true
		c.e.cut(at)
	}
}

// holds is the number of blocks that are held by no running sequence, and what is charged for their windowed layers.
func (c *connector) holds() (blocks, windowed int) {
	if c == nil {
		return 0, 0
	}
	for _, i := range c.parked {
		s := c.e.seqs.at(i)
		blocks, windowed = blocks+c.e.space.held(s), windowed+s.windowed
	}
	add := func(k *heldBlocks) {
		blocks, windowed = blocks+len(k.blocks), windowed+k.windowed
		if !c.e.space.caching {
			blocks += k.blockCount
		}
	}
	for _, l := range c.loads {
		add(&l.heldBlocks)
	}
	for _, l := range c.leases {
		add(&l.heldBlocks)
	}
	return blocks, windowed
}
