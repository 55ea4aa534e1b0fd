package report

import (
	"fmt"
	"math"
)

// Thresholds of the warning signs.
const (
	slowing    = .75 // of the throughput gained per unit of load at the lowest load: it no longer grows with load
	swinging   = .10 // standard deviation of KV usage over time
	spike      = 2.0 // factor by which p99 grows, while
	calm       = 1.5 // p50 grows by this factor at most, or by the root of the other, from a load that is
	neighbour  = 2.0 // times smaller at most
	fine       = .50 // of the TTFT's p50 that is waiting, at most
	sure       = 2   // standard deviations of a p99
	likely     = .5  // standard deviations of a gain
	turnedAway = .01 // of the requests
)

// signs are the warning signs in the order of the list below, each at the load where it first shows.
func (a analysis) signs() []Sign {
	var signs []Sign
	for _, k := range []struct {
		code  string
		shows func(i int) (evidence string, ok bool)
	}{
		{"throughput_slows", a.slows},
		{"tail_spikes", a.spikes},
		{"busy_but_flat", a.busyButFlat},
		{"kv_oscillates", a.kvOscillates},
		{"gap", a.gaps},
		{"rejects", a.rejects},
		{"recompute", a.recomputes},
		{"prefix_thrash", a.thrashes},
		{"not_stationary", a.unsettled},
	} {
		for i := range a {
			if evidence, ok := k.shows(i); ok {
				signs = append(signs, Sign{Code: k.code, Value: a[i].value, Evidence: evidence})
				break
			}
		}
	}
	return signs
}

func (a analysis) slows(i int) (string, bool) {
	g, deviates := a.gain(i)
	return a.brings(i), i < a.summit() && g+likely*deviates < slowing
}

// brings says in words what more load brings.
func (a analysis) brings(i int) string {
	g, _ := a.gain(i)
	j := a.next(i)
	text := fmt.Sprintf("from here to %.4g ", a[j].value)
	switch fall := 1 - a[j].throughput/a[i].throughput; {
	case fall > plateau:
		return text + "throughput falls by " + percent(fall)
	case g < plateau:
		return text + "more load brings no more throughput"
	}
	return text + "each unit of load brings " + percent(g) + " of what it brings at the lowest load"
}

// spikes compares with loads nearby only: from an idle system to one in use every percentile grows. Both p99
// must be known, the step must be more than chance, and waiting must be what makes it.
func (a analysis) spikes(i int) (string, bool) {
	l, queue := &a[i].s.Latency.TTFT, &a[i].s.Latency.Queue
	if l.P50 == nil || l.P99 == nil || l.N < minP99 || queue.P99 == nil {
		return "", false
	}
	if queue.P50 != nil && *queue.P50 > fine**l.P50 {
		return "", false
	}
	waited := 0.0
	for _, w := range waits(a[i].s) {
		if w.part != nil {
			waited += *w.part
		}
	}
	for j := i - 1; j >= 0 && neighbour*a[j].value >= a[i].value; j-- {
		b, before := &a[j].s.Latency.TTFT, &a[j].s.Latency.Queue
		if b.P50 == nil || b.P99 == nil || b.N < minP99 || before.P99 == nil {
			continue
		}
		rise := *l.P99 - *b.P99
		if *l.P99 >= spike**b.P99 && *l.P50 <= max(calm, math.Sqrt(*l.P99 / *b.P99))**b.P50 &&
			rise > sure*math.Hypot(l.p99Deviation(), b.p99Deviation()) &&
			waited > 0 && *queue.P99-*before.P99 >= rise/2 {
			return fmt.Sprintf("TTFT p99 goes from %s ms at %.4g to %s ms, p50 only from %s to %s ms",
				digits(*b.P99), a[j].value, digits(*l.P99), digits(*b.P50), digits(*l.P50)), true
		}
	}
	return "", false
}

// p99Deviation is the standard deviation of the p99, √(p(1-p)/n) over the density of the values there, which
// is taken from the percentiles around it.
func (d *Distribution) p99Deviation() float64 {
	const p = .99
	width := 0.0 // of a unit of probability: one over the density
	if d.P95 != nil {
		width = (*d.P99 - *d.P95) / (p - .95)
	}
	if d.P999 != nil {
		width = max(width, (*d.P999-*d.P99)/(.999-p))
	}
	return width * math.Sqrt(p*(1-p)/float64(d.N))
}

func (a analysis) busyButFlat(i int) (string, bool) {
	busy := a[i].s.System.BusyFraction
	if busy == nil || *busy < saturated || !a.flat(i) {
		return "", false
	}
	return fmt.Sprintf("the GPU is busy %s of the time, yet %s", percent(*busy), a.brings(i)), true
}

func (a analysis) kvOscillates(i int) (string, bool) {
	kv := a[i].s.System.KVUsage
	if kv.SD == nil || kv.Max == nil || *kv.SD < swinging || *kv.Max < nearlyFull {
		return "", false
	}
	return fmt.Sprintf("KV usage swings by %s (standard deviation over time) and reaches %s", percent(*kv.SD), percent(*kv.Max)), true
}

// gaps leaves out the wait for an iteration to end, which is no sign of anything.
func (a analysis) gaps(i int) (string, bool) {
	g, total, text := a[i].s.System.GapByCause, 0.0, ""
	for _, part := range []struct {
		name string
		of   *float64
	}{{"KV", g.KV}, {"token budget", g.TokenBudget}, {"policy", g.Policy}, {"idle", g.Idle}} {
		if part.of != nil && *part.of > 0 {
			total += *part.of
			text += fmt.Sprintf(" %s %s", part.name, percent(*part.of))
		}
	}
	return fmt.Sprintf("requests wait beside free seats %s of the time:%s", percent(total), text), total >= binding
}

// rejects looks at what limits of the queue turn away: what does not fit is turned away at every load.
func (a analysis) rejects(i int) (string, bool) {
	r := &a[i].s.Requests
	share := float64(r.RejectedBusy) / max(float64(r.Offered), 1)
	return fmt.Sprintf("limits of the queue turn away %s of the requests, %d of %d", percent(share), r.RejectedBusy, r.Offered), share >= turnedAway
}

func (a analysis) recomputes(i int) (string, bool) {
	share := recomputedShare(a[i].s)
	return fmt.Sprintf("%s of the computed tokens are computed again after %d preemptions", percent(share), a[i].s.System.Preemptions), share >= wasteful
}

func (a analysis) thrashes(i int) (string, bool) {
	hit, best := a[i].s.System.PrefixHitRate, 0.0
	for _, b := range a[:i] {
		if b.s.System.PrefixHitRate != nil {
			best = max(best, *b.s.System.PrefixHitRate)
		}
	}
	if hit == nil || *hit > best-hitLoss {
		return "", false
	}
	return fmt.Sprintf("the prefix hit rate is down from %s to %s", percent(best), percent(*hit)), true
}

func (a analysis) unsettled(i int) (string, bool) {
	w := a[i].s.Window
	if w.Stationary == nil || *w.Stationary {
		return "", false
	}
	if w.GrowthRequestsPerS != nil {
		return fmt.Sprintf("the system fills up by %s requests/s", digits(*w.GrowthRequestsPerS)), true
	}
	return "the system had not settled after half the run", true
}
