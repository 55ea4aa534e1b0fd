package router

import (
	"clifftop/sim/route"
)

var prefixRule = Rule{
	Name:    "prefix",
	Does:    "where the longest part of the prompt was sent before; remembers all",
	Source:  "vLLM production-stack, prefix-aware",
	Options: func() Options { return new(prefix) },
}

type prefix struct {
	// Granularity of prefixes, in tokens.
	BlockTokens *int `json:"block_tokens,omitempty" range:"[1,1000000]"`
	// Shortest match that counts.
	MinTokens *int `json:"min_tokens,omitempty" range:"[0,1000000000]"`
	// Most blocks remembered of a replica; 0 is no limit.
	MaxBlocks *int `json:"max_blocks,omitempty" range:"[0,1000000000000]"`
}

func (o *prefix) Router(id route.Identity) route.Router {
	p := route.NewPrefix()
	p.ID = id
	set32(&p.BlockTokens, o.BlockTokens)
	set32(&p.MinTokens, o.MinTokens)
	set64(&p.MaxBlocks, o.MaxBlocks)
	return p
}
