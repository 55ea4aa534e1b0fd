package plot

import (
	"slices"

	"gonum.org/v1/plot/vg"
)

// xy is a point of a series.
type xy struct {
	x, y   float64
	hollow bool // no steady state
	finite bool // a piece of time that has not settled
	load   float64
	text   string // what the point is
	// low and high are the ends of a confidence interval of y; equal if there is none.
	low, high float64
}

// series is a line of a panel.
type series struct {
	name   string
	color  colour
	width  vg.Length
	radius vg.Length // of its dots; 0 for none
	dash   []vg.Length
	points []xy
	anchor int  // the name stands at point anchor-1; at the last for 0
	below  bool // the name stands below the line
	guide  bool // a line to compare with: what lies outside the panel is cut off
	// scattered dots have no line between them.
	scattered bool
	// stepped lines stay as they are up to the next point; filled ones shade what is below. Both are for pages.
	stepped, filled bool
}

// rule is a thin line across the panel.
type rule struct {
	at       float64
	vertical bool
	name     string
	color    colour
	shape    shape // of the mark at the upper end of a vertical rule
	marked   bool
}

// mark is a named point.
type mark struct {
	x, y  float64
	shape shape
	text  string
	order []direction
}

// tag is a small text at a point, left out where there is no room.
type tag struct {
	x, y  float64
	text  string
	color colour
	order []direction
	far   []vg.Length
	must  bool // may cover a line
}

// band shades the panel between two values of x.
type band struct {
	from, to float64
	name     string
}

// panel is one chart: what it shows, and how the axes are labelled.
type panel struct {
	title    string
	x, y     axis
	bands    []band
	bars     []bar
	rules    []rule
	series   []series
	marks    []mark
	tags     []tag
	ends     bool      // name the series in the right margin
	hold     []float64 // more values that y must hold
	better   bool      // say which corner is the good one: the lower right, or
	betterUp bool      // the upper right
	compact  bool      // little room
	empty    string    // what to say when there is nothing to show
}

// Styles of text.
var (
	headline = script{size: 13, bold: true, color: black}
	caption  = script{size: 9.5, color: grey}
	heading  = script{size: 10.5, bold: true, color: black}
	axisText = script{size: 9.5, color: grey}
	tickText = script{size: 9, color: black}
	tagText  = script{size: 9, color: grey}
	markText = script{size: 9.5, bold: true, color: black}
	nameText = script{size: 9.5, bold: true}
)

const (
	tickGap  vg.Length = 4
	labelGap vg.Length = 5
)

// margins are the widths around the data of a panel.
type margins struct{ left, right, top, bottom vg.Length }

// fit chooses the labels for a size and answers the margins they need. It must come before draw.
func (p *panel) fit(size vg.Point) margins {
	m := margins{right: 8, top: 6, bottom: 6}
	p.prepare(size)
	for _, t := range p.y.ticks {
		m.left = max(m.left, tickText.width(t.text)+tickGap)
	}
	if n := len(p.x.ticks); n > 0 {
		m.bottom = tickText.height("0") + tickGap
		m.right = max(m.right, tickText.width(p.x.ticks[n-1].text)/2)
		m.left = max(m.left, tickText.width(p.x.ticks[0].text)/2)
	}
	if p.x.title != "" {
		m.bottom += axisText.height("x") + 4
	}
	if p.title != "" {
		m.top += heading.height("x") + 3
	}
	if p.y.title != "" {
		m.top += axisText.height(p.y.title) + 3
	}
	if p.marked() {
		m.top += stripHeight
	}
	if p.ends {
		for _, s := range p.series {
			if !s.guide && s.anchor == 0 && len(s.points) > 0 {
				m.right = max(m.right, nameText.width(s.name)+labelGap+2)
			}
		}
	}
	return m
}

// stripHeight is the room above the data for the marks of vertical rules.
const stripHeight vg.Length = 12

func (p *panel) marked() bool {
	return p.empty == "" && slices.ContainsFunc(p.rules, func(l rule) bool { return l.marked })
}

