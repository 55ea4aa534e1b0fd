package router

import (
	"clifftop/sim/route"
)

var leastKVRule = Rule{
	Name:    "least-kv",
	Does:    "the least part of the KV cache in use, as the replicas told it last",
	Source:  "gateways that scrape vLLM",
	Options: func() Options { return new(leastKV) },
}

type leastKV struct{}

func (*leastKV) Router(id route.Identity) route.Router {
	return &route.LeastKV{ID: id}
}

func (*leastKV) Scrapes() bool { return true }
