package engine

import (
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// gpu is the time of the GPU, and to which tokens it went.
type gpu struct {
	free      clock.Time  // end of the last iteration
	remainder int64       // femtoseconds past it
	batch     model.Batch // scratch: the iteration composed
	slowdown  int64       // thousandths of the usual step time; 0 as usual
	// lastComposed is when the last iteration that was launched was composed, and composing when the one to come is.
	lastComposed, composing clock.Time
	batches                 int64 // iterations launched, or planned and committed
	decodeSteps             int64 // those of them in which a sequence decoded
	// tokens among which the last iteration's time was shared out, and femtoseconds left over
	sharers, carry int64
	given, took    int64 // time of requests, and of those that have ended, modulo 2⁶⁴; for checks
}

// shareOut shares out the time of the iterations that are committed, and returns that of one token of each. s is the
// span of theirs that observers are told of.
func (g *gpu) shareOut(p *clock.Progression, it *batchBuilder, s *event.Span) (each int64) {
	tokens := int64(it.decodes + it.drafts + it.prefill + it.recomputed + it.padRows + it.padTokens)
	if tokens != g.sharers {
		g.sharers, g.carry = tokens, 0
	}
	s.Progression, s.Carry = *p, g.carry
	femtos := s.SharedFemtos(p.N)
	each = femtos / tokens
	g.carry = femtos - each*tokens
	if it.r.cfg.Check {
		g.given += each * (tokens - int64(it.padRows+it.padTokens))
	}
	return each
}

// charge charges the sequences of the iterations just committed, by the time of a token of each. The
// cohort's members are charged as one; of those who joined it, or were left out, it is taken back.
func (g *gpu) charge(each int64, it *batchBuilder, c *cohort) {
	seqs := &it.r.seqs
	if it.stepped {
		c.share += each
	}
	for k, i := range it.chunkSeqs {
		s, chunk := seqs.at(i), &it.chunks[k]
		again, lost := s.known(chunk.Cached, chunk.New)
		t := &s.rec.GPU
		t.Prefill += each * int64(chunk.New-again-lost)
		if again+lost > 0 {
			t.Recomputed += each * int64(again)
			t.Lost += each * int64(lost)
		}
	}
	for _, i := range it.current.firsts {
		s := seqs.at(i)
		s.shared = c.share
		if s.swapped { // it decodes on where it was swapped out
			s.rec.GPU.Decode += each
		}
	}
	for _, i := range it.missed {
		seqs.at(i).shared += each
	}
	for _, i := range it.current.verified {
		s := seqs.at(i)
		s.rec.GPU.Decode += each * int64(s.fresh)
		s.rec.GPU.Drafts += each * int64(s.useless)
	}
}

// IdleFrom is when the GPU has nothing more to do, if it is given nothing.
func (g *gpu) IdleFrom() clock.Time {
	if g.remainder > 0 {
		return g.free + 1
	}
	return g.free
}
