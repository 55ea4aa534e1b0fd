package router

import (
	"clifftop/sim/route"
)

var kvAwareRule = Rule{
	Name:    "kv-aware",
	Does:    "where the caches hold the longest part of the prompt, else by session",
	Source:  "vLLM production-stack with LMCache's controller",
	Options: func() Options { return new(kvAware) },
}

type kvAware struct {
	// Most prompt tokens that may be missing from the cache.
	MissingTokens *int `json:"missing_tokens,omitempty" range:"[0,1000000000]"`
}

func (o *kvAware) Router(id route.Identity) route.Router {
	p := route.NewKVAware()
	p.ID = id
	set32(&p.Threshold, o.MissingTokens)
	return p
}
