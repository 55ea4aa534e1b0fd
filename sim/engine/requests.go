package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// requests is the waiting queue of an engine, and the numbers of its requests and of their tokens by state.
type requests struct {
	*env
	seqs       *slab
	space      *space
	queue      queue
	levels     event.Levels             // the fleet counts the requests in the system, which were sent to this engine
	uncomputed int64                    // prompt tokens of waiting and running requests that no iteration was given
	late       map[int64]clock.Duration // how long requests that have not been admitted were held at the router
	described  sched.Waiting            // scratch: the argument of [sched.Order.Key]
}

// Levels returns the numbers of requests by state. The fleet sets the number in the system.
func (q *requests) Levels() *event.Levels { return &q.levels }

// Uncomputed returns the number of prompt tokens, of waiting and running requests, that no iteration has computed or is
// computing.
func (q *requests) Uncomputed() int64 { return q.uncomputed }

// QueueFull reports whether the admission limit is reached.
func (q *requests) QueueFull() bool {
	l, most := &q.levels, q.cfg.MaxQueuedRequests
	return most > 0 && l.Waiting+l.Running >= most ||
		q.cfg.MaxQueuedTokens > 0 && q.uncomputed >= q.cfg.MaxQueuedTokens
}

// Delay records for how long the router held a request that will be enqueued.
func (q *requests) Delay(req *workload.Request, by clock.Duration) {
	if q.late == nil {
		q.late = make(map[int64]clock.Duration)
	}
	q.late[req.ID] = by
}

// Forget removes what Delay recorded for a request that was not admitted.
func (q *requests) Forget(request int64) { delete(q.late, request) }

// Queued returns the instant at which a request that has not been admitted reached the queue.
func (q *requests) Queued(req *workload.Request) clock.Time {
	at := q.cfg.visible(req)
	if len(q.late) > 0 {
		at = at.Add(q.late[req.ID])
	}
	return at
}

// requeue returns sequence i, which was preempted, to the queue.
func (q *requests) requeue(i int32, s *sequence, tail bool) {
	s.phase = preempted
	if tail {
		q.queue.pushTail(q.returning(i, s))
	} else {
		q.queue.pushHead(q.returning(i, s))
	}
}

// returning is s, sequence i, as it joins the queue again.
func (q *requests) returning(i int32, s *sequence) waiting {
	req := &s.rec.Request
	return waiting{req: *req, seq: i, key: q.keyOf(req, i), returned: s.returned}
}

// leaveQueue removes s, which was preempted, from the queue.
func (q *requests) leaveQueue(s *sequence) {
	q.queue.remove(&s.rec.Request)
	q.levels.Waiting--
	if s.hosted == 0 {
		s.computed = 0
	}
	q.uncomputed -= s.promptLeft()
	q.space.hosted -= s.hosted
}

// stream counts s as decoding, if this is its first delivered token since its admission.
func (q *requests) stream(s *sequence) {
	if !s.streamed {
		s.streamed = true
		q.levels.Decoding++
	}
}

// keyOf returns the key that the order gives to a request that joins the queue. seq is its sequence or none.
func (q *requests) keyOf(req *workload.Request, seq int32) int64 {
	if q.cfg.Order == nil {
		return 0
	}
	d := &q.described
	*d = sched.Waiting{}
	q.space.describe(&waiting{req: *req, seq: seq}, d)
	return q.cfg.Order.Key(d)
}
