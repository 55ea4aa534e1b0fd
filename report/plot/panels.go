package plot

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
)

// operating is the picture of the sweep: what more throughput costs in latency.
func (v *sweep) operating() *panel {
	metric := limit{metric: "ttft", stat: "p95"}
	var slo []rule
	for _, l := range v.points.limits() {
		if l.metric == "ttft" {
			metric.stat = l.stat
			slo = append(slo, rule{at: l.ms, name: "SLO " + duration(l.ms, 3), color: vermilion})
			break
		}
	}
	y := latency(metric.metric, metric.stat)
	if len(v.series(y)) == 0 {
		y, metric.stat, slo = latency("ttft", "p95"), "p95", nil
	}
	p := &panel{
		x: axis{title: "Output tokens/s, whole system", air: 0.12},
		y: axis{title: "Time to first token (TTFT) " + metric.statistic() + ", ms or s, log scale", log: true,
			unit: chart.Milliseconds},
		rules:  slo,
		better: len(v.points) > 1,
	}
	if metric.stat != "p50" {
		p.series = append(p.series, series{name: "p50", color: pale, width: 1.2, anchor: 1, below: true,
			points: v.against(outputTPS, latency("ttft", "p50"))})
	}
	main := series{name: metric.statistic(), color: blue, width: 2, radius: 2.6, anchor: 1,
		points: v.points.bars(v.against(outputTPS, y), "latency_ms.ttft."+metric.stat)}
	p.series = append(p.series, main)
	if len(main.points) == 0 {
		p.empty = "No throughput with a time to first token"
	}
	for _, m := range v.landmarks() {
		if m.shape == triangle {
			p.x.air = 0.18 // for its name
		}
		ms, ok := v.at(m.load, y)
		if !ok {
			continue
		}
		p.marks = append(p.marks, v.operatingMark(m, ms, metric))
	}
	p.tags = v.loadTags(outputTPS, y)
	p.tags = append(p.tags, v.unsteadyTag(main.points)...)
	return p
}

// operatingMark is a landmark, at its throughput and latency.
func (v *sweep) operatingMark(m landmark, ms float64, metric limit) mark {
	text := m.name + ": " + v.load(m.load)
	order := []direction{northWest, west, southEast, north, east}
	switch m.shape {
	case diamond:
		text += fmt.Sprintf("\n%s output tok/s, %s %s", scaled(m.tps, 3), metric.statistic(), duration(ms, 2))
	case triangle:
		order = []direction{northEast, east, west, northWest, north}
	case inverted:
		order = []direction{northEast, north, southWest, west, east}
	}
	return mark{m.tps, ms, m.shape, text, order}
}

// unsteadyTag names the points without a steady state, at the middle one of them.
func (v *sweep) unsteadyTag(points []xy) []tag {
	var hollow []xy
	for _, q := range points {
		if q.hollow {
			hollow = append(hollow, q)
		}
	}
	if len(hollow) == 0 {
		return nil
	}
	at := hollow[len(hollow)/2]
	name := "not settled"
	switch _, unsteady := v.points.unsteadyFrom(); {
	case !unsteady && v.points.anyShort():
		name = "too short a run"
	case v.open():
		name = "no steady state"
	}
	return []tag{{x: at.x, y: at.y, text: name, order: []direction{west, southWest, northWest, east},
		far: []vg.Length{14, 24, 40}}}
}

// loadTags write the loads along a curve. The ends come first, since they say most.
func (v *sweep) loadTags(x, y statistic) []tag {
	var tags []tag
	var loads []float64
	marked := map[float64]bool{}
	for _, m := range v.landmarks() {
		marked[m.load] = true
	}
	for _, p := range v.points {
		a, known := p.value(x)
		b, ok := p.value(y)
		if known && ok && !marked[p.load] {
			t := tag{x: a, y: b, text: loadNumber(p.load),
				order: []direction{southEast, east, south, northEast, west, northWest, north}}
			if v.Peak != nil && p.load > v.Peak.Value { // where the curve rises, or bends back
				t.order = []direction{east, northEast, west, northWest, southEast, southWest, north}
			}
			tags, loads = append(tags, t), append(loads, p.load)
		}
	}
	if n := len(tags); n > 0 {
		if v.open() || v.users() { // with the unit
			tags[0].text = v.load(loads[0])
			tags[n-1].text = v.load(loads[n-1])
		}
		last := tags[n-1]
		last.far = []vg.Length{12, 20, 30, 40}
		tags = append([]tag{last}, tags[:n-1]...)
	}
	return tags
}

