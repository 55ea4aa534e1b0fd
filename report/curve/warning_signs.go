package curve

import (
	"fmt"
	"math"
	"slices"

	"clifftop/report"
	"clifftop/report/layout"
)

// warningSigns returns the warning signs in the order of the list below, each at the lowest load that shows it. Each
// point gets all signs that its load shows.
func (a *analysis) warningSigns(points []Point) []WarningSign {
	signs, shown := []WarningSign{}, make([]uint16, len(a.at)) // a bit for each sign
	var codes []string
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
			if first {
				signs, first = append(signs, WarningSign{Code: k.code, Value: a.at[i].value, Evidence: evidence}), false
			}
			shown[i] |= 1 << len(codes)
		}
		codes = append(codes, k.code)
	}
	a.tellSigns(points, codes, shown)
	return signs
}

// tellSigns sets in each point the codes of the signs at its load. Points that show the same share the list.
func (a *analysis) tellSigns(points []Point, codes []string, shown []uint16) {
	lists := map[uint16][]string{0: {}}
	at := 0
	for i := range points {
		for at < len(a.at) && a.at[at].value < points[i].Value {
			at++
		}
		bits := uint16(0)
		if at < len(a.at) && a.at[at].value == points[i].Value {
			bits = shown[at]
		}
		list, ok := lists[bits]
		if !ok {
			for k, code := range codes {
				if bits&(1<<k) != 0 {
					list = append(list, code)
				}
			}
			list = slices.Clip(list)
			lists[bits] = list
		}
		points[i].Signs = list
	}
}

func (a *analysis) slows(i int) (string, bool) {
	g, deviates := a.gain(i)
	return a.brings(i), i < a.summit() && g+a.LikelyDeviations*deviates < a.Slowing
}

// brings says in words what more load brings.
func (a *analysis) brings(i int) string {
	g, _ := a.gain(i)
	j := a.next(i)
	text := fmt.Sprintf("from here to %s ", axisValue(a.at[j].value))
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
	l := &a.at[i]
	if !l.ttft.known() || unknown(l.queue.p99) || l.queue.p50 > a.FineWait*l.ttft.p50 {
		return "", false
	}
	waited := 0.0
	for _, part := range l.waits {
		if !unknown(part) {
			waited += part
		}
	}
	for j := i - 1; j >= 0 && a.Neighbour*a.at[j].value >= l.value; j-- {
		b := &a.at[j]
		if !b.ttft.known() || unknown(b.queue.p99) {
			continue
		}
		rise := l.ttft.p99 - b.ttft.p99
		if l.ttft.p99 >= a.Spike*b.ttft.p99 && l.ttft.p50 <= max(a.Calm, math.Sqrt(l.ttft.p99/b.ttft.p99))*b.ttft.p50 &&
			rise > a.SureDeviations*math.Hypot(l.ttft.deviation, b.ttft.deviation) &&
			waited > 0 && l.queue.p99-b.queue.p99 >= rise/2 {
			return fmt.Sprintf("TTFT p99 goes from %s ms at %s to %s ms, p50 only from %s to %s ms; p99/p50 from %s "+
					"to %s",
					layout.Digits(b.ttft.p99), axisValue(b.value), layout.Digits(l.ttft.p99), layout.Digits(b.ttft.p50),
					layout.Digits(l.ttft.p50), layout.Digits(b.ttft.p99/b.ttft.p50),
					layout.Digits(l.ttft.p99/l.ttft.p50)),
				true
		}
	}
	return "", false
}

