package engine

import (
	"slices"

	"clifftop/sim/sched"
	"clifftop/workload"
)

// waiting is a request in the engine's queue: one that was never admitted or, with seq ≥ 0, a sequence that was
// preempted or loaded.
type waiting struct {
	req workload.Request
	seq int32
	key int64 // key given by the order
	// returned is when it last went to the tail of the queue; 0 is never.
	returned int64
}

func (w *waiting) urgency() sched.Urgency {
	return sched.Urgency{Key: w.key, Arrival: int64(w.req.Arrival), Returned: w.returned, Request: w.req.ID}
}

// queue holds the waiting requests: first come, first served with preempted sequences ahead; by urgency; or such that
// clients share service.
type queue struct {
	byUrgency bool
	length    int
	loaded    []waiting // sequences whose KV was loaded, ahead of all others
	resumed   []waiting // first come, first served: preempted sequences, ahead of fresh; the last one is the head
	fresh     fifo
	ordered   priorityQueue // by urgency
	fair      *fairQueue
	removed   map[int64]struct{} // requests that have left and are still in resumed, fresh or ordered
	skipped   []waiting          // passed over by the policy, behind loaded; by urgency only in the current composition
	passed    int                // leading requests that the current composition passes over
	clean     int                // first come, first served: leading entries known not to be removed
}

func newQueue(order sched.Order) queue {
	q := queue{byUrgency: order != nil}
	if fair, ok := order.(sched.Fair); ok {
		q.fair = newFairQueue(fair)
	}
	return q
}

func (q *queue) len() int { return q.length }

// head returns the first request, or nil.
func (q *queue) head() *waiting { return q.at(0) }

// at returns the i-th request in order that is not passed over, or nil. Only a first-come-first-served queue shows more
// than its head.
func (q *queue) at(i int) *waiting {
	i += q.passed
	if n := len(q.loaded); n > 0 {
		if i < n {
			return &q.loaded[i]
		}
		i -= n
	}
	if n := len(q.skipped); n > 0 {
		if i < n {
			return &q.skipped[i]
		}
		i -= n
	}
	if q.fair != nil {
		return q.fair.head()
	}
	if len(q.removed) == 0 {
		return q.entry(i)
	}
	for ; q.clean <= i; q.clean++ {
		w := q.entry(q.clean)
		for w != nil {
			if _, removed := q.removed[w.req.ID]; !removed {
				break
			}
			delete(q.removed, w.req.ID)
			q.drop(q.clean)
			w = q.entry(q.clean)
		}
		if w == nil {
			return nil
		}
	}
	return q.entry(i)
}

// entry returns the i-th entry, removed ones included, or nil.
func (q *queue) entry(i int) *waiting {
	n := len(q.resumed)
	switch {
	case q.byUrgency:
		if i == 0 {
			return q.ordered.top()
		}
	case i < n:
		return &q.resumed[n-1-i]
	case i < n+q.fresh.length:
		return q.fresh.at(i - n)
	}
	return nil
}

// push adds a request that has just arrived, and reports whether it may be the head now.
func (q *queue) push(r *workload.Request, key int64) bool {
	if q.fair != nil {
		q.length++
		return q.fair.join(waiting{req: *r, seq: none, key: key})
	}
	q.pushTail(waiting{req: *r, seq: none, key: key})
	return q.byUrgency && q.head().req.ID == r.ID || q.length == 1
}

// pushTail adds a request behind all others or, by urgency, at the place of its key.
func (q *queue) pushTail(w waiting) {
	q.length++
	if q.byUrgency {
		q.pushOrdered(w)
		return
	}
	q.fresh.push(w)
}

func (q *queue) pushOrdered(w waiting) {
	if q.fair != nil {
		q.fair.returns(w)
		return
	}
	q.ordered.push(w)
}

// pushHead returns a sequence to the head of the queue or, by urgency, to the place of its key.
func (q *queue) pushHead(w waiting) {
	q.length++
	q.clean = 0
	if q.byUrgency {
		q.pushOrdered(w)
		return
	}
	q.resumed = append(q.resumed, w)
}

// pushLoaded inserts a loaded sequence at place i among the loaded ones.
func (q *queue) pushLoaded(i int, w waiting) {
	q.length++
	q.loaded = slices.Insert(q.loaded, i, w)
}

// takeLoaded removes a loaded sequence.
func (q *queue) takeLoaded(seq int32) {
	q.take(slices.IndexFunc(q.loaded, func(w waiting) bool { return w.seq == seq }))
}

// take removes the i-th request, which must have been returned by at.
func (q *queue) take(i int) {
	q.length--
	i += q.passed
	if n := len(q.loaded); n > 0 {
		if i < n {
			q.loaded = slices.Delete(q.loaded, i, i+1)
			return
		}
		i -= n
	}
	if n := len(q.skipped); n > 0 {
		if i < n {
			q.skipped = slices.Delete(q.skipped, i, i+1)
			return
		}
		i -= n
	}
	if q.fair != nil {
		q.fair.take()
		return
	}
	q.clean = max(q.clean-1, 0)
	q.drop(i)
}

