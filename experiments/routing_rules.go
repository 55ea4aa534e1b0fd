package experiments

import (
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/route"
)

// routingRule is a rule of routers under the name that scenarios give it.
type routingRule struct {
	name string
	// does says in one line what the rule does, and source where that is taken from.
	does, source string
	// options are the keys that go with it, beside those of all.
	options []string
	// scraped reports whether it looks at what replicas say of themselves; nil is never.
	scraped func(r *Router) bool
	// make makes a router. The options have their values.
	make func(r *Router, id route.Identity) route.Router
}

// looks reports whether the rule looks at what replicas say of themselves.
func (k *routingRule) looks(r *Router) bool { return k.scraped != nil && k.scraped(r) }

// routingRules lists the rules: add an entry to add one.
func routingRules() []routingRule {
	return []routingRule{
		{
			name:   "round-robin",
			make:   func(*Router, route.Identity) route.Router { return new(route.RoundRobin) },
			does:   "the replicas in turn; begins anew when their set changes",
			source: "nginx, Kubernetes services",
		},
		{
			name:   "random",
			make:   func(_ *Router, id route.Identity) route.Router { return &route.Random{ID: id} },
			does:   "any replica, all being equally likely",
			source: "theory: a Poisson stream stays one",
		},
		{
			name: "power-of-two", options: []string{"load"}, scraped: (*Router).comparesScraped,
			make: func(r *Router, id route.Identity) route.Router {
				return &route.PowerOfTwo{ID: id, Scraped: r.comparesScraped()}
			},
			does:   "the less loaded of two drawn at random",
			source: "Mitzenmacher 2001; Ray Serve",
		},
		{
			name: "least-requests", options: []string{"ties"},
			make: func(r *Router, id route.Identity) route.Router {
				return &route.LeastRequests{ID: id, First: value(r.Ties) == "first"}
			},
			does:   "the fewest outstanding requests of this router",
			source: "nginx least_conn, Envoy least request",
		},
		{
			name: "least-tokens", options: []string{"answer", "uncached", "ties"},
			make: func(r *Router, id route.Identity) route.Router {
				return &route.LeastTokens{ID: id, Answer: limitInt32(value(r.Answer)), Uncached: value(r.Uncached), First: value(r.Ties) == "first"}
			},
			does:   "the fewest outstanding tokens of this router, of prompts and expected answers",
			source: "least outstanding work, with lengths known or guessed",
		},
		{
			name: "least-queue", options: []string{"running", "local", "ties"}, scraped: always,
			make: func(r *Router, id route.Identity) route.Router {
				return &route.LeastQueue{ID: id, Running: value(r.Running), Local: value(r.Local), Random: value(r.Ties) == "random"}
			},
			does:   "the shortest queue, as the replicas told it last",
			source: "Mitzenmacher 2000; gateways that scrape vLLM",
		},
		{
			name: "least-kv", scraped: always,
			make:   func(_ *Router, id route.Identity) route.Router { return &route.LeastKV{ID: id} },
			does:   "the least part of the KV cache in use, as the replicas told it last",
			source: "gateways that scrape vLLM",
		},
		{
			name: "session", options: []string{"by"},
			make: func(r *Router, _ route.Identity) route.Router {
				return &route.Session{ByUser: value(r.By) == "user"}
			},
			does:   "one replica for each session or user, by a consistent hash",
			source: "vLLM production-stack",
		},
		{
			name: "bounded-hash", options: []string{"by", "prefix_tokens", "factor"},
			make:   newBoundedHash,
			does:   "the same within a bound of load, or by the first tokens of the prompt",
			source: "Mirrokni et al. 2018; KubeAI",
		},
		{
			name: "prefix", options: []string{"block_tokens", "min_tokens", "max_blocks"}, make: newPrefix,
			does:   "where the longest part of the prompt was sent before; remembers all",
			source: "vLLM production-stack, prefix-aware",
		},
		{
			name: "sglang", make: newSGLangRouter,
			options: []string{"cache_threshold", "balance_abs_threshold", "balance_rel_threshold", "smallest_tree", "block_tokens", "max_tree_tokens", "eviction_interval"},
			does:    "the same while loads are balanced, else the fewest outstanding requests",
			source:  "SGLang (sgl-model-gateway, cache_aware)",
		},
		{
			name: "kv-aware", options: []string{"missing_tokens"},
			make: func(r *Router, id route.Identity) route.Router {
				p := route.NewKVAware()
				p.ID = id
				set32(&p.Threshold, r.MissingTokens)
				return p
			},
			does:   "where the caches hold the longest part of the prompt, else by session",
			source: "vLLM production-stack with LMCache's controller",
		},
		{
			name: "llm-d", make: newLLMD, scraped: always,
			options: []string{"scorers", "picker", "precise", "affinity", "block_tokens", "max_match_tokens", "max_blocks", "stale_after",
				"idle_threshold", "max_busy_score", "token_limit", "queue_limit"},
			does:   "filters, the weighted sum of scores, a picker",
			source: "llm-d (inference scheduler), Gateway API Inference Extension",
		},
		{
			name: "dynamo", make: newDynamo,
			options: []string{"overlap_weight", "temperature", "block_tokens", "approximate", "ttl", "max_blocks", "prune_to"},
			does:    "the least cost: blocks to prefill and blocks active",
			source:  "NVIDIA Dynamo (KV router)",
		},
		{
			name: "vllm-dp", scraped: always,
			make:   func(_ *Router, id route.Identity) route.Router { return &route.VLLMDP{ID: id} },
			does:   "the least 4·waiting + running, as told last, and what it has sent since",
			source: "vLLM V1 (engine core client)",
		},
	}
}

