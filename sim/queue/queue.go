// Package queue has the waiting requests of an engine: first come, first served, by urgency, or such that clients share
// service.
package queue

import (
	"slices"

	"clifftop/sim/sched"
	"clifftop/workload"
)

// Waiting is a request in the engine's queue: one that was never admitted or, with Seq ≥ 0, a sequence that was
// preempted or loaded.
type Waiting struct {
	Request workload.Request
	Seq     int32 // the sequence, or [None]
	Key     int64 // key given by the order
	// Returned is when it last went to the tail of the queue; 0 is never.
	Returned int64
}

// Urgency returns how urgent the request is.
func (w *Waiting) Urgency() sched.Urgency {
	return sched.Urgency{Key: w.Key, Arrival: int64(w.Request.Arrival), Returned: w.Returned, Request: w.Request.ID}
}

// Queue holds the waiting requests: first come, first served with preempted sequences ahead; by urgency; or such that
// clients share service.
type Queue struct {
	byUrgency bool
	length    int
	loaded    []Waiting // sequences whose KV was loaded, ahead of all others
	resumed   []Waiting // first come, first served: preempted sequences, ahead of fresh; the last one is the head
	fresh     fifo
	ordered   priorityQueue // by urgency
	fair      *Fair
	removed   map[int64]struct{} // requests that have left and are still in resumed, fresh or ordered
	skipped   []Waiting          // passed over by the policy, behind loaded; by urgency only in the current composition
	passed    int                // leading requests that the current composition passes over
	clean     int                // first come, first served: leading entries known not to be removed
}

// New returns an empty queue with an order; nil is first come, first served.
func New(order sched.Order) Queue {
	q := Queue{byUrgency: order != nil}
	if fair, ok := order.(sched.Fair); ok {
		q.fair = newFair(fair)
	}
	return q
}

// None is the sequence of a request that has none.
const None = int32(sched.None)

// Len returns the number of requests.
func (q *Queue) Len() int { return q.length }

// Fair returns the service that clients were charged for, or nil if the order does not share service among clients.
func (q *Queue) Fair() *Fair { return q.fair }

// Passes reports whether the current composition has passed over requests.
func (q *Queue) Passes() bool { return q.passed > 0 }

// AllNew reports whether a queue that is first come, first served has requests only that were never admitted, and no
// entries of requests that have left.
func (q *Queue) AllNew() bool { return len(q.resumed)+len(q.removed)+len(q.loaded) == 0 }

// NextNew returns the first request. The queue must be AllNew and not empty.
func (q *Queue) NextNew() *Waiting { return q.fresh.at(0) }

// Loaded yields the sequences whose KV was loaded, in order.
func (q *Queue) Loaded(yield func(seq int32) bool) {
	for i := range q.loaded {
		if !yield(q.loaded[i].Seq) {
			return
		}
	}
}

// Head returns the first request, or nil.
func (q *Queue) Head() *Waiting { return q.At(0) }

