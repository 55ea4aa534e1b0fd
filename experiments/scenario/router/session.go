package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/route"
)

var sessionRule = Rule{
	Name:    "session",
	Does:    "one replica for each session or user, by a consistent hash",
	Source:  "vLLM production-stack",
	Options: func() Options { return new(session) },
}

type session struct {
	// By is the key of the consistent hash.
	By *string `json:"by,omitempty" one:"session user prefix"`
}

func (o *session) Router(_ route.Identity) route.Router {
	return &route.Session{ByUser: optional.Value(o.By) == "user"}
}

// Check implements [yamldoc.Checker].
func (o *session) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if optional.Value(o.By) == "prefix" {
		d.Refuse(n.Get("by"), yamldoc.Join(key, "by"), "session or user; use bounded-hash for prefixes")
	}
}