// throughput draws throughput against load.
func (v *sweep) throughput() *panel {
	p := &panel{
		x:     v.loadAxis(),
		y:     axis{title: "Output tokens/s, whole system", air: 0.16},
		bands: v.unsteady(),
		ends:  true,
	}
	main := series{name: "output", color: blue, width: 2, radius: 2.4,
		points: v.points.bars(v.series(outputTPS), "throughput.output_tokens_per_s")}
	if len(main.points) == 0 {
		p.empty = "No throughput was measured"
	}
	p.y.log = p.x.log
	if v.points.failures() {
		p.series = append(p.series, series{name: "successful", color: green, width: 1.4, radius: 1.8,
			points: v.series(successfulTPS)})
	}
	if good := v.series(goodTPS); len(good) > 0 {
		p.series = append(p.series, series{name: "in SLO", color: vermilion, width: 1.4, radius: 1.8, points: good})
	}
	if len(p.series) == 0 {
		main.name = ""
	}
	p.series = append(p.series, main) // on top of those that it covers at low load
	if per, ok := v.points.outputPerRequest(); ok && v.open() && len(v.points) > 1 {
		const air = 1.14
		top := 0.0
		for _, q := range main.points {
			top = max(top, q.y)
		}
		line := v.offered(per, air*top)
		if !p.y.log {
			p.hold = append(p.hold, line.points[len(line.points)-1].y)
		}
		p.series = append([]series{line}, p.series...)
	}
	p.series = append(v.boundLines(), p.series...)
	if p.y.log { // successful and good output may go down to nothing
		var values []float64
		for _, q := range main.points {
			values = append(values, q.y, 1.5*q.y)
		}
		p.y.title += ", log scale"
		p.y.spread(values, 0)
	}
	for _, m := range v.landmarks() {
		text := fmt.Sprintf("%s: %s\n%s output tok/s", m.name, v.load(m.load), scaled(m.tps, 3))
		p.marks = append(p.marks, mark{m.load, m.tps, m.shape, text,
			[]direction{northWest, southEast, south, north, southWest, northEast, west, east}})
	}
	return p
}

// boundLines are the asymptotic bounds of a closed loop: the demand of its users, up to N*, and the capacity of the
// system. In an open loop, the line of the offered rate and the plateau show the same bounds.
func (v *sweep) boundLines() []series {
	b := v.Bounds
	if b == nil || b.ThinkS == nil || len(v.points) < 2 {
		return nil
	}
	low, high := v.points[0].load, v.points[len(v.points)-1].load
	if b.Value <= low || b.Value >= high {
		return nil
	}
	slope := b.MaxOutputTokensPerS / b.Value
	return []series{{name: "bounds, N* = " + loadNumber(b.Value), color: grey, width: 0.9, dash: dashed, guide: true,
		points: []xy{
			{x: low, y: slope * low}, {x: b.Value, y: b.MaxOutputTokensPerS}, {x: high, y: b.MaxOutputTokensPerS},
		}}}
}

// offered is the line of all arrivals' output, up to the highest load or to top. Where it is known how many
// arrived, it is through those points.
func (v *sweep) offered(perRequest, top float64) series {
	s := series{name: "offered", color: grey, width: 0.9, dash: dashed, guide: true}
	for _, q := range v.series(offeredRPS) {
		y := q.y * perRequest
		if n := len(s.points); y > top && n > 0 {
			last := s.points[n-1]
			if y > last.y && last.y < top {
				s.points = append(s.points, xy{x: last.x + (q.x-last.x)*(top-last.y)/(y-last.y), y: top})
			}
			break
		}
		s.points = append(s.points, xy{x: q.x, y: y})
	}
	if len(s.points) > 1 {
		return s
	}
	n := len(v.points)
	lo, hi := 0.0, v.points[n-1].load
	if v.points.clumped() {
		lo = v.points[0].load
	}
	hi = max(lo, min(hi, top/perRequest))
	s.points = []xy{{x: lo, y: lo * perRequest}, {x: hi, y: hi * perRequest}}
	return s
}

