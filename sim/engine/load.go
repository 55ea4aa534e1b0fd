package engine

import (
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/kv"
)

// KV outside the pool, as the engine sees it: sequences whose KV is loaded before they are admitted, and blocks that
// are kept after their sequence has left.

// remoteKV is the connector of an engine, and the sequences and blocks that wait for it.
type remoteKV struct {
	connector KVConnector // nil without a connector
	serials   int64       // loads and leases so far
	loads     int         // loads that have not been received
	parked    []int32     // sequences that are loading or loaded, in order of their loads
	orphans   []lease     // loads whose client has left: the blocks are kept until the KV has arrived
	leases    []lease
	due       bool // receiveKV has work at the next boundary
}

// lease is blocks of a request that has ended. They are kept for another engine, which loads them, or for a load.
type lease struct {
	request int64
	serial  int64 // of the lease or of the load
	over    bool
	keptBlocks
}

// Load implements [sched.Admitter].
func (it *batchBuilder) Load(place int) bool {
	r := it.r
	x := &r.remote
	if x.connector == nil {
		return false
	}
	d, ok := it.Waiting(place)
	if !ok || d.Loadable == 0 || r.cfg.PagesFor(d.Known)-d.Held > r.space.free() {
		return false
	}
	if percent := int64(r.cfg.Connector.PullPercent); percent > 0 && x.connector.Pulls() {
		if blocks, _ := x.parkedBlocks(&r.space); 100*int64(blocks) >= percent*int64(r.cfg.UsableBlocks()) {
			return false
		}
	}
	i := r.take(place, r.queue.At(place))
	r.levels.Waiting++
	s := r.seqs.at(i)
	s.reused = r.space.takeCached(s)
	s.computed = min(s.reused+d.Loadable, d.Known-1)
	s.loaded, s.swapped, s.phase = s.computed-s.reused, false, loading
	r.uncomputed -= int64(min(s.computed, s.rec.Request.InputTokens))
	x.serials++
	x.loads++
	x.parked = append(x.parked, i)
	s.load = x.serials
	s.pulled = x.connector.Load(r.now, Load{Number: s.load, Seq: i, Request: s.rec.Request.ID,
		Blocks: r.cfg.blocksFor(s.reused+d.Loadable) - int(s.reused/r.cfg.BlockSize)})
	it.grow(i, s, kv.Growth{Blocks: r.cfg.blocksFor(d.Known)})
	s.grown = false
	it.loads++
	return true
}

// parkedBlocks returns the number of blocks of loading and loaded sequences, and the blocks that are charged for their
// windowed layers.
func (x *remoteKV) parkedBlocks(k *Space) (blocks, windowed int) {
	for _, i := range x.parked {
		s := k.seqs.at(i)
		blocks, windowed = blocks+k.held(s), windowed+s.windowed
	}
	return blocks, windowed
}

// KVArrived notes at the instant at that a load has arrived or failed. It is received at the next boundary.
func (e *Engine) KVArrived(at clock.Time) {
	e.remote.due = true
	e.cut(at)
}

// receiveKV handles loads that have arrived and leases that have ended, at a boundary. The sequence of a load returns
// to the queue. If the load has failed, the loaded tokens remain to be computed.
func (e *Engine) receiveKV() {
	x := &e.remote
	x.due = false
	e.space.Settle()
	x.leases = slices.DeleteFunc(x.leases, func(l lease) bool {
		if l.over {
			e.space.release(&l.keptBlocks)
		}
		return l.over
	})
	for _, l := range x.connector.Received() {
		x.loads--
		if l.Seq == none {
			x.releaseOrphan(l.Number, &e.space)
			continue
		}
		s := e.seqs.at(l.Seq)
		s.rec.Loading += e.now.Sub(l.Started)
		switch {
		case l.Failed && e.cfg.Connector.FailLost:
			e.Lose(l.Seq)
			x.releaseOrphan(l.Number, &e.space)
			continue
		case l.Failed:
			e.uncomputed += int64(min(s.computed, s.rec.Request.InputTokens) - min(s.reused, s.rec.Request.InputTokens))
			s.computed, s.loaded = s.reused, 0
		default:
			e.space.cache.Register(l.Seq, s.computed)
		}
		s.phase = loaded
		place := 0
		for seq := range e.queue.Loaded {
			if e.seqs.at(seq).load < l.Number {
				place++
			}
		}
		e.queue.PushLoaded(place, e.returning(l.Seq, s))
	}
}

// unpark removes sequence i from the loading and loaded ones.
func (x *remoteKV) unpark(i int32) { x.parked = without(x.parked, i) }

