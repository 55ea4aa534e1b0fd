package naive

import (
	"slices"

	"clifftop/sim/sched"
)

// promise is the result of a policy's Repeats, for an iteration that only gave every decoding sequence its token.
type promise struct {
	left    int // iterations that are to be like it
	decodes int
	head    *sequence
	waiting int
	joined  int64 // requests that have joined the queue so far
	leaves  int64
	chunks  int
	freed   int

	blocked    sched.Cause
	padRows    int
	padContext int64
}

// keep checks the promise after an iteration was composed, and takes a new one. room means that there was room for a
// step of all decoding sequences before.
func (v view) keep(room bool) {
	p := &v.promise
	now := promise{
		decodes: v.Decoding(), waiting: v.WaitingLen(), joined: v.joined, leaves: v.departures, chunks: v.chunks,
		freed:   v.freed,
		blocked: v.blocked, padRows: v.padRows, padContext: v.padContext,
	}
	if v.WaitingLen() > 0 {
		now.head = v.head()
	}
	plain := v.plain()
	if p.left > 0 && room && v.undisturbed(p) {
		then, is := *p, now
		then.left, is.left = 0, 0
		then.padContext += int64(then.padRows)
		if !plain || then != is {
			v.wrong("Repeats promised %d more iterations like the one before, where %+v, but now the policy did "+
				"otherwise: %+v", p.left, then, is)
		}
	}
	if now.left = 0; plain {
		now.left = v.cfg.Scheduler.Repeats(v) - 1
	}
	*p = now
}

// undisturbed reports whether nothing has happened since the promise that ends it.
func (v view) undisturbed(p *promise) bool {
	decodes := 0
	for _, s := range v.before.running {
		if s.decodes() {
			decodes++
		}
	}
	return p.leaves == v.before.departures && p.decodes == decodes && p.chunks == v.chunks && p.freed == v.freed &&
		p.head == v.before.head && p.waiting == v.before.waiting && p.joined == v.before.joined
}

// plain reports whether the iteration gives every decoding sequence its token, and does nothing else.
func (v view) plain() bool {
	return v.Decoding() > 0 && !v.cfg.Speculative.On() && v.cfg.Hybrid == nil && !v.preempts && !v.loads &&
		slices.Equal(v.before.running, v.running) &&
		!slices.ContainsFunc(v.running, func(s *sequence) bool { return s.decodes() != (s.given > 0) })
}
