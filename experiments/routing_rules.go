package experiments

import "clifftop/sim/route"

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
	if r.PrefixTokens != nil {
		p.PrefixTokens = limitInt32(*r.PrefixTokens)
	}
	if r.Factor != nil {
		p.Factor = *r.Factor
	}
	return p
}

// routerEntries are the routers for the catalogue.
func routerEntries() []Entry {
	var entries []Entry
	for _, k := range routingRules() {
		entries = append(entries, Entry{Name: k.name, Properties: []Property{{"does", k.does}}, Source: k.source})
	}
	return entries
}
