package naive

import "clifftop/sim/sched"

// grouping is the part of a view for KV cache groups.
type grouping struct{ n *Engine }

// Clip cuts a chunk of a running sequence.
func (v grouping) Clip(i sched.Seq, tokens, most int32) int32 {
	s := v.n.byID[int64(i)]
	if v.n.cfg.Hybrid == nil || s == nil {
		return tokens
	}
	return v.clip(s, s.computed, tokens, most)
}

// ClipWaiting cuts the first chunk of a waiting request.
func (v grouping) ClipWaiting(i int, tokens, most int32) int32 {
	s := v.n.place(i)
	if v.n.cfg.Hybrid == nil || s == nil {
		return tokens
	}
	found, _ := v.n.kv.lookup(s, s.known()-1)
	return v.clip(s, found, tokens, most)
}

// clip cuts a chunk of s behind its first start tokens.
func (v grouping) clip(s *sequence, start, tokens, most int32) int32 {
	if limit := int32(v.n.cfg.MaxNumBatchedTokens); most == 0 || most > limit {
		most = limit
	}
	return v.n.cfg.Hybrid.Clip(start, tokens, s.prompt, s.known(), s.kv.groups.junction, most)
}

// Needs is the number of free blocks that an admission takes.
func (v grouping) Needs(i int, tokens int32, whole bool) int {
	s := v.n.place(i)
	h, ok := v.n.kv.(*hybrid)
	if !ok || s == nil {
		return 0
	}
	if whole {
		return h.needs(s, s.known(), true)
	}
	found, _ := h.lookup(s, s.known()-1)
	return h.needs(s, admissionSlots(h.cfg, found+tokens), false)
}
