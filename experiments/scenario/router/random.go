package router

import (
	"clifftop/sim/route"
)

var randomRule = Rule{
	Name:    "random",
	Does:    "any replica, all being equally likely",
	Source:  "theory: a Poisson stream stays one",
	Options: func() Options { return new(random) },
}

type random struct{}

func (*random) Router(id route.Identity) route.Router {
	return &route.Random{ID: id}
}
