package engine

import (
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// requests is the waiting queue of an engine, and the numbers of its requests and of their tokens by state.
type requests struct {
	*env
	seqs       *slab
	space      *Space
	queue      queue.Queue
	inbox      inbox
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
		q.queue.PushTail(q.returning(i, s))
	} else {
		q.queue.PushHead(q.returning(i, s))
	}
}

// returning is s, sequence i, as it joins the queue again.
func (q *requests) returning(i int32, s *sequence) queue.Waiting {
	req := &s.rec.Request
	return queue.Waiting{Request: *req, Seq: i, Key: q.keyOf(req, i), Returned: s.returned}
}

// leaveQueue removes s, which was preempted, from the queue.
func (q *requests) leaveQueue(s *sequence) {
	q.queue.Remove(&s.rec.Request)
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
	q.space.describe(&queue.Waiting{Request: *req, Seq: seq}, d)
	return q.cfg.Order.Key(d)
}

// inbox holds requests that have reached the engine before the scheduler receives them (SGLang's SchedulerRecvSkipper).
// The scheduler receives at each interval-th composition that follows a batch of decodes, and at each that follows
// another batch. It receives at once when it has composed nothing.
type inbox struct {
	interval int                // 0 and 1 receive at each composition
	count    int                // compositions since the last receipt, less than interval
	recent   recentBatch        // what the last composition made
	requests []workload.Request // in the order in which they came
}

// recentBatch is the kind of the last composed iteration, as it counts for the receipt of requests.
type recentBatch int

const (
	noBatch recentBatch = iota
	decodeBatch
	otherBatch // with prefills
)

// delays reports whether requests wait for their receipt.
func (b *inbox) delays() bool { return b.interval > 1 }

// due counts a composition, and reports whether requests are received at it.
func (b *inbox) due() bool {
	b.count++
	if b.recent == decodeBatch && b.count < b.interval {
		return false
	}
	b.count = 0
	return true
}

// repeated counts the compositions of n like iterations that follow a batch of decodes.
func (b *inbox) repeated(n int) {
	if b.delays() {
		b.count = (b.count + n) % b.interval
	}
}

// limit returns how many of n like iterations, the first of which was composed, come before the next receipt of the
// requests that are there.
func (b *inbox) limit(n int) int {
	if len(b.requests) == 0 {
		return n
	}
	return min(n, b.interval-b.count)
}

// from returns the first composition of a span, from the n-th on, at which requests are received. Number 0 has been made.
func (b *inbox) from(n int) int {
	if !b.delays() {
		return n
	}
	return (n+b.count+b.interval-1)/b.interval*b.interval - b.count
}

// remove removes a request, and reports whether it was there.
func (b *inbox) remove(id int64) bool {
	i := slices.IndexFunc(b.requests, func(r workload.Request) bool { return r.ID == id })
	if i < 0 {
		return false
	}
	b.requests = slices.Delete(b.requests, i, i+1)
	return true
}

// receiveNew moves the requests of the inbox to the queue, if a composition that begins now receives them.
func (q *requests) receiveNew() {
	b := &q.inbox
	if !b.delays() || !b.due() {
		return
	}
	for i := range b.requests {
		q.queue.Push(&b.requests[i], q.keyOf(&b.requests[i], none))
	}
	clear(b.requests)
	b.requests = b.requests[:0]
}

// Attempt is a request in an engine.
type Attempt struct {
	*workload.Request
	Seq    int32 // its sequence, or -1 if it was never admitted
	Queued bool  // it has reached the queue
}

// Attempts returns all requests that have reached the queue and have not ended.
func (e *Engine) Attempts() (all []Attempt) {
	e.queue.Each(func(q *workload.Request) { all = append(all, Attempt{q, none, true}) })
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
