package model

// rankGroup is the time of what the data-parallel ranks of a mixture-of-experts model do together: they exchange
// tokens, and each computes its part of the experts for all tokens.
type rankGroup struct {
	ranks   int64 // 1 if nothing is shared
	experts table // by tokens of all ranks
	// The exchange takes the longer of two times: of what the busiest rank sends, by its tokens, and of what the
	// rank of the busiest experts receives, by the tokens of all ranks.
	sent, received table
}

// newRankGroup tabulates the times for ranks with a token budget.
func newRankGroup(p *ops, budget int) rankGroup {
	g := rankGroup{ranks: 1}
	if p.d.LLM.Experts == 0 || p.d.DataParallel == 1 {
		return g
	}
	g.ranks = int64(p.d.DataParallel)
	all := func(n float64) float64 { return total(func(v termFunc) { p.groupTerms(n, v) }) }
	_, layers := p.d.LLM.floatMLPLayers()
	x := exchanger{p}
	sent := func(m float64) float64 { return x.exchange(m).seconds * layers }
	received := func(n float64) float64 { return x.exchange(x.receivedTokens(n)).seconds * layers }
	budget = min(budget, tableLimit)
	g.experts = newTable(all, min(budget*p.d.DataParallel, tableLimit)+1)
	g.sent = newTable(sent, budget+1)
	if p.d.Exchange == ExchangeGather { // what a rank sends does not matter
		g.sent = newTable(func(float64) float64 { return 0 }, 1)
	}
	g.received = newTable(received, min(budget*p.d.DataParallel, tableLimit)+1)
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

// dualBatchTokens is the mean number of tokens of a rank from which on a step is divided into two batches (vLLM's
// dbo_decode_token_threshold).
const dualBatchTokens = 32

// shared returns the time of what the ranks do together in a step. With two batches, each half reads all weights and
// hides the exchange of the other half, and the time includes what the halves of the rank's own part add.
func (k *Kernels) shared(b *Batch, tokens int64) int64 {
	g := &k.group
	if g.ranks == 1 {
		return 0
	}
	all, busiest := k.groupTokens(b, tokens)
	if k.ops.d.DualBatch && all >= dualBatchTokens*g.ranks {
		compute := 2 * (k.tokens.at((tokens+1)/2) + g.experts.at((all+1)/2))
		exchange := 2 * max(g.sent.at((busiest+1)/2), g.received.at((all+1)/2))
		return max(compute, exchange) - k.tokens.at(tokens)
	}
	return k.apart(all, busiest)
}

// apart returns the time of experts and exchange one after the other.
func (k *Kernels) apart(all, busiest int64) int64 {
	g := &k.group
	return g.experts.at(all) + max(g.sent.at(busiest), g.received.at(all))
}

// groupTerms lists the terms that depend only on the number of tokens of all ranks that share the experts.
func (o *ops) groupTerms(all float64, v termFunc) {
	_, moe := o.d.LLM.floatMLPLayers()
	v(termExperts, o.c.MoE[o.d.MoEDtype].Row, o.experts(all).times(moe))
}

// receivedTokens returns the number of tokens that each rank sends if the rank of the busiest experts receives as much
// as in a step in which the ranks have the given number of tokens. A gather sends all tokens to all ranks.
func (o exchanger) receivedTokens(all float64) float64 {
	mean := all / float64(o.d.DataParallel)
	if o.d.Exchange == ExchangeGather || mean == 0 {
		return mean
	}
	return mean * o.imbalance(all)
}

// exchangeTerms lists the exchange, by the tokens of all ranks and those of the busiest one.
func (o exchanger) exchangeTerms(all, busiest float64, v termFunc) {
	_, moe := o.d.LLM.floatMLPLayers()
	tokens := o.receivedTokens(all)
	row := o.comm.c.Row
	if o.d.Exchange != ExchangeGather {
		tokens, row = max(tokens, busiest), o.c.ExchangeRow
	}
	v(termExchange, row, o.exchange(tokens).times(moe))
}
