package queue

import (
	"iter"
	"slices"

	"clifftop/sim/sched"
	"clifftop/workload"
)

// Fair is the waiting queue of an order that shares service among clients, with the service that each client was
// charged for. Decoding sequences are charged for a token in every step of the cohort, so that the counter of a client
// is linear in the number of steps, and is computed on demand. A nil Fair is that of any other order, and charges
// nothing.
type Fair struct {
	order   sched.Fair
	number  map[int64]int32 // index in list, by client
	list    []fairClient
	removed map[int64]struct{} // requests that have left and are still in a heap

	waiting []int32 // clients with requests in the queue
	joining []int32 // clients that began to wait since the last composition, in order
	steps   int64   // steps of the cohort before the iteration that is being composed
	next    int32   // the client of the head; None if it is not known
}

// fairClient is the state of a client.
type fairClient struct {
	charged  int64 // without the tokens of decoding sequences since they joined the cohort
	decoding int64 // number of decoding sequences
	joined   int64 // Σ steps at which the decoding sequences joined the cohort

	queued   int // requests in the queue
	joining  bool
	requests priorityQueue
}

func newFair(order sched.Fair) *Fair {
	return &Fair{order: order, number: make(map[int64]int32), removed: make(map[int64]struct{}), next: None}
}

// of returns the index of the client that sent r. A new client is added to the list.
func (a *Fair) of(r *workload.Request) int32 {
	p := sched.NewProgress(r)
	client := a.order.Client(&p)
	i, ok := a.number[client]
	if !ok {
		i = int32(len(a.list))
		a.number[client] = i
		a.list = append(a.list, fairClient{})
	}
	return i
}

// counter returns the service that client i was charged for before the iteration that is being composed, and for
// admissions in it.
func (a *Fair) counter(i int32) int64 {
	c := &a.list[i]
	return c.charged + a.order.Token()*(c.decoding*a.steps-c.joined)
}

// top returns the most urgent request of client i, or nil.
func (a *Fair) top(i int32) *Waiting {
	c := &a.list[i]
	for len(c.requests) > 0 {
		w := c.requests.top()
		if _, removed := a.removed[w.Request.ID]; !removed {
			return w
		}
		delete(a.removed, w.Request.ID)
		c.requests.pop()
	}
	return nil
}

// head returns the first request of the queue, or nil.
func (a *Fair) head() *Waiting {
	if a.next == None {
		for _, i := range a.waiting {
			if a.next == None || a.before(i, a.next) {
				a.next = i
			}
		}
		if a.next == None {
			return nil
		}
	}
	return a.top(a.next)
}

// before reports whether the next request of client i is ahead of that of client j.
func (a *Fair) before(i, j int32) bool {
	if x, y := a.counter(i), a.counter(j); x != y {
		return x < y
	}
	return a.top(i).Urgency().Less(a.top(j).Urgency())
}

// join adds a request that has just arrived, and reports whether it may be the head.
func (a *Fair) join(w Waiting) bool {
	i := a.of(&w.Request)
	c := &a.list[i]
	if c.queued == 0 && !c.joining {
		c.joining = true
		a.joining = append(a.joining, i)
	}
	c.queued++
	a.next = None
	top := a.top(i)
	first := top == nil || w.Urgency().Less(top.Urgency())
	c.requests.push(w)
	return first || c.joining
}

// returns adds a sequence that was preempted.
func (a *Fair) returns(w Waiting) {
	i := a.of(&w.Request)
	c := &a.list[i]
	if c.queued == 0 && !c.joining {
		a.waiting = append(a.waiting, i)
	}
	c.queued++
	c.requests.push(w)
	a.next = None
}

// take removes the head, which must have been returned by head.
func (a *Fair) take() {
	c := &a.list[a.next]
	c.requests.pop()
	a.leave(a.next)
}

// remove removes request r from anywhere in the queue.
func (a *Fair) remove(r *workload.Request) {
	a.removed[r.ID] = struct{}{}
	a.leave(a.of(r))
}

// leave subtracts one from the queued requests of client i. A client without any is no longer waiting.
func (a *Fair) leave(i int32) {
	c := &a.list[i]
	c.queued--
	a.next = None
	if c.queued > 0 {
		return
	}
	a.top(i) // drops removed requests
	if k := slices.Index(a.waiting, i); k >= 0 {
		a.waiting = slices.Delete(a.waiting, k, k+1)
	}
}

// Begin begins a composition after this many steps of the cohort. It raises the counters of clients that begin to wait
// to the lowest counter of the waiting clients or, if there are none, of the running ones.
func (a *Fair) Begin(steps int64, running iter.Seq[int32]) {
	a.steps, a.next = steps, None
	for _, i := range a.joining {
		c := &a.list[i]
		c.joining = false
		if c.queued == 0 {
			continue
		}
		others := slices.Values(a.waiting)
		if len(a.waiting) == 0 {
			others = running
		}
		lowest, any := int64(0), false
		for j := range others {
			if x := a.counter(j); !any || x < lowest {
				lowest, any = x, true
			}
		}
		if any {
			c.charged += max(0, lowest-a.counter(i))
		}
		a.waiting = append(a.waiting, i)
	}
	a.joining = a.joining[:0]
}

// Admitted charges the client of a request for its first admission, and returns the index of the client.
func (a *Fair) Admitted(q *workload.Request) (client int32) {
	if a == nil {
		return 0
	}
	p := sched.NewProgress(q)
	client = a.of(q)
	a.list[client].charged += a.order.Admission(&p)
	a.next = None
	return client
}

// Produced charges a client for tokens that a sequence produced outside the cohort. A negative number takes tokens
// back.
func (a *Fair) Produced(client, tokens int32) {
	if a != nil {
		a.list[client].charged += a.order.Token() * int64(tokens)
	}
}

// Joins records that a sequence of a client joins the cohort at a step.
func (a *Fair) Joins(client int32, step int64) {
	if a != nil {
		a.list[client].decoding++
		a.list[client].joined += step
	}
}

// Leaves records that a sequence that joined the cohort at a step leaves it, in which it got grown tokens.
func (a *Fair) Leaves(client int32, step int64, grown int32) {
	if a != nil {
		a.list[client].decoding--
		a.list[client].joined -= step
		a.Produced(client, grown)
	}
}

// Missed records that a sequence of a client got no token in the last step of the cohort.
func (a *Fair) Missed(client int32) {
	if a != nil {
		a.list[client].joined++
	}
}

// SameHead returns the number of iterations, this one included and at most n, that begin with the same head if each of
// them gives every decoding sequence one token.
func (a *Fair) SameHead(n int) int {
	if len(a.waiting) < 2 || a.head() == nil {
		return n
	}
	h, token := a.next, a.order.Token()
	for _, i := range a.waiting {
		gains := token * (a.list[h].decoding - a.list[i].decoding)
		if i == h || gains <= 0 {
			continue
		}
		lead := a.counter(i) - a.counter(h)
		k := lead / gains // iterations after which the counters are equal, rounded down
		if k*gains < lead || !a.top(i).Urgency().Less(a.top(h).Urgency()) {
			k++
		}
		n = int(min(int64(n), max(k, 1)))
	}
	return n
}
