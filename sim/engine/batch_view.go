package engine

import (
	"clifftop/sim/sched"
)

// batchView is the running batch as a policy sees it: its sums, and its sequences one by one. Numbers of tokens are
// those before the iteration that is being composed.
type batchView struct {
	*composition
	orderView sched.Waiting // scratch: the argument of [sched.Order.Key]
}

// RunningLen implements [sched.Batch].
func (v *batchView) RunningLen() int {
	v.asked = true
	return v.r.running.size
}

// Seats implements [sched.Batch].
func (v *batchView) Seats() int { return v.r.cfg.MaxNumSeqs - v.RunningLen() }

// Decoding implements [sched.Batch].
func (v *batchView) Decoding() int { return v.r.cohort.size + v.r.running.speculating }

// Context implements [sched.Batch].
func (v *batchView) Context() int64 {
	r := v.r
	sum := r.cohort.context
	if v.stepped {
		sum -= int64(r.cohort.size)
	}
	for i := r.running.first; i != none && r.running.speculating > 0; i = r.seqs.at(i).next {
		if s := r.seqs.at(i); s.phase == speculating {
			sum += int64(v.computed(s))
		}
	}
	return sum
}

// Remaining implements [sched.Batch].
func (v *batchView) Remaining(limit int32) int64 {
	r := v.r
	if limit >= r.running.longest {
		return r.running.remaining
	}
	var sum int64
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		sum += int64(min(s.declared-v.generated(s), limit))
	}
	return sum
}

// Departures implements [sched.Batch].
func (v *batchView) Departures() int64 {
	v.asked = true
	return v.r.running.departures
}

// First implements [sched.Walk].
func (v *batchView) First() sched.Seq {
	return v.first()
}

// Next implements [sched.Walk].
func (v *batchView) Next(s sched.Seq) sched.Seq { return sched.Seq(v.r.seqs.at(int32(s)).next) }

// Last implements [sched.Walk].
func (v *batchView) Last() sched.Seq {
	v.asked = true
	return sched.Seq(v.r.running.last)
}

// Prev implements [sched.Walk].
func (v *batchView) Prev(s sched.Seq) sched.Seq { return sched.Seq(v.r.seqs.at(int32(s)).prev) }

// NextPrefill implements [sched.Walk].
func (v *batchView) NextPrefill(s sched.Seq) sched.Seq {
	after := int64(0)
	if s != sched.None {
		after = v.r.seqs.at(int32(s)).serial
	}
	for _, i := range v.r.running.prefills {
		if v.r.seqs.at(i).serial > after {
			return sched.Seq(i)
		}
	}
	return sched.None
}

// Missing implements [sched.Walk].
func (v *batchView) Missing(i sched.Seq) int32 {
	switch s := v.r.seqs.at(int32(i)); s.phase {
	case decoding:
		if v.hasToken(s) || v.r.inOtherCohort(s) {
			return 0
		}
		return 1
	case prefilling:
		return max(0, s.target-s.computed)
	case speculating:
		return v.r.it.missingWithDrafts(s)
	}
	return 0
}

// Progress implements [sched.Walk].
func (v *batchView) Progress(i sched.Seq) sched.Progress {
	s := v.r.seqs.at(int32(i))
	p := sched.NewProgress(&s.rec.Request)
	p.MaxTokens = s.declared
	p.Generated = v.generated(s)
	return p
}

// Given implements [sched.Walk].
func (v *batchView) Given(i sched.Seq) int32 {
	s := v.r.seqs.at(int32(i))
	if s.phase == decoding && v.stepped && !v.slow && !v.r.inOtherCohort(s) {
		return 1
	}
	return s.given
}

// Urgency implements [sched.Walk].
func (v *batchView) Urgency(i sched.Seq) sched.Urgency {
	s := v.r.seqs.at(int32(i))
	u := sched.Urgency{Arrival: int64(s.rec.Request.Arrival), Returned: s.returned, Request: s.rec.Request.ID}
	if order := v.r.cfg.Order; order != nil {
		v.orderView = sched.Waiting{
			Progress: v.Progress(i), Computed: v.computed(s), TrueOutput: v.r.cfg.OutputOf(&s.rec.Request),
			Preempted: s.rec.Preemptions > 0, Urgency: u,
		}
		v.orderView.Known = v.orderView.Prompt + v.orderView.Generated
		u.Key = order.Key(&v.orderView)
	}
	return u
}
