package simtest

import (
	"clifftop/sim/clock"
	"clifftop/sim/route"
)

// Router is a router for tests: a name, and how to make one.
type Router struct {
	Name string
	New  func(id route.Identity) route.Router
}

// Routers are the routers of package route, with variants that take other branches. Their memories are small and their
// thresholds low, so that short runs reach them. Add a new one here: random fleets then verify it.
func Routers() []Router {
	return []Router{
		{"round-robin", func(route.Identity) route.Router { return new(route.RoundRobin) }},
		{"random", func(id route.Identity) route.Router { return &route.Random{ID: id} }},
		{"power-of-two", func(id route.Identity) route.Router { return &route.PowerOfTwo{ID: id} }},
		{"power-of-two-scraped", func(id route.Identity) route.Router {
			return &route.PowerOfTwo{ID: id, Scraped: true}
		}},
		{"least-requests", func(id route.Identity) route.Router { return &route.LeastRequests{ID: id} }},
		{"least-tokens", func(id route.Identity) route.Router { return &route.LeastTokens{ID: id} }},
		{"least-tokens-uncached", func(id route.Identity) route.Router {
			return &route.LeastTokens{ID: id, AssumedOutput: 10, Uncached: true}
		}},
		{"least-queue", func(id route.Identity) route.Router {
			return &route.LeastQueue{ID: id, Running: true, Local: true}
		}},
		{"least-kv", func(id route.Identity) route.Router { return &route.LeastKV{ID: id} }},
		{"session", func(route.Identity) route.Router { return new(route.Session) }},
		{"bounded-hash", func(route.Identity) route.Router { return route.NewBoundedHash() }},
		{"bounded-hash-prefix", func(route.Identity) route.Router {
			p := route.NewBoundedHash()
			p.By, p.PrefixTokens = route.ByPrefix, 4
			return p
		}},
		{"prefix", func(id route.Identity) route.Router { return &route.Prefix{ID: id, BlockTokens: 4} }},
		{"prefix-bounded", func(id route.Identity) route.Router {
			return &route.Prefix{ID: id, BlockTokens: 3, MinTokens: 4, MaxBlocks: 9}
		}},
		{"sglang", func(id route.Identity) route.Router {
			p := route.NewSGLang()
			p.ID, p.BalanceAbs, p.BlockTokens, p.SmallestTree = id, 2, 2, true
			p.MaxTreeTokens, p.EvictionInterval = 30, 100*clock.Millisecond
			return p
		}},
		{"kv-aware", func(id route.Identity) route.Router { return &route.KVAware{ID: id, Threshold: 5} }},
		{"vllm-dp", func(id route.Identity) route.Router { return &route.VLLMDP{ID: id} }},
		{"llm-d", func(id route.Identity) route.Router {
			p := route.NewLLMD()
			p.ID, p.BlockTokens, p.Capacity = id, 4, 12
			return p
		}},
		{"llm-d-precise", func(id route.Identity) route.Router {
			p := route.NewLLMD()
			p.ID, p.Precise = id, true
			p.Affinity = route.Affinity{Threshold: 0.5, Explore: 0.1, MaxPenalty: clock.Second, PrefillRate: 20}
			p.Scorers = []route.Weighted{{By: route.TokenScore, Weight: 1}, {By: route.NoHitScore, Weight: 1},
				{By: route.SessionScore, Weight: 1}}
			p.Picker, p.TokenLimit = route.WeightedRandom, 100
			return p
		}},
		{"dynamo", func(id route.Identity) route.Router {
			p := route.NewDynamo()
			p.ID = id
			return p
		}},
		{"dynamo-approximate", func(id route.Identity) route.Router {
			p := route.NewDynamo()
			p.ID, p.BlockTokens, p.Temperature = id, 4, 0.3
			p.Approximate, p.TTL, p.MaxBlocks = true, 100*clock.Millisecond, 20
			return p
		}},
	}
}
