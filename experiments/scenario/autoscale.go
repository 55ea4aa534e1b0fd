package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim"
	"clifftop/sim/autoscale"
)

// Autoscale is the autoscalers of a fleet: a map for all replicas, or a list of one for each pool.
type Autoscale struct {
	Scalers []Autoscaler
	listed  bool
}

// MarshalJSON writes the map or the list.
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

// atMost lets every autoscaler have as many replicas as it may, before they are resolved.
func (u fleetResolver) atMost() error {
	s := u.Scenario
	s.ownLifecycle()
	if s.Lifecycle == nil || s.Lifecycle.Autoscale == nil {
		return nil
	}
	a := s.Lifecycle.Autoscale
	s.Pools = slices.Clone(s.Pools)
	for k := range a.Scalers {
		x, key := &a.Scalers[k], a.key(k)
		replicas, at := &s.Deployment.Replicas, "deployment.replicas"
		if len(s.Pools) > 0 {
			i, fault := s.poolOf(x, key)
			if fault != nil {
				return fault
			}
			replicas, at = &s.Pools[i].Replicas, fmt.Sprintf("pools.%d.replicas", i)
		} else if x.Pool != nil {
			return s.Fault(key+".pool", "there are no pools")
		}
		switch {
		case x.Max == nil:
			x.Max = optional.Of(*replicas)
		case *x.Max == *replicas:
		case s.Given(at) || *replicas != 1:
			return s.Fault(key+".max", "%d is not %s, %d: both set the maximum number of replicas (set one of them)",
				*x.Max, at, *replicas)
		default:
			*replicas = *x.Max
		}
	}
	return nil
}

// poolOf is the number of the pool that an autoscaler is for.
func (s *Scenario) poolOf(x *Autoscaler, key string) (int, *yamldoc.Fault) {
	var names []string
	for i := range s.Pools {
		if x.Pool != nil && s.Pools[i].Name == *x.Pool {
			return i, nil
		}
		names = append(names, s.Pools[i].Name)
	}
	switch {
	case x.Pool != nil:
		return 0, s.Fault(key+".pool", "%q is not the name of a pool (want %s)", yamldoc.Short(*x.Pool),
			yamldoc.OneOf(names))
	case len(names) > 1:
		return 0, s.Fault(key, "pool is missing (want %s)", yamldoc.OneOf(names))
	}
	x.Pool = &names[0]
	return 0, nil
}

// autoscale checks the autoscalers, and fills in their defaults.
func (u fleetResolver) autoscale() error {
	s := u.Scenario
	a := s.Lifecycle.Autoscale
	if a == nil {
		return nil
	}
	taken := map[string]bool{}
	for k := range a.Scalers {
		x, key := &a.Scalers[k], a.key(k)
		if taken[optional.Value(x.Pool)] {
			if len(s.Pools) == 0 {
				return s.Fault(key, "without pools there can be only one autoscaler")
			}
			return s.Fault(key+".pool", "pool %s has an autoscaler already (want one)", *x.Pool)
		}
		taken[optional.Value(x.Pool)] = true
		if err := u.scaler(x, key); err != nil {
			return err
		}
	}
	return nil
}

// scaler checks one autoscaler, and fills in its defaults.
func (u fleetResolver) scaler(x *Autoscaler, key string) error {
	s := u.Scenario
	first, _, why := u.members(x.Pool)
	if why != "" {
		return s.Fault(key+".pool", "%s", why)
	}
	options, ok := x.Options(s.rules().Autoscalers, x.Policy)
	if !ok {
		return s.Fault(key+".policy", "%q is not known (want %s)", yamldoc.Short(x.Policy),
			yamldoc.OneOf(s.rules().Autoscalers.Names()))
	}
	x.Resolve(options)
	usual := options.Defaults()
	optional.Default(&x.Min, 1)
	optional.Default(&x.Initial, max(*x.Min, 1))
	optional.Default(&x.Metric, usual.Metric)
	optional.Default(&x.Scrape, yamldoc.Duration(usual.Scrape))
	metric := *x.Metric
	least := s.FirstGiven(key+".min", key)
	switch most := *x.Max; {
	case *x.Min > most:
		return s.Fault(least, "%d replicas are more than max, %d", *x.Min, most)
	case *x.Initial > most:
		return s.Fault(s.FirstGiven(key+".initial", key), "%d replicas are more than max, %d", *x.Initial, most)
	case usual.OnlyMetric && metric != usual.Metric:
		return s.Fault(key+".metric", "%s does not scale by %v (want %v)", x.Policy, metric, usual.Metric)
	case metric.NeedsLimitedKV() && u.poolWith(first).Setup.Config.NumGPUBlocks == 0:
		return s.Fault(key+".metric", "%v needs a finite KV cache (want %s)", metric,
			metricsWhere(func(m autoscale.Metric) bool { return !m.NeedsLimitedKV() }))
	case *x.Min == 0 && !metric.CountsHeld():
		return s.Fault(least,
			"nothing wakes the first replica: %v of none is 0 (want metric %s, or min 1 or more)", metric,
			metricsWhere(autoscale.Metric.CountsHeld))
	case *x.Min == 0 && s.Lifecycle.Hold != nil && *s.Lifecycle.Hold == 0:
		return s.Fault(least, "min 0 needs requests that wait at the router to start the first replica (set "+
			"lifecycle.hold above 0, or min to 1 or more)")
	}
	policy := options.Make(x.Target)
	if err := policy.Validate(*x.Min); err != nil {
		at := key
		if policy.Validate(1) == nil {
			at = least
		}
		return s.Fault(at, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// metricsWhere names the metrics that have a property, for a message.
func metricsWhere(has func(autoscale.Metric) bool) string {
	lacks := func(m autoscale.Metric) bool { return !has(m) }
	return yamldoc.OneOf(yamldoc.NamesOfAll(slices.DeleteFunc(autoscale.Metrics(), lacks)))
}

// scalers makes the autoscalers of a run.
func (u fleetBuilder) scalers() (all []sim.Scaler) {
	a := u.Scenario.Lifecycle.Autoscale
	if a == nil {
		return nil
	}
	for k := range a.Scalers {
		x := &a.Scalers[k]
		first, last, _ := u.members(x.Pool)
		options, _ := x.Options(u.Scenario.rules().Autoscalers, x.Policy)
		all = append(all, sim.Scaler{
			Policy: options.Make(x.Target), First: first, Last: last, Least: *x.Min, Most: *x.Max,
			Initial: *x.Initial, Metric: *x.Metric, Scrape: x.Scrape.Clock(),
			Keep: options.Longest() + x.Scrape.Clock(),
		})
	}
	return all
}
