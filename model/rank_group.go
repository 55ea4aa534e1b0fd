package model

// rankGroup is the time of what the data-parallel ranks of a mixture-of-experts model do together: they exchange
// tokens, and each computes its part of the experts for all tokens.
type rankGroup struct {
	ranks   int64 // 1 if nothing is shared
	experts table // by tokens of all ranks
	sent    table // by tokens of the busiest rank
}

// newRankGroup tabulates the times for ranks with a token budget.
func newRankGroup(p *ops, budget int) rankGroup {
	g := rankGroup{ranks: 1}
	if p.d.LLM.Experts == 0 || p.d.DataParallel == 1 {
		return g
	}
	g.ranks = int64(p.d.DataParallel)
	all := func(n float64) float64 { return total(func(v termFunc) { p.groupTerms(n, v) }) }
	busiest := func(m float64) float64 { return total(func(v termFunc) { p.busiestTerms(m, v) }) }
	budget = min(budget, tableLimit)
	g.experts = newTable(all, min(budget*p.d.DataParallel, tableLimit)+1)
	g.sent = newTable(busiest, budget+1)
	return g
}

// groupTokens returns the number of tokens of all ranks, and that of the busiest rank, in a step that has the given
// number of tokens on this rank. If the batch does not have them, all ranks are alike, and run the same CUDA graph.
func (k *Kernels) groupTokens(b *Batch, tokens int64) (all, busiest int64) {
	if b.GroupTokens > 0 {
		return b.GroupTokens, b.BusiestTokens
	}
	if graph := k.GraphTokens(int(min(tokens, tableLimit))); graph > 0 {
		tokens = int64(graph)
	}
	return tokens * k.group.ranks, tokens
}

// shared returns the time of what the ranks do together in a step.
func (k *Kernels) shared(b *Batch, tokens int64) int64 {
	g := &k.group
	if g.ranks == 1 {
		return 0
	}
	all, busiest := k.groupTokens(b, tokens)
	return g.experts.at(all) + g.sent.at(busiest)
}

// groupTerms lists the terms that depend only on the number of tokens of all ranks that share the experts.
func (o *ops) groupTerms(all float64, v termFunc) {
	_, moe := o.d.LLM.floatMLPLayers()
	v(termExperts, o.c.MoE[o.d.MoEDtype].Row, o.experts(all).times(moe))
}

// busiestTerms lists the terms that depend only on the number of tokens of the busiest rank.
func (o *ops) busiestTerms(busiest float64, v termFunc) {
	_, moe := o.d.LLM.floatMLPLayers()
	tokens := busiest * float64(o.d.DataParallel)
	v(termExchange, o.comm.c.Row, o.comm.exchange(2*tokens*o.h, o.d.moeRanks()).times(moe))
}
