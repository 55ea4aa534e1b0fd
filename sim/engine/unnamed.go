package engine

import (
	"clifftop/sim/kv"
	"clifftop/workload"
)

// Prefix caching without shared tokens. Blocks need names only where a request can find them: where requests share
// tokens, or one is computed again after a preemption. As long as there is no such request, an engine with prefix caching
// counts its blocks, as one without does. Before it preempts a sequence it names the blocks that are held, and when all
// sequences that were preempted have ended it forgets the names. No block that a request can find is in the cache at
// these times, so that the names make no difference.

// countsFirst makes the space count blocks until [Engine.nameBlocks] is called.
func (k *space) countsFirst() {
	k.caching, k.unnamed, k.forgets = false, true, true
	k.pool = kv.NewCountingPool(k.cfg.UsableBlocks())
}

// keepNames names all blocks from now on, because requests may share tokens.
func (e *Engine) keepNames() {
	e.space.forgets = false
	e.nameBlocks()
}

// nameless reports whether no request in the engine can find a block by its tokens.
func (k *space) nameless() bool { return !k.caching || k.forgets && k.again == 0 }

// forgetNames makes the space count blocks again. No request can find a block.
func (e *Engine) forgetNames() {
	k, c := &e.space, &e.cohort
	k.Settle()
	used := k.pool.Usable() - k.pool.Free()
	for i := e.running.first; i != none; i = e.seqs.at(i).next {
		s := e.seqs.at(i)
		s.blockCount, s.blocks, s.registered = len(s.blocks), s.blocks[:0], 0
	}
	k.caching, k.unnamed = false, true
	k.pool = kv.NewCountingPool(k.cfg.UsableBlocks())
	k.pool.TakeCount(used)
	k.look.valid, k.look.begun = false, false
	c.first, c.last = nil, nil
	e.effort.Forgotten++
}

// nameBlocks gives names to the blocks of the running sequences, if they have none. From now on blocks are found by the
// hashes of their tokens. The planned span, if there is one, goes on.
func (e *Engine) nameBlocks() {
	k, c := &e.space, &e.cohort
	if !k.unnamed {
		return
	}
	k.caching, k.unnamed = true, false
	k.pool = kv.NewCache(e.cfg.UsableBlocks(), e.cfg.AppendUnkeyed)
	e.plain.last = false
	c.initLists(e.cfg.BlockSize)
	for i := e.running.first; i != none; i = e.seqs.at(i).next {
		s := e.seqs.at(i)
		computed := s.computed
		if s.phase == decoding {
			computed = c.computed(s)
			c.link(i)
		}
		s.blocks = k.pool.Pop(s.blocks[:0], e.cfg.blocksFor(computed))
		s.blockCount = 0
		if k.async && computed > s.target {
			computed-- // the last token is not known
		}
		s.registered = computed / e.cfg.BlockSize
		s.blockHashes.begin(&k.prefixCache, &s.rec.Request)
	}
	c.settled = c.steps
}

// needsNames reports whether blocks of a request that joins the queue may be found: its prompt or its output is shared,
// or its client, which has left, sends it again.
func (e *Engine) needsNames(q *workload.Request) bool {
	if q.SharesPrompt() || q.SharesOutput() {
		return true
	}
	if MayLeave(q) {
		client := e.host.Client(q.ID)
		return client != nil && client.Again
	}
	return false
}
