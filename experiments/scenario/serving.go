package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// Serving describes the deployment and, of a fleet, how many replicas there are. over is the key that a sweep varies,
// or empty.
func (u *Setup) Serving(over string) string {
	first := u.Pools[0].Deployment.String()
	if len(u.Scenario.Pools) == 0 {
		n := u.replicasInWords(&u.Pools[0])
		if n == "1" || over == "deployment.replicas" {
			return first
		}
		return first + ", " + n + " replicas"
	}
	alike := true
	var counts, all []string
	for i := range u.Pools {
		p := &u.Pools[i]
		n, d := u.replicasInWords(p), p.Deployment.String()
		alike = alike && d == first
		counts, all = append(counts, p.Name+" "+n), append(all, fmt.Sprintf("%s: %s × (%s)", p.Name, n, d))
	}
	if alike {
		return first + ", replicas: " + strings.Join(counts, ", ")
	}
	return strings.Join(all, ", ")
}

// replicasInWords is how many replicas a pool has, or may have.
func (u *Setup) replicasInWords(p *PoolSetup) string {
	if l := u.Scenario.Lifecycle; l != nil && l.Autoscale != nil {
		for _, a := range l.Autoscale.Scalers {
			if len(u.Scenario.Pools) == 0 || a.Pool != nil && *a.Pool == p.Name {
				return fmt.Sprintf("%d to %d", *a.Min, *a.Max)
			}
		}
	}
	return strconv.Itoa(p.replicas)
}

// EngineDefaults names the knobs that follow from the engine's rules for the GPU, with their values; empty if there are
// none.
func (u *Setup) EngineDefaults() string {
	first := &u.Pools[0]
	if len(first.ruled) == 0 {
		return ""
	}
	of := first.Scenario.Engine.Policy
	if first.policy.software.vllmHost {
		of = first.Release()
	}
	return fmt.Sprintf("%s (%s on %s)", strings.Join(first.ruled, ", "), of, first.Deployment.GPU.Name)
}

// ClassName is the name of a class of requests, as a scenario or a trace calls it; empty without one.
func (u *Setup) ClassName(class uint16) string {
	if r := u.Traffic.Recording; r != nil && int(class) < len(r.classes) {
		return r.classes[class]
	}
	if list := u.Traffic.Spec.Classes; int(class) < len(list) {
		return list[class].Name
	}
	if class == 0 {
		return ""
	}
	return strconv.Itoa(int(class)) // of a source that is not the scenario's
}

// LongestSequence is the longest sequence that some replica takes, in tokens.
func (u *Setup) LongestSequence() int32 { return u.Pools.longest() }