// prepare sets the axes' ranges and labels for a size.
func (p *panel) prepare(size vg.Point) {
	var xs, ys []float64
	for _, s := range p.series {
		for _, q := range s.points {
			if s.guide {
				continue
			}
			xs, ys = append(xs, q.x), append(ys, q.y)
			if q.low < q.high {
				ys = append(ys, q.low, q.high)
			}
		}
	}
	ys = append(ys, p.hold...)
	if p.x.min == p.x.max { // not set by the caller
		p.x.spread(xs, int(size.X/58))
	} else {
		p.x.setTicks(int(size.X / 58))
	}
	if p.y.min == p.y.max {
		p.y.spread(ys, int(size.Y/28))
	} else {
		p.y.setTicks(int(size.Y / 28))
	}
}

func (p *panel) draw(s drawing, r vg.Rectangle, m margins) {
	area := rect(r.Min.X+m.left, r.Min.Y+m.bottom, r.Max.X-m.right, r.Max.Y-m.top)
	p.x.from, p.x.to = area.Min.X, area.Max.X
	p.y.from, p.y.to = area.Min.Y, area.Max.Y

	y := r.Max.Y
	if p.title != "" {
		y -= heading.height("x")
		s.text(heading, vg.Point{X: r.Min.X, Y: y}, 0, p.title, false)
		y -= 3
	}
	if p.y.title != "" {
		y -= axisText.height(p.y.title)
		s.text(axisText, vg.Point{X: r.Min.X, Y: y}, 0, p.y.title, false)
	}
	if p.empty != "" {
		s.fill(area, shade)
		w, h := axisText.width(p.empty), axisText.height(p.empty)
		s.text(axisText, vg.Point{X: (area.Min.X + area.Max.X - w) / 2, Y: (area.Min.Y + area.Max.Y - h) / 2}, 0.5,
			p.empty, false)
		return
	}
	for _, b := range p.bands {
		s.fill(rect(p.clamp(b.from), area.Min.Y, p.clamp(b.to), area.Max.Y), shade)
	}
	p.grid(s, area)
	p.cutGuides()

	places := &placer{bounds: rect(area.Min.X+1, area.Min.Y+1.9, r.Max.X, area.Max.Y+5)}
	places.take(rect(r.Min.X, y, r.Min.X+axisText.width(p.y.title), r.Max.Y))
	p.drawRules(s, area, places)
	for _, b := range p.bars {
		p.drawBar(s, b)
	}
	for _, c := range p.series {
		p.drawLine(s, area, c, places)
	}
	for _, c := range p.series {
		p.drawDots(s, c, places)
	}
	p.drawMarks(s, places)
	p.nameSeries(s, area, r.Max.X, places)
	p.nameRules(s, area, places)
	p.nameBands(s, area, places)
	for _, t := range p.tags {
		p.drawTag(s, t, places)
	}
	if p.better {
		p.drawBetter(s, area, places)
	}
}

func (p *panel) clamp(x float64) vg.Length {
	return p.x.at(min(max(x, p.x.min), p.x.max))
}

func (p *panel) at(q xy) vg.Point { return vg.Point{X: p.x.at(q.x), Y: p.y.at(q.y)} }

// shows says whether a point lies in the panel.
func (p *panel) shows(x, y float64) bool { return p.x.shows(x) && p.y.shows(y) }

func (p *panel) grid(s drawing, area vg.Rectangle) {
	for _, t := range p.y.ticks {
		y := p.y.at(t.at)
		s.line(hairline, 0.6, nil, vg.Point{X: area.Min.X, Y: y}, vg.Point{X: area.Max.X, Y: y})
		s.text(tickText, vg.Point{X: area.Min.X - tickGap - tickText.width(t.text),
			Y: y - tickText.size*(capital/2+descent)}, 0, t.text, false)
	}
	last := vg.Length(-1e9)
	for _, t := range p.x.ticks {
		x := p.x.at(t.at)
		s.line(hairline, 0.6, nil, vg.Point{X: x, Y: area.Min.Y}, vg.Point{X: x, Y: area.Max.Y})
		w := tickText.width(t.text)
		if x-w/2 < last+4 {
			continue
		}
		s.text(tickText, vg.Point{X: x - w/2, Y: area.Min.Y - tickGap - tickText.height(t.text)}, 0, t.text, false)
		last = x + w/2
	}
	s.line(grey, 0.8, nil, area.Min, vg.Point{X: area.Max.X, Y: area.Min.Y})
	if p.x.title != "" {
		w := axisText.width(p.x.title)
		x := min((area.Min.X+area.Max.X-w)/2, area.Max.X-w)
		s.text(axisText, vg.Point{X: x, Y: area.Min.Y - tickGap - tickText.height("0") - 4 - axisText.height("x")}, 0,
			p.x.title, false)
	}
}

