package scenario

import (
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/route"
)

// Routing rules of serving stacks, which have many options.

func sglangRule() RoutingRule {
	return RoutingRule{
		Name:   "sglang",
		Does:   "the same while loads are balanced, else the fewest outstanding requests",
		Source: "SGLang (sgl-model-gateway, cache_aware)",
		options: []string{"cache_threshold", "balance_abs_threshold", "balance_rel_threshold", "smallest_tree", "block_tokens",
			"max_tree_tokens", "eviction_interval"},
		make: func(r *Router, id route.Identity) route.Router {
			p := route.NewSGLang()
			p.ID = id
			set(&p.CacheThreshold, r.CacheThreshold)
			set(&p.BalanceAbs, r.BalanceAbs)
			set(&p.BalanceRel, r.BalanceRel)
			set(&p.SmallestTree, r.SmallestTree)
			set32(&p.BlockTokens, r.BlockTokens)
			set64(&p.MaxTreeTokens, r.MaxTreeTokens)
			setDuration(&p.EvictionInterval, r.EvictionInterval)
			return p
		},
	}
}

func kvAwareRule() RoutingRule {
	return RoutingRule{
		Name:    "kv-aware",
		Does:    "where the caches hold the longest part of the prompt, else by session",
		Source:  "vLLM production-stack with LMCache's controller",
		options: []string{"missing_tokens"},
		make: func(r *Router, id route.Identity) route.Router {
			p := route.NewKVAware()
			p.ID = id
			set32(&p.Threshold, r.MissingTokens)
			return p
		},
	}
}

func llmDRule() RoutingRule {
	return RoutingRule{
		Name:   "llm-d",
		Does:   "filters, the weighted sum of scores, a picker",
		Source: "llm-d (inference scheduler), Gateway API Inference Extension",
		options: []string{"scorers", "picker", "precise", "affinity", "block_tokens", "max_match_tokens", "max_blocks", "stale_after",
			"idle_threshold", "max_busy_score", "token_limit", "queue_limit"},
		scraped: always,
		make: func(r *Router, id route.Identity) route.Router {
			p := route.NewLLMD()
			p.ID = id
			if r.Scorers != nil {
				p.Scorers = r.Scorers.weighted()
			}
			switch optional.Value(r.Picker) {
			case "random":
				p.Picker = route.RandomPick
			case "weighted-random":
				p.Picker = route.WeightedRandom
			}
			if a := r.Affinity; a != nil {
				p.Affinity = route.Affinity{Threshold: a.Threshold, Explore: a.Explore, MaxPenalty: a.MaxPenalty.Clock(), PrefillRate: a.PrefillRate}
			}
			set(&p.Precise, r.Precise)
			set32(&p.BlockTokens, r.BlockTokens)
			set32(&p.MaxMatchTokens, r.MaxMatchTokens)
			set64(&p.Capacity, r.MaxBlocks)
			setDuration(&p.StaleAfter, r.StaleAfter)
			set(&p.IdleThreshold, r.IdleThreshold)
			set(&p.MaxBusyScore, r.MaxBusyScore)
			set64(&p.TokenLimit, r.TokenLimit)
			set(&p.QueueLimit, r.QueueLimit)
			return p
		},
	}
}

// Scorers are weights by the names of llm-d's scorers.
type Scorers map[string]float64

func (s *Scorers) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*s = Scorers{}
	if n.Kind != yamldoc.Map || len(n.Fields) == 0 {
		d.Wrong(n, key, "a map of scorers to weights such as {queue: 2, prefix: 3}")
		return
	}
	for _, f := range n.Fields {
		full := yamldoc.Join(key, f.Name)
		if names := route.ScoreNames(); !slices.Contains(names, f.Name) {
			d.Fault(f.At, full, "unknown key (want "+yamldoc.OneOf(names)+")", yamldoc.DidYouMean(f.Name, names))
			continue
		}
		weight := 0.0
		d.Value(f.Value, full, &weight, `range:"[0,1000000000]"`)
		(*s)[f.Name] = weight
	}
}

// weighted are the scorers for the router.
func (s Scorers) weighted() []route.Weighted {
	var all []route.Weighted
	for _, name := range route.ScoreNames() {
		if by, _ := route.ScoreNamed(name); s[name] > 0 {
			all = append(all, route.Weighted{By: by, Weight: s[name]})
		}
	}
	return all
}

// Affinity is llm-d's filter by prefix caches.
type Affinity struct {
	// Threshold is the part of the prompt from which on a replica is sticky.
	Threshold float64 `json:"threshold" range:"(0,1]"`
	// Explore is the probability that the filter lets everybody pass.
	Explore float64 `json:"explore" range:"[0,1]"`
	// MaxPenalty is by how much the expected TTFT of the best sticky replica may exceed that of the best other one; 0
	// sticks always.
	MaxPenalty unit.Duration `json:"max_penalty" range:"[0,)"`
	// PrefillRate is the speed at which prompts are expected to be computed, in tokens per second.
	PrefillRate float64 `json:"prefill_rate" range:"(0,1000000000]"`
}

func (a *Affinity) SetDefaults() {
	d := route.DefaultAffinity()
	*a = Affinity{d.Threshold, d.Explore, unit.Duration(d.MaxPenalty), d.PrefillRate}
}

func dynamoRule() RoutingRule {
	return RoutingRule{
		Name:    "dynamo",
		Does:    "the least cost: blocks to prefill and blocks active",
		Source:  "NVIDIA Dynamo (KV router)",
		options: []string{"overlap_weight", "temperature", "block_tokens", "approximate", "ttl", "max_blocks", "prune_to"},
		make: func(r *Router, id route.Identity) route.Router {
			p := route.NewDynamo()
			p.ID = id
			set(&p.OverlapWeight, r.OverlapWeight)
			set(&p.Temperature, r.Temperature)
			set32(&p.BlockTokens, r.BlockTokens)
			set(&p.Approximate, r.Approximate)
			setDuration(&p.TTL, r.TTL)
			set64(&p.MaxBlocks, r.MaxBlocks)
			set(&p.PruneTo, r.PruneTo)
			return p
		},
	}
}

func vllmDPRule() RoutingRule {
	return RoutingRule{
		Name:    "vllm-dp",
		Does:    "the least 4·waiting + running, as told last, and what it has sent since",
		Source:  "vLLM V1 (engine core client)",
		scraped: always,
		make:    func(_ *Router, id route.Identity) route.Router { return &route.VLLMDP{ID: id} },
	}
}
