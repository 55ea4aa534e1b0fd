package naive

// radix is a pool whose prefix cache is a tree of tokens. What a sequence has computed enters it when a
// prefill chunk has been processed, and when the sequence is complete.
type radix struct{ tree *TokenTree }

func (r *radix) free() int {
	evictable, _, _ := r.tree.Count()
	return r.tree.Available + evictable
}

func (r *radix) largest() int { return r.free() }

func (r *radix) shared() int {
	_, _, shared := r.tree.Count()
	return shared
}

func (r *radix) lookup(s *sequence, most int32) (tokens int32, held int) {
	n, locked := r.tree.Match(s.kv.tokens[:most]).Depth()
	return int32(n), locked / r.tree.Page
}

func (r *radix) lost(s *sequence, most int32) (from, to int32) {
	first, last := r.tree.Lost(s.kv.tokens[:most])
	return int32(first), int32(last)
}

func (r *radix) path(s *sequence, most int32) (list []int32) {
	for n := r.tree.Match(s.kv.tokens[:most]); n != r.tree.Root(); n = n.Parent() {
		list = append([]int32{int32(n.seat)}, list...)
	}
	return list
}

func (r *radix) admit(s *sequence, most int32) (tokens int32) {
	s.kv.node = r.tree.Match(s.kv.tokens[:most])
	r.tree.Lock(s.kv.node)
	n, _ := s.kv.node.Depth()
	return int32(n)
}

func (r *radix) holds(s *sequence) int {
	if s.kv.node == nil {
		return 0
	}
	n, _ := s.kv.node.Depth()
	return n/r.tree.Page + s.kv.private
}

func (r *radix) grows(s *sequence, n int) bool { return true }

func (r *radix) take(s *sequence, n int) {
	r.tree.Available -= n // evictions follow when the iteration is composed
	s.kv.private += n
}

// batchNeed is what the sequences in prefill, and those that decode, are given in an iteration.
type batchNeed struct {
	prompts, tokens, promptBlocks int
	decodes, decodeBlocks         int
}

func (r *radix) needOf(running []*sequence) (n batchNeed) {
	page := int32(r.tree.Page)
	for _, s := range running {
		after := s.computed + s.given
		switch {
		case s.given == 0:
		case s.decodes():
			n.decodes++
			if (after-1)%page == 0 && after > int32(s.reserved)*page {
				n.decodeBlocks++
			}
		default:
			n.prompts++
			n.tokens += int(s.given)
			n.promptBlocks += int((after+page-1)/page - (s.computed+page-1)/page)
		}
	}
	return n
}

// evictFor evicts as SGLang does before a batch is computed: as much as the prompts need, if there is less, and a page
// for each. Then as much as the decoding sequences need.
func (r *radix) evictFor(n batchNeed) {
	t := r.tree
	t.Available += n.promptBlocks + n.decodeBlocks
	need := n.tokens
	if t.Page > 1 {
		need += n.prompts * t.Page
	}
	if t.Available*t.Page < need {
		t.Evict((need + t.Page - 1) / t.Page)
	}
	t.Available -= n.promptBlocks
	if n.prompts == 0 && t.Page > 1 && t.Available < n.decodeBlocks {
		t.Evict(n.decodeBlocks)
	}
	if t.Available < n.decodes {
		t.Evict(n.decodes)
	}
	t.Available -= n.decodeBlocks
	t.Cover()
}

// MakeRoom evicts so many tokens, if fewer are available beside what the running sequences are given.
func (n *Engine) MakeRoom(tokens int) {
	r, ok := n.kv.(*radix)
	if !ok {
		return
	}
	need := r.needOf(n.running)
	if (r.tree.Available+need.promptBlocks+need.decodeBlocks)*r.tree.Page < tokens {
		r.tree.Evict((tokens + r.tree.Page - 1) / r.tree.Page)
	}
}

func (r *radix) known(s *sequence, tokens int32) {}

func (r *radix) done(s *sequence, tokens int32, hit bool) {
	before := r.holds(s)
	s.kv.node = r.tree.Insert(s.kv.node, s.kv.tokens[:tokens], hit, -int(s.rec.Request.Priority))
	s.kv.private -= r.holds(s) - before
}

func (r *radix) release(s *sequence, ended bool) {
	if ended {
		most := int32(len(s.kv.tokens)) - 1
		if s.unpredicted && s.declared == s.output {
			most++ // the iteration in flight computes the last token, which is no EOS
		}
		r.done(s, min(most, s.computed), true)
	}
	r.tree.Put(s.kv.private)
	r.tree.Unlock(s.kv.node)
	s.kv.node, s.kv.private = nil, 0
}
