package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
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

// Autoscaler decides how many replicas there are, by a metric of those that serve. Parameters have the names and
// defaults of Kubernetes, KEDA and Knative.
type Autoscaler struct {
	// Policy is the rule: hpa, Kubernetes' horizontal pod autoscaler; keda; or knative.
	Policy string `json:"policy" one:"hpa keda knative"`
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
	Metric *string `json:"metric,omitempty" one:"waiting running concurrency kv-usage"`
	// Target is the value of the metric that each replica should have; for knative the concurrency that one may have,
	// of which target_utilization is aimed at.
	Target float64 `json:"target" range:"(0,1000000000]"`
	// Scrape is how often the metric is read; null is 15s, and 1s for knative.
	Scrape *unit.Duration `json:"scrape,omitempty" range:"(0,3600]"`
	// Window is that of the mean of the metric: 60s for knative; for the others null, the last value that was read.
	Window *unit.Duration `json:"window,omitempty" range:"(0,86400]"`
	// SyncPeriod is the period of the loop of the HPA, which keda uses too.
	SyncPeriod *unit.Duration `json:"sync_period,omitempty" range:"(0,3600]"`
	// Tolerance is how far from 1 the ratio of metric and target may be.
	Tolerance *float64 `json:"tolerance,omitempty" range:"[0,1)"`
	// ScaleUpPods may always be added in a scale_up_period, and as many as there are.
	ScaleUpPods   *int           `json:"scale_up_pods,omitempty" range:"[1,4096]"`
	ScaleUpPeriod *unit.Duration `json:"scale_up_period,omitempty" range:"(0,3600]"`
	// StabilizationWindow is how long a higher recommendation delays the removal of replicas.
	StabilizationWindow *unit.Duration `json:"stabilization_window,omitempty" range:"[0,3600]"`
	// PollingInterval is how often keda looks at the metric.
	PollingInterval *unit.Duration `json:"polling_interval,omitempty" range:"(0,3600]"`
	// CooldownPeriod is how long after the last activity keda removes the last replica.
	CooldownPeriod *unit.Duration `json:"cooldown_period,omitempty" range:"[0,86400]"`
	// ActivationThreshold is the sum of the metric above which keda starts the first replica.
	ActivationThreshold *float64 `json:"activation_threshold,omitempty" range:"[0,1000000000]"`
	// TargetUtilization is the part of the target that knative aims at.
	TargetUtilization *float64 `json:"target_utilization,omitempty" range:"(0,1]"`
	// PanicWindow is the part of the window by which knative panics, and PanicThreshold how many times the ready
	// replicas make it do so.
	PanicWindow    *float64 `json:"panic_window,omitempty" range:"(0,1]"`
	PanicThreshold *float64 `json:"panic_threshold,omitempty" range:"(1,1000]"`
	// MaxScaleUpRate and MaxScaleDownRate bound by how many times the number changes at once.
	MaxScaleUpRate   *float64 `json:"max_scale_up_rate,omitempty" range:"(1,1000000]"`
	MaxScaleDownRate *float64 `json:"max_scale_down_rate,omitempty" range:"(1,1000000]"`
	// ScaleToZeroGracePeriod is how long no replica must be needed before knative removes the last one.
	ScaleToZeroGracePeriod *unit.Duration `json:"scale_to_zero_grace_period,omitempty" range:"[0,86400]"`
	// TickInterval is the period of knative's loop.
	TickInterval *unit.Duration `json:"tick_interval,omitempty" range:"(0,3600]"`
}

