package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/sim/route"
)

var sessionRule = Rule{
	Name:    "session",
	Does:    "one replica for each session or user, by a consistent hash",
	Source:  "vLLM production-stack",
	Options: func() Options { return new(session) },
}

type session struct {
	// Key of the consistent hash.
	By *string `json:"by,omitempty" one:"session user"`
}

func (o *session) Router(_ route.Identity) route.Router {
	return &route.Session{ByUser: optional.Value(o.By) == "user"}
}
