package plot

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

func (p *panel) drawMarks(s drawing, places *placer) {
	for _, m := range p.marks {
		if p.shows(m.x, m.y) {
			at := p.at(xy{x: m.x, y: m.y})
			s.mark(m.shape, at, 5, black, false)
			places.take(rect(at.X-6, at.Y-6, at.X+6, at.Y+6))
		}
	}
	for _, m := range p.marks {
		if p.shows(m.x, m.y) {
			text := m.text
			if p.compact {
				text, _, _ = strings.Cut(text, "\n")
			}
			p.label(s, markText, text, p.at(xy{x: m.x, y: m.y}), wish{
				order: m.order, near: 9, far: []vg.Length{16, 24, 34, 46, 60, 80},
			}, places)
		}
	}
}

func (p *panel) drawTag(s drawing, t tag, places *placer) {
	if !p.shows(t.x, t.y) {
		return
	}
	f := tagText
	if t.color != (colour{}) {
		f.color = t.color
	}
	p.label(s, f, t.text, p.at(xy{x: t.x, y: t.y}), wish{order: t.order, near: 6, far: t.far, strict: !t.must}, places)
}

// label writes text near an anchor, with a leader when it is far.
func (p *panel) label(s drawing, f script, text string, anchor vg.Point, w wish, places *placer) bool {
	w.anchor, w.w, w.h = anchor, f.width(text), f.height(text)
	if w.order == nil {
		w.order = []direction{northWest, north, northEast, west, east, southEast, south, southWest}
	}
	box, distance, ok := places.place(w)
	if !ok {
		return false
	}
	align := 0.5
	if anchor.X <= box.Min.X+1 {
		align = 0
	} else if anchor.X >= box.Max.X-1 {
		align = 1
	}
	if distance > w.near+leaderFrom {
		end := leader(anchor, box)
		// It begins at the edge of the mark.
		part := (w.near - 3) / vg.Length(math.Hypot(float64(end.X-anchor.X), float64(end.Y-anchor.Y)))
		path := []vg.Point{{X: anchor.X + part*(end.X-anchor.X), Y: anchor.Y + part*(end.Y-anchor.Y)}, end}
		s.line(grey, 0.6, nil, path...)
		places.avoidLine(path)
	}
	s.text(f, box.Min, align, text, true)
	return true
}

// seriesEnd is a line, and where its name belongs.
type seriesEnd struct {
	at vg.Point
	*series
}

// nameSeries writes the names where the lines end: in the right margin, or beside the last point.
func (p *panel) nameSeries(s drawing, area vg.Rectangle, right vg.Length, places *placer) {
	var margin []seriesEnd
	for _, e := range p.seriesEnds() {
		if p.ends && !e.guide && e.anchor == 0 && e.at.X > area.Max.X-0.12*(area.Max.X-area.Min.X) {
			margin = append(margin, e)
		} else {
			p.nameBeside(s, e, places)
		}
	}
	nameInMargin(s, margin, area, right, places)
}

// seriesEnds are the ends of the lines with names, or the points that are to have the names. What is drawn on top comes
// first.
func (p *panel) seriesEnds() []seriesEnd {
	var ends []seriesEnd
	for i := range slices.Backward(p.series) {
		c := &p.series[i]
		if c.name == "" {
			continue
		}
		if c.anchor > 0 && c.anchor <= len(c.points) && p.shows(c.points[c.anchor-1].x, c.points[c.anchor-1].y) {
			ends = append(ends, seriesEnd{p.at(c.points[c.anchor-1]), c})
			continue
		}
		for _, q := range slices.Backward(c.points) {
			if p.shows(q.x, q.y) {
				ends = append(ends, seriesEnd{p.at(q), c})
				break
			}
		}
	}
	return ends
}

// nameBeside writes a name beside the point; where there is no room and the point was chosen, beside one that follows
// it.
func (p *panel) nameBeside(s drawing, e seriesEnd, places *placer) {
	w := wish{order: []direction{northWest, north, northEast, east, west, southWest, south, southEast}, near: labelGap,
		far: []vg.Length{10, 18}}
	switch {
	case e.below:
		w.order = []direction{southWest, south, southEast}
	case e.guide:
		w.order = []direction{west, southWest, northWest, east, southEast, south}
	}
	f := nameText
	f.color = e.color
	named := p.label(s, f, e.name, e.at, w, places)
	for k := e.anchor; k > 0 && k < len(e.points) && !named; k++ {
		if q := e.points[k]; p.shows(q.x, q.y) {
			named = p.label(s, f, e.name, p.at(q), w, places)
		}
	}
}

// nameInMargin writes names to the right of the area, each at the height of its end or near it.
func nameInMargin(s drawing, ends []seriesEnd, area vg.Rectangle, right vg.Length, places *placer) {
	var ys []vg.Length
	for _, e := range ends {
		ys = append(ys, e.at.Y)
	}
	height := nameText.height("x") * 1.12
	for i, y := range stack(ys, height, area.Min.Y-height/2, area.Max.Y+height/2) {
		f := nameText
		f.color = ends[i].color
		x := area.Max.X + labelGap
		s.text(f, vg.Point{X: x, Y: y - f.size*(capital/2+descent)}, 0, ends[i].name, true)
		places.take(rect(x, y-height/2, right, y+height/2))
	}
}

