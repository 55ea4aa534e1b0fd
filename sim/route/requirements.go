package route

import (
	"errors"

	"clifftop/sim/clock"
)

// Requirements are what a router needs from the traffic and the replicas. Without them it would silently behave like
// another router.
type Requirements struct {
	// Sessions and Users: requests must belong to sessions, or to the users of a closed loop.
	Sessions, Users bool
	// KVUsage: the KV pools must be limited.
	KVUsage bool
	// PrefixCaching: the replicas must have prefix caches.
	PrefixCaching bool
	// Events: the router calls [View.Cached], so that replicas must report the content of their prefix caches. Such a
	// router is slow: its replicas are simulated iteration by iteration, because it may ask for their blocks at any
	// instant.
	Events bool
	// Metrics: the router reads metrics of replicas.
	Metrics bool
	// Scrape is the interval at which the original router reads metrics; 0 if it does not, or if there is no usual
	// value.
	Scrape clock.Duration
}

// Offers are the requirements that a configuration meets.
type Offers struct {
	Sessions, Users, KVUsage, PrefixCaching bool
}

// Check returns, as one error, the requirements that are not met.
func Check(p Router, there Offers) error {
	b := Bind(p)
	var faults []error
	want := func(needed, there bool, fault string) {
		if needed && !there {
			faults = append(faults, errors.New(fault))
		}
	}
	needs := b.Requirements()
	want(needs.Sessions, there.Sessions, "it needs sessions, but the traffic has none")
	want(needs.Users, there.Users, "it needs users, but the traffic has none (want a closed loop)")
	want(needs.KVUsage, there.KVUsage, "it needs a finite KV cache (set num_gpu_blocks_override)")
	want(needs.PrefixCaching, there.PrefixCaching,
		"it needs prefix caching, but the replicas have none (set enable_prefix_caching)")
	return errors.Join(faults...)
}
