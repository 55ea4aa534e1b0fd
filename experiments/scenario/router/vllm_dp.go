package router

import (
	"clifftop/sim/route"
)

var vllmDPRule = Rule{
	Name:    "vllm-dp",
	Does:    "the least 4·waiting + running, as told last, and what it has sent since",
	Source:  "vLLM V1 (engine core client)",
	Options: func() Options { return new(vllmDP) },
}

type vllmDP struct{}

func (*vllmDP) Router(id route.Identity) route.Router {
	return &route.VLLMDP{ID: id}
}

func (*vllmDP) Scrapes() bool { return true }
