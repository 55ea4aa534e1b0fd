package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/sim/route"
)

var sglangRule = Rule{
	Name:    "sglang",
	Does:    "the same while loads are balanced, else the fewest outstanding requests",
	Source:  "SGLang (sgl-model-gateway, cache_aware)",
	Options: func() Options { return new(sglang) },
}

type sglang struct {
	// BlockTokens is the granularity of prefixes, in tokens.
	BlockTokens *int `json:"block_tokens,omitempty" range:"[1,1000000]"`
	// CacheThreshold is the part of the prompt that a prefix has to exceed.
	CacheThreshold *float64 `json:"cache_threshold,omitempty" range:"[0,1]"`
	// BalanceAbs and BalanceRel: loads are unbalanced if the largest exceeds the least by more requests than the one,
	// and by more than the other times.
	BalanceAbs *int     `json:"balance_abs_threshold,omitempty" range:"[0,1000000000]"`
	BalanceRel *float64 `json:"balance_rel_threshold,omitempty" range:"[0,1000000000]"`
	// SmallestTree sends a prompt without a long enough prefix to the smallest tree, as older versions did.
	SmallestTree *bool `json:"smallest_tree,omitempty"`
	// MaxTreeTokens is what a tree is trimmed to, every EvictionInterval; 0 is never.
	MaxTreeTokens    *int           `json:"max_tree_tokens,omitempty" range:"[0,1000000000000]"`
	EvictionInterval *unit.Duration `json:"eviction_interval,omitempty" range:"[0,)"`
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
