package plot

import (
	"fmt"

	"clifftop/report/chart"
	"clifftop/report/inspect"
)

// Traffic is a picture of a trace: arrivals and tokens over time, the distributions of lengths, and, if prompts share
// prefixes, the hit rate by the size of a cache.
func Traffic(x *inspect.Result) *Figure {
	t := newTimes(nil)
	t.spans(x.SpanS)
	arrivals := t.over(x, "Arrivals", "requests/s", blue, func(p *inspect.TrafficPoint) float64 {
		return float64(p.Requests)
	})
	tokens := t.over(x, "Tokens", "tokens/s", green, func(p *inspect.TrafficPoint) float64 {
		return float64(p.OutputTokens)
	})
	tokens.series[0].name = "outputs"
	prompts := t.over(x, "", "", vermilion, func(p *inspect.TrafficPoint) float64 {
		return float64(p.InputTokens)
	}).series[0]
	prompts.name = "prompts"
	tokens.series = append(tokens.series, prompts)
	for i := range tokens.series {
		s := &tokens.series[i]
		s.anchor = len(s.points) - len(s.points)/6
	}
	tokens.x.title = "Time since the first arrival, " + t.unit

	lengths := &panel{
		title: "Lengths", x: axis{log: true, title: "tokens"}, ends: true,
		y: axis{unit: chart.Fraction, min: 0, max: 1.0001, title: "of the requests are at most so long"},
	}
	for _, l := range []struct {
		name  string
		color colour
		inspect.TokenLengths
	}{{"outputs", green, x.OutputTokens}, {"prompts", vermilion, x.InputTokens}} {
		s := series{name: l.name, color: l.color, width: 1.6}
		for i, q := range l.Quantiles {
			s.points = append(s.points, xy{x: max(q.Tokens, 1), y: q.P})
			if q.P <= 0.6 {
				s.anchor = i + 1
			}
		}
		lengths.series = append(lengths.series, s)
	}
	if x.Requests == 0 {
		lengths.empty = "No requests"
	}
	last := []*panel{lengths}
	if x.Prefix != nil {
		last = append(last, cachePanel(x.Prefix))
	}
	return &Figure{
		Title: trafficTitle(x), notes: trafficNotes(x), width: pageWidth, height: 560,
		rows: []row{{1, []*panel{arrivals}}, {1, []*panel{tokens}}, {1.3, last}},
	}
}

// spans sets the unit of time for so many seconds.
func (r *times) spans(seconds float64) {
	r.end, r.scale, r.unit = seconds, 1, "s"
	switch {
	case seconds > 3*86400:
		r.unit, r.scale = "days", 1.0/86400
	case seconds > 3*3600:
		r.unit, r.scale = "hours", 1.0/3600
	case seconds > 600:
		r.unit, r.scale = "minutes", 1.0/60
	}
	r.end *= r.scale
}

// over is a panel of something over time, per second, each point held over its span.
func (r *times) over(x *inspect.Result, title, unit string, color colour,
	value func(*inspect.TrafficPoint) float64) *panel {
	p := r.panel()
	p.title, p.y.title = title, unit
	s := series{color: color, width: 1.2}
	for i := range x.Series {
		q := &x.Series[i]
		if width := q.EndS - q.StartS; width <= 0 || i > 0 && 2*width < x.Series[0].EndS {
			continue // a short rest at the end has no meaning
		}
		rate := value(q) / (q.EndS - q.StartS)
		s.points = append(s.points, xy{x: q.StartS * r.scale, y: rate}, xy{x: q.EndS * r.scale, y: rate})
	}
	p.series = []series{s}
	if len(s.points) == 0 {
		p.empty = "All arrive together"
	}
	return p
}

// cachePanel shows what caches of several sizes find.
func cachePanel(x *inspect.PrefixSharing) *panel {
	p := &panel{
		title: "Prefix cache (LRU)", x: axis{log: true, title: "tokens cached"},
		y: axis{unit: chart.Fraction, title: "of the blocks of prompts are found", min: 0, max: 1.0001},
	}
	s := series{color: purple, width: 1.6, radius: 2}
	for _, l := range x.LRU {
		if hit, ok := number(l.Hit); ok {
			s.points = append(s.points, xy{x: float64(l.Tokens), y: hit})
		}
	}
	p.series = []series{s}
	if hit, ok := number(x.HitBlocks); ok {
		p.rules = []rule{{at: hit, name: "without bounds " + percent(hit), color: grey}}
	}
	if len(s.points) == 0 {
		p.empty = "No blocks"
	}
	return p
}

func trafficTitle(x *inspect.Result) string {
	text := fmt.Sprintf("%d requests", x.Requests)
	if rate, ok := number(x.RequestsPerS); ok {
		text += fmt.Sprintf(" in %s, %s/s", duration(1000*x.SpanS, 3), sig(rate, 3))
	}
	d := x.Arrivals.Dispersion
	for i := len(d) - 1; i >= 0; i-- {
		if index, ok := number(d[i].Index); ok {
			return text + fmt.Sprintf("; counts over %s vary %s times as much as Poisson's",
				duration(1000*d[i].WindowS, 2), sig(index, 2))
		}
	}
	return text
}

func trafficNotes(x *inspect.Result) []string {
	var notes []string
	for _, w := range x.Warnings {
		if w.Code == "coarse_clock" || w.Code == "cap" {
			notes = append(notes, w.Text)
		}
	}
	return notes
}
