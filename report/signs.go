package report

import (
	"fmt"
	"math"

	"clifftop/report/layout"
)

// signs are the warning signs in the order of the list below, each at the load where it first shows. The points are
// told all that show at theirs.
func (a *analysis) signs(points []CurvePoint) []Sign {
	signs, at := []Sign{}, map[float64][]string{}
	for _, k := range []struct {
		code  string
		shows func(i int) (evidence string, ok bool)
	}{
		{"throughput_slows", a.slows},
		{"tail_spikes", a.spikes},
		{"tail_level", a.tail},
		{"busy_but_flat", a.busyButFlat},
		{"kv_oscillates", a.kvOscillates},
		{"gap", a.gaps},
		{"rejects", a.rejects},
		{"clients_leave", a.leaves},
		{"recompute", a.recomputes},
		{"prefix_thrash", a.thrashes},
		{"not_stationary", a.unsettled},
	} {
		first := true
		for i := range a.at {
			evidence, ok := k.shows(i)
			if !ok {
				continue
			}
			if v := a.at[i].value; first {
				signs, first = append(signs, Sign{Code: k.code, Value: v, Evidence: evidence}), false
			}
			at[a.at[i].value] = append(at[a.at[i].value], k.code)
		}
	}
	for i := range points {
		points[i].Signs = append([]string{}, at[points[i].Value]...)
	}
	return signs
}

func (a *analysis) slows(i int) (string, bool) {
	g, deviates := a.gain(i)
	return a.brings(i), i < a.summit() && g+a.LikelyDeviations*deviates < a.Slowing
}

// brings says in words what more load brings.
func (a *analysis) brings(i int) string {
	g, _ := a.gain(i)
	j := a.next(i)
	text := fmt.Sprintf("from here to %.4g ", a.at[j].value)
	switch fall := 1 - a.at[j].throughput/a.at[i].throughput; {
	case fall > a.Plateau:
		return text + "throughput falls by " + layout.Percent(fall)
	case g < a.Plateau:
		return text + "more load brings no more throughput"
	}
	return text + "each unit of load brings " + layout.Percent(g) + " of what it brings at the lowest load"
}

// spikes compares with loads nearby only: from an idle system to one in use every percentile grows. Both p99
// must be known, the step must be more than chance, and waiting must be what makes it.
func (a *analysis) spikes(i int) (string, bool) {
	l, queue := &a.at[i].s.Latency.TTFT, &a.at[i].s.Latency.Queue
	if l.P50 == nil || l.P99 == nil || l.N < minP99 || queue.P99 == nil {
		return "", false
	}
	if queue.P50 != nil && *queue.P50 > a.FineWait**l.P50 {
		return "", false
	}
	waited := 0.0
	for _, w := range waits(a.at[i].s) {
		if w.part != nil {
			waited += *w.part
		}
	}
	for j := i - 1; j >= 0 && a.Neighbour*a.at[j].value >= a.at[i].value; j-- {
		b, before := &a.at[j].s.Latency.TTFT, &a.at[j].s.Latency.Queue
		if b.P50 == nil || b.P99 == nil || b.N < minP99 || before.P99 == nil {
			continue
		}
		rise := *l.P99 - *b.P99
		if *l.P99 >= a.Spike**b.P99 && *l.P50 <= max(a.Calm, math.Sqrt(*l.P99 / *b.P99))**b.P50 &&
			rise > a.SureDeviations*math.Hypot(l.p99Deviation(), b.p99Deviation()) &&
			waited > 0 && *queue.P99-*before.P99 >= rise/2 {
			return fmt.Sprintf("TTFT p99 goes from %s ms at %.4g to %s ms, p50 only from %s to %s ms; p99/p50 from %s to %s",
				layout.Digits(*b.P99), a.at[j].value, layout.Digits(*l.P99), layout.Digits(*b.P50), layout.Digits(*l.P50), layout.Digits(*b.P99 / *b.P50), layout.Digits(*l.P99 / *l.P50)), true
		}
	}
	return "", false
}

