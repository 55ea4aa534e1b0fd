package plot

import (
	"fmt"
	"slices"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
)

// title says in one sentence what the sweep shows.
func (v *sweep) title() string {
	switch {
	case len(v.points) == 0:
		return "Nothing was measured"
	case v.Knee != nil:
		s := fmt.Sprintf("Knee at %s: %s output tok/s", v.load(v.Knee.Value), scaled(v.Knee.OutputTokensPerS, 3))
		if ms, ok := v.at(v.Knee.Value, latency("ttft", "p95")); ok {
			s += ", TTFT p95 " + duration(ms, 2)
		}
		return s + v.beyond()
	case len(v.points) == 1:
		s := "At " + v.load(v.points[0].load)
		if tps, ok := v.points[0].value(outputTPS); ok {
			s += ": " + scaled(tps, 3) + " output tok/s"
		}
		if ms, ok := v.points[0].value(latency("ttft", "p95")); ok {
			s += ", TTFT p95 " + duration(ms, 2)
		}
		return s
	case v.Level():
		return fmt.Sprintf("Throughput is about %s output tok/s at every %s", scaled(v.Peak.OutputTokensPerS, 3),
			v.key())
	case v.LevelsOff():
		return fmt.Sprintf("Throughput levels off at %s: %s output tok/s", v.load(v.Peak.Value),
			scaled(v.Peak.OutputTokensPerS, 3))
	case v.Peak != nil && !v.Peak.AtEdge:
		return fmt.Sprintf("Throughput peaks at %s output tok/s, at %s", scaled(v.Peak.OutputTokensPerS, 3),
			v.load(v.Peak.Value)) + v.beyond()
	case v.Peak != nil:
		return fmt.Sprintf("No saturation up to %s: %s output tok/s", v.load(v.Peak.Value),
			scaled(v.Peak.OutputTokensPerS, 3)) + v.beyond()
	}
	return fmt.Sprintf("From %s to %s", v.load(v.points[0].load), v.load(v.points[len(v.points)-1].load))
}

// beyond says what happens at higher loads, as a clause.
func (v *sweep) beyond() string {
	if v.Collapse != nil {
		return fmt.Sprintf("; beyond %s throughput falls, by up to %s", v.load(v.lastBeforeCollapse()),
			percent(v.Collapse.FallFraction))
	}
	if from, ok := v.saturatedFrom(); ok && v.open() {
		return "; from " + v.load(from) + " on the queue grows without end"
	}
	if v.Peak != nil && v.Peak.AtEdge && v.Peak.Value < v.points[len(v.points)-1].load {
		return "; runs at higher loads are too short to judge"
	}
	if v.Knee != nil && v.Peak != nil && v.Peak.AtEdge && v.Peak.Value > v.Knee.Value {
		return "; throughput still grows at " + v.load(v.Peak.Value)
	}
	return ""
}

// lastBeforeCollapse is the peak's load, from where throughput falls.
func (v *sweep) lastBeforeCollapse() float64 {
	if v.Peak != nil {
		return v.Peak.Value
	}
	return v.Collapse.Value
}

