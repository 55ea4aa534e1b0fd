package sim

import (
	"clifftop/sim/sched"
	"clifftop/workload"
)

// waiting is a request in the engine's queue: one that was never admitted, or, with seq ≥ 0, a
// preempted sequence.
type waiting struct {
	req workload.Request
	seq int32
}

func (w *waiting) urgency() sched.Urgency {
	return sched.Urgency{Priority: int32(w.req.Priority), Arrival: int64(w.req.Arrival), Request: w.req.ID}
}

// queue holds the waiting requests: first come, first served with preempted sequences ahead, or
// ordered by urgency.
type queue struct {
	byUrgency bool
	length    int
	resumed   []waiting // first come, first served: preempted sequences; the last one is the head
	fresh     fifo
	ordered   []waiting // by urgency: a binary heap
	gone      map[int64]struct{}
}

func (q *queue) len() int { return q.length }

// head returns the first request, or nil.
func (q *queue) head() *waiting {
	if len(q.gone) > 0 {
		q.skipGone()
	}
	return q.front()
}

func (q *queue) front() *waiting {
	switch {
	case q.byUrgency:
		if len(q.ordered) > 0 {
			return &q.ordered[0]
		}
	case len(q.resumed) > 0:
		return &q.resumed[len(q.resumed)-1]
	case q.fresh.length > 0:
		return q.fresh.front()
	}
	return nil
}

// push adds a request that has just come, and reports whether it is the head now.
func (q *queue) push(r *workload.Request) bool {
	q.length++
	if !q.byUrgency {
		q.fresh.push(r)
		return q.length == 1
	}
	q.pushOrdered(waiting{req: *r, seq: -1})
	return q.head().req.ID == r.ID
}

// pushBack returns a preempted sequence to the queue.
func (q *queue) pushBack(r *workload.Request, seq int32) {
	q.length++
	if q.byUrgency {
		q.pushOrdered(waiting{req: *r, seq: seq})
		return
	}
	q.resumed = append(q.resumed, waiting{req: *r, seq: seq})
}

// pop removes the head.
func (q *queue) pop() {
	q.length--
	q.drop()
}

func (q *queue) drop() {
	switch {
	case q.byUrgency:
		q.popOrdered()
	case len(q.resumed) > 0:
		q.resumed = q.resumed[:len(q.resumed)-1]
	default:
		q.fresh.pop()
	}
}

// remove takes request id out wherever it stands.
func (q *queue) remove(id int64) {
	q.length--
	if q.gone == nil {
		q.gone = make(map[int64]struct{})
	}
	q.gone[id] = struct{}{}
}

func (q *queue) skipGone() {
	for w := q.front(); w != nil; w = q.front() {
		if _, gone := q.gone[w.req.ID]; !gone {
			return
		}
		delete(q.gone, w.req.ID)
		q.drop()
	}
}

func (q *queue) pushOrdered(w waiting) {
	q.ordered = append(q.ordered, w)
	s := q.ordered
	i := len(s) - 1
	for u := w.urgency(); i > 0; {
		up := (i - 1) / 2
		if !u.Less(s[up].urgency()) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (q *queue) popOrdered() {
	s := q.ordered
	n := len(s) - 1
	s[0], s[n] = s[n], waiting{}
	s = s[:n]
	q.ordered = s
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			return
		}
		if r := down + 1; r < n && s[r].urgency().Less(s[down].urgency()) {
			down = r
		}
		if !s[down].urgency().Less(s[i].urgency()) {
			return
		}
		s[i], s[down] = s[down], s[i]
		i = down
	}
}

// fifo is a queue in chunks, so that it neither copies when it grows nor keeps memory when it
// shrinks: an overload may leave millions waiting.
type fifo struct {
	chunks [][]waiting
	at     int // place of the front in chunks[0]
	length int
}

const fifoChunk = 512

func (f *fifo) front() *waiting { return &f.chunks[0][f.at] }

func (f *fifo) push(r *workload.Request) {
	n := len(f.chunks)
	if n == 0 || len(f.chunks[n-1]) == fifoChunk {
		f.chunks = append(f.chunks, make([]waiting, 0, fifoChunk))
		n++
	}
	f.chunks[n-1] = append(f.chunks[n-1], waiting{req: *r, seq: -1})
	f.length++
}

func (f *fifo) pop() {
	f.chunks[0][f.at].req.Content = nil
	f.at++
	f.length--
	switch {
	case f.length == 0:
		f.chunks[0] = f.chunks[0][:0]
		f.chunks = f.chunks[:1]
		f.at = 0
	case f.at == fifoChunk:
		f.chunks[0] = nil
		f.chunks = f.chunks[1:]
		f.at = 0
	}
}