// At returns the i-th request in order that is not passed over, or nil. Only a first-come-first-served queue shows more
// than its head.
func (q *Queue) At(i int) *Waiting {
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
			if _, removed := q.removed[w.Request.ID]; !removed {
				break
			}
			delete(q.removed, w.Request.ID)
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
func (q *Queue) entry(i int) *Waiting {
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

// Push adds a request that has just arrived, and reports whether it may be the head now.
func (q *Queue) Push(r *workload.Request, key int64) bool {
	if q.fair != nil {
		q.length++
		return q.fair.join(Waiting{Request: *r, Seq: None, Key: key})
	}
	if q.byUrgency {
		q.PushTail(Waiting{Request: *r, Seq: None, Key: key})
		return q.Head().Request.ID == r.ID || q.length == 1
	}
	q.length++
	w := q.fresh.grow()
	w.Request, w.Seq, w.Key, w.Returned = *r, None, key, 0
	return q.length == 1
}

// PushTail adds a request behind all others or, by urgency, at the place of its key.
func (q *Queue) PushTail(w Waiting) {
	q.length++
	if q.byUrgency {
		q.pushOrdered(w)
		return
	}
	*q.fresh.grow() = w
}

func (q *Queue) pushOrdered(w Waiting) {
	if q.fair != nil {
		q.fair.returns(w)
		return
	}
	q.ordered.push(w)
}

// PushHead returns a sequence to the head of the queue or, by urgency, to the place of its key.
func (q *Queue) PushHead(w Waiting) {
	q.length++
	q.clean = 0
	if q.byUrgency {
		q.pushOrdered(w)
		return
	}
	q.resumed = append(q.resumed, w)
}

// PushLoaded inserts a loaded sequence at place i among the loaded ones.
func (q *Queue) PushLoaded(i int, w Waiting) {
	q.length++
	q.loaded = slices.Insert(q.loaded, i, w)
}

// TakeLoaded removes a loaded sequence.
func (q *Queue) TakeLoaded(seq int32) {
	q.Take(slices.IndexFunc(q.loaded, func(w Waiting) bool { return w.Seq == seq }))
}

// Take removes the i-th request, which must have been returned by at.
func (q *Queue) Take(i int) {
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

// Skip passes over the head until restore.
func (q *Queue) Skip() {
	w := q.Head()
	if w == nil {
		return
	}
	if q.passed == len(q.loaded)+len(q.skipped) {
		moved := *w
		q.Take(0)
		q.length++
		q.skipped = append(q.skipped, moved)
	}
	q.passed++
}

// Restore ends the passing over of requests. By urgency they return to their places.
func (q *Queue) Restore() {
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
func (q *Queue) drop(i int) {
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

// Remove removes a request from anywhere in the queue.
func (q *Queue) Remove(r *workload.Request) {
	q.length--
	if q.fair != nil {
		q.fair.remove(r)
		return
	}
	if i := slices.IndexFunc(q.skipped, func(w Waiting) bool { return w.Request.ID == r.ID }); i >= 0 {
		q.skipped = slices.Delete(q.skipped, i, i+1)
		return
	}
	q.clean = 0
	if q.removed == nil {
		q.removed = make(map[int64]struct{})
	}
	q.removed[r.ID] = struct{}{}
}

// Each calls do for the requests that were never admitted, in no particular order.
func (q *Queue) Each(do func(r *workload.Request)) {
	visit := func(w *Waiting, removed map[int64]struct{}) {
		if _, left := removed[w.Request.ID]; !left && w.Seq == None {
			do(&w.Request)
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
	chunks [][]Waiting
	first  int // index of the front in chunks[0]
	length int
}

const fifoChunk = 512

func (f *fifo) at(i int) *Waiting {
	i += f.first
	return &f.chunks[i/fifoChunk][i%fifoChunk]
}

// grow adds an entry, to be filled in, and returns it.
func (f *fifo) grow() *Waiting {
	if n := len(f.chunks) * fifoChunk; f.first+f.length == n {
		f.chunks = append(f.chunks, make([]Waiting, fifoChunk))
	}
	f.length++
	return f.at(f.length - 1)
}

// Remove removes the i-th entry. The entries before it move back by one place: most removals are near the front.
func (f *fifo) remove(i int) {
	for ; i > 0; i-- {
		*f.at(i) = *f.at(i - 1)
	}
	f.pop()
}

func (f *fifo) pop() {
	f.chunks[0][f.first].Request.Content = nil
	f.first++
	f.length--
	switch {
	case f.length == 0:
		f.chunks = f.chunks[:1]
		f.first = 0
	case f.first == fifoChunk:
		f.chunks[0] = nil
		f.chunks = f.chunks[1:]
		f.first = 0
	}
}

// priorityQueue is a binary heap of waiting requests, with the most urgent one on top.
type priorityQueue []Waiting

// top returns the most urgent request, or nil.
func (h priorityQueue) top() *Waiting {
	if len(h) == 0 {
		return nil
	}
	return &h[0]
}

func (h *priorityQueue) push(w Waiting) {
	*h = append(*h, w)
	s := *h
	i := len(s) - 1
	for u := w.Urgency(); i > 0; {
		up := (i - 1) / 2
		if !u.Less(s[up].Urgency()) {
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
	s[n] = Waiting{}
	s = s[:n]
	*h = s
	if n == 0 {
		return
	}
	i := 0
	for u := last.Urgency(); ; {
		down := 2*i + 1
		if down >= n {
			break
		}
		if r := down + 1; r < n && s[r].Urgency().Less(s[down].Urgency()) {
			down = r
		}
		if !s[down].Urgency().Less(u) {
			break
		}
		s[i] = s[down]
		i = down
	}
	s[i] = last
}
