package engine

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// What a policy may ask of its replica. It is noted if that changes when a sequence leaves.

// Budget implements [sched.View].
func (it *batchBuilder) Budget() int32 { return it.budget }

// Seats implements [sched.View].
func (it *batchBuilder) Seats() int { return it.r.cfg.MaxNumSeqs - it.RunningLen() }

// RunningLen implements [sched.View].
func (it *batchBuilder) RunningLen() int {
	it.asked = true
	return it.r.running.size
}

// Blocks implements [sched.View].
func (it *batchBuilder) Blocks() int { return it.r.cfg.NumGPUBlocks }

// FreeBlocks implements [sched.View].
func (it *batchBuilder) FreeBlocks() int {
	it.asked = true
	return it.r.free()
}

// BlocksFor implements [sched.View].
func (it *batchBuilder) BlocksFor(tokens int32) int { return it.r.pagesFor(tokens) }

// First implements [sched.View].
func (it *batchBuilder) First() sched.Seq {
	it.asked = true
	return sched.Seq(it.r.running.first)
}

// Next implements [sched.View].
func (it *batchBuilder) Next(s sched.Seq) sched.Seq { return sched.Seq(it.r.seq(int32(s)).next) }

// Last implements [sched.View].
func (it *batchBuilder) Last() sched.Seq {
	it.asked = true
	return sched.Seq(it.r.running.last)
}

// Now implements [sched.View].
func (it *batchBuilder) Now() clock.Time { return it.r.now }

// DecodeSteps implements [sched.View].
func (it *batchBuilder) DecodeSteps() int64 { return it.r.gpu.decodeSteps }

// Departures implements [sched.View].
func (it *batchBuilder) Departures() int64 {
	it.asked = true
	return it.r.running.departures
}

// Prev implements [sched.View].
func (it *batchBuilder) Prev(s sched.Seq) sched.Seq { return sched.Seq(it.r.seq(int32(s)).prev) }

// NextPrefill implements [sched.View].
func (it *batchBuilder) NextPrefill(s sched.Seq) sched.Seq {
	after := int64(0)
	if s != sched.None {
		after = it.r.seq(int32(s)).serial
	}
	for _, i := range it.r.running.prefills {
		if it.r.seq(i).serial > after {
			return sched.Seq(i)
		}
	}
	return sched.None
}

// Decoding implements [sched.View].
func (it *batchBuilder) Decoding() int { return it.r.cohort.size + it.r.running.speculating }

// Context implements [sched.View].
func (it *batchBuilder) Context() int64 {
	r := it.r
	sum := r.cohort.context
	if it.stepped {
		sum -= int64(r.cohort.size)
	}
	for i := r.running.first; i != none && r.running.speculating > 0; i = r.seq(i).next {
		if s := r.seq(i); s.phase == speculating {
			sum += int64(it.computed(s))
		}
	}
	return sum
}

// Progress implements [sched.View].
func (it *batchBuilder) Progress(i sched.Seq) sched.Progress {
	s := it.r.seq(int32(i))
	p := progress(&s.rec.Request)
	p.MaxTokens = s.declared
	p.Generated = it.generated(s)
	return p
}

// generated is the number of answer tokens that s had before this iteration.
func (it *batchBuilder) generated(s *sequence) int32 {
	n := s.issued
	switch {
	case s.phase == decoding && s.joinBatch < it.current.number:
		n += int32(it.r.steps(s) - s.joined)
		if it.stepped && !it.r.inOtherCohort(s) {
			n--
		}
	case s.joinBatch == it.current.number:
		n--
	}
	return n
}

// progress is what stands in the request itself.
func progress(r *workload.Request) sched.Progress {
	return sched.Progress{
		Request: r.ID, User: r.User, Session: r.Session, Class: r.Class, Priority: r.Priority, Prompt: r.InputTokens,
	}
}

// Remaining implements [sched.View].
func (it *batchBuilder) Remaining(limit int32) int64 {
	r := it.r
	if limit >= r.running.longest {
		return r.running.remaining
	}
	var sum int64
	for i := r.running.first; i != none; i = r.seq(i).next {
		if s := r.seq(i); !s.over {
			sum += int64(min(s.declared-it.generated(s), limit))
		}
	}
	return sum
}

// WaitingLen implements [sched.View].
func (it *batchBuilder) WaitingLen() int {
	it.looked = true
	return it.r.queue.len()
}

// Slots implements [sched.View].
func (it *batchBuilder) Slots(tokens int32) int32 { return it.r.cfg.slots(tokens) }

// LargestFree implements [sched.View].
func (it *batchBuilder) LargestFree() int {
	if h := it.r.space.contiguous; h != nil {
		return min(h.Largest(), it.FreeBlocks())
	}
	return it.FreeBlocks()
}

// keyOf asks the order for the key of a request that joins the queue. seq is its sequence.
func (r *Engine) keyOf(req *workload.Request, seq int32) int64 {
	if r.cfg.Order == nil {
		return 0
	}
	d := &r.it.orderView
	*d = sched.Waiting{}
	r.describe(&waiting{req: *req, seq: seq}, d)
	return r.cfg.Order.Key(d)
}

// unsupported makes the run fail, because the policy used something that this engine does not do.
func (it *batchBuilder) unsupported(verb string) {
	if it.r.fault == nil {
		it.r.fault = fmt.Errorf("sim: policy %T uses %s, which the engine does not do", it.r.cfg.Scheduler, verb)
	}
}
