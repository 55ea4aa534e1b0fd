package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/sim/route"
)

var dynamoRule = Rule{
	Name:    "dynamo",
	Does:    "the least cost: blocks to prefill and blocks active",
	Source:  "NVIDIA Dynamo (KV router)",
	Options: func() Options { return new(dynamo) },
}

type dynamo struct {
	// BlockTokens is the granularity of prefixes, in tokens.
	BlockTokens *int `json:"block_tokens,omitempty" range:"[1,1000000]"`
	// MaxBlocks is the most blocks remembered: of a replica, or by dynamo in all; 0 is no limit.
	MaxBlocks *int `json:"max_blocks,omitempty" range:"[0,1000000000000]"`
	// OverlapWeight is the worth of a block to prefill in active blocks, for dynamo.
	OverlapWeight *float64 `json:"overlap_weight,omitempty" range:"[0,1000000000]"`
	// Temperature of dynamo's softmax over costs; 0 takes the cheapest.
	Temperature *float64 `json:"temperature,omitempty" range:"[0,1000000000]"`
	// Approximate takes prefixes from the router's own decisions instead of KV events. Each entry expires after TTL
	// (0 is never); beyond MaxBlocks the oldest are removed down to PruneTo of that.
	Approximate *bool          `json:"approximate,omitempty"`
	TTL         *unit.Duration `json:"ttl,omitempty" range:"[0,)"`
	PruneTo     *float64       `json:"prune_to,omitempty" range:"[0,1]"`
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
