package engine

import (
	"clifftop/sim/kv"
	"clifftop/workload"
)

// Blocks with names: the members of the cohort take them in order, and register those that have become full.

// Unsettled reports whether blocks are owed to decoding sequences: see Settle.
func (k *Space) Unsettled() bool { return k.members.settled < k.members.steps }

// Settle takes the blocks that the members of the cohort owe from the pool, in the order in which single steps would
// have, and registers the blocks that have become full.
func (k *Space) Settle() {
	c := k.members
	if k.hashed == nil || c.settled == c.steps {
		c.settled = c.steps
		return
	}
	at := c.takes.residueAt(c.settled)
	for ; c.settled < c.steps; c.settled++ {
		following := at + 1
		if following == len(c.takes.need) {
			following = 0
		}
		for i := c.first[at]; i != none; i = k.seqs.at(i).nextSame {
			s := k.seqs.at(i)
			full := (s.target + int32(c.settled-s.joined)) / k.cfg.BlockSize
			if k.async {
				// The token is known only now that the next one is being computed.
				k.hashed.RegisterBlocks(i, full)
			}
			if k.hashed.TakeOwed(i, full) {
				c.debt--
			}
		}
		if !k.async {
			// The token computed in this step is known. It fills the blocks of the members that take a new one in the
			// next step.
			for i := c.first[following]; i != none; i = k.seqs.at(i).nextSame {
				s := k.seqs.at(i)
				k.hashed.Register(i, s.target+int32(c.settled-s.joined)+1)
			}
		}
		at = following
	}
}

// registerHeld registers the blocks that are known to be full at the end of iteration f, of sequences that are not
// part of the next one. The others are registered when they are next visited.
func (e *Engine) registerHeld(f *iteration) {
	c, cache := &e.cohort, e.space.cache
	for _, i := range f.firsts {
		// A sequence that was admitted again with a token in flight has not registered all of its blocks.
		if s := e.seqs.at(i); s.phase == decoding && s.beforeJoin > 0 && e.inFlight.tokensInFlight(i) == 1 {
			e.space.Settle()
			cache.Register(i, c.computed(s))
		}
	}
	if e.lagging > 0 {
		for i := e.running.first; i != none; i = e.seqs.at(i).next {
			s := e.seqs.at(i)
			if s.lagging && e.inFlight.emits(f, i) {
				delivered := c.computed(s) - (e.inFlight.tokensInFlight(i) - 1)
				cache.Register(i, delivered)
			}
		}
	}
	if e.depth == 1 || !f.stepped || e.ahead.N > 0 || e.inFlight.n > 1 && e.inFlight.at(1).stepped {
		return
	}
	// The blocks of the cohort that f has filled.
	e.space.Settle()
	for i := c.first[c.takes.residueAt(c.steps)]; i != none; i = e.seqs.at(i).nextSame {
		if s := e.seqs.at(i); s.joinBatch <= f.number {
			cache.Register(i, c.computed(s))
		}
	}
}

// registerDelivered registers what is known of the sequences that iteration f, which is being processed, gave a token.
// With drafts, [draftVerifier] does.
func (e *Engine) registerDelivered(f *iteration) {
	for i := e.running.first; i != none && e.depth > 1 && !e.drafter.async; i = e.seqs.at(i).next {
		s := e.seqs.at(i)
		if !e.inFlight.emits(f, i) {
			continue
		}
		computed := s.computed
		if s.phase == decoding {
			computed = e.cohort.computed(s)
		}
		e.space.cache.Register(i, computed-(e.inFlight.tokensInFlight(i)-1))
	}
}

// Prefix caching without shared tokens. Blocks need names only where a request can find them: where requests share
// tokens, or one is computed again after a preemption. As long as there is no such request, an engine with prefix
// caching counts its blocks, as one without does. Before it preempts a sequence it names the blocks that are held, and
// when all sequences that were preempted have ended it forgets the names. At these times the cache has no block that a
// request can find, so the names make no difference.

// keepNames names all blocks from now on, because requests may share tokens.
func (e *Engine) keepNames() {
	e.space.forgets = false
	e.nameBlocks()
}

// forgettable reports whether no request in the engine can find a block by its name.
func (k *Space) forgettable() bool { return k.forgets && k.again == 0 }

// forgetNames makes the space count blocks again. No request can find a block.
func (e *Engine) forgetNames() {
	k, c := &e.space, &e.cohort
	k.Settle()
	used := k.Used()
	for i := e.running.first; i != none; i = e.seqs.at(i).next {
		s := e.seqs.at(i)
		s.blockCount = k.held(s)
	}
	k.unnamed = true
	e.plain.blocks = k.useCounted()
	e.plain.blocks.Claim(used)
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
	k.unnamed = false
	k.useHashed()
	e.plain.last, e.plain.goesOn, e.plain.blocks = false, false, nil
	c.initLists(e.cfg.BlockSize)
	for i := e.running.first; i != none; i = e.seqs.at(i).next {
		s := e.seqs.at(i)
		computed := s.computed
		if s.phase == decoding {
			computed = c.computed(s)
			c.link(i)
		}
		s.blockCount = e.cfg.blocksFor(computed)
		if k.async && computed > s.target {
			computed-- // the last token is not known
		}
		k.hashed.Adopt(i, &s.rec.Request, s.blockCount, computed/e.cfg.BlockSize)
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

// TellBlocks makes the prefix cache call tell, from now on, for each block that can be found or can no longer be found,
// and returns their size in tokens. With KV cache groups these are the blocks of the first group of full attention, and
// with a radix cache the pages of its tree. It returns 0 if there are no such blocks.
func (e *Engine) TellBlocks(tell func(kv.Change)) (blockSize int32) {
	e.keepNames()
	return e.space.cache.Tell(tell)
}