func always(*Router) bool { return true }

func (r *Router) comparesScraped() bool { return value(r.Load) == "scraped" }

func newBoundedHash(r *Router, _ route.Identity) route.Router {
	p := route.NewBoundedHash()
	switch value(r.By) {
	case "user":
		p.By = route.ByUser
	case "prefix":
		p.By = route.ByPrefix
	}
	set32(&p.PrefixTokens, r.PrefixTokens)
	set(&p.Factor, r.Factor)
	return p
}

func newPrefix(r *Router, id route.Identity) route.Router {
	p := route.NewPrefix()
	p.ID = id
	set32(&p.BlockTokens, r.BlockTokens)
	set32(&p.MinTokens, r.MinTokens)
	set64(&p.MaxBlocks, r.MaxBlocks)
	return p
}

func newSGLangRouter(r *Router, id route.Identity) route.Router {
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
}

func newLLMD(r *Router, id route.Identity) route.Router {
	p := route.NewLLMD()
	p.ID = id
	if r.Scorers != nil {
		p.Scorers = r.Scorers.weighted()
	}
	switch value(r.Picker) {
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
}

func newDynamo(r *Router, id route.Identity) route.Router {
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
}

// set takes a value that was given, and keeps the rule's own where none was; so do the others.
func set[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

func set32(to *int32, given *int) {
	if given != nil {
		*to = limitInt32(*given)
	}
}

func set64(to *int64, given *int) {
	if given != nil {
		*to = int64(*given)
	}
}

func setDuration(to *clock.Duration, given *Duration) {
	if given != nil {
		*to = given.Clock()
	}
}

// Scorers are weights by the names of llm-d's scorers.
type Scorers map[string]float64

func (s *Scorers) decode(d *decoder, n *node, key string) {
	*s = Scorers{}
	if n.kind != isMap || len(n.fields) == 0 {
		d.wrong(n, key, "a map of scorers to weights such as {queue: 2, prefix: 3}")
		return
	}
	for _, f := range n.fields {
		full := join(key, f.name)
		if names := route.ScoreNames(); !slices.Contains(names, f.name) {
			d.fault(f.at, full, "unknown key (want "+list(names)+")", didYouMean(f.name, names))
			continue
		}
		weight := 0.0
		d.value(f.value, full, reflectElem(&weight), `range:"[0,1000000000]"`)
		(*s)[f.name] = weight
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
	MaxPenalty Duration `json:"max_penalty" range:"[0,)"`
	// PrefillRate is the speed at which prompts are expected to be computed, in tokens per second.
	PrefillRate float64 `json:"prefill_rate" range:"(0,1000000000]"`
}

func (a *Affinity) setDefaults() {
	d := route.DefaultAffinity()
	*a = Affinity{d.Threshold, d.Explore, Duration(d.MaxPenalty), d.PrefillRate}
}

// routerEntries are the routers for the catalogue.
func routerEntries() []Entry {
	var entries []Entry
	for _, k := range routingRules() {
		entries = append(entries, Entry{Name: k.name, Properties: []Property{{"does", k.does}}, Source: k.source})
	}
	return entries
}