// tail looks at the level of p99 alone, against the least at lower loads. Requests must wait for something that
// is full for it to be a sign of saturation.
func (a *analysis) tail(i int) (string, bool) {
	l := &a.at[i].s.Latency.TTFT
	if l.P50 == nil || l.P99 == nil || l.N < minP99 {
		return "", false
	}
	if resource, _ := a.binds(a.at[i].s); resource == "" {
		return "", false
	}
	least, at := math.Inf(1), 0.0
	for _, b := range a.at[:i] {
		if d := &b.s.Latency.TTFT; d.P99 != nil && d.N >= minP99 && *d.P99 < least {
			least, at = *d.P99, b.value
		}
	}
	return fmt.Sprintf("TTFT p99 is %s ms, %s times that at %.4g; p99/p50 is %s", layout.Digits(*l.P99), layout.Digits(*l.P99/least), at, layout.Digits(*l.P99 / *l.P50)),
		*l.P99 >= a.TailLevel*least
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

func (a *analysis) busyButFlat(i int) (string, bool) {
	busy := a.at[i].s.System.BusyFraction
	if busy == nil || *busy < a.Saturated || !a.flat(i) {
		return "", false
	}
	text := fmt.Sprintf("the GPU is busy %s of the time, yet %s", layout.Percent(*busy), a.brings(i))
	if y := &a.at[i].s.System; y.MFU != nil && y.MBU != nil {
		text += fmt.Sprintf("; to be busy is not to be used: MFU %s, MBU %s", layout.Percent(*y.MFU), layout.Percent(*y.MBU))
	}
	return text, true
}

func (a *analysis) kvOscillates(i int) (string, bool) {
	kv := a.at[i].s.System.KVUsage
	if kv.SD == nil || kv.Max == nil || *kv.SD < a.KVSwing || *kv.Max < a.NearlyFull {
		return "", false
	}
	return fmt.Sprintf("KV usage swings by %s (standard deviation over time) and reaches %s", layout.Percent(*kv.SD), layout.Percent(*kv.Max)), true
}

// gaps leaves out the wait for an iteration to end, which is no sign of anything.
func (a *analysis) gaps(i int) (string, bool) {
	g, total, text := a.at[i].s.System.GapByCause, 0.0, ""
	for _, part := range []struct {
		name string
		of   *float64
	}{{"KV", g.KV}, {"token budget", g.TokenBudget}, {"policy", g.Policy}, {"idle", g.Idle}} {
		if part.of != nil && *part.of > 0 {
			total += *part.of
			text += fmt.Sprintf(" %s %s", part.name, layout.Percent(*part.of))
		}
	}
	return fmt.Sprintf("requests wait beside free seats %s of the time:%s", layout.Percent(total), text), total >= a.Binding
}

// rejects looks at what limits of the queue turn away: what does not fit is turned away at every load.
func (a *analysis) rejects(i int) (string, bool) {
	r := &a.at[i].s.Requests
	share := float64(r.RejectedBusy) / max(float64(r.Offered), 1)
	return fmt.Sprintf("limits of the queue turn away %s of the requests, %d of %d", layout.Percent(share), r.RejectedBusy, r.Offered), share >= a.TurnedAway
}

func (a *analysis) leaves(i int) (string, bool) {
	return a.at[i].s.leavingText(), a.at[i].s.leaving() >= a.Leaving
}

func (a *analysis) recomputes(i int) (string, bool) {
	share := recomputedShare(a.at[i].s)
	return fmt.Sprintf("%s of the computed tokens are computed again after %d preemptions", layout.Percent(share), a.at[i].s.System.Preemptions), share >= a.WastedWork
}

func (a *analysis) thrashes(i int) (string, bool) {
	hit, best := a.at[i].s.System.PrefixHitRate, 0.0
	for _, b := range a.at[:i] {
		if b.s.System.PrefixHitRate != nil {
			best = max(best, *b.s.System.PrefixHitRate)
		}
	}
	if hit == nil || *hit > best-a.HitLoss {
		return "", false
	}
	return fmt.Sprintf("the prefix hit rate is down from %s to %s", layout.Percent(best), layout.Percent(*hit)), true
}

func (a *analysis) unsettled(i int) (string, bool) {
	w := a.at[i].s.Window
	if w.Stationary == nil || *w.Stationary {
		return "", false
	}
	if w.GrowthRequestsPerS != nil {
		return fmt.Sprintf("the system fills up by %s requests/s", layout.Digits(*w.GrowthRequestsPerS)), true
	}
	return "the system had not settled after half the run", true
}
