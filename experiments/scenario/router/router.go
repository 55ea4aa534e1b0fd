// Package router holds the routing rules that a scenario can name at deployment.router.
//
// Each rule is one file: its options with their keys, what the catalog says of it, and how a router of sim/route is
// made from them. To add a rule, write such a file and add its variable to [Rules]; keys, JSON Schema, error messages
// and the catalog follow from it. least_requests.go is a short example.
package router

import (
	"math"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/sim/route"
)

// Rule is a routing rule under the name that scenarios give it.
type Rule = yamldoc.Rule[Options]

// Options are the keys of one rule, beside those that all rules have. They are fields of the struct that it points
// to.
type Options interface {
	// Router makes a router for one run.
	Router(id route.Identity) route.Router
}

// Scraping are options of a rule that may read the metrics of replicas. Others never do.
type Scraping interface{ Scrapes() bool }

// Rules lists the rules.
func Rules() yamldoc.Rules[Options] {
	return yamldoc.Rules[Options]{
		roundRobinRule, randomRule, powerOfTwoRule, leastRequestsRule, leastTokensRule, leastQueueRule, leastKVRule,
		sessionRule, boundedHashRule, prefixRule,
		sglangRule, kvAwareRule, llmDRule, dynamoRule, vllmDPRule,
	}
}

// set32 takes a value that was given, and keeps the default of the rule otherwise; so do the others.
func set32(to *int32, given *int) {
	if given != nil {
		*to = int32(min(*given, math.MaxInt32))
	}
}

func set64(to *int64, given *int) {
	if given != nil {
		*to = int64(*given)
	}
}

func setDuration(to *clock.Duration, given *yamldoc.Duration) {
	if given != nil {
		*to = given.Clock()
	}
}
