package scenario

import (
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/autoscale"
)

// withMost is the scenario with as many replicas as every autoscaler may have.
func withMost(s *Scenario) (*Scenario, *yamldoc.Fault) {
	if s.Lifecycle == nil || s.Lifecycle.Autoscale == nil {
		return s, nil
	}
	own := *s
	own.Lifecycle = s.Lifecycle.withScalers(slices.Clone(s.Lifecycle.Autoscale.Scalers))
	own.Pools = slices.Clone(s.Pools)
	a := own.Lifecycle.Autoscale
	for k := range a.Scalers {
		x, key := &a.Scalers[k], a.key(k)
		replicas, at := &own.Deployment.Replicas, "deployment.replicas"
		if len(own.Pools) > 0 {
			i, fault := poolOf(s, x, key)
			if fault != nil {
				return nil, fault
			}
			p := &own.Pools[i]
			x.Pool, replicas, at = &p.Name, &p.Replicas, fmt.Sprintf("pools.%d.replicas", i)
		} else if x.Pool != nil {
			return nil, s.Fault(key+".pool", "there are no pools")
		}
		switch {
		case x.Max == nil:
			x.Max = optional.Of(*replicas)
		case *x.Max == *replicas:
		case s.Given(at) || *replicas != 1:
			return nil, s.Fault(key+".max", "%d is not %s, %d: both set the maximum number of replicas (set one of "+
				"them)",
				*x.Max, at, *replicas)
		default:
			*replicas = *x.Max
		}
	}
	return &own, nil
}

func (l *Lifecycle) withScalers(list []Autoscaler) *Lifecycle {
	own, a := *l, *l.Autoscale
	a.Scalers = list
	own.Autoscale = &a
	return &own
}

func poolOf(s *Scenario, x *Autoscaler, key string) (int, *yamldoc.Fault) {
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
	return 0, nil
}

// resolveScalers checks the autoscalers, and fills in their defaults.
func resolveScalers(s *Scenario, l pools) (list []Autoscaler, fault *yamldoc.Fault) {
	a := s.Lifecycle.Autoscale
	taken := map[string]bool{}
	for k, x := range a.Scalers {
		key := a.key(k)
		if taken[optional.Value(x.Pool)] {
			if len(s.Pools) == 0 {
				return nil, s.Fault(key, "without pools there can be only one autoscaler")
			}
			return nil, s.Fault(key+".pool", "pool %s has an autoscaler already (want one)", *x.Pool)
		}
		taken[optional.Value(x.Pool)] = true
		if x, fault = resolveScaler(s, l, x, key); fault != nil {
			return nil, fault
		}
		list = append(list, x)
	}
	return list, nil
}

// resolveScaler checks one autoscaler, and fills in its defaults.
func resolveScaler(s *Scenario, l pools, x Autoscaler, key string) (_ Autoscaler, fault *yamldoc.Fault) {
	first, _, why := l.members(x.Pool)
	if why != "" {
		return x, s.Fault(key+".pool", "%s", why)
	}
	options, ok := x.Options(s.rules().Autoscalers, x.Policy)
	if !ok {
		return x, s.Fault(key+".policy", "%q is not known (want %s)", yamldoc.Short(x.Policy),
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
		return x, s.Fault(least, "%d replicas are more than max, %d", *x.Min, most)
	case *x.Initial > most:
		return x, s.Fault(s.FirstGiven(key+".initial", key), "%d replicas are more than max, %d", *x.Initial, most)
	case usual.OnlyMetric && metric != usual.Metric:
		return x, s.Fault(key+".metric", "%s does not scale by %v (want %v)", x.Policy, metric, usual.Metric)
	case metric.NeedsLimitedKV() && l.with(first).Config.NumGPUBlocks == 0:
		return x, s.Fault(key+".metric", "%v needs a finite KV cache (want %s)", metric,
			metricsWhere(func(m autoscale.Metric) bool { return !m.NeedsLimitedKV() }))
	case *x.Min == 0 && !metric.CountsHeld():
		return x, s.Fault(least,
			"nothing wakes the first replica: %v of none is 0 (want metric %s, or min 1 or more)", metric,
			metricsWhere(autoscale.Metric.CountsHeld))
	case *x.Min == 0 && s.Lifecycle.Hold != nil && *s.Lifecycle.Hold == 0:
		return x, s.Fault(least, "min 0 needs requests that wait at the router to start the first replica (set "+
			"lifecycle.hold above 0, or min to 1 or more)")
	}
	policy := options.Make(x.Target)
	if err := policy.Validate(*x.Min); err != nil {
		at := key
		if policy.Validate(1) == nil {
			at = least
		}
		return x, s.Fault(at, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return x, nil
}

// metricsWhere names the metrics that have a property, for a message.
func metricsWhere(has func(autoscale.Metric) bool) string {
	lacks := func(m autoscale.Metric) bool { return !has(m) }
	return yamldoc.OneOf(yamldoc.NamesOfAll(slices.DeleteFunc(autoscale.Metrics(), lacks)))
}