// skip passes over the head until restore.
func (q *queue) skip() {
	w := q.head()
	if w == nil {
		return
	}
	if q.passed == len(q.loaded)+len(q.skipped) {
		moved := *w
		q.take(0)
		q.length++
		q.skipped = append(q.skipped, moved)
	}
	q.passed++
}

// restore ends the passing over of requests. By urgency they return to their places.
func (q *queue) restore() {
	q.passed = 0
	if !q.byUrgency {
		return
	}
	for i := range q.skipped {
		q.pushOrdered(q.skipped[i])
	}
	q.skipped = q.skipped[:0]
}

// drop removes the i-th entry.
func (q *queue) drop(i int) {
	n := len(q.resumed)
	switch {
	case q.byUrgency:
		q.ordered.pop()
	case i < n:
		q.resumed = slices.Delete(q.resumed, n-1-i, n-i)
	default:
		q.fresh.remove(i - n)
	}
}

// remove removes a request from anywhere in the queue.
func (q *queue) remove(r *workload.Request) {
	q.length--
	if q.fair != nil {
		q.fair.remove(r)
		return
	}
	if i := slices.IndexFunc(q.skipped, func(w waiting) bool { return w.req.ID == r.ID }); i >= 0 {
		q.skipped = slices.Delete(q.skipped, i, i+1)
		return
	}
	q.clean = 0
	if q.removed == nil {
		q.removed = make(map[int64]struct{})
	}
	q.removed[r.ID] = struct{}{}
}

// each calls do for the requests that were never admitted, in no particular order.
func (q *queue) each(do func(r *workload.Request)) {
	visit := func(w *waiting, removed map[int64]struct{}) {
		if _, left := removed[w.req.ID]; !left && w.seq == none {
			do(&w.req)
		}
	}
	for _, w := range q.skipped { // copies: remove moves the entries of this list
		visit(&w, nil)
	}
	for i := range q.fresh.length {
		visit(q.fresh.at(i), q.removed)
	}
	for i := range q.ordered {
		visit(&q.ordered[i], q.removed)
	}
	if q.fair == nil {
		return
	}
	for k := range q.fair.list {
		for i := range q.fair.list[k].requests {
			visit(&q.fair.list[k].requests[i], q.fair.removed)
		}
	}
}

// fifo is a queue in chunks. It does not copy its entries when it grows, and frees memory when it shrinks: in an
// overload, millions of requests may wait.
type fifo struct {
	chunks [][]waiting
	first  int // index of the front in chunks[0]
	length int
}

const fifoChunk = 512

func (f *fifo) at(i int) *waiting {
	i += f.first
	return &f.chunks[i/fifoChunk][i%fifoChunk]
}

func (f *fifo) push(w waiting) {
	n := len(f.chunks)
	if n == 0 || len(f.chunks[n-1]) == fifoChunk {
		f.chunks = append(f.chunks, make([]waiting, 0, fifoChunk))
		n++
	}
	f.chunks[n-1] = append(f.chunks[n-1], w)
	f.length++
}

// remove removes the i-th entry. The entries before it move back by one place: most removals are near the front.
func (f *fifo) remove(i int) {
	for ; i > 0; i-- {
		*f.at(i) = *f.at(i - 1)
	}
	f.pop()
}

func (f *fifo) pop() {
	f.chunks[0][f.first].req.Content = nil
	f.first++
	f.length--
	switch {
	case f.length == 0:
		f.chunks[0] = f.chunks[0][:0]
		f.chunks = f.chunks[:1]
		f.first = 0
	case f.first == fifoChunk:
		f.chunks[0] = nil
		f.chunks = f.chunks[1:]
		f.first = 0
	}
}

// priorityQueue is a binary heap of waiting requests, with the most urgent one on top.
type priorityQueue []waiting

// top returns the most urgent request, or nil.
func (h priorityQueue) top() *waiting {
	if len(h) == 0 {
		return nil
	}
	return &h[0]
}

func (h *priorityQueue) push(w waiting) {
	*h = append(*h, w)
	s := *h
	i := len(s) - 1
	for u := w.urgency(); i > 0; {
		up := (i - 1) / 2
		if !u.Less(s[up].urgency()) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = w
}

func (h *priorityQueue) pop() {
	s := *h
	n := len(s) - 1
	last := s[n]
	s[n] = waiting{}
	s = s[:n]
	*h = s
	if n == 0 {
		return
	}
	i := 0
	for u := last.urgency(); ; {
		down := 2*i + 1
		if down >= n {
			break
		}
		if r := down + 1; r < n && s[r].urgency().Less(s[down].urgency()) {
			down = r
		}
		if !s[down].urgency().Less(u) {
			break
		}
		s[i] = s[down]
		i = down
	}
	s[i] = last
}
