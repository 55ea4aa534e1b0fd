package engine

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Requests whose prompt one replica computes and whose answer another one. What is here is the side of the first: it
// produces one token, which is for nobody, keeps the blocks under a lease and hands the record on. The second one is
// sent the request as it came, with a leg that says where its KV is.

// handsOff reports whether somebody else than the client takes what becomes of s.
func (r *Engine) handsOff(s *sequence) bool {
	return r.conn != nil && r.conn.handoffs[s.rec.Request.ID].Ended != nil
}

// handOff hands the record of s on, which has ended.
func (r *Engine) handOff(s *sequence) {
	s.rec.Tokens, s.rec.FirstToken, s.rec.LastToken = 0, clock.Never, clock.Never
	if p := r.host.Client(s.rec.Request.ID); p != nil {
		p.Seq, p.AtFrontend = none, true
	}
	end := r.conn.handoffs[s.rec.Request.ID].Ended
	r.conn.forgetHandoff(s.rec.Request.ID)
	end(&s.rec, r.now)
}

// SetLeg sets what the engine does of a request. It needs a [Connector].
func (r *Engine) SetLeg(handoff func(r *workload.Request) Handoff) { r.conn.Handoff = handoff }

// Keeps reports whether the replica keeps the KV of a request for another one.
func (r *Engine) Keeps(id int64) bool {
	for _, l := range r.conn.leases {
		if l.request == id && !l.over {
			return true
		}
	}
	return false
}
