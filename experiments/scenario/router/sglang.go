package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/route"
)

var sglangRule = Rule{
	Name:    "sglang",
	Does:    "the same while loads are balanced, else the fewest outstanding requests",
	Source:  "SGLang (sgl-model-gateway, cache_aware)",
	Options: func() Options { return new(sglang) },
}

type sglang struct {
	// Granularity of prefixes, in tokens.
	BlockTokens *int `json:"block_tokens,omitempty" range:"[1,1000000]"`
	// Part of the prompt that a match must exceed.
	CacheThreshold *float64 `json:"cache_threshold,omitempty" range:"[0,1]"`
	// Unbalanced loads differ by more requests.
	BalanceAbs *int `json:"balance_abs_threshold,omitempty" range:"[0,1000000000]"`
	// Unbalanced loads differ by a larger factor.
	BalanceRel *float64 `json:"balance_rel_threshold,omitempty" range:"[0,1000000000]"`
	// Sends new prompts to the smallest tree, as older versions did.
	SmallestTree *bool `json:"smallest_tree,omitempty"`
	// Size of trimmed trees, in tokens; 0 is never.
	MaxTreeTokens *int `json:"max_tree_tokens,omitempty" range:"[0,1000000000000]"`
	// Period of trimming; 0 is never.
	EvictionInterval *yamldoc.Duration `json:"eviction_interval,omitempty" range:"[0,)"`
}

func (o *sglang) Router(id route.Identity) route.Router {
	p := route.NewSGLang()
	p.ID = id
	optional.Set(&p.CacheThreshold, o.CacheThreshold)
	optional.Set(&p.BalanceAbs, o.BalanceAbs)
	optional.Set(&p.BalanceRel, o.BalanceRel)
	optional.Set(&p.SmallestTree, o.SmallestTree)
	set32(&p.BlockTokens, o.BlockTokens)
	set64(&p.MaxTreeTokens, o.MaxTreeTokens)
	setDuration(&p.EvictionInterval, o.EvictionInterval)
	return p
}
