package sched

// contextShare is what a context gets of an iteration's budget.
type contextShare struct {
	seq            Seq // None for a waiting request
	missing, given int32
}

// inTurns gives running contexts and the waiting requests that can be started one unit after the other in
// turns, until the budget is used up. It returns the cause that stopped it, if there is one.
func (p *TRTLLM) inTurns(v View, paused bool) Cause {
	p.shares = p.shares[:0]
	for s := v.NextPrefill(None); s != None; s = v.NextPrefill(s) {
		p.shares = append(p.shares, contextShare{seq: s, missing: v.Missing(s)})
	}
	r := newRoom(p.Capacity, v, paused)
	why := NotBlocked
	for i := 0; ; i++ {
		if int64(len(p.shares))*int64(p.ChunkUnit) > int64(v.Budget()) {
			why = LacksBudget // later ones get no unit
			break
		}
		var w *Waiting
		if w, why = r.next(i); w == nil || why != NotBlocked {
			break
		}
		p.shares = append(p.shares, contextShare{seq: None, missing: w.Known - w.Cached})
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

// deal shares the budget.
func (p *TRTLLM) deal(budget int32) {
	for dealt := true; dealt; {
		dealt = false
		for i := range p.shares {
			c := &p.shares[i]
			n := min(p.ChunkUnit, c.missing-c.given)
			if n == 0 || n > budget {
				continue
			}
			c.given += n
			budget -= n
			dealt = true
		}
	}
}