// latency shows percentiles of "ttft" or "tpot" against load.
func (v *sweep) latency(metric string) *panel {
	p := &panel{
		title: "Time to first token (TTFT)",
		x:     v.loadAxis(),
		y:     axis{title: "ms or s, log scale", log: true, unit: chart.Milliseconds},
		bands: v.unsteady(),
		rules: v.landmarkRules(),
		ends:  true,
	}
	if metric == "tpot" {
		p.title, p.y.title = "Time per output token (TPOT)", "ms or s per token, log scale"
	}
	zeros, any := false, false
	for _, c := range []series{{name: "p99", color: purple}, {name: "p95", color: green}, {name: "p50", color: blue}} {
		c.width, c.radius, c.points = 1.6, 2, v.points.bars(v.series(latency(metric, c.name)),
			"latency_ms."+metric+"."+c.name)
		for _, q := range c.points {
			zeros, any = zeros || q.y <= 0, any || q.y > 0
		}
		p.series = append(p.series, c)
	}
	switch {
	case zeros && any:
		p.y.title += ", zeros left out"
	case zeros:
		p.empty = "Zero at every load"
	case !any:
		p.empty = "No request was measured"
	}
	for _, l := range v.points.limits() {
		if l.metric == metric {
			p.rules = append(p.rules, rule{at: l.ms, name: fmt.Sprintf("SLO %s %s", l.statistic(), duration(l.ms, 3)),
				color: vermilion})
			p.hold = append(p.hold, l.ms)
		}
	}
	return p
}

// interactivity weighs what a GPU gives against what a user sees.
func (v *sweep) interactivity() *panel {
	p := &panel{
		x:        axis{title: "Output tokens/s for each user (1 / TPOT p50)", air: 0.1},
		y:        axis{title: "Output tokens/s per GPU"},
		better:   len(v.points) > 1,
		betterUp: true,
	}
	p.series = []series{{color: blue, width: 2, radius: 2.4, points: v.against(perUser, perGPU)}}
	if len(p.series[0].points) == 0 {
		p.empty = "The number of GPUs or the time per output token is unknown"
	}
	for _, m := range v.landmarks() {
		x, known := v.at(m.load, perUser)
		y, ok := v.at(m.load, perGPU)
		if known && ok {
			text := fmt.Sprintf("%s: %s", m.name, v.load(m.load))
			p.marks = append(p.marks, mark{x, y, m.shape, text,
				[]direction{northEast, east, southWest, south, west, north}})
		}
	}
	p.tags = v.loadTags(perUser, perGPU)
	first := ""
	if len(v.points) > 0 {
		first = v.load(v.points[0].load)
	}
	for i := range p.tags {
		p.tags[i].order = []direction{southWest, west, south, northEast, east, north}
		if p.tags[i].text == first {
			p.tags[i].order = []direction{northEast, east, north}
		}
	}
	return p
}

// kv shows how full the KV cache is, and how much the prefix cache saves.
func (v *sweep) kv() *panel {
	p := &panel{
		title: "KV cache",
		x:     v.loadAxis(),
		y:     axis{title: "% of usable blocks in use", min: 0, max: 1.04, unit: chart.Fraction},
		bands: v.unsteady(),
		rules: v.landmarkRules(),
		ends:  true,
	}
	p.series = []series{
		{name: "max", color: purple, width: 1.2, radius: 1.8, points: v.series(kvMax)},
		{name: "mean", color: blue, width: 2, radius: 2.2, points: v.series(kvMean)},
	}
	if len(p.series[0].points)+len(p.series[1].points) == 0 {
		p.empty = "The KV cache has no limit, or no use was measured"
	}
	hits := v.series(prefixHits)
	for _, q := range hits {
		if q.y >= 0.005 {
			p.series = append(p.series, series{name: "prefix hits", color: green, width: 1.4, radius: 1.8,
				points: hits})
			p.y.title += "; % of prompt tokens hit"
			break
		}
	}
	return p
}

// preemptions shows how often running requests lose their KV blocks.
func (v *sweep) preemptions() *panel {
	p := &panel{
		title: "Preemptions",
		x:     v.loadAxis(),
		y:     axis{title: "per second"},
		bands: v.unsteady(),
		rules: v.landmarkRules(),
	}
	p.series = []series{{color: vermilion, width: 1.6, radius: 2.2, points: v.series(preemptionsPerS)}}
	points := p.series[0].points
	switch {
	case len(points) == 0:
		p.empty = "No run has a window to count them in"
	case !slices.ContainsFunc(points, func(q xy) bool { return q.y > 0 }):
		p.empty = "None at any load"
	}
	return p
}
