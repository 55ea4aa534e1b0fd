package naive

import (
	"cmp"
	"slices"

	"clifftop/sim/engine"
	"clifftop/sim/sched"
)

// queue is the waiting queue of an engine. Requests whose KV was loaded come first.
type queue struct {
	cfg      *engine.Config
	loaded   []*sequence // in the order in which their loads began
	waiting  []*sequence // the others
	accounts *accounts
	inbox    inbox // requests that are not received yet
	joined   int64 // requests that have joined the queue, each time counted
}

func (q *queue) WaitingLen() int { return len(q.loaded) + len(q.waiting) }

// enqueue puts s into the queue: to its place in the order or, without one, to the head or the tail.
func (q *queue) enqueue(s *sequence, head bool) {
	q.joined++
	switch {
	case q.cfg.Order != nil:
		s.key = q.rank(s).Key
		q.waiting = insert(q.waiting, s, func(a, b *sequence) int { return compareUrgency(a.urgency(), b.urgency()) })
	case head:
		first := 0
		for first < len(q.waiting) && q.waiting[first].skipped {
			first++
		}
		q.waiting = slices.Insert(q.waiting, first, s)
	default:
		q.waiting = append(q.waiting, s)
	}
}

// place is the i-th request of the queue that is not passed over, or nil.
func (q *queue) place(i int) *sequence {
	return q.outside(i, func(s *sequence) bool { return s.passed })
}

// head is the first request of the queue, passed over or not, or nil.
func (q *queue) head() *sequence {
	return q.outside(0, func(s *sequence) bool { return false })
}

// outside is the i-th request of the queue for which but is false, or nil.
func (q *queue) outside(i int, but func(s *sequence) bool) *sequence {
	first, others := slices.DeleteFunc(slices.Clone(q.loaded), but), slices.DeleteFunc(slices.Clone(q.waiting), but)
	if i < len(first) {
		return first[i]
	}
	i -= len(first)
	if i >= len(others) {
		return nil
	}
	if q.accounts.order == nil {
		return others[i]
	}
	return slices.MinFunc(others, func(s, t *sequence) int {
		return cmp.Or(cmp.Compare(q.accounts.charged[q.accounts.client(s)], q.accounts.charged[q.accounts.client(t)]),
			compareUrgency(s.urgency(), t.urgency()))
	})
}

// restore ends the passing over of requests.
func (q *queue) restore() {
	for _, s := range slices.Concat(q.loaded, q.waiting) {
		s.passed = false
	}
}

func (q *queue) join(s *sequence) {
	a := q.accounts
	if a.order == nil {
		return
	}
	c := a.client(s)
	if !slices.Contains(a.joining, c) && !slices.ContainsFunc(q.waiting, func(w *sequence) bool {
		return a.client(w) == c
	}) {
		a.joining = append(a.joining, c)
	}
}

// raiseCounters raises the counters of clients that have begun to wait to the lowest of the other waiting or, if there
// is none, running clients.
func (q *queue) raiseCounters(running []*sequence) {
	a := q.accounts
	for len(a.joining) > 0 {
		c := a.joining[0]
		waits := slices.ContainsFunc(q.waiting, func(s *sequence) bool { return a.client(s) == c })
		others := a.charges(q.waiting, a.joining)
		if len(others) == 0 {
			others = a.charges(running, nil)
		}
		if waits && len(others) > 0 {
			a.charged[c] = max(a.charged[c], slices.Min(others))
		}
		a.joining = a.joining[1:]
	}
}

// describe is what a policy sees of a waiting request, without the prefix cache.
func (q *queue) describe(s *sequence) sched.Waiting {
	return sched.Waiting{
		Progress: s.progress(), Known: s.known(), Computed: s.computed, TrueOutput: s.output,
		Preempted: s.rec.Preemptions > 0, Urgency: s.urgency(),
	}
}

// rank is the urgency of s in the queue, or that which it would have if it returned now.
func (q *queue) rank(s *sequence) sched.Urgency {
	w := q.describe(s)
	w.Urgency.Key = 0
	if q.cfg.Order != nil {
		w.Urgency.Key = q.cfg.Order.Key(&w)
	}
	return w.Urgency
}

// isLoaded reports whether s was loaded and waits for admission.
func (q *queue) isLoaded(s *sequence) bool { return slices.Contains(q.loaded, s) }

// inbox holds requests that have reached the engine and are not received yet.
type inbox struct {
	sequences []*sequence
	count     int  // compositions since the last receipt
	recent    bool // the last composition made an iteration
	decodes   bool // of decodes alone
}

// due counts a composition, and reports whether it receives the requests of the inbox.
func (b *inbox) due(interval int) bool {
	if b.count++; b.recent && b.decodes && b.count < interval {
		return false
	}
	b.count = 0
	return true
}

// receiveRequests moves the requests of the inbox to the queue.
func (q *queue) receiveRequests() {
	for _, s := range q.inbox.sequences {
		q.join(s)
		q.enqueue(s, false)
	}
	q.inbox.sequences = nil
}
