package scenario

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/sim/clock"
	"clifftop/sim/route"
)

// RoutingRule is a rule of routers under the name that scenarios give it.
type RoutingRule struct {
	Name string
	// Does says in one line what the rule does, and source where that is taken from.
	Does, Source string
	// options are the keys that go with it, beside those of all.
	options []string
	// scraped reports whether it looks at what replicas say of themselves; nil is never.
	scraped func(r *Router) bool
	// make makes a router. The options have their values.
	make func(r *Router, id route.Identity) route.Router
}

// looks reports whether the rule looks at what replicas say of themselves.
func (k *RoutingRule) looks(r *Router) bool { return k.scraped != nil && k.scraped(r) }

// RoutingRules lists the rules: add one to add a router.
func RoutingRules() []RoutingRule {
	return []RoutingRule{
		roundRobinRule(), randomRule(), powerOfTwoRule(), leastRequestsRule(), leastTokensRule(), leastQueueRule(), leastKVRule(),
		sessionRule(), boundedHashRule(), prefixRule(),
		sglangRule(), kvAwareRule(), llmDRule(), dynamoRule(), vllmDPRule(),
	}
}

func always(*Router) bool { return true }

func roundRobinRule() RoutingRule {
	return RoutingRule{
		Name:   "round-robin",
		Does:   "the replicas in turn; begins anew when their set changes",
		Source: "nginx, Kubernetes services",
		make:   func(*Router, route.Identity) route.Router { return new(route.RoundRobin) },
	}
}

func randomRule() RoutingRule {
	return RoutingRule{
		Name:   "random",
		Does:   "any replica, all being equally likely",
		Source: "theory: a Poisson stream stays one",
		make:   func(_ *Router, id route.Identity) route.Router { return &route.Random{ID: id} },
	}
}

func powerOfTwoRule() RoutingRule {
	scraped := func(r *Router) bool { return optional.Value(r.Load) == "scraped" }
	return RoutingRule{
		Name:    "power-of-two",
		Does:    "the less loaded of two drawn at random",
		Source:  "Mitzenmacher 2001; Ray Serve",
		options: []string{"load"},
		scraped: scraped,
		make: func(r *Router, id route.Identity) route.Router {
			return &route.PowerOfTwo{ID: id, Scraped: scraped(r)}
		},
	}
}

func leastRequestsRule() RoutingRule {
	return RoutingRule{
		Name:    "least-requests",
		Does:    "the fewest outstanding requests of this router",
		Source:  "nginx least_conn, Envoy least request",
		options: []string{"ties"},
		make: func(r *Router, id route.Identity) route.Router {
			return &route.LeastRequests{ID: id, First: optional.Value(r.Ties) == "first"}
		},
	}
}

func leastTokensRule() RoutingRule {
	return RoutingRule{
		Name:    "least-tokens",
		Does:    "the fewest outstanding tokens of this router, of prompts and expected answers",
		Source:  "least outstanding work, with lengths known or guessed",
		options: []string{"answer", "uncached", "ties"},
		make: func(r *Router, id route.Identity) route.Router {
			return &route.LeastTokens{ID: id, Answer: limitInt32(optional.Value(r.Answer)), Uncached: optional.Value(r.Uncached), First: optional.Value(r.Ties) == "first"}
		},
	}
}

func leastQueueRule() RoutingRule {
	return RoutingRule{
		Name:    "least-queue",
		Does:    "the shortest queue, as the replicas told it last",
		Source:  "Mitzenmacher 2000; gateways that scrape vLLM",
		options: []string{"running", "local", "ties"},
		scraped: always,
		make: func(r *Router, id route.Identity) route.Router {
			return &route.LeastQueue{ID: id, Running: optional.Value(r.Running), Local: optional.Value(r.Local), Random: optional.Value(r.Ties) == "random"}
		},
	}
}

func leastKVRule() RoutingRule {
	return RoutingRule{
		Name:    "least-kv",
		Does:    "the least part of the KV cache in use, as the replicas told it last",
		Source:  "gateways that scrape vLLM",
		scraped: always,
		make:    func(_ *Router, id route.Identity) route.Router { return &route.LeastKV{ID: id} },
	}
}

func sessionRule() RoutingRule {
	return RoutingRule{
		Name:    "session",
		Does:    "one replica for each session or user, by a consistent hash",
		Source:  "vLLM production-stack",
		options: []string{"by"},
		make: func(r *Router, _ route.Identity) route.Router {
			return &route.Session{ByUser: optional.Value(r.By) == "user"}
		},
	}
}

func boundedHashRule() RoutingRule {
	return RoutingRule{
		Name:    "bounded-hash",
		Does:    "the same within a bound of load, or by the first tokens of the prompt",
		Source:  "Mirrokni et al. 2018; KubeAI",
		options: []string{"by", "prefix_tokens", "factor"},
		make: func(r *Router, _ route.Identity) route.Router {
			p := route.NewBoundedHash()
			switch optional.Value(r.By) {
			case "user":
				p.By = route.ByUser
			case "prefix":
				p.By = route.ByPrefix
			}
			set32(&p.PrefixTokens, r.PrefixTokens)
			set(&p.Factor, r.Factor)
			return p
		},
	}
}

func prefixRule() RoutingRule {
	return RoutingRule{
		Name:    "prefix",
		Does:    "where the longest part of the prompt was sent before; remembers all",
		Source:  "vLLM production-stack, prefix-aware",
		options: []string{"block_tokens", "min_tokens", "max_blocks"},
		make: func(r *Router, id route.Identity) route.Router {
			p := route.NewPrefix()
			p.ID = id
			set32(&p.BlockTokens, r.BlockTokens)
			set32(&p.MinTokens, r.MinTokens)
			set64(&p.MaxBlocks, r.MaxBlocks)
			return p
		},
	}
}

// Set takes a value that was given, and keeps the rule's own where none was; so do the others.
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

func setDuration(to *clock.Duration, given *unit.Duration) {
	if given != nil {
		*to = given.Clock()
	}
}