// runs splits a series into stretches that are drawn alike: solid between points with a steady state, and
// dotted up to those without. Points that the axes cannot show divide it.
func (p *panel) runs(c series) (solid, loose [][]vg.Point) {
	var last *xy
	for i := range c.points {
		q := &c.points[i]
		if !p.shows(q.x, q.y) {
			last = nil
			continue
		}
		if last != nil {
			into := &solid
			if q.hollow || last.hollow {
				into = &loose
			}
			a, b := p.at(*last), p.at(*q)
			if n := len(*into); n > 0 && (*into)[n-1][len((*into)[n-1])-1] == a {
				(*into)[n-1] = append((*into)[n-1], b)
			} else {
				*into = append(*into, []vg.Point{a, b})
			}
		}
		last = q
	}
	return solid, loose
}

// cutGuides ends lines for comparison where they leave the panel at the top, so that they are named there.
func (p *panel) cutGuides() {
	for i := range p.series {
		c := &p.series[i]
		if !c.guide {
			continue
		}
		cut := slices.Clone(c.points)
		for k := 1; k < len(c.points); k++ {
			_, cut[k] = clip(c.points[k-1], c.points[k], &p.x, &p.y)
		}
		c.points = cut
	}
}

func (p *panel) drawLine(s drawing, area vg.Rectangle, c series, places *placer) {
	if c.guide {
		for i := 1; i < len(c.points); i++ {
			if a, b := c.points[i-1], c.points[i]; p.shows(a.x, a.y) && p.shows(b.x, b.y) {
				s.line(c.color, c.width, c.dash, p.at(a), p.at(b))
				places.avoidLine([]vg.Point{p.at(a), p.at(b)})
			}
		}
		return
	}
	if c.scattered {
		return
	}
	solid, loose := p.runs(c)
	for _, run := range solid {
		s.line(c.color, c.width, c.dash, run...)
		places.avoidLine(run)
	}
	for _, run := range loose {
		s.line(c.color, c.width, dotted, run...)
		places.avoidLine(run)
	}
}

func (p *panel) drawDots(s drawing, c series, places *placer) {
	r := c.radius
	if r == 0 {
		if len(c.points) > 1 {
			return
		}
		r = 2 // a line of one point is a dot
	}
	if len(c.points) > 20 {
		r *= 0.7
	}
	for _, q := range c.points {
		if p.shows(q.x, q.y) {
			at := p.at(q)
			if low, high := max(q.low, p.y.min), min(q.high, p.y.max); q.low < q.high && low < high {
				s.line(c.color, 0.9, nil, vg.Point{X: at.X, Y: p.y.at(low)}, vg.Point{X: at.X, Y: p.y.at(high)})
			}
			s.mark(dot, at, r, c.color, q.hollow || q.finite)
			places.avoidLine([]vg.Point{at})
			if r >= 2 {
				places.take(rect(at.X-r, at.Y-r, at.X+r, at.Y+r))
			}
		}
	}
}

func (p *panel) drawRules(s drawing, area vg.Rectangle, places *placer) {
	for _, l := range p.rules {
		if l.vertical && p.x.shows(l.at) {
			x, top := p.x.at(l.at), area.Max.Y
			if l.marked {
				top += stripHeight / 2
			}
			path := []vg.Point{{X: x, Y: area.Min.Y}, {X: x, Y: top}}
			s.line(l.color, 0.8, dashed, path...)
			places.avoidLine(path)
		}
		if !l.vertical && p.y.shows(l.at) {
			y := p.y.at(l.at)
			path := []vg.Point{{X: area.Min.X, Y: y}, {X: area.Max.X, Y: y}}
			s.line(l.color, 0.9, dashed, path...)
			places.avoidLine(path)
		}
	}
}
