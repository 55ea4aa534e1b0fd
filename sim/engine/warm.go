package engine

import "clifftop/workload"

// Warm puts what an earlier request left into the prefix cache, if there is one. See [sim.Simulation.Warm].
func (r *Engine) Warm(q *workload.Request) {
	if !r.caching && r.radix == nil {
		return
	}
	tokens := min(int64(q.InputTokens)+int64(q.OutputTokens)-1, int64(r.cfg.MaxModelLen))
	full := int32(min(tokens/int64(r.cfg.BlockSize), int64(r.cfg.UsableBlocks())))
	if r.radix != nil {
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
	blocks := r.pool.Match(&keys.keys, findable, nil)
	r.pool.Reference(blocks)
	found := int32(len(blocks))
	blocks = r.pool.Pop(blocks, int(full-found))
	if r.conn != nil {
		findable = full
	}
	r.pool.Index(blocks, &keys.keys, found, findable)
	r.pool.Release(blocks, full)
	if r.conn != nil {
		r.conn.warm(r, q, full)
	}
}

// warmTree is the same with a radix cache.
func (r *Engine) warmTree(q *workload.Request, full int32) {
	r.look.text = q.Text(r.look.text[:0])
	tokens := full * r.cfg.BlockSize
	p := r.radix.Match(r.look.text, tokens)
	r.radix.Lock(p)
	r.radix.Take(int(full) - p.Blocks)
	r.radix.Unlock(r.radix.Insert(p, r.look.text, tokens, common(q)))
}
