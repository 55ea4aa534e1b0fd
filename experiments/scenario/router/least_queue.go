package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/sim/route"
)

var leastQueueRule = Rule{
	Name:    "least-queue",
	Does:    "the shortest queue, as the replicas told it last",
	Source:  "Mitzenmacher 2000; gateways that scrape vLLM",
	Options: func() Options { return new(leastQueue) },
}

type leastQueue struct {
	// Which of equally good replicas is taken.
	Ties *string `json:"ties,omitempty" one:"first random"`
	// Adds running requests to waiting ones.
	Running *bool `json:"running,omitempty"`
	// Adds what this router has sent since the last scrape.
	Local *bool `json:"local,omitempty"`
}

func (o *leastQueue) Router(id route.Identity) route.Router {
	return &route.LeastQueue{
		ID: id, Running: optional.Value(o.Running), Local: optional.Value(o.Local),
		Random: optional.Value(o.Ties) == "random",
	}
}

func (*leastQueue) Scrapes() bool { return true }
