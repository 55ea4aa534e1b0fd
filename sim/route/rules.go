package route

import "clifftop/sim/rule"

// Options make routers: the parameters of a router, or the router itself with its parameters.
type Options interface {
	// Make returns a router for one run.
	Make(id Identity) Router
}

// Rule is a routing rule.
type Rule = rule.Rule[Options]

// Rules lists the routing rules.
func Rules() rule.List[Options] {
	return rule.List[Options]{
		roundRobinRule,
		randomRule,
		powerOfTwoRule,
		leastRequestsRule,
		leastTokensRule,
		leastQueueRule,
		leastKVRule,
		sessionRule,
		boundedHashRule,
		prefixRule,
		sglangRule,
		kvAwareRule,
		llmDRule,
		dynamoRule,
		vllmDPRule,
	}
}
