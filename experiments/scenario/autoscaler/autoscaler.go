// Package autoscaler holds the rules that a scenario can name at lifecycle.autoscale.
//
// Each rule is one file: its options with their keys, its defaults, and how a policy of sim/autoscale is made from
// them. To add a rule, write such a file and add its variable to [Rules]; keys, JSON Schema and error messages follow
// from it. Options have the names and defaults of Kubernetes, KEDA and Knative.
package autoscaler

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
)

// Rule is a rule under the name that scenarios give it.
type Rule = yamldoc.Rule[Options]

// Options are the keys of one rule, beside those that all rules have. They are fields of the struct that it points
// to.
type Options interface {
	// Defaults are those of the common keys.
	Defaults() Defaults
	// Policy makes the policy of one run. It fills in the options that are not given.
	Policy(target float64) autoscale.Policy
	// Longest is how far back the policy looks at the metric.
	Longest() clock.Duration
}

// Defaults are defaults of keys that all rules have.
type Defaults struct {
	Metric autoscale.Metric
	// OnlyMetric says that the rule can scale by no other metric.
	OnlyMetric bool
	Scrape     clock.Duration
}

// Rules lists the rules.
func Rules() yamldoc.Rules[Options] { return yamldoc.Rules[Options]{hpaRule, kedaRule, knativeRule} }

// Name is the name of a rule.
type Name string

// Names implements [yamldoc.Named].
func (Name) Names() []string { return Rules().Names() }

// Metric is the name of a metric.
type Metric string

// Names implements [yamldoc.Named].
func (Metric) Names() []string { return yamldoc.NamesOfAll(autoscale.Metrics()) }

// Of is the metric of the name.
func (name Metric) Of() autoscale.Metric {
	return yamldoc.ValueNamed(autoscale.Metrics(), string(name))
}

// window is an option of all rules.
type window struct {
	// Window of the metric's mean.
	Window *yamldoc.Duration `json:"window,omitempty" range:"(0,86400]"`
}

func (w *window) Longest() clock.Duration { return optional.Value(w.Window).Clock() }

// choose takes what was given, or fills in the default of the policy.
func choose[T any](given **T, of *T) {
	optional.Default(given, *of)
	*of = **given
}

// settle is choose for a time.
func settle(given **yamldoc.Duration, of *clock.Duration) {
	optional.Default(given, yamldoc.Duration(*of))
	*of = (*given).Clock()
}
