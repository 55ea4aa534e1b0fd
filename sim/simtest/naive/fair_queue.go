package naive

import (
	"cmp"
	"slices"

	"clifftop/sim/sched"
)

// accounts are those that a fair order keeps of clients; without such an order they do nothing.
type accounts struct {
	order   sched.Fair
	charged map[int64]int64 // by client
	joining []int64         // clients who have come to wait since the last composition
}

func newAccounts(o sched.Order) *accounts {
	fair, _ := o.(sched.Fair)
	return &accounts{order: fair, charged: make(map[int64]int64)}
}

func (a *accounts) client(s *sequence) int64 {
	p := s.progress()
	return a.order.Client(&p)
}

// admit charges for the first admission of s.
func (a *accounts) admit(s *sequence) {
	if a.order != nil {
		p := s.progress()
		a.charged[a.client(s)] += a.order.Admission(&p)
	}
}

// token charges for a token of s.
func (a *accounts) token(s *sequence) {
	if a.order != nil {
		a.charged[a.client(s)] += a.order.Token()
	}
}

// join notes that a request joins the queue.
func (n *Engine) join(s *sequence) {
	a := n.accounts
	if a.order == nil {
		return
	}
	c := a.client(s)
	if !slices.Contains(a.joining, c) && !slices.ContainsFunc(n.waiting, func(w *sequence) bool {
		return a.client(w) == c
	}) {
		a.joining = append(a.joining, c)
	}
}

// raiseCounters brings the clients who have come to wait up to the lowest of the others who wait, or run.
func (n *Engine) raiseCounters() {
	a := n.accounts
	for len(a.joining) > 0 {
		c := a.joining[0]
		waits := slices.ContainsFunc(n.waiting, func(s *sequence) bool { return a.client(s) == c })
		others := n.charges(n.waiting, a.joining)
		if len(others) == 0 {
			others = n.charges(n.running, nil)
		}
		if waits && len(others) > 0 {
			a.charged[c] = max(a.charged[c], slices.Min(others))
		}
		a.joining = a.joining[1:]
	}
}

// charges are the counters of the clients of a list, but for some.
func (n *Engine) charges(list []*sequence, but []int64) (all []int64) {
	for _, s := range list {
		if c := n.accounts.client(s); !slices.Contains(but, c) {
			all = append(all, n.accounts.charged[c])
		}
	}
	return all
}

// place is the i-th request of the queue, or nil.
func (n *Engine) place(i int) *sequence {
	first := n.loadedSequences()
	if i < len(first) {
		return first[i]
	}
	i -= len(first)
	if i >= len(n.waiting) {
		return nil
	}
	if n.accounts.order == nil {
		return n.waiting[i]
	}
	return slices.MinFunc(n.waiting, func(s, t *sequence) int {
		return cmp.Or(cmp.Compare(n.accounts.charged[n.accounts.client(s)], n.accounts.charged[n.accounts.client(t)]),
			compareUrgency(s.urgency(), t.urgency()))
	})
}
