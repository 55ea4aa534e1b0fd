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
func (e *Engine) Attempts() (all []Attempt) {
	e.queue.each(func(q *workload.Request) { all = append(all, Attempt{q, none, true}) })
	for i := range e.inbox.requests {
		all = append(all, Attempt{&e.inbox.requests[i], none, true})
	}
	for k, s := range e.seqs.items {
		if q := &s.rec.Request; q.OutputTokens > 0 { // the index is in use
			all = append(all, Attempt{q, int32(k), true})
		}
	}
	return all
}

// Retired reports whether another engine has taken the place of this one.
func (e *Engine) Retired() bool { return e.retired }

// Drained reports whether a draining engine has no work left: it has no requests, no other engine will load the KV that
// it keeps, and all copies to persistent tiers are complete.
func (e *Engine) Drained() bool { return e.levels.System == 0 && e.connector.drained() }

// Halt commits the iterations that have begun by the instant at. After it the engine begins no iteration, and copies
// no KV to tiers.
func (e *Engine) Halt(at clock.Time) {
	e.answered = false
	e.Stop(at)
	e.now = at
	e.connector.halt()
}

// CheckEmpty asserts, if invariants are checked, that an engine that has failed has no requests and no blocks in use.
func (e *Engine) CheckEmpty() {
	if e.cfg.Check && e.fault == nil {
		e.fault = (&checker{e: e}).checkEmpty()
	}
}

// Lose ends sequence i because its replica fails or its KV is lost.
func (e *Engine) Lose(i int32) {
	s := e.seqs.at(i)
	if s.rec.Left == clock.Never {
		end := workload.End{How: workload.Disconnected, At: e.now.Add(e.cfg.NetworkOut)}
		if end.First, end.Tokens = e.ReceivedBy(i, e.now); end.First != clock.Never {
			end.At = max(end.At, end.First)
		}
		s.rec.Outcome, s.rec.Ending, s.rec.ClientFirst = event.Failed, end.How, end.First
		s.rec.Again = e.host.Done(&s.rec.Request, end)
	}
	e.cancel(i)
}