// tail looks at the level of p99 alone, against the least at lower loads. Requests must wait for something that
// is full for it to be a sign of saturation.
func (a *analysis) tail(i int) (string, bool) {
	l := &a.at[i]
	if !l.ttft.known() {
		return "", false
	}
	if resource, _ := a.binds(&l.measures); resource == "" {
		return "", false
	}
	least, at := math.Inf(1), 0.0
	if l.calmest >= 0 {
		least, at = a.at[l.calmest].ttft.p99, a.at[l.calmest].value
	}
	return fmt.Sprintf("TTFT p99 is %s ms, %s times that at %s; p99/p50 is %s", layout.Digits(l.ttft.p99),
			layout.Digits(l.ttft.p99/least), axisValue(at), layout.Digits(l.ttft.p99/l.ttft.p50)),
		l.ttft.p99 >= a.TailLevel*least
}

// p99Deviation is the standard deviation of the p99, √(p(1-p)/n) over the density of the values there, which
// is taken from the percentiles around it.
func p99Deviation(d *report.Distribution) float64 {
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
	l := &a.at[i]
	if unknown(l.busy) || l.busy < a.Saturated || !a.flat(i) {
		return "", false
	}
	text := fmt.Sprintf("the GPU is busy %s of the time, yet %s", layout.Percent(l.busy), a.brings(i))
	if !unknown(l.mfu) && !unknown(l.mbu) {
		text += fmt.Sprintf("; to be busy is not to be used: MFU %s, MBU %s", layout.Percent(l.mfu),
			layout.Percent(l.mbu))
	}
	return text, true
}

func (a *analysis) kvOscillates(i int) (string, bool) {
	l := &a.at[i]
	if !(l.kvSD >= a.KVSwing && l.kvMax >= a.NearlyFull) {
		return "", false
	}
	return fmt.Sprintf("KV usage swings by %s (standard deviation over time) and reaches %s", layout.Percent(l.kvSD),
		layout.Percent(l.kvMax)), true
}

// gaps leaves out the wait for an iteration to end, which is no sign of anything.
func (a *analysis) gaps(i int) (string, bool) {
	l, total, text := &a.at[i], 0.0, ""
	for _, part := range []struct {
		name string
		of   float64
	}{{"KV", l.waits[waitsKV]}, {"token budget", l.waits[waitsTokenBudget]}, {"policy", l.waits[waitsPolicy]},
		{"idle", l.idle}} {
		if part.of > 0 {
			total += part.of
			text += fmt.Sprintf(" %s %s", part.name, layout.Percent(part.of))
		}
	}
	return fmt.Sprintf("requests wait beside free seats %s of the time:%s", layout.Percent(total), text),
		total >= a.Binding
}

// rejects looks at what limits of the queue turn away: what does not fit is turned away at every load.
func (a *analysis) rejects(i int) (string, bool) {
	l := &a.at[i]
	share := float64(l.rejectedBusy) / max(float64(l.sent), 1)
	return fmt.Sprintf("limits of the queue turn away %s of the requests, %d of %d", layout.Percent(share),
		l.rejectedBusy, l.sent), share >= a.TurnedAway
}

func (a *analysis) leaves(i int) (string, bool) {
	return a.at[i].leavingText(), a.at[i].leaving() >= a.Leaving
}

func (a *analysis) recomputes(i int) (string, bool) {
	l := &a.at[i]
	return fmt.Sprintf("%s of the computed tokens are computed again after %d preemptions",
		layout.Percent(l.recomputed), l.preemptions), l.recomputed >= a.WastedWork
}

func (a *analysis) thrashes(i int) (string, bool) {
	l := &a.at[i]
	if unknown(l.hits) || l.hits > l.bestHits-a.HitLoss {
		return "", false
	}
	return fmt.Sprintf("the prefix hit rate is down from %s to %s", layout.Percent(l.bestHits), layout.Percent(l.hits)),
		true
}

func (a *analysis) unsettled(i int) (string, bool) {
	l := &a.at[i]
	if !l.unsettled {
		return "", false
	}
	if !unknown(l.growth) {
		return fmt.Sprintf("the system fills up by %s requests/s", layout.Digits(l.growth)), true
	}
	if l.overloaded {
		return "the rate is not below saturation", true
	}
	return "the system had not settled after half the run", true
}
