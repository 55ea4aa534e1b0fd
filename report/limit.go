package report

import "fmt"

const (
	nearTop    = .95 // of the highest throughput: no more is to be had
	nearlyFull = .90 // of the KV pool
	// A GPU whose bandwidth or arithmetic is used to this extent has little more of it to give: kernels reach
	// seldom more than four fifths of the one and two thirds of the other.
	highMBU = .60
	highMFU = .50
)

// firstLimit is what stops throughput from rising. Where it comes near its highest, or at the load after that,
// requests wait for something or are preempted; or else the GPU itself has no more to give, if more load
// then brings little.
func (a analysis) firstLimit() *Limit {
	top := a.top()
	if top < 0 {
		return nil
	}
	stop := 0
	for a[stop].throughput < nearTop*a[top].throughput {
		stop++
	}
	for i := stop; i <= min(stop+1, len(a)-1); i++ {
		resource, _ := binds(a[i].s)
		if resource == "" {
			continue
		}
		for i > 0 && bound(a[i-1].s, resource) != "" {
			i--
		}
		return &Limit{Resource: resource, Value: a[i].value, Evidence: bound(a[i].s, resource)}
	}
	y := &a[stop].s.System
	if y.BusyFraction == nil || *y.BusyFraction < saturated || !a.flat(stop) {
		return nil
	}
	l := &Limit{Resource: "gpu", Value: a[stop].value}
	l.Evidence = fmt.Sprintf("busy %s of the time, requests wait for nothing else, and more load brings little", percent(*y.BusyFraction))
	if y.MFU == nil || y.MBU == nil {
		return l
	}
	switch {
	case *y.MBU >= highMBU && *y.MBU >= *y.MFU:
		l.Resource = "memory_bandwidth"
	case *y.MFU >= highMFU:
		l.Resource = "compute"
	}
	l.Evidence += fmt.Sprintf("; MFU %s, MBU %s", percent(*y.MFU), percent(*y.MBU))
	return l
}

// waits are the parts of the time in which requests wait for a resource.
func waits(s *Summary) []wait {
	g := &s.System.GapByCause
	return []wait{{"kv", g.KV}, {"seats", g.Seats}, {"token_budget", g.TokenBudget}, {"policy", g.Policy}}
}

type wait struct {
	resource string
	part     *float64
}

// binds is the resource that requests wait for most, if it binds at all, and why it is said to.
func binds(s *Summary) (resource, evidence string) {
	share := 0.0
	for _, w := range waits(s) {
		if w.part != nil && *w.part >= binding && *w.part > share {
			resource, share = w.resource, *w.part
		}
	}
	if resource == "" && preempts(s) {
		resource = "kv"
	}
	return resource, bound(s, resource)
}

// bound says why a resource binds; nothing if it does not.
func bound(s *Summary, resource string) string {
	for _, w := range waits(s) {
		if w.resource == resource && w.part != nil && *w.part >= binding {
			return fmt.Sprintf("requests wait for it %s of the time", percent(*w.part))
		}
	}
	if resource == "kv" && preempts(s) {
		return fmt.Sprintf("it is full at times, and %d preemptions make %s of the computed tokens computed again", s.System.Preemptions, percent(recomputedShare(s)))
	}
	return ""
}

// preempts reports whether the KV pool makes running requests give way, to an extent that matters.
func preempts(s *Summary) bool {
	y := &s.System
	return y.Preemptions > 0 && recomputedShare(s) >= wasteful && (y.KVUsage.Max == nil || *y.KVUsage.Max >= nearlyFull)
}
