package engine

import (
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/kv"
)

// Requests whose KV is loaded before they are admitted.

// load is the transfer of the KV of a request into the pool.
type load struct {
	serial  int64
	seq     int32 // none if its client has left
	started clock.Time
	parts   int // transfers that have not arrived
	fails   bool
	remote  bool  // from another replica
	from    int32 // the number of its engine, or 0
	read    func(at clock.Time)
	lost    func() bool // reports whether the KV to be read is no longer there

	keptBlocks // of a request whose client has left: kept until the KV has arrived
}

// lease keeps the blocks of a request that has ended for another engine, which loads them.
type lease struct {
	request int64
	serial  int64
	over    bool
	keptBlocks
}

// Load implements [sched.Admitter].
func (it *batchBuilder) Load(place int) bool {
	r := it.r
	if r.connector == nil {
		return false
	}
	d, ok := it.Waiting(place)
	if !ok || d.Loadable == 0 || r.cfg.PagesFor(d.Known)-d.Held > r.space.free() || r.connector.holdsBack() {
		return false
	}
	c := r.connector
	c.plan.valid = false
	i := r.take(place, r.queue.At(place))
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
	it.grow(i, s, kv.Growth{Blocks: r.cfg.blocksFor(d.Known)})
	s.grown = false
	it.loads++
	return true
}

// holdsBack reports whether the load of the plan must wait because of [Connector.PullPercent].
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

// fetchRemote begins the transfer of the KV of s from another replica.
func (p *plan) fetchRemote(c *connector, s *sequence, l *load) {
	handoff := c.handoffs[s.rec.Request.ID]
	remote := &handoff.Remote
	blocks := c.e.cfg.blocksFor(s.reused+p.tokens) - int(s.reused/c.e.cfg.BlockSize)
	bytes, layers := int64(blocks)*c.BlockBytes, max(remote.Layers, 1)
	l.parts, l.remote, l.read, l.lost, l.from = 1, true, remote.Read, remote.Lost, remote.From
	l.fails = remote.Fails || l.lost != nil && l.lost()
	if l.from > 0 && c.e.transfers.gone[l.from-1] {
		bytes = 0 // the other engine has stopped
	}
	path := slices.Clone(remote.Via)
	for _, k := range remote.Path {
		path = append(path, c.links[k])
	}
	c.e.transfers.begin(c.e.now, payload{engine: c.e, load: l, tier: none}, (bytes+layers-1)/layers, remote.Latency,
		path...)
	handoff.Remote = Remote{}
	c.handoffs[s.rec.Request.ID] = handoff
}

// receive handles loads that have arrived and leases that have ended, at a boundary.
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
			c.e.space.release(&l.keptBlocks)
		}
		return l.over
	})
	c.loads = slices.DeleteFunc(c.loads, func(l *load) bool {
		switch {
		case l.parts > 0:
			return false
		case l.seq == none:
			c.e.space.release(&l.keptBlocks)
		case l.fails && c.FailLost:
			c.e.seqs.at(l.seq).rec.Loading += c.e.now.Sub(l.started)
			c.e.Lose(l.seq)
			c.e.space.release(&l.keptBlocks)
		default:
			c.come(l)
		}
		return true
	})
}

// come returns the sequence of a load that has arrived to the queue. If the load has failed, the loaded tokens remain
// to be computed.
func (c *connector) come(l *load) {
	s := c.e.seqs.at(l.seq)
	s.phase = loaded
	s.rec.Loading += c.e.now.Sub(l.started)
	if l.fails {
		c.e.uncomputed += int64(min(s.computed, s.rec.Request.InputTokens) - min(s.reused, s.rec.Request.InputTokens))
		s.computed, s.loaded = s.reused, 0
	} else {
		c.e.space.cache.Register(l.seq, s.computed)
	}
	place := 0
	for seq := range c.e.queue.Loaded {
		if c.e.seqs.at(seq).load.serial < l.serial {
			place++
		}
	}
	c.e.queue.PushLoaded(place, c.e.returning(l.seq, s))
}

// unpark removes sequence i from the loading and loaded ones.
func (c *connector) unpark(i int32) { c.parked = without(c.parked, i) }

// leaveParked removes sequence i, which is loading or loaded, because its client has left. If its KV has not arrived,
// its blocks are kept until it has.
func (c *connector) leaveParked(i int32) {
	s := c.e.seqs.at(i)
	c.e.levels.Waiting--
	c.e.uncomputed -= s.promptLeft()
	c.unpark(i)
	if s.phase == loaded {
		c.e.space.Settle()
		c.e.queue.TakeLoaded(i)
		c.e.space.freeBlocks(s)
		return
	}
	s.load.seq = none
	s.load.keptBlocks = c.e.space.detach(s)
}

// keepUnderLease keeps the blocks of s, which has ended.
func (c *connector) keepUnderLease(s *sequence) {
	c.serials++
	l := &lease{request: s.rec.Request.ID, serial: c.serials, keptBlocks: c.e.space.detach(s)}
	c.leases = append(c.leases, l)
	if s.lease < clock.MaxRun {
		c.e.transfers.endLease(c.e.now.Add(s.lease), leaseEnd{c.e, l})
	}
}

// ReleaseHeld ends the lease of a request at the instant at, if it has one. The blocks are free from the next boundary
// on.
func (e *Engine) ReleaseHeld(at clock.Time, request int64) {
	for _, l := range e.connector.leases {
		if l.request == request {
			e.connector.expire(at, l)
		}
	}
}

// expire ends lease l at the instant at, if it has not ended.
func (c *connector) expire(at clock.Time, l *lease) {
	if !l.over {
		l.over, c.due = true, true
		c.e.cut(at)
	}
}

// holds returns the number of blocks of loading and loaded sequences, of loads without a client and of leases, and the
// blocks that are charged for their windowed layers.
func (c *connector) holds() (blocks, windowed int) {
	if c == nil {
		return 0, 0
	}
	for _, i := range c.parked {
		s := c.e.seqs.at(i)
		blocks, windowed = blocks+c.e.space.held(s), windowed+s.windowed
	}
	add := func(k *keptBlocks) { blocks, windowed = blocks+k.Count, windowed+k.windowed }
	for _, l := range c.loads {
		add(&l.keptBlocks)
	}
	for _, l := range c.leases {
		add(&l.keptBlocks)
	}
	return blocks, windowed
}