// leaveParked removes sequence i, which is loading or loaded, because its client has left. If its KV has not arrived,
// its blocks are kept until it has.
func (e *Engine) leaveParked(i int32) {
	s, x := e.seqs.at(i), &e.remote
	e.levels.Waiting--
	e.uncomputed -= s.promptLeft()
	x.unpark(i)
	if s.phase == loaded {
		e.space.Settle()
		e.queue.TakeLoaded(i)
		e.space.freeBlocks(s)
		return
	}
	x.connector.ClientLeft(s.load)
	x.orphans = append(x.orphans, lease{serial: s.load, keptBlocks: e.space.detach(s)})
}

// releaseOrphan frees the blocks of a load without a client.
func (x *remoteKV) releaseOrphan(load int64, k *Space) {
	i := slices.IndexFunc(x.orphans, func(o lease) bool { return o.serial == load })
	k.release(&x.orphans[i].keptBlocks)
	x.orphans = slices.Delete(x.orphans, i, i+1)
}

// leaseOf returns how long the blocks of s are kept after its end.
func (x *remoteKV) leaseOf(s *sequence) clock.Duration {
	if x.connector == nil {
		return 0
	}
	return x.connector.Lease(s.rec.Request.ID)
}

// keep keeps the blocks of s, which ends now, for the time of a lease.
func (x *remoteKV) keep(s *sequence, now clock.Time, lasts clock.Duration, k *Space) {
	x.serials++
	x.leases = append(x.leases, lease{request: s.rec.Request.ID, serial: x.serials, keptBlocks: k.detach(s)})
	if lasts < clock.MaxRun {
		x.connector.EndLease(now.Add(lasts), x.serials)
	}
}

// Lease returns the number of the lease of a request, and how many blocks are kept under it; 0 if there is no lease.
func (e *Engine) Lease(request int64) (number int64, blocks int) {
	for k := range e.remote.leases {
		if l := &e.remote.leases[k]; l.request == request && !l.over {
			return l.serial, l.Count
		}
	}
	return 0, 0
}

// EndLease ends the lease with a number at the instant at, unless it has ended. The blocks are free from the next
// boundary on.
func (e *Engine) EndLease(at clock.Time, number int64) {
	for k := range e.remote.leases {
		if l := &e.remote.leases[k]; l.serial == number && !l.over {
			l.over = true
			e.KVArrived(at)
		}
	}
}

// DropKept frees the blocks that the engine, which has stopped and has no requests, keeps for loads and leases.
func (e *Engine) DropKept() {
	x := &e.remote
	for _, l := range slices.Concat(x.orphans, x.leases) {
		e.space.release(&l.keptBlocks)
	}
	x.orphans, x.leases, x.loads, x.due = nil, nil, 0, false
}

// awaited reports whether loads or leases are left.
func (x *remoteKV) awaited() bool { return x.loads+len(x.leases) > 0 }

// drained reports whether no lease is left, and all copies to persistent tiers are complete.
func (x *remoteKV) drained() bool {
	return x.connector == nil ||
		!slices.ContainsFunc(x.leases, func(l lease) bool { return !l.over }) && x.connector.Drained()
}

// handsOff reports whether the record of s is handed off, and its token not delivered: another engine decodes.
func (x *remoteKV) handsOff(s *sequence) bool {
	return x.connector != nil && x.connector.HandsOff(s.rec.Request.ID)
}

// handOff hands off the record of s, which has ended. p is its client, or nil.
func (x *remoteKV) handOff(s *sequence, p *Client, now clock.Time) {
	s.rec.Tokens, s.rec.FirstToken, s.rec.LastToken = 0, clock.Never, clock.Never
	if p != nil {
		p.Seq, p.AtFrontend = none, true
	}
	x.connector.HandOff(&s.rec, now)
}

// forget tells the connector that a request has ended.
func (x *remoteKV) forget(request int64) {
	if x.connector != nil {
		x.connector.Forget(request)
	}
}

// storePrefills stores the blocks of prefills that iteration f, which ends now, has completed.
func (x *remoteKV) storePrefills(f *iteration, now clock.Time, k *Space) {
	for _, i := range f.firsts {
		if s := k.seqs.at(i); s.running() && s.joinBatch == f.number {
			x.connector.Store(now, i, s.target/k.cfg.BlockSize)
		}
	}
}

// blocks returns what parkedBlocks does, with the blocks of loads without a client and of leases.
func (x *remoteKV) blocks(k *Space) (blocks, windowed int) {
	blocks, windowed = x.parkedBlocks(k)
	for _, l := range slices.Concat(x.orphans, x.leases) {
		blocks, windowed = blocks+l.Count, windowed+l.windowed
	}
	return blocks, windowed
}
