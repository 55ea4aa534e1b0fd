package engine

import (
	"clifftop/workload"
)

// What the prefix cache learns of the running batch.

// Settle takes the blocks that the cohort owes, in the order in which single steps would have, and
// registers those that filled up meanwhile.
func (r *Engine) Settle() {
	c := &r.cohort
	if !r.space.caching || c.settled == c.steps {
		c.settled = c.steps
		return
	}
	at := c.takes.residueAt(c.settled)
	for ; c.settled < c.steps; c.settled++ {
		following := at + 1
		if following == len(c.takes.need) {
			following = 0
		}
		for i := c.first[at]; i != none; i = r.seq(i).nextSame {
			s := r.seq(i)
			full := (s.target + int32(c.settled-s.joined)) / r.cfg.BlockSize
			if r.depth == 2 {
				// The token is known only now that the next one is being computed.
				r.register(s, full)
			}
			if int(full) < len(s.blocks) {
				continue // reserved before
			}
			s.blocks = r.space.pool.Pop(s.blocks, 1)
			c.debt--
		}
		if r.depth == 1 {
			// The token computed in this step is known, and fills the block of those who take a
			// new one in the next.
			for i := c.first[following]; i != none; i = r.seq(i).nextSame {
				s := r.seq(i)
				r.register(s, (s.target+int32(c.settled-s.joined)+1)/r.cfg.BlockSize)
			}
		}
		at = following
	}
}

// register notes the leading full blocks of s as cached content.
func (r *Engine) register(s *sequence, full int32) {
	if full <= s.registered {
		return
	}
	if n := s.findable(full); s.registered < n {
		r.space.pool.Index(s.blocks, &s.keys, s.registered, n)
	}
	s.registered = full
}

// registerHeld registers what the delivery of flight f makes known of the sequences that are not in
// the next iteration; the others register when they are next visited.
func (r *Engine) registerHeld(f *iteration) {
	c := &r.cohort
	for _, i := range f.firsts {
		// One that was admitted again with a token in flight has not registered all of its blocks.
		if s := r.seq(i); s.phase == decoding && s.beforeJoin > 0 && r.tokensInFlight(i) == 1 {
			r.Settle()
			r.register(s, c.computed(s)/r.cfg.BlockSize)
		}
	}
	if r.lagging > 0 {
		for i := r.running.first; i != none; i = r.seq(i).next {
			s := r.seq(i)
			if s.lagging && r.emits(f, i) {
				delivered := c.computed(s) - (r.tokensInFlight(i) - 1)
				r.register(s, delivered/r.cfg.BlockSize)
			}
		}
	}
	if r.depth == 1 || !f.stepped || r.ahead.N > 0 || r.inFlight.n > 1 && r.inFlight.at(1).stepped {
		return
	}
	// The cohort's blocks that f has filled.
	r.Settle()
	for i := c.first[c.takes.residueAt(c.steps)]; i != none; i = r.seq(i).nextSame {
		if s := r.seq(i); s.joinBatch <= f.number {
			r.register(s, c.computed(s)/r.cfg.BlockSize)
		}
	}
}

// indexOwnBlocks makes the private blocks of s findable, for its return after a preemption or for another attempt.
func (r *Engine) indexOwnBlocks(s *sequence) {
	if s.indexOwn {
		return
	}
	s.indexOwn = true
	from := min(s.private, s.registered)
	r.space.pool.Index(s.blocks, &s.keys, from, s.findable(s.registered))
}

// Warm puts what an earlier request left into the prefix cache, if there is one. See [sim.Simulation.Warm].
func (r *Engine) Warm(q *workload.Request) {
	if !r.space.caching && r.space.radix == nil {
		return
	}
	tokens := min(int64(q.InputTokens)+int64(q.OutputTokens)-1, int64(r.cfg.MaxModelLen))
	full := int32(min(tokens/int64(r.cfg.BlockSize), int64(r.cfg.UsableBlocks())))
	if r.space.radix != nil {
		r.warmTree(q, full)
	} else {
		r.warmBlocks(q, full)
	}
}

// warmBlocks enters so many blocks of a request into the pool.
func (r *Engine) warmBlocks(q *workload.Request, full int32) {
	var keys blockHashes
	keys.begin(r, q)
	keys.make(full)
	findable := min(full, keys.private)
	blocks := r.space.pool.Match(&keys.keys, findable, nil)
	r.space.pool.Reference(blocks)
	found := int32(len(blocks))
	blocks = r.space.pool.Pop(blocks, int(full-found))
	if r.conn != nil {
		findable = full
	}
	r.space.pool.Index(blocks, &keys.keys, found, findable)
	r.space.pool.Release(blocks, full)
	if r.conn != nil {
		r.conn.warm(r, q, full)
	}
}

// warmTree is the same with a radix cache.
func (r *Engine) warmTree(q *workload.Request, full int32) {
	r.space.look.text = q.Text(r.space.look.text[:0])
	tokens := full * r.cfg.BlockSize
	p := r.space.radix.Match(r.space.look.text, tokens)
	r.space.radix.Lock(p)
	r.space.radix.Take(int(full) - p.Blocks)
	r.space.radix.Unlock(r.space.radix.Insert(p, r.space.look.text, tokens, common(q)))
}