// nameRules writes the names of rules: of vertical ones at their upper end, of horizontal ones above them.
func (p *panel) nameRules(s drawing, area vg.Rectangle, places *placer) {
	low := places.bounds.Max.Y
	defer func() { places.bounds.Max.Y = low }()
	if p.marked() {
		places.bounds.Max.Y = low + 2*stripHeight
	}
	for _, l := range p.rules {
		if l.marked && p.x.shows(l.at) {
			at := vg.Point{X: p.x.at(l.at), Y: area.Max.Y + stripHeight/2}
			s.mark(l.shape, at, 3.8, black, false)
			places.take(rect(at.X-5, at.Y-5, at.X+5, at.Y+5))
		}
	}
	for _, l := range p.rules {
		f := tagText
		f.color = l.color
		switch {
		case l.vertical && p.x.shows(l.at):
			x := p.x.at(l.at)
			top := vg.Point{X: x, Y: area.Max.Y}
			if l.marked {
				top.Y += stripHeight / 2
				f = markText
				f.size = tagText.size
			}
			for k := range 6 {
				at := top
				at.Y -= vg.Length(k) * 13
				w := wish{order: []direction{east, west, north}, near: 6.5}
				if k > 0 {
					w = wish{order: []direction{east, west}, near: 2.5, strict: true} // beside the rule
				}
				if p.label(s, f, l.name, at, w, places) {
					break
				}
			}
		case !l.vertical && p.y.shows(l.at):
			y := p.y.at(l.at)
			w := wish{order: []direction{northEast, southEast}, near: 2}
			for k := range 8 {
				x := area.Min.X + 2 + vg.Length(k)*(area.Max.X-area.Min.X)/8
				w.strict = k < 7
				if p.label(s, f, l.name, vg.Point{X: x, Y: y}, w, places) {
					break
				}
			}
		}
	}
}

func (p *panel) nameBands(s drawing, area vg.Rectangle, places *placer) {
	for _, b := range p.bands {
		from, to := p.clamp(b.from), p.clamp(b.to)
		box := rect(from+2, area.Min.Y+2, to-2, area.Max.Y-2)
		for _, name := range []string{b.name, strings.ReplaceAll(b.name, " ", "\n")} {
			if tagText.width(name) <= to-from-6 && p.nameBand(s, name, box, places) {
				break
			}
		}
	}
}

// nameBand writes a text in the middle of a band, or elsewhere in it, if there is a free place.
func (p *panel) nameBand(s drawing, name string, box vg.Rectangle, places *placer) bool {
	w, h := tagText.width(name), tagText.height(name)
	const rows = 14
	for _, column := range []vg.Length{0.5, 1, 0} {
		for k := range rows {
			x := box.Min.X + w/2 + column*(box.Max.X-box.Min.X-w)
			y := box.Max.Y - h/2 - vg.Length(k)*(box.Max.Y-box.Min.Y-h)/(rows-1)
			if p.label(s, tagText, name, vg.Point{X: x, Y: y}, wish{order: []direction{{0, 0}}, strict: true}, places) {
				return true
			}
		}
	}
	return false
}

// drawBetter points at the good corner.
func (p *panel) drawBetter(s drawing, area vg.Rectangle, places *placer) {
	const size = 13
	w, h := tagText.width("better"), tagText.height("better")
	for k := range 5 {
		x, y, up := area.Max.X-6-vg.Length(k%2)*(w+size), area.Min.Y+6, vg.Length(1)
		if p.betterUp {
			y, up = area.Max.Y-6, -1
		}
		y += up * vg.Length(k/2) * 14
		tip, tail := vg.Point{X: x, Y: y}, vg.Point{X: x - size, Y: y + up*size}
		box := rect(tail.X-3-w, min(tip.Y, tail.Y)-h/2, tip.X, max(tip.Y, tail.Y)+h/2)
		box.Min.Y = max(box.Min.Y, area.Min.Y+2)
		box.Max.Y = min(box.Max.Y, area.Max.Y-1)
		if _, _, ok := places.place(wish{anchor: box.Min, w: box.Max.X - box.Min.X, h: box.Max.Y - box.Min.Y,
			order: []direction{northEast}, strict: true}); !ok {
			continue
		}
		s.line(grey, 1, nil, tail, vg.Point{X: tip.X - 2, Y: tip.Y + up*2})
		var head vg.Path
		head.Move(tip)
		head.Line(vg.Point{X: tip.X - 6, Y: tip.Y + up*2.2})
		head.Line(vg.Point{X: tip.X - 2.2, Y: tip.Y + up*6})
		head.Close()
		s.SetColor(grey)
		s.Fill(head)
		s.text(tagText, vg.Point{X: tail.X - 3 - w, Y: tail.Y - h/2}, 0, "better", true)
		return
	}
}
