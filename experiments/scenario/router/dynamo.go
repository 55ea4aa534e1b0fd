package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/route"
)

var dynamoRule = Rule{
	Name:    "dynamo",
	Does:    "the least cost: blocks to prefill and blocks active",
	Source:  "NVIDIA Dynamo (KV router)",
	Options: func() Options { return new(dynamo) },
}

type dynamo struct {
	// Granularity of prefixes, in tokens.
	BlockTokens *int `json:"block_tokens,omitempty" range:"[1,1000000]"`
	// Most blocks remembered in all; 0 is no limit.
	MaxBlocks *int `json:"max_blocks,omitempty" range:"[0,1000000000000]"`
	// Worth of a block to prefill, in active blocks.
	OverlapWeight *float64 `json:"overlap_weight,omitempty" range:"[0,1000000000]"`
	// Temperature of the softmax; 0 takes the cheapest.
	Temperature *float64 `json:"temperature,omitempty" range:"[0,1000000000]"`
	// Takes prefixes from own decisions instead of KV events.
	Approximate *bool `json:"approximate,omitempty"`
	// How long an own decision is valid; 0 is no limit.
	TTL *yamldoc.Duration `json:"ttl,omitempty" range:"[0,)"`
	// Fraction of max_blocks that pruning leaves.
	PruneTo *float64 `json:"prune_to,omitempty" range:"[0,1]"`
}

func (o *dynamo) Router(id route.Identity) route.Router {
	p := route.NewDynamo()
	p.ID = id
	optional.Set(&p.OverlapWeight, o.OverlapWeight)
	optional.Set(&p.Temperature, o.Temperature)
	set32(&p.BlockTokens, o.BlockTokens)
	optional.Set(&p.Approximate, o.Approximate)
	setDuration(&p.TTL, o.TTL)
	set64(&p.MaxBlocks, o.MaxBlocks)
	optional.Set(&p.PruneTo, o.PruneTo)
	return p
}
