package sim

import "clifftop/sim/clock"

// Requests whose prompt one replica computes and whose answer another one. What is here is the side of the first: it
// produces one token, which is for nobody, keeps the blocks under a lease and hands the record on. The second one is
// sent the request as it came, with a leg that says where its KV is.

// handsOn reports whether somebody else than the client takes what becomes of s.
func (r *Engine) handsOn(s *sequence) bool {
	return r.conn != nil && r.conn.legs[s.rec.Request.ID].ended != nil
}

// handOn hands the record of s on, which has ended.
func (r *Engine) handOn(s *sequence) {
	s.rec.Tokens, s.rec.FirstToken, s.rec.LastToken = 0, clock.Never, clock.Never
	if p := r.host.patients.Find(s.rec.Request.ID); p != nil {
		p.seq, p.frontend = none, true
	}
	ended := r.conn.legs[s.rec.Request.ID].ended
	r.conn.ends(s.rec.Request.ID)
	ended(&s.rec, r.now)
}
