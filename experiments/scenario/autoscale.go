package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/autoscale"
)

// Autoscale is the autoscalers of a fleet: a map for all replicas, or a list of one for each pool.
type Autoscale struct {
	Scalers []Autoscaler
	listed  bool
}

func (a Autoscale) MarshalJSON() ([]byte, error) {
	if !a.listed && len(a.Scalers) == 1 {
		return json.Marshal(a.Scalers[0])
	}
	return json.Marshal(a.Scalers)
}

func (a *Autoscale) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*a = Autoscale{listed: n.Kind == yamldoc.List}
	switch {
	case a.listed:
		d.Value(n, key, &a.Scalers, "")
		if len(n.Items) == 0 {
			d.Fault(n.At, key, "the list is empty: list at least one autoscaler or remove the key", "")
		}
	case n.Kind == yamldoc.Map:
		a.Scalers = make([]Autoscaler, 1)
		d.Value(n, key, &a.Scalers[0], "")
	default:
		d.Wrong(n, key, "a map such as {policy: keda, max: 8, target: 5}, or a list of such")
	}
}

// key is that of the k-th autoscaler.
func (a *Autoscale) key(k int) string {
	if a.listed {
		return fmt.Sprint("lifecycle.autoscale.", k)
	}
	return "lifecycle.autoscale"
}

// Autoscaler decides how many replicas there are, by a metric of those that serve.
type Autoscaler struct {
	// Policy is the rule.
	Policy string `json:"policy"`
	// Pool is the pool that it scales; null is all replicas, where there are no pools or one.
	Pool *string `json:"pool,omitempty"`
	// Min is the minimum number of replicas, by default 1. With 0, which hpa does not allow, requests must wait at
	// the router to start the first replica.
	Min *int `json:"min,omitempty" range:"[0,4096]"`
	// Max is the maximum number of replicas; null is the replicas of the deployment or the pool.
	Max *int `json:"max,omitempty" range:"[1,4096]"`
	// Initial is the number of replicas that are ready at the start; null is min, or 1 if min is 0.
	Initial *int `json:"initial,omitempty" range:"[0,4096]"`
	// Metric is what is scraped of every replica: requests waiting, running, or both, which is concurrency, or the part
	// of the KV pool in use. Null is waiting, and concurrency for knative. Requests held at the router count as
	// waiting.
	Metric *autoscale.Metric `json:"metric,omitempty"`
	// Target is the value of the metric that each replica should have; for knative the concurrency that one may have,
	// of which target_utilization is aimed at.
	Target float64 `json:"target" range:"(0,1000000000]"`
	// Scrape is how often the metric is read; null is 15s, and 1s for knative.
	Scrape *yamldoc.Duration `json:"scrape,omitempty" range:"(0,3600]"`

	yamldoc.Choice[autoscale.Options]
}

func (x *Autoscaler) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	x.Rules(rulesOf(d).Autoscalers)
	d.Fields(n, key, x)
}

// Variants implements [yamldoc.Variants].
func (x *Autoscaler) Variants() (string, map[string]yamldoc.VariantKeys) {
	common := []string{"pool", "min", "max", "initial", "metric", "scrape"}
	keys := x.VariantKeys(BuiltIn().Autoscalers, yamldoc.VariantKeys{Required: []string{"target"}, Optional: common})
	all := yamldoc.KeysOf(&Autoscaler{})[1:]
	for _, name := range x.Keys() {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	keys[""] = yamldoc.VariantKeys{Required: []string{"policy"}, Optional: all}
	return "policy", keys
}

// Names implements [yamldoc.Extended].
func (x *Autoscaler) Names() []string { return x.RuleNames() }

// MarshalJSON writes the map with the options of the rule.
func (x Autoscaler) MarshalJSON() ([]byte, error) {
	type keys Autoscaler
	return x.Marshal(keys(x))
}
