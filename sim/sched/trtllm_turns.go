package sched

// contextShare is what a context gets of an iteration's budget.
type contextShare struct {
	seq            Seq // None for a waiting request
	missing, given int32
}

// inTurns gives running contexts and the waiting requests that can be started one unit after the other in turns, until
// no unit fits the budget. It returns the cause that stopped it, if there is one.
func (p *TRTLLM) inTurns(v View, r *room) Cause {
	p.shares = p.shares[:0]
	for s := v.NextPrefill(None); s != None && !r.contextsWait; s = v.NextPrefill(s) {
		p.shares = append(p.shares, contextShare{seq: s, missing: v.Missing(s)})
	}
	left := v.Budget() // after one unit for each context
	for i := range p.shares {
		left -= p.unit(p.shares[i].missing, left)
	}
	why := NotBlocked
	for i := 0; ; i++ {
		var w *Waiting
		if w, why = r.next(i); w == nil || why != NotBlocked {
			break
		}
		if left == 0 {
			why = LacksBudget // later ones get no unit
			break
		}
		p.shares = append(p.shares, contextShare{seq: None, missing: w.Known - w.Cached})
		left -= p.unit(w.Known-w.Cached, left)
		r.look(*w)
	}
	p.deal(v.Budget())
	passedOver := 0
	for _, c := range p.shares {
		switch {
		case c.given == 0 && c.seq == None:
			passedOver++
			why = LacksBudget
		case c.given == 0:
		case c.seq == None:
			w, _ := v.Waiting(passedOver) // those before it may have brought into the cache what it shares
			r.start(passedOver, min(c.given, w.Known-w.Cached), w)
		case v.Grow(c.seq, c.given):
			v.Give(c.seq, c.given)
		}
	}
	return why
}

// unit returns the tokens of one more unit of a context that misses some, or 0 if they exceed the budget.
func (p *TRTLLM) unit(missing, budget int32) int32 {
	if n := min(p.ChunkUnit, missing); n <= budget {
		return n
	}
	return 0
}

func (p *TRTLLM) deal(budget int32) {
	for dealt := true; dealt; {
		dealt = false
		for i := range p.shares {
			c := &p.shares[i]
			n := p.unit(c.missing-c.given, budget)
			c.given += n
			budget -= n
			dealt = dealt || n > 0
		}
	}
}
