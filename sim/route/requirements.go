package route

import (
	"errors"

	"clifftop/sim/clock"
)

// Requirements are what a router needs from the traffic and the replicas. Without them it would silently behave like
// another router.
type Requirements struct {
	// Sessions and Users: requests have to belong to sessions, or to the users of a closed loop.
	Sessions, Users bool
	// KVUsage: the KV pools have to be limited.
	KVUsage bool
	// PrefixCaching: the replicas have to keep prefixes.
	PrefixCaching bool
	// Events: it calls [View.Cached], so that replicas have to tell what their prefix caches hold. Such a router costs
	// time: its replicas are stepped iteration by iteration, whose blocks it may ask for at any instant.
	Events bool
	// Scrape is how often the original asks for metrics; 0 where it does not, or where there is no custom.
	Scrape clock.Duration
}

// Offers is what there is of it.
type Offers struct {
	Sessions, Users, KVUsage, PrefixCaching bool
}

// Check says, as one error, what the router needs and is not there.
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