func (*Autoscaler) Variants() (string, map[string]yamldoc.VariantKeys) {
	common := []string{"pool", "min", "max", "initial", "metric", "scrape", "window"}
	hpa := append(common, "sync_period", "tolerance", "scale_up_pods", "scale_up_period", "stabilization_window")
	return "policy", map[string]yamldoc.VariantKeys{
		"": {Required: []string{"policy"},
			Optional: slices.DeleteFunc(yamldoc.KeysOf(&Autoscaler{}), func(name string) bool {
				return name == "policy"
			})},
		"hpa": {Required: []string{"target"}, Optional: hpa},
		"keda": {Required: []string{"target"},
			Optional: append(hpa[:len(hpa):len(hpa)], "polling_interval", "cooldown_period", "activation_threshold")},
		"knative": {Required: []string{"target"},
			Optional: append(common[:len(common):len(common)], "target_utilization", "panic_window", "panic_threshold",
				"max_scale_up_rate", "max_scale_down_rate", "scale_to_zero_grace_period", "tick_interval")},
	}
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
	metric, scrape := "waiting", 15*clock.Second
	if x.Policy == "knative" {
		metric, scrape = "concurrency", clock.Second
	}
	optional.Default(&x.Min, 1)
	optional.Default(&x.Initial, max(*x.Min, 1))
	optional.Default(&x.Metric, metric)
	optional.Default(&x.Scrape, unit.Duration(scrape))
	least := s.FirstGiven(key+".min", key)
	switch most := *x.Max; {
	case *x.Min > most:
		return s.Fault(least, "%d replicas are more than max, %d", *x.Min, most)
	case *x.Initial > most:
		return s.Fault(s.FirstGiven(key+".initial", key), "%d replicas are more than max, %d", *x.Initial, most)
	case x.Policy == "knative" && *x.Metric != "concurrency":
		return s.Fault(key+".metric", "knative does not scale by %s (want concurrency)", *x.Metric)
	case *x.Metric == "kv-usage" && u.poolWith(first).Setup.Config.NumGPUBlocks == 0:
		return s.Fault(key+".metric", "kv-usage needs a finite KV cache (want waiting, running or concurrency)")
	case *x.Min == 0 && *x.Metric != "waiting" && *x.Metric != "concurrency":
		return s.Fault(least, "nothing wakes the first replica: %s of none is 0 (want metric waiting or concurrency, or min 1 or more)", *x.Metric)
	case *x.Min == 0 && s.Lifecycle.Hold != nil && *s.Lifecycle.Hold == 0:
		return s.Fault(least, "min 0 needs requests that wait at the router to start the first replica (set lifecycle.hold above 0, or min to 1 or more)")
	}
	if err := x.rule().Validate(*x.Min); err != nil {
		at := key
		if *x.Min == 0 && x.Policy == "hpa" {
			at = least
		}
		return s.Fault(at, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// rule makes the rule for one run, and tells in the scenario what it does where nothing was said.
func (x *Autoscaler) rule() autoscale.Policy {
	switch x.Policy {
	case "knative":
		p := autoscale.NewKnative(x.Target)
		settle(&x.Window, &p.Window)
		settle(&x.TickInterval, &p.Tick)
		settle(&x.ScaleToZeroGracePeriod, &p.Grace)
		choose(&x.TargetUtilization, &p.Utilisation)
		choose(&x.PanicWindow, &p.PanicPart)
		choose(&x.PanicThreshold, &p.PanicThreshold)
		choose(&x.MaxScaleUpRate, &p.ScaleUp)
		choose(&x.MaxScaleDownRate, &p.ScaleDown)
		return p
	case "keda":
		p := autoscale.NewKEDA(x.Target)
		x.hpa(&p.HPA)
		settle(&x.PollingInterval, &p.Poll)
		settle(&x.CooldownPeriod, &p.Cooldown)
		choose(&x.ActivationThreshold, &p.Activation)
		return p
	}
	p := autoscale.NewHPA(x.Target)
	x.hpa(p)
	return p
}

func (x *Autoscaler) hpa(p *autoscale.HPA) {
	if x.Window != nil {
		p.Window = x.Window.Clock()
	}
	settle(&x.SyncPeriod, &p.Loop)
	settle(&x.ScaleUpPeriod, &p.Period)
	settle(&x.StabilizationWindow, &p.Stabilisation)
	choose(&x.Tolerance, &p.Tolerance)
	choose(&x.ScaleUpPods, &p.AddAtOnce)
}

// choose takes what was given, or tells what it is otherwise.
func choose[T any](given **T, of *T) {
	optional.Default(given, *of)
	*of = **given
}

// settle is choose for a time.
func settle(given **unit.Duration, of *clock.Duration) {
	optional.Default(given, unit.Duration(*of))
	*of = (*given).Clock()
}

// scalers makes the autoscalers of a run.
func (u fleetBuilder) scalers() (all []sim.Scaler) {
	a := u.Scenario.Lifecycle.Autoscale
	if a == nil {
		return nil
	}
	metrics := map[string]autoscale.Metric{
		"waiting": autoscale.Waiting, "running": autoscale.Running, "concurrency": autoscale.Concurrency,
		"kv-usage": autoscale.KVUsage,
	}
	for k := range a.Scalers {
		x := a.Scalers[k] // a copy: a run tells the scenario nothing
		first, last, _ := u.members(x.Pool)
		all = append(all, sim.Scaler{
			Policy: x.rule(), First: first, Last: last, Least: *x.Min, Most: *x.Max, Initial: *x.Initial,
			Metric: metrics[*x.Metric], Scrape: x.Scrape.Clock(),
			Keep: optional.Value(x.Window).Clock() + x.Scrape.Clock(),
		})
	}
	return all
}
