package autoscale

import (
	"clifftop/sim/clock"
	"clifftop/sim/rule"
)

// Options make policies: a policy with its parameters.
type Options interface {
	// Make returns a policy for one run. The target is the value of the metric that each replica should have.
	Make(target float64) Policy
	// Defaults returns those of the keys that all rules have.
	Defaults() Defaults
	// Longest returns how far back the policy looks at the metric.
	Longest() clock.Duration
}

// Defaults are defaults of the keys that all rules have.
type Defaults struct {
	Metric Metric
	// OnlyMetric means that the rule can scale by no other metric.
	OnlyMetric bool
	// Scrape is how often the metric is read.
	Scrape clock.Duration
}

// Rule is an autoscaler.
type Rule = rule.Rule[Options]

// Rules lists the autoscalers.
func Rules() rule.List[Options] {
	return rule.List[Options]{
		hpaRule,
		kedaRule,
		knativeRule,
	}
}
