package order

import (
	"clifftop/experiments/internal/optional"
	"clifftop/sim/sched"
)

var vtcRule = Rule{
	Name:    "vtc",
	Does:    "the client with the least service first, by virtual token counters",
	Source:  "Sheng et al., Fairness in Serving Large Language Models, OSDI 2024",
	Options: func() Options { return new(vtc) },
}

type vtc struct {
	// Whose service is counted.
	Clients *string `json:"clients,omitempty" one:"user class session"`
}

func (o *vtc) Order(uint64) sched.Order {
	switch optional.Value(o.Clients) {
	case "class":
		return sched.VTC{Clients: sched.ByClass}
	case "session":
		return sched.VTC{Clients: sched.BySession}
	}
	return sched.VTC{Clients: sched.ByUser}
}

func (o *vtc) Idle(t Traffic) string {
	if c := optional.Value(o.Clients); c == "class" || c == "session" || t.Labelled || t.Users {
		return ""
	}
	return "without arrivals.users all requests belong to one user (set clients to class or session)"
}
