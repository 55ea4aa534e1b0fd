package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Attempt is a request in an engine.
type Attempt struct {
	*workload.Request
	Seq    int32 // its sequence, or -1 if it was never admitted
	Queued bool  // it has reached the queue
}

// Attempts returns all requests that have reached the queue and have not ended.
func (r *Engine) Attempts() (all []Attempt) {
	r.queue.each(func(q *workload.Request) { all = append(all, Attempt{q, none, true}) })
	for k, s := range r.seqs.items {
		if q := &s.rec.Request; q.OutputTokens > 0 { // the index is in use
			all = append(all, Attempt{q, int32(k), true})
		}
	}
	return all
}

// Retired reports whether another engine has taken the place of this one.
func (r *Engine) Retired() bool { return r.retired }

// Drained reports whether a draining engine has no work left: it has no requests, no other engine will load the KV that
// it keeps, and all copies to persistent tiers are complete.
func (r *Engine) Drained() bool { return r.levels.System == 0 && r.connector.drained() }

// Halt commits the iterations that have begun by the instant at. After it the engine begins no iteration, and copies
// no KV to tiers.
func (r *Engine) Halt(at clock.Time) {
	r.answered = false
	r.Stop(at)
	r.now = at
	r.connector.halt()
}

// CheckEmpty asserts, if invariants are checked, that an engine that has failed has no requests and no blocks in use.
func (r *Engine) CheckEmpty() {
	if r.cfg.Check && r.fault == nil {
		r.fault = (&checker{e: r}).checkEmpty()
	}
}

// Lose ends sequence i because its replica fails or its KV is lost. A sequence whose last token was delivered is
// complete.
func (r *Engine) Lose(i int32) {
	s := r.seqs.at(i)
	if !s.over && s.rec.Left == clock.Never {
		end := workload.End{How: workload.Disconnected, At: r.now.Add(r.cfg.NetworkOut)}
		if end.First, end.Tokens = r.ReceivedBy(i, r.now); end.First != clock.Never {
			end.At = max(end.At, end.First)
		}
		s.rec.Outcome, s.rec.Ending, s.rec.ClientFirst = event.Failed, end.How, end.First
		s.rec.Again = r.host.Done(&s.rec.Request, end)
	}
	r.cancel(i)
}
