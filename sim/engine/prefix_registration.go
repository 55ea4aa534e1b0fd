package engine

import (
	"clifftop/sim/kv"
	"clifftop/workload"
)

// Registration of the running batch's blocks in the prefix cache.

// Settle takes the blocks that the members of the cohort owe from the pool, in the order in which single steps would
// have, and registers the blocks that have become full.
func (k *space) Settle() {
	c := k.members
	if !k.caching || c.settled == c.steps {
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
				k.registerBlocks(s, full)
			}
			if int(full) < len(s.blocks) {
				continue // the block was reserved before
			}
			s.blocks = k.pool.Pop(s.blocks, 1)
			c.debt--
		}
		if !k.async {
			// The token computed in this step is known. It fills the blocks of the members that take a new one in the
			// next step.
			for i := c.first[following]; i != none; i = k.seqs.at(i).nextSame {
				s := k.seqs.at(i)
				k.register(s, s.target+int32(c.settled-s.joined)+1)
			}
		}
		at = following
	}
}

// register makes the full blocks among the first tokens of s findable, if blocks are found by hashes.
func (c *prefixCache) register(s *sequence, tokens int32) {
	if c.caching {
		c.registerBlocks(s, tokens/c.cfg.BlockSize)
	} else if c.groups != nil {
		c.groups.Register(s.tables, tokens)
	}
}

// registerBlocks makes the first blocks of s findable.
func (c *prefixCache) registerBlocks(s *sequence, full int32) {
	if full <= s.registered {
		return
	}
	if n := s.findable(full); s.registered < n {
		c.pool.Index(s.blocks, &s.keys, s.registered, n)
	}
	s.registered = full
}

// registerHeld registers the blocks that are known to be full at the end of iteration f, of sequences that are not
// part of the next one. The others are registered when they are next visited.
func (e *Engine) registerHeld(f *iteration) {
	c := &e.cohort
	for _, i := range f.firsts {
		// A sequence that was admitted again with a token in flight has not registered all of its blocks.
		if s := e.seqs.at(i); s.phase == decoding && s.beforeJoin > 0 && e.inFlight.tokensInFlight(i) == 1 {
			e.space.Settle()
			e.space.register(s, c.computed(s))
		}
	}
	if e.lagging > 0 {
		for i := e.running.first; i != none; i = e.seqs.at(i).next {
			s := e.seqs.at(i)
			if s.lagging && e.inFlight.emits(f, i) {
				delivered := c.computed(s) - (e.inFlight.tokensInFlight(i) - 1)
				e.space.register(s, delivered)
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
			e.space.register(s, c.computed(s))
		}
	}
}

// indexOwnBlocks makes the private blocks of s findable too, for its return after a preemption or for another attempt.
func (c *prefixCache) indexOwnBlocks(s *sequence) {
	if !c.caching || s.indexOwn {
		return
	}
	s.indexOwn = true
	from := min(s.private, s.registered)
	c.pool.Index(s.blocks, &s.keys, from, s.findable(s.registered))
}

// warm adds the content of an earlier request to the prefix cache, if there is one, and returns its number of full
// blocks.
func (c *prefixCache) warm(q *workload.Request) int32 {
	tokens := min(int64(q.InputTokens)+int64(q.OutputTokens)-1, int64(c.cfg.MaxModelLen))
	full := int32(min(tokens/int64(c.cfg.BlockSize), int64(c.cfg.UsableBlocks())))
	switch {
	case c.radix != nil:
		c.warmTree(q, full)
	case c.caching:
		c.warmBlocks(q, full)
	case c.groups != nil:
		c.groups.Warm(q, full*c.cfg.BlockSize)
	}
	return full
}

// warmBlocks adds the first full blocks of a request to the pool.
func (c *prefixCache) warmBlocks(q *workload.Request, full int32) {
	var keys blockHashes
	keys.begin(c, q)
	keys.make(full)
	findable := min(full, keys.private)
	blocks := c.pool.Match(&keys.keys, findable, nil)
	c.pool.Reference(blocks)
	found := int32(len(blocks))
	blocks = c.pool.Pop(blocks, int(full-found))
	if c.cfg.Connector != nil {
		findable = full
	}
	c.pool.Index(blocks, &keys.keys, found, findable)
	c.pool.Release(blocks, full)
}

// warmTree is warmBlocks for a radix cache.
func (c *prefixCache) warmTree(q *workload.Request, full int32) {
	c.look.text = q.Text(c.look.text[:0])
	tokens := full * c.cfg.BlockSize
	p := c.radix.Match(c.look.text, tokens)
	c.radix.Lock(p)
	c.radix.Take(int(full) - p.Blocks)
	c.radix.Unlock(c.radix.Insert(p, c.look.text, kv.Entry{Tokens: tokens, Common: common(q), Counts: true,
		Priority: -int32(q.Priority)}))
}
