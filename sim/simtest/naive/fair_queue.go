package naive

import (
	"slices"

	"clifftop/sim/sched"
)

// accounts are the counters of clients under a fair order (VTC). Without such an order they do nothing.
type accounts struct {
	order   sched.Fair
	charged map[int64]int64 // by client
	joining []int64         // clients that have begun to wait since the last composition
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

func (a *accounts) token(s *sequence) {
	if a.order != nil {
		a.charged[a.client(s)] += a.order.Token()
	}
}

// charges are the counters of the clients of a list, but for some.
func (a *accounts) charges(list []*sequence, but []int64) (all []int64) {
	for _, s := range list {
		if c := a.client(s); !slices.Contains(but, c) {
			all = append(all, a.charged[c])
		}
	}
	return all
}
