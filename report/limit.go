package report

import (
	"fmt"

	"clifftop/report/layout"
)

// firstLimit is what stops throughput from rising. Where it comes near its highest, or at the load after that,
// requests wait for something or are preempted; or else the GPU itself has no more to give, if more load
// then brings little.
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
		if resource, _ := a.binds(a.at[i].s); resource != "" {
			return a.since(i, resource)
		}
	}
	y := &a.at[stop].s.System
	if y.BusyFraction == nil || *y.BusyFraction < a.Saturated || !a.flat(stop) {
		return a.tooFew()
	}
	l := &Limit{Resource: "gpu", Value: a.at[stop].value}
	l.Evidence = fmt.Sprintf("busy %s of the time, requests wait for nothing else, and more load brings little", layout.Percent(*y.BusyFraction))
	if y.MFU == nil || y.MBU == nil {
		return l
	}
	switch {
	case *y.MBU >= a.HighMBU && *y.MBU >= *y.MFU:
		l.Resource = "memory_bandwidth"
	case *y.MFU >= a.HighMFU:
		l.Resource = "compute"
	}
	l.Evidence += fmt.Sprintf("; MFU %s, MBU %s", layout.Percent(*y.MFU), layout.Percent(*y.MBU))
	return l
}

// since is the limit that binds at load i, from the load on at which it begins to. Of requests that wait so long that their
// clients leave, what they wait for is the limit; clients are it where they leave before any wait.
func (a *analysis) since(i int, resource string) *Limit {
	for i > 0 && a.bound(a.at[i-1].s, resource) != "" {
		i--
	}
	return &Limit{Resource: resource, Value: a.at[i].value, Evidence: a.bound(a.at[i].s, resource)}
}

// tooFew is the limit of a closed loop whose throughput still rises at its greatest number of users, of whom some
// think, while the system holds nobody up: there are no more requests to serve.
func (a *analysis) tooFew() *Limit {
	last := &a.at[len(a.at)-1]
	in := last.s.Concurrency.InSystem.Mean
	if !a.closed || len(a.at) < 2 || a.summit() < len(a.at)-1 || in == nil || *in > (1-a.Binding)*last.value {
		return nil
	}
	return &Limit{Resource: "users", Value: last.value, Evidence: fmt.Sprintf(
		"throughput still rises with every user, and requests wait for nothing; of %.4g users %s have a request in the system, the others think", last.value, layout.Digits(*in))}
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

// binds is the resource that requests wait for most, if it binds at all, and why it is said to. Where a large part of the
// work is done again for want of KV, that is what the token budget and the seats are lost to.
func (a *analysis) binds(s *Summary) (resource, evidence string) {
	if a.preempts(s) && recomputedShare(s) >= a.Binding {
		return "kv", a.bound(s, "kv")
	}
	share := 0.0
	for _, w := range waits(s) {
		if w.part != nil && *w.part >= a.Binding && *w.part > share {
			resource, share = w.resource, *w.part
		}
	}
	if resource == "" && a.preempts(s) {
		resource = "kv"
	}
	if resource == "" && s.leaving() >= a.Binding {
		resource = "clients"
	}
	return resource, a.bound(s, resource)
}

// bound says why a resource binds; nothing if it does not.
func (a *analysis) bound(s *Summary, resource string) string {
	for _, w := range waits(s) {
		if w.resource == resource && w.part != nil && *w.part >= a.Binding {
			return fmt.Sprintf("requests wait for it %s of the time", layout.Percent(*w.part))
		}
	}
	if resource == "clients" && s.leaving() >= a.Binding {
		return s.leavingText()
	}
	if resource == "kv" && a.preempts(s) {
		return fmt.Sprintf("it is full at times, and %d preemptions make %s of the computed tokens computed again", s.System.Preemptions, layout.Percent(recomputedShare(s)))
	}
	return ""
}

// leaving is the part of the requests whose clients leave before the answer is complete, or that they send again,
// whichever is more.
func (s *Summary) leaving() float64 {
	r := &s.Requests
	return max(float64(r.TimedOut+r.Cancelled)/float64(max(r.Offered, 1)), float64(r.Retries)/float64(max(r.Attempts, 1)))
}

func (s *Summary) leavingText() string {
	r := &s.Requests
	text := fmt.Sprintf("clients leave before the end of %s of the requests (%d of %d)",
		layout.Percent(float64(r.TimedOut+r.Cancelled)/float64(max(r.Offered, 1))), r.TimedOut+r.Cancelled, r.Offered)
	if r.Retries > 0 {
		text += fmt.Sprintf("; %s of the attempts are repetitions", layout.Percent(float64(r.Retries)/float64(max(r.Attempts, 1))))
	}
	return text
}

// preempts reports whether the KV pool makes running requests give way, to an extent that matters.
func (a *analysis) preempts(s *Summary) bool {
	y := &s.System
	return y.Preemptions > 0 && recomputedShare(s) >= a.WastedWork && (y.KVUsage.Max == nil || *y.KVUsage.Max >= a.NearlyFull)
}
