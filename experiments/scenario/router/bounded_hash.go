package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/sim/route"
)

var boundedHashRule = Rule{
	Name:    "bounded-hash",
	Does:    "the same within a bound of load, or by the first tokens of the prompt",
	Source:  "Mirrokni et al. 2018; KubeAI",
	Options: func() Options { return new(boundedHash) },
}

type boundedHash struct {
	// Key of the consistent hash.
	By *string `json:"by,omitempty" one:"session user prefix"`
	// Length of the hashed prefix, if by is prefix.
	PrefixTokens *int `json:"prefix_tokens,omitempty" range:"[1,1000000000]"`
	// Most load of a replica, as a multiple of the mean.
	Factor *float64 `json:"factor,omitempty" range:"[1,1000000]"`
}

func (o *boundedHash) Router(_ route.Identity) route.Router {
	p := route.NewBoundedHash()
	switch optional.Value(o.By) {
	case "user":
		p.By = route.ByUser
	case "prefix":
		p.By = route.ByPrefix
	}
	set32(&p.PrefixTokens, o.PrefixTokens)
	optional.Set(&p.Factor, o.Factor)
	return p
}
