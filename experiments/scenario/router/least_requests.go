package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/sim/route"
)

var leastRequestsRule = Rule{
	Name:    "least-requests",
	Does:    "the fewest outstanding requests of this router",
	Source:  "nginx least_conn, Envoy least request",
	Options: func() Options { return new(leastRequests) },
}

type leastRequests struct {
	// Which of equally good replicas is taken.
	Ties *string `json:"ties,omitempty" one:"random first"`
}

func (o *leastRequests) Router(id route.Identity) route.Router {
	return &route.LeastRequests{ID: id, First: optional.Value(o.Ties) == "first"}
}
