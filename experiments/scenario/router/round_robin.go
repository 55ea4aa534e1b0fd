package router

import (
	"clifftop/sim/route"
)

var roundRobinRule = Rule{
	Name:    "round-robin",
	Does:    "the replicas in turn; begins anew when their set changes",
	Source:  "nginx, Kubernetes services",
	Options: func() Options { return new(roundRobin) },
}

type roundRobin struct{}

func (*roundRobin) Router(_ route.Identity) route.Router {
	return new(route.RoundRobin)
}
