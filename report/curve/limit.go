package curve

import (
	"fmt"

	"clifftop/report/layout"
)

// firstLimit returns the resource that stops throughput from rising. It is the resource that requests wait for, or are
// preempted for, where throughput comes near its highest value, or at the next load. Otherwise it is the GPU, if more
// load brings little throughput.
func (a *analysis) firstLimit() *Limit {
	top := a.top()
	if top < 0 {
		return nil
	}
	stop := 0
	for a.at[stop].throughput < a.NearTop*a.at[top].throughput {
		stop++
	}
	for i := stop; i <= min(stop+1, len(a.at)-1); i++ {
		if resource, _ := a.binds(&a.at[i].measures); resource != "" {
			return a.since(i, resource)
		}
	}
	y := &a.at[stop]
	if unknown(y.busy) || y.busy < a.Saturated || !a.flat(stop) {
		return a.tooFew()
	}
	l := &Limit{Resource: "gpu", Value: a.at[stop].value}
	l.Evidence = fmt.Sprintf("busy %s of the time, requests wait for nothing else, and more load brings little",
		layout.Percent(y.busy))
	if unknown(y.mfu) || unknown(y.mbu) {
		return l
	}
	switch {
	case y.mbu >= a.HighMBU && y.mbu >= y.mfu:
		l.Resource = "memory_bandwidth"
	case y.mfu >= a.HighMFU:
		l.Resource = "compute"
	}
	l.Evidence += fmt.Sprintf("; MFU %s, MBU %s", layout.Percent(y.mfu), layout.Percent(y.mbu))
	return l
}

// since is the limit that binds at load i, from the load on at which it begins to. Of requests that wait so long that
// their clients leave, what they wait for is the limit; clients are it where they leave before any wait.
func (a *analysis) since(i int, resource string) *Limit {
	for i > 0 && a.bound(&a.at[i-1].measures, resource) != "" {
		i--
	}
	return &Limit{Resource: resource, Value: a.at[i].value, Evidence: a.bound(&a.at[i].measures, resource)}
}

// tooFew returns the limit of a closed loop whose throughput still rises at its greatest number of users, while some
// users think and no request waits: there are not enough users.
func (a *analysis) tooFew() *Limit {
	last := &a.at[len(a.at)-1]
	in := last.inSystem
	if !a.closed || len(a.at) < 2 || a.summit() < len(a.at)-1 || unknown(in) || in > (1-a.Binding)*last.value {
		return nil
	}
	return &Limit{Resource: "users", Value: last.value, Evidence: fmt.Sprintf(
		"throughput still rises with every user, and requests wait for nothing; of %s users %s have a request in the "+
			"system, the others think", axisValue(last.value), layout.Digits(in))}
}

// binds returns the resource that requests wait for most, if it binds, and the evidence. If a large part of the work is
// recomputed because KV blocks are short, KV is the resource, and not the token budget or the seats.
func (a *analysis) binds(m *measures) (resource, evidence string) {
	if a.preempts(m) && m.recomputed >= a.Binding {
		return "kv", a.bound(m, "kv")
	}
	share := 0.0
	for i, part := range m.waits {
		if part >= a.Binding && part > share {
			resource, share = resources[i], part
		}
	}
	if resource == "" && a.preempts(m) {
		resource = "kv"
	}
	if resource == "" && m.leaving() >= a.Binding {
		resource = "clients"
	}
	return resource, a.bound(m, resource)
}

// bound says why a resource binds; nothing if it does not.
func (a *analysis) bound(m *measures, resource string) string {
	for i, part := range m.waits {
		if resources[i] == resource && part >= a.Binding {
			return fmt.Sprintf("requests wait for it %s of the time", layout.Percent(part))
		}
	}
	if resource == "clients" && m.leaving() >= a.Binding {
		return m.leavingText()
	}
	if resource == "kv" && a.preempts(m) {
		return fmt.Sprintf("it is full at times, and %d preemptions make %s of the computed tokens computed again",
			m.preemptions, layout.Percent(m.recomputed))
	}
	return ""
}

// preempts reports whether the KV pool makes running requests give way, to an extent that matters.
func (a *analysis) preempts(m *measures) bool {
	return m.preemptions > 0 && m.recomputed >= a.WastedWork && !(m.kvMax < a.NearlyFull)
}