// detail says what binds first, and up to which load the objective is kept.
func (v *sweep) detail() string {
	var parts []string
	if v.FirstLimit != nil {
		names := map[string]string{
			"kv": "the KV cache", "seats": "seats (max_num_seqs)", "token_budget": "the token budget",
			"policy":  "the scheduling policy",
			"compute": "the GPU's compute", "memory_bandwidth": "the GPU's memory bandwidth", "gpu": "the GPU's time",
		}
		name, ok := names[v.FirstLimit.Resource]
		if !ok {
			name = v.FirstLimit.Resource
		}
		parts = append(parts, fmt.Sprintf("First limit: %s, from %s.", name, v.load(v.FirstLimit.Value)))
	}
	if s := v.kept(); s != "" {
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

// kept says at which values the objective is met: up to a load, or at a value or more of a key that helps.
func (v *sweep) kept() string {
	var names []string
	for _, l := range v.points.limits() {
		names = append(names, l.String())
	}
	objective := "SLO"
	if len(names) > 0 {
		objective += " (" + strings.Join(names, ", ") + ")"
	}
	if c := v.Capacity; c != nil && c.Passes != nil {
		bound := "up to"
		if c.MoreHelps {
			bound = "from"
		}
		return fmt.Sprintf("%s kept in %s of hours %s %s.", objective, layout.Percent(c.Share), bound,
			v.load(*c.Passes))
	}
	var loads []float64 // that can be judged
	var met []bool
	for _, p := range v.points {
		if share, known := p.value(metShare); known {
			loads, met = append(loads, p.load), append(met, share == 1)
		}
	}
	isLoad := v.open() || v.users()
	each := "every value of " + v.key()
	if isLoad {
		each = "every load"
	}
	n := len(met)
	missed, kept := slices.Index(met, false), slices.Index(met, true)
	regained := n // where the values begin that keep it up to the end
	for regained > 0 && met[regained-1] {
		regained--
	}
	switch {
	case n == 0:
		return ""
	case missed < 0:
		return objective + " kept at " + each + "."
	case missed > 0 && (isLoad || regained == n):
		return objective + " kept up to " + v.load(loads[missed-1]) + "."
	case isLoad && missed == 0:
		return objective + " missed from the lowest load on."
	case kept < 0:
		return objective + " missed at " + each + "."
	case kept == regained:
		return objective + " kept from " + v.load(loads[kept]) + " on."
	}
	return fmt.Sprintf("%s kept at %d of %d values.", objective, n-len(slices.DeleteFunc(met, func(kept bool) bool {
		return kept
	})), n)
}

// notes say what to keep in mind about the points.
func (v *sweep) notes() []string {
	var notes []string
	if slices.ContainsFunc(v.points, func(p point) bool { return !p.steady }) {
		if v.open() {
			notes = append(notes,
				"Hollow points, dotted lines: no steady state. The queue grows, and latency with it, for as long as "+
					"the run lasts.")
		} else {
			notes = append(notes, "Hollow points, dotted lines: the run had not settled.")
		}
	}
	if slices.ContainsFunc(v.points, func(p point) bool { return p.finite && p.steady }) {
		note := "Hollow points, solid lines: not settled. The numbers describe the simulated time; a longer run " +
			"may differ."
		if v.points.hourly() {
			note = "Hollow points, solid lines: not settled. Latencies are of the median hour, and bars have " +
				"10 to 90 % of the hours, or all of fewer than ten."
		}
		notes = append(notes, note)
	}
	if v.points.anyShort() {
		note := "Hollow points, dotted lines: runs too short to judge. The system was still filling up."
		if len(notes) > 0 {
			note = "Hollow too: runs too short to judge. The system was still filling up."
		}
		notes = append(notes, note)
	}
	if slices.ContainsFunc(v.points, func(p point) bool { return p.summary.Partial }) {
		notes = append(notes, "Interrupted: the sweep is incomplete.")
	}
	if text := v.Omits(); text != "" {
		notes = append(notes, text)
	}
	return notes
}

func (l loadPoints) anyShort() bool {
	return slices.ContainsFunc(l, func(p point) bool { return p.short })
}

func (v *sweep) barNotes() []string {
	if v.points.barred() {
		return []string{"Bars: 95 % confidence intervals."}
	}
	return nil
}

// failureNotes say that latencies count completed requests only.
func (v *sweep) failureNotes() []string {
	if worst := v.points.worstErrorRate(); worst > 0 {
		return []string{fmt.Sprintf("Latencies are those of completed requests; up to %s of requests did not complete.",
			percent(worst))}
	}
	return nil
}

// latencyNotes are for pictures of percentiles.
func (v *sweep) latencyNotes() []string {
	notes := append(v.barNotes(), v.failureNotes()...)
	if slices.ContainsFunc(v.points, func(p point) bool {
		n := min(p.summary.Latency.TTFT.N, p.summary.Latency.TPOT.N)
		return n > 0 && n < report.MinSamplesP99
	}) {
		notes = append(notes, "No p99 where fewer than 1,000 requests were measured.")
	}
	return notes
}

func (l loadPoints) worstErrorRate() float64 {
	worst := 0.0
	for _, p := range l {
		if rate, ok := number(p.summary.System.ErrorRate); ok {
			worst = max(worst, rate)
		}
	}
	return worst
}

func (v *sweep) throughputTitle() string {
	if len(v.points) < 2 || v.Peak == nil || v.Level() || v.LevelsOff() {
		return v.title()
	}
	at := fmt.Sprintf("%s output tok/s at %s", scaled(v.Peak.OutputTokensPerS, 3), v.load(v.Peak.Value))
	if v.Peak.AtEdge && v.Peak.Value < v.points[len(v.points)-1].load {
		return v.title()
	}
	if v.Peak.AtEdge {
		if from, ok := v.saturatedFrom(); !ok || !v.open() {
			return "Throughput still grows at the highest load: " + at
		} else {
			return fmt.Sprintf("Throughput follows the load until %s; it ends at %s", v.load(from), at)
		}
	}
	if v.Collapse != nil {
		return "Throughput peaks at " + at + "; beyond, it falls by up to " + percent(v.Collapse.FallFraction)
	}
	return "Throughput peaks at " + at + v.beyond()
}

func (v *sweep) latencyTitle() string {
	points := v.series(latency("ttft", "p95"))
	if len(points) < 2 {
		return v.title()
	}
	first, last := points[0], points[len(points)-1]
	s := fmt.Sprintf("TTFT p95: %s at %s", duration(first.y, 2), v.load(first.x))
	if v.Knee != nil && v.Knee.Value > first.x && v.Knee.Value < last.x {
		if ms, ok := v.at(v.Knee.Value, latency("ttft", "p95")); ok {
			s += fmt.Sprintf(", %s at the knee (%s)", duration(ms, 2), v.load(v.Knee.Value))
		}
	}
	s += ", " + duration(last.y, 2)
	if last.hollow && v.open() {
		s += " and growing"
	}
	return s + " at " + v.load(last.x)
}

func (v *sweep) interactivityTitle() string {
	if v.Knee != nil {
		x, known := v.at(v.Knee.Value, perUser)
		y, ok := v.at(v.Knee.Value, perGPU)
		if known && ok {
			return fmt.Sprintf("At the knee (%s) each GPU gives %s output tok/s and each user sees %s tok/s",
				v.load(v.Knee.Value), scaled(y, 3), scaled(x, 2))
		}
	}
	return "Throughput per GPU against the speed that each user sees"
}

func (v *sweep) kvTitle() string {
	top, at := 0.0, 0.0
	for _, q := range v.series(kvMean) {
		if q.y >= 0.95 {
			top, at = q.y, q.x
			break
		}
		if q.y > top {
			top, at = q.y, q.x
		}
	}
	var s string
	switch {
	case top == 0:
		s = "KV cache and preemptions"
	case top >= 0.95:
		s = "The KV cache is full from " + v.load(at)
	default:
		s = fmt.Sprintf("The KV cache is at most %s full on average", percent(top))
	}
	counted := v.series(preemptionsPerS)
	for _, q := range counted {
		if q.y > 0 {
			return s + "; preemptions from " + v.load(q.x)
		}
	}
	if len(counted) > 0 {
		s += "; no preemptions"
	}
	return s
}
