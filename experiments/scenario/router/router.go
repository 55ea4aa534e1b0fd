// Package router holds the routing rules that a scenario can name at deployment.router.
//
// Each rule is one file: its options with their keys, what the catalog says of it, and how a router of sim/route is
// made from them. To add a rule, write such a file and add its variable to [Rules]; keys, JSON Schema, error messages
// and the catalog follow from it. least_requests.go is a short example.
package router

import (
	"math"

	"clifftop/experiments/scenario/unit"
	"clifftop/sim/clock"
	"clifftop/sim/route"
)

// Rule is a routing rule under the name that scenarios give it.
type Rule struct {
	// Name stands at deployment.router.
	Name string
	// Does says in one line what the rule does, and Source where that is taken from.
	Does, Source string
	// Options makes the rule's options, none of which is given.
	Options func() Options
}

// Options are the keys of one rule, beside those that all rules have. They are fields of the struct that it points
// to.
type Options interface {
	// Router makes a router for one run.
	Router(id route.Identity) route.Router
}

// Scraping are options of a rule that may read the metrics of replicas. Others never do.
type Scraping interface{ Scrapes() bool }

// Rules lists the rules.
func Rules() []Rule {
	return []Rule{
		roundRobinRule, randomRule, powerOfTwoRule, leastRequestsRule, leastTokensRule, leastQueueRule, leastKVRule,
		sessionRule, boundedHashRule, prefixRule,
		sglangRule, kvAwareRule, llmDRule, dynamoRule, vllmDPRule,
	}
}

// Find returns the rule of a name.
func Find(name string) (Rule, bool) {
	for _, k := range Rules() {
		if k.Name == name {
			return k, true
		}
	}
	return Rule{}, false
}

// Names are the names of all rules.
func Names() []string {
	var names []string
	for _, k := range Rules() {
		names = append(names, k.Name)
	}
	return names
}

// set takes a value that was given, and keeps the default of the rule otherwise; so do the others.
func set[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

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

func setDuration(to *clock.Duration, given *unit.Duration) {
	if given != nil {
		*to = given.Clock()
	}
}
