package engine

import (
	"fmt"

	"clifftop/sim/kv"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// queueView is the waiting queue as a policy sees it.
type queueView struct {
	*composition
	looked  bool        // the policy has asked for more than the head of the queue
	blocked sched.Cause // why the head was not admitted
}

// WaitingLen implements [sched.Queue].
func (v *queueView) WaitingLen() int {
	v.looked = true
	return v.r.queue.Len()
}

// Waiting implements [sched.Queue].
func (v *queueView) Waiting(place int) (d sched.Waiting, ok bool) {
	r := v.r
	w := v.waiting(place)
	if w == nil {
		return
	}
	r.space.describe(w, &d)
	switch {
	case r.space.radix != nil:
		r.space.cached(w, &d, r.running.answers > 0)
	case r.space.groups != nil:
		d.Grouped = true
		d.Cached = r.space.findGrouped(w, d.Known)
	case r.space.mayHit(w):
		r.space.lookUp(w, d.Known)
		found := int32(len(r.space.look.blocks))
		d.Cached = found * r.cfg.BlockSize
		d.Held = r.space.look.held
		d.Live = found < r.space.look.most && r.running.answers > 0 && w.Request.SharesPrompt()
	}
	if r.connector != nil {
		d.Loadable = r.connector.loadable(w, &d)
	}
	if r.cfg.Speculative.On() {
		d.Padding = r.cfg.padding(d.Known, d.Known-max(d.Cached, d.Computed))
	}
	return d, true
}

// Peek implements [sched.Queue].
func (v *queueView) Peek(place int) (p sched.Progress, ok bool) {
	w := v.waiting(place)
	if w == nil {
		return p, false
	}
	p = sched.NewProgress(&w.Request)
	p.MaxTokens = v.r.cfg.declaredOf(&w.Request)
	if w.Seq != none {
		p.Generated = v.r.seqs.at(w.Seq).issued
		p.InFlight = v.r.pipe.computes(v.r.seqs.at(w.Seq))
	}
	return p, true
}

// Skip implements [sched.Queue].
func (v *queueView) Skip() {
	v.looked = true
	v.r.queue.Skip()
}

// Beginning implements [sched.QueueText].
func (v *queueView) Beginning(place int, tokens int32) (key uint64, ok bool) {
	v.looked = v.looked || place > 0
	w := v.r.queue.At(place)
	if w == nil || v.r.seqs.known(w) < tokens {
		return 0, false
	}
	return w.Request.PrefixHash(tokens), true
}

// Path implements [sched.QueueText].
func (v *queueView) Path(place int, to []int32) []int32 {
	v.looked = v.looked || place > 0
	r := v.r
	w := r.queue.At(place)
	if w == nil || r.space.radix == nil {
		return to
	}
	return r.space.radix.Path(r.space.match(w, r.seqs.known(w)), to)
}

// Blocked implements [sched.Queue].
func (v *queueView) Blocked(why sched.Cause) {
	if v.r.queue.Len() == 0 {
		return
	}
	v.blocked = why
}

// waiting returns the request at a place of the queue, or nil.
func (v *queueView) waiting(place int) *queue.Waiting {
	if place > 0 {
		v.looked = true
		if v.r.cfg.Order != nil {
			v.unsupported("Waiting beyond the head of an ordered queue")
			return nil
		}
	}
	return v.r.queue.At(place)
}

// unsupported fails the run because the policy used a feature that the engine does not have.
func (v *queueView) unsupported(verb string) {
	if v.r.fault == nil {
		v.r.fault = fmt.Errorf("sim: policy %T uses %s, which the engine does not do", v.r.cfg.Scheduler, verb)
	}
}

// lookup caches the result of the last lookup in the prefix cache. While the head of the queue stays blocked, the
// lookup is repeated only after a change of the pool.
type lookup struct {
	valid   bool
	request int64
	epoch   uint64
	fresh   blockHashes        // of a request without a sequence
	begun   bool               // fresh is in use
	blocks  []int32            // cached leading blocks
	found   int32              // their number, with the one that speculative decoding drops
	held    int                // number of those blocks that are referenced
	most    int32              // the maximum number of blocks that can be found
	text    []workload.Segment // scratch
	tables  *kv.GroupTables    // fresh, with KV cache groups
}

// mayHit reports whether a waiting request can have a hit in the prefix cache of hashed blocks.
func (c *prefixCache) mayHit(w *queue.Waiting) bool {
	if w.Seq != none {
		return c.caching && c.seqs.at(w.Seq).phase != loaded
	}
	return c.caching && w.Request.SharesPrompt()
}

// describe sets the fields of d, which is empty, that do not depend on the prefix cache.
func (k *space) describe(w *queue.Waiting, d *sched.Waiting) {
	q := &w.Request
	d.Request, d.User, d.Session, d.Class, d.Priority, d.Prompt = q.ID, q.User, q.Session, q.Class, q.Priority,
		q.InputTokens
	d.Adapter, d.Urgency = q.Adapter, w.Urgency()
	d.TrueOutput, d.MaxTokens = k.cfg.OutputOf(q), k.cfg.declaredOf(q)
	d.Known = d.Prompt
	if w.Seq == none {
		return
	}
	s := k.seqs.at(w.Seq)
	d.Preempted, d.Generated = s.rec.Preemptions > 0, s.issued
	d.Known += s.issued
	switch {
	case s.hosted > 0:
		d.Computed = s.computed
	case s.phase == loaded:
		d.Computed, d.Held = s.computed, k.held(s)+s.windowed
	}
}

// lookUp finds the cached leading blocks of a waiting request. At least one of its known tokens remains to be computed.
func (k *space) lookUp(w *queue.Waiting, known int32) {
	k.Settle()
	l := &k.look
	if l.valid && l.request == w.Request.ID && l.epoch == k.pool.Epoch() {
		return
	}
	keys := &l.fresh
	if w.Seq != none {
		keys = &k.seqs.at(w.Seq).blockHashes
	} else if !l.begun || l.request != w.Request.ID {
		keys.begin(&k.prefixCache, &w.Request)
		l.begun = true
	}
	l.valid, l.request, l.epoch = true, w.Request.ID, k.pool.Epoch()
	l.most = (known - 1) / k.cfg.BlockSize
	l.blocks = k.pool.Match(&keys.keys, keys.findable(l.most), l.blocks[:0])
	l.found = int32(len(l.blocks))
	if n := len(l.blocks); n > 0 && k.cfg.Speculative.DropsBlock() {
		l.blocks = l.blocks[:n-1]
	}
	l.held = k.pool.Referenced(l.blocks)
}

// lostTokens returns the range of tokens of s, behind its cached blocks, that would be cached too but for evictions.
func (c *prefixCache) lostTokens(s *sequence) (from, to int32) {
	l := &c.look
	lost := c.pool.Lost(&s.keys, l.found, s.findable(l.most))
	return l.found * c.cfg.BlockSize, (l.found + lost) * c.cfg.BlockSize
}

// takeCached references the cached blocks of s, the request that was looked up last, and returns their number of
// tokens.
func (c *prefixCache) takeCached(s *sequence) int32 {
	if c.radix != nil {
		return c.lockPrefix(s)
	}
	l := &c.look
	s.lostFrom, s.lostTo = 0, 0
	if c.groups != nil {
		return c.groups.Take(s.tables)
	}
	if !c.caching || !l.valid || l.request != s.rec.Request.ID {
		return 0
	}
	l.valid = false
	s.lostFrom, s.lostTo = c.lostTokens(s)
	c.pool.Reference(l.blocks)
	s.blocks = append(s.blocks[:0], l.blocks...)
	s.registered = int32(len(l.blocks))
	return s.registered * c.cfg.BlockSize
}

// blockHashes is the keys of the blocks of a sequence, computed on demand.
type blockHashes struct {
	keys     kv.Keys
	walk     workload.BlockKeys
	private  int32 // from this block on no other request can have the same content
	indexOwn bool  // private blocks are indexed too, for the return after a preemption or for another attempt
}

// notPrivate is the value of private while no private block is known.
const notPrivate = 1<<31 - 1

// begin resets k to the blocks of a request, and keeps its memory.
func (k *blockHashes) begin(c *prefixCache, req *workload.Request) {
	k.keys.Reset()
	k.indexOwn = c.offloads
	k.private = 0
	if req.SharesPrompt() {
		k.private = notPrivate
	}
	k.walk = workload.NewBlockKeys(req, c.cfg.BlockSize)
}

// key returns the key of block i.
func (k *blockHashes) key(i int32) uint64 {
	k.make(i + 1)
	return k.keys.At(i)
}

// findable returns how many of the first n blocks can be found: all, or those before the first private one if private
// blocks are not indexed. It computes their keys.
func (k *blockHashes) findable(n int32) int32 {
	if k.indexOwn {
		k.make(n)
		return n
	}
	for k.keys.Len() < min(n, k.private) {
		k.walkOn(n)
	}
	return min(n, k.private)
}

// make computes the keys of the first n blocks.
func (k *blockHashes) make(n int32) {
	for k.keys.Len() < n {
		k.walkOn(n)
	}
}

// walkOn computes the keys of the next blocks, within the first n.
func (k *blockHashes) walkOn(n int32) {
	known := k.keys.Len()
	key, blocks, private := k.walk.NextRun(n - known)
	if private && k.private == notPrivate {
		k.private = known
	}
	k.keys.Add(key, blocks)
}

// Peek returns the number of tokens that an admission would reuse from the radix cache now; 0 without one.
func (c *prefixCache) Peek(q *workload.Request) int32 {
	if c.radix == nil {
		return 0
	}
	c.look.text = q.Text(c.look.text[:0])
	return int32(c.radix.Peek(c.look.text, q.InputTokens-1)) * c.cfg.BlockSize
}

// HashedBlocks returns the block size in tokens if blocks are found by hashes, else 0.
func (c *prefixCache) HashedBlocks() int32 {
	switch {
	case c.caching || c.unnamed:
		return c.cfg.BlockSize
	case c.groups != nil:
		return c.groups.Hashed()
	}
	return 0
}

// TellBlocks makes the prefix cache call tell, from now on, for each block that can be found or can no longer be found,
// and returns their size in tokens. With KV cache groups these are the blocks of the first group of full attention, and
// with a radix cache the pages of its tree. It returns 0 if there are no such blocks.
func (e *Engine) TellBlocks(tell func(kv.Change)) (blockSize int32) {
	e.keepNames()
	c := &e.space.prefixCache
	switch size := c.HashedBlocks(); {
	case c.radix != nil:
		c.radix.Tell(tell)
		return c.cfg.BlockSize
	case size > 0 && c.groups != nil:
		c.groups.Tell(tell)
		return size
	case size > 0:
		c.pool.Tell(tell)
		return size
	}
	return 0
}
