package sim

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Now implements [sched.View].
func (it *composition) Now() clock.Time { return it.r.now }

// DecodeSteps implements [sched.View].
func (it *composition) DecodeSteps() int64 { return it.r.decodeSteps }

// Departures implements [sched.View].
func (it *composition) Departures() int64 { return it.r.departures }

// Prev implements [sched.View].
func (it *composition) Prev(s sched.Seq) sched.Seq { return sched.Seq(it.r.seq(int32(s)).prev) }

// NextPrefill implements [sched.View].
func (it *composition) NextPrefill(s sched.Seq) sched.Seq {
	after := int64(0)
	if s != sched.None {
		after = it.r.seq(int32(s)).serial
	}
	for _, i := range it.r.prefills {
		if it.r.seq(i).serial > after {
			return sched.Seq(i)
		}
	}
	return sched.None
}

// Decoding implements [sched.View].
func (it *composition) Decoding() int { return it.r.cohort.size }

// Progress implements [sched.View].
func (it *composition) Progress(i sched.Seq) sched.Progress {
	s := it.r.seq(int32(i))
	p := progress(&s.rec.Request)
	p.MaxTokens = s.output
	p.Generated = it.generated(s)
	return p
}

// generated is the number of answer tokens that s had before this iteration.
func (it *composition) generated(s *sequence) int32 {
	n := s.issued
	switch {
	case s.phase == decoding && s.joinBatch < it.flight.number:
		n += int32(it.r.cohort.steps - s.joined)
		if it.stepped {
			n--
		}
	case s.joinBatch == it.flight.number:
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
func (it *composition) Remaining(limit int32) int64 {
	var sum int64
	for i := it.r.first; i != none; i = it.r.seq(i).next {
		s := it.r.seq(i)
		sum += int64(min(s.output-it.generated(s), limit))
	}
	return sum
}

// WaitingLen implements [sched.View].
func (it *composition) WaitingLen() int {
	it.looked = true
	return it.r.queue.len()
}

// LargestFree implements [sched.View].
func (it *composition) LargestFree() int { return it.FreeBlocks() }

// Promise implements [sched.View].
func (it *composition) Promise(i sched.Seq, tokens int32) { it.r.seq(int32(i)).promised = tokens }

// Promised implements [sched.View].
func (it *composition) Promised() int {
	r, sum := it.r, 0
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		if s.promised == 0 {
			continue
		}
		computed := s.computed
		if s.phase == decoding {
			computed = s.target + int32(r.cohort.steps-s.joined)
		}
		sum += max(0, r.pagesFor(s.promised)-r.pagesFor(computed))
	}
	return sum
}

// keyOf asks the order for the key of a request that joins the queue.
func (r *Replica) keyOf(w *waiting) int64 {
	if r.cfg.Order == nil {
		return 0
	}
	d := r.describe(w)
	return r.cfg.Order.Key(&d)
}

// unable makes the run fail, because the policy used something that this engine does not do.
func (it *composition) unable(verb string) {
	if it.r.fault == nil {
		it.r.fault = fmt.Errorf("sim: policy %T uses %s, which the engine does not do", it.r.cfg.Scheduler, verb)
	}
}

// Reserve implements [sched.View].
func (it *composition) Reserve(sched.Seq, int32) bool {
	it.unable("Reserve")
	return true
}

// SwapOut implements [sched.View].
func (it *composition) SwapOut(sched.Seq) bool { return false }

// Pad implements [sched.View].
func (it *composition) Pad(int, int64) { it.unable("Pad") }

// PadChunks implements [sched.View].
func (it *composition) PadChunks(int32) { it.unable("PadChunks") }
