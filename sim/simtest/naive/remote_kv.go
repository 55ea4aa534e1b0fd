package naive

import (
	"cmp"
	"slices"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// remoteKV is the KV of an engine outside its pool: tiers, and transfers in flight.
type remoteKV struct {
	engine.Connector
	cfg     *engine.Config
	obs     *event.Fanout
	network *Network
	tiers   []*tier
	loads   []*load // in flight, in order of their start
	serial  int     // loads begun so far
	leases  []*lease
	legs    map[int64]engine.Handoff // of requests of this engine
	stopped bool                     // the engine has crashed, and stores nothing
}

// tier is a tier and its link.
type tier struct {
	engine.Tier
	chunks *Tier
	link   int32
	copies *Transfer // nil if there is nothing to copy
	copied []uint64  // the chunks in it
	busy   bool      // as the observer knows
}

// load is the KV of a sequence in flight.
type load struct {
	seq     *sequence
	serial  int
	started clock.Time
	parts   []*Transfer
	remote  bool
	fails   bool
	from    *Instance // the instance that has the KV, or nil
}

// lease is a sequence that has ended, and keeps its blocks.
type lease struct {
	seq   *sequence
	until clock.Time
}

// newRemoteKV returns nil if the engine has no connector.
func newRemoteKV(n *Engine, network *Network) *remoteKV {
	if n.cfg.Connector == nil {
		return nil
	}
	e := &remoteKV{Connector: *n.cfg.Connector, cfg: &n.cfg, obs: n.obs, network: network,
		legs: make(map[int64]engine.Handoff)}
	e.network.Bandwidth = append(e.network.Bandwidth, e.Links...)
	for k, t := range e.Tiers {
		link := int32(len(e.network.Bandwidth))
		e.network.Bandwidth = append(e.network.Bandwidth, t.BytesPerSecond)
		chunks := &Tier{Capacity: t.Chunks, Rule: t.Eviction}
		if t.Persistent && n.lifetime.Tiers[k] != nil {
			chunks = n.lifetime.Tiers[k]
		}
		e.tiers = append(e.tiers, &tier{Tier: t, chunks: chunks, link: link})
	}
	if len(e.tiers) > 0 && e.tiers[0].WriteBack {
		n.kv.(*paged).pool.lost = func(key uint64) { n.remote.put(0, key) }
	}
	return e
}

// next is the instant at which a transfer or a lease ends, or Never.
func (e *remoteKV) next() clock.Time {
	if e == nil {
		return clock.Never
	}
	next := e.network.Next()
	for _, l := range e.leases {
		if l.until > e.network.now {
			next = min(next, l.until)
		}
	}
	return next
}

// idle reports whether there are neither loads nor leases.
func (e *remoteKV) idle() bool { return e == nil || len(e.loads)+len(e.leases) == 0 }

// advanceTransfers advances transfers to an instant, and reports whether a load or a lease has ended that the engine
// has not handled.
func (n *Engine) advanceTransfers(at clock.Time) (due bool) {
	if n.remote == nil {
		return false
	}
	n.remote.noteArrivals(n.remote.network.To(at), at)
	return n.remote.due(at)
}

// receive handles at a boundary the loads and leases that have ended.
func (n *Engine) receive(at clock.Time) {
	e := n.remote
	if e == nil {
		return
	}
	e.leases = slices.DeleteFunc(e.leases, func(l *lease) bool {
		if l.until <= at {
			n.freed++
			n.releaseBlocks(l.seq, true)
		}
		return l.until <= at
	})
	e.loads = slices.DeleteFunc(e.loads, func(l *load) bool {
		if len(l.parts) > 0 {
			return false
		}
		if l.seq.ended {
			n.freed++
			n.releaseBlocks(l.seq, false)
			return true
		}
		n.finishLoad(l, at)
		return true
	})
}

// finishLoad returns the sequence of a load to the queue, ahead of those that were not loaded.
func (n *Engine) finishLoad(l *load, at clock.Time) {
	s := l.seq
	s.rec.Loading += at.Sub(l.started)
	if l.fails && n.remote.FailLost {
		n.fail(s, at)
		n.finish(s, event.Failed, at)
		n.freed++
		n.releaseBlocks(s, false)
		return
	}
	s.loading = false
	if l.fails {
		s.computed, s.loaded = s.found, 0
	} else {
		n.kv.known(s, s.computed)
	}
	n.joined++
	if n.cfg.Order != nil {
		s.key = n.rank(s).Key
	}
	n.loaded = insert(n.loaded, s, func(a, b *sequence) int {
		return cmp.Compare(a.loadSerial, b.loadSerial)
	})
}

// found is a chunk that a tier has.
type found struct {
	key  uint64
	tier int
}

// loadable is the number of tokens of s that can be loaded after the cached ones: from another replica, or from tiers,
// then with their chunks and the number of blocks by tier.
func (n *Engine) loadable(s *sequence, cached int32) (tokens int32, remote bool, chunks []found, blocks []int) {
	e := n.remote
	if e == nil || s.scheduled != s.delivered || n.isLoaded(s) {
		return 0, false, nil, nil
	}
	if there := min(e.legs[s.rec.Request.ID].Remote.Tokens, s.known()); there > cached {
		return there - cached, true, nil, nil
	}
	size := n.cfg.BlockSize
	chunk := max(e.ChunkBlocks, 1) * size
	for usable := len(e.tiers); usable > 0; usable-- {
		chunks, blocks = nil, make([]int, len(e.tiers))
		end := cached / chunk * chunk // tokens that there are then, in whole chunks
		for end+chunk <= s.known() {
			key := n.remote.keyOf(s, (end+chunk)/size-1)
			k := slices.IndexFunc(e.tiers[:usable], func(t *tier) bool { return t.chunks.Has(key) })
			if k < 0 {
				break
			}
			chunks = append(chunks, found{key, k})
			blocks[k] += int((end + chunk - max(end, cached)) / size)
			end += chunk
		}
		tokens = end - cached
		if tokens <= 0 || tokens < e.MinTokens {
			return 0, false, nil, nil
		}
		if n.remote.loadingPays(tokens, cached, blocks) {
			return tokens, false, chunks, blocks
		}
	}
	return 0, false, nil, nil
}

func (v view) Load(i int) bool {
	w, ok := v.Waiting(i)
	if !ok {
		return false
	}
	e, s := v.remote, v.place(i)
	tokens, remote, chunks, blocks := v.loadable(s, w.Cached)
	if tokens == 0 || v.BlocksFor(w.Known)-w.Held > v.FreeBlocks() || remote && v.pullLimitReached() {
		return false
	}
	v.waiting, s.skipped = without(v.waiting, s), false
	s.lostFrom, s.lostTo = v.kv.lost(s, s.known()-1)
	s.found = v.kv.admit(s, s.known()-1)
	s.computed = min(s.found+tokens, s.known()-1)
	s.loaded = s.computed - s.found
	e.serial++
	s.loading, s.pulled, s.loadSerial = true, remote, e.serial
	l := &load{seq: s, serial: e.serial, started: v.at, remote: remote}
	e.loads = append(e.loads, l)
	for _, c := range slices.Backward(chunks) {
		e.tiers[c.tier].chunks.Use(c.key)
	}
	if remote {
		leg := e.legs[s.rec.Request.ID]
		bytes := int64(v.blocksFor(s.found+tokens)-int(s.found/v.cfg.BlockSize)) * e.BlockBytes
		if n := leg.Remote.Layers; n > 1 {
			bytes = (bytes + n - 1) / n
		}
		l.fails = leg.Remote.Fails
		if v.instance != nil {
			l.from = v.instance.source(&s.rec.Request)
			l.fails = !l.from.keeps(s.rec.Request.ID, v.at)
			if l.from.over {
				bytes = 0 // the sender has stopped
			}
		}
		l.parts = append(l.parts, e.network.Start(bytes, leg.Remote.Latency, leg.Remote.Path...))
		leg.Remote = engine.Remote{}
		e.legs[s.rec.Request.ID] = leg
	}
	for k, n := range blocks {
		if t := e.tiers[k]; n > 0 {
			l.parts = append(l.parts, e.network.Start(int64(n)*e.BlockBytes, t.Latency, t.link))
			v.remote.reportMove(event.Move{Tier: k, Blocks: n})
		}
	}
	if !v.hold(s, v.blocksFor(s.known())) {
		v.wrong("loads request %d without room for it", s.rec.Request.ID)
	}
	v.loads = true
	v.remote.reportLinks(v.at)
	return true
}

// pullLimitReached reports whether loaded and loading sequences hold as much of the pool as allowed.
func (n *Engine) pullLimitReached() bool {
	blocks := 0
	for _, s := range slices.Concat(n.loaded, n.remote.loadingSequences()) {
		blocks += n.kv.holds(s)
	}
	most := n.remote.PullPercent
	return most > 0 && 100*blocks >= most*n.cfg.UsableBlocks()
}

// abortLoad removes s, whose client has left, from the loading or loaded sequences. If it is loading, its blocks are
// kept until the load has ended.
func (n *Engine) abortLoad(s *sequence) {
	if s.loading {
		n.freed++ // others may be pulled now
	}
	if n.isLoaded(s) {
		n.loaded = without(n.loaded, s)
		n.releaseBlocks(s, false)
	}
}

// due reports whether a load or a lease has ended that the engine has not handled.
func (e *remoteKV) due(at clock.Time) bool {
	return e != nil && (slices.ContainsFunc(e.loads, func(l *load) bool { return len(l.parts) == 0 }) ||
		slices.ContainsFunc(e.leases, func(l *lease) bool { return l.until <= at }))
}

func (e *remoteKV) noteArrivals(arrived []*Transfer, at clock.Time) {
	for _, t := range e.tiers {
		if slices.Contains(arrived, t.copies) {
			t.copies, t.copied = nil, nil
		}
	}
	for _, l := range e.loads {
		before := len(l.parts)
		l.parts = slices.DeleteFunc(l.parts, func(t *Transfer) bool { return slices.Contains(arrived, t) })
		if l.from != nil && before > 0 && len(l.parts) == 0 {
			l.fails = l.fails || !l.from.keeps(l.seq.rec.Request.ID, at)
			l.from.release(l.seq.rec.Request.ID, at)
		}
	}
	e.reportLinks(at)
}

// reportLinks reports to the observer which links are busy.
func (e *remoteKV) reportLinks(at clock.Time) {
	for k, t := range e.tiers {
		busy := slices.ContainsFunc(e.network.under, func(x *Transfer) bool {
			return x.Sending() && slices.Contains(x.Path, t.link)
		})
		if busy != t.busy {
			t.busy = busy
			e.obs.LinkBusy(at, 0, k, busy)
		}
	}
}

// loadingSequences are the sequences whose KV is in flight.
func (e *remoteKV) loadingSequences() (list []*sequence) {
	if e == nil {
		return nil
	}
	for _, l := range e.loads {
		if !l.seq.ended {
			list = append(list, l.seq)
		}
	}
	return list
}

// loadingPays reports whether tokens are loaded rather than computed.
func (e *remoteKV) loadingPays(tokens, cached int32, blocks []int) bool {
	compute, _, _ := e.cfg.Timer.Span(&model.Batch{Chunks: []model.Chunk{{New: tokens, Cached: cached}}})
	for k, t := range e.tiers {
		seconds := t.Latency.Seconds() + float64(blocks[k])*float64(e.BlockBytes)/float64(t.BytesPerSecond)
		if e.Fetch == engine.FetchFaster && blocks[k] > 0 && seconds >= float64(compute)*1e-15 {
			return false
		}
	}
	return true
}

// keyOf is the key of a block of s, which may not exist yet.
func (e *remoteKV) keyOf(s *sequence, block int32) uint64 {
	walk := workload.NewBlockKeys(&s.rec.Request, e.cfg.BlockSize)
	for range block {
		walk.Next()
	}
	key, _ := walk.Next()
	return key
}

// reportMove reports blocks that begin to move to the observer.
func (e *remoteKV) reportMove(m event.Move) {
	m.Bytes = int64(m.Blocks) * e.BlockBytes
	e.obs.Moved(e.network.now, m)
}

// store copies the leading tokens of s to the write-through tiers.
func (e *remoteKV) store(s *sequence, tokens int32) {
	if e == nil {
		return
	}
	chunk := max(e.ChunkBlocks, 1) * e.cfg.BlockSize
	for k, t := range e.tiers {
		before := len(t.copied)
		for end := tokens / chunk * chunk; end > 0 && !t.WriteBack; end -= chunk {
			e.put(k, e.keyOf(s, end/e.cfg.BlockSize-1))
		}
		slices.Reverse(t.copied[before:]) // from the beginning of the text on
	}
}

// put stores a chunk in a tier.
func (e *remoteKV) put(k int, key uint64) {
	t := e.tiers[k]
	if e.stopped {
		return
	}
	if t.chunks.Has(key) {
		t.chunks.Use(key)
		return
	}
	t.copied = append(t.copied, key)
	blocks := int(max(e.ChunkBlocks, 1))
	if t.copies == nil {
		t.copies = e.network.Start(int64(blocks)*e.BlockBytes, 0, t.link)
	} else {
		e.network.Extend(t.copies, int64(blocks)*e.BlockBytes)
	}
	e.reportMove(event.Move{Tier: k, Stored: true, Blocks: blocks})
	e.reportLinks(e.network.now)
	for _, gone := range t.chunks.Put(key) {
		if k+1 < len(e.tiers) && e.tiers[k+1].WriteBack {
			e.put(k+1, gone)
		}
	}
}

// startLease keeps the blocks of s, which has ended, until another engine has loaded them, if there is a lease.
func (e *remoteKV) startLease(s *sequence, at clock.Time) bool {
	if e == nil || e.legs[s.rec.Request.ID].Lease == 0 {
		return false
	}
	e.leases = append(e.leases, &lease{s, at.Add(e.legs[s.rec.Request.ID].Lease)})
	return true
}

// leaveTiers saves the contents of persistent tiers. If the engine crashed, chunks whose copies were not complete are
// invalid.
func (e *remoteKV) leaveTiers(to []*Tier, crashed bool) {
	for k, t := range e.tiers {
		if t.Persistent {
			to[k] = t.chunks
		}
		if crashed && t.copies != nil {
			t.tear(int64(max(e.ChunkBlocks, 1)) * e.BlockBytes)
		}
	}
}

// stopTransfers stops the loads of the engine and the copies to its tiers.
func (e *remoteKV) stopTransfers(at clock.Time) {
	for _, l := range e.loads {
		for _, t := range l.parts {
			e.network.Stop(t)
		}
	}
	for _, t := range e.tiers {
		if t.copies != nil {
			e.network.Stop(t.copies)
		}
	}
	e.reportLinks(at)
}
