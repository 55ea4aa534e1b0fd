package plot

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
)

// bar is a horizontal bar of a panel, about the place y of its vertical axis.
type bar struct {
	from, to, y float64
	height      float64 // in units of the vertical axis
	color       colour
	inside      string // stands in the bar if there is room
	text        string // what it is, for pages
}

func (p *panel) drawBar(s drawing, b bar) {
	from, to := min(max(b.from, p.x.min), p.x.max), min(max(b.to, p.x.min), p.x.max)
	if to <= from {
		return
	}
	r := rect(p.x.at(from), p.y.at(b.y-b.height/2), p.x.at(to), p.y.at(b.y+b.height/2))
	const gap = 0.5 // between bars that touch
	if r.Max.X-r.Min.X > 4*gap {
		r.Max.X -= gap
	}
	s.fill(r, b.color)
	y := (r.Min.Y+r.Max.Y)/2 - tagText.size*(capital/2+descent)
	if w := tagText.width(b.inside); b.inside != "" && w+4 < r.Max.X-r.Min.X {
		s.text(tagText, vg.Point{X: (r.Min.X + r.Max.X - w) / 2, Y: y}, 0, b.inside, false)
	}
}

// sliceColours are the colours of kinds; the first one is the usual kind.
var sliceColours = [...]colour{rgb(0x3A94CF), vermilion, purple, pale}

func drawTimeline(t *chart.Timeline) *Figure {
	f := &Figure{Title: t.Title, Caption: t.Caption, notes: t.Notes, width: pageWidth,
		height: vg.Length(130 + 44*len(t.Lanes) + 14*len(t.Notes))}
	for i, k := range t.Kinds {
		f.key = append(f.key, keyEntry{k, sliceColours[i%len(sliceColours)]})
	}
	n := len(t.Lanes)
	p := &panel{
		x: axis{title: "Time, s", min: t.FromS, max: t.ToS, unit: chart.Seconds},
		y: axis{min: -0.6, max: float64(n) - 0.4, places: make([]string, n)},
	}
	for i, l := range t.Lanes {
		p.y.places[n-1-i] = l.Name
		for _, s := range l.Slices {
			p.bars = append(p.bars, bar{from: s.StartS, to: s.EndS, y: float64(n - 1 - i), height: 0.7,
				color: sliceColours[s.Kind%len(sliceColours)], text: s.Text})
		}
	}
	if n == 0 {
		p.empty = "Nothing was recorded"
	}
	f.rows = []row{{1, []*panel{p}}}
	return f
}

// sliceGlyphs stand for kinds in text.
const sliceGlyphs = ".#=+"

// printTimeline prints a line for each lane: in every column the kind that takes most of its time.
func printTimeline(w io.Writer, t *chart.Timeline, width int) error {
	width = textWidth(width)
	gutter := 0
	for _, l := range t.Lanes {
		gutter = max(gutter, utf8.RuneCountInString(l.Name)+1)
	}
	columns := width - gutter - 2
	if columns < 10 || !(t.ToS > t.FromS) {
		return nil
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, l := range t.Lanes {
		fmt.Fprintf(&b, "%-*s|%s|\n", gutter, l.Name, strings.TrimRight(printLane(t, l, columns), "\n"))
	}
	x := axis{min: t.FromS, max: t.ToS, to: vg.Length(columns - 1), unit: chart.Seconds}
	x.setTicks(columns / 12)
	for i := range x.ticks {
		x.ticks[i].text += " s"
	}
	b.WriteString(xLabels(&x, gutter+1, width) + "\n")
	var legend []string
	for i, k := range t.Kinds {
		legend = append(legend, fmt.Sprintf("%c %s", sliceGlyphs[i%len(sliceGlyphs)], k))
	}
	writeLegend(&b, legend, width)
	_, err := io.WriteString(w, b.String())
	return err
}

func printLane(t *chart.Timeline, l chart.Lane, columns int) string {
	perColumn := (t.ToS - t.FromS) / float64(columns)
	share := make([][len(sliceGlyphs)]float64, columns)
	for _, s := range l.Slices {
		from, to := (s.StartS-t.FromS)/perColumn, (s.EndS-t.FromS)/perColumn
		for c := max(0, int(math.Floor(from))); c < columns && float64(c) < to; c++ {
			share[c][s.Kind%len(sliceGlyphs)] += min(to, float64(c+1)) - max(from, float64(c))
		}
	}
	line := make([]byte, columns)
	for c, parts := range share {
		line[c] = ' '
		most := 0.0
		for k, part := range parts {
			if part > most+1e-9 {
				most, line[c] = part, sliceGlyphs[k]
			}
		}
	}
	return string(line)
}

// largest is the greatest of the amounts.
func largest(f *chart.Waterfall) float64 {
	most := 0.0
	for _, g := range f.Groups {
		for _, v := range g.Values {
			most = max(most, v)
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

func drawWaterfall(f *chart.Waterfall) *Figure {
	n := len(f.Stages)
	out := &Figure{Title: f.Title, Caption: f.Caption, notes: f.Notes, width: pageWidth,
		height: vg.Length(100 + waterfallRow(n)*len(f.Groups) + 14*len(f.Notes))}
	const room = 1.16 // for the numbers behind the bars
	for i, g := range f.Groups {
		p := &panel{
			title: g.Name,
			x:     axis{min: 0, max: room * largest(f)},
			y:     axis{min: -0.6, max: float64(n) - 0.4, places: make([]string, n)},
		}
		if i == len(f.Groups)-1 {
			p.x.title = f.Unit
		}
		before := g.Values[0]
		for k, v := range g.Values {
			at := float64(n - 1 - k)
			p.y.places[n-1-k] = f.Stages[k]
			if lost := before - v; lost > 0 {
				p.bars = append(p.bars, bar{from: v, to: before, y: at, height: 0.7, color: lostColour,
					inside: "−" + scaled(lost, 3), text: f.Stages[k] + ": " + scaled(lost, 3) + " less"})
			}
			p.bars = append(p.bars, bar{from: 0, to: v, y: at, height: 0.7, color: familyColours[stageColour(k, n)],
				text: f.Stages[k] + ": " + scaled(v, 3)})
			p.tags = append(p.tags, tag{x: max(v, before), y: at, text: scaled(v, 3), color: black,
				order: []direction{east}, must: true})
			before = v
		}
		height := waterfallRow(n)
		if p.x.title != "" {
			height += 14
		}
		out.rows = append(out.rows, row{vg.Length(height), []*panel{p}})
	}
	return out
}

var lostColour = rgb(0xF3D6C4)

// waterfallRow is the height of a group of so many bars.
func waterfallRow(bars int) int { return 34 + 19*bars }

// stageColour makes what is left in the end green, and all before it blue.
func stageColour(k, n int) int {
	if k == n-1 {
		return 2
	}
	return 0
}

// printWaterfall prints a line for each bar: what is left as #, what was lost as dots.
func printWaterfall(w io.Writer, f *chart.Waterfall, width int) error {
	width = textWidth(width)
	gutter := 0
	for _, s := range f.Stages {
		gutter = max(gutter, utf8.RuneCountInString(s)+1)
	}
	const number = 8
	columns := width - gutter - number - 3
	if columns < 10 {
		return nil
	}
	scale := float64(columns) / largest(f)
	var b strings.Builder
	for _, g := range f.Groups {
		fmt.Fprintf(&b, "\n%s\n", g.Name)
		before := g.Values[0]
		for k, v := range g.Values {
			left := int(math.Round(v * scale))
			lost := max(0, int(math.Round(before*scale))-left)
			fmt.Fprintf(&b, "  %-*s%s%s %s\n", gutter, f.Stages[k], strings.Repeat("#", left),
				strings.Repeat(".", lost), scaled(v, 3))
			before = v
		}
	}
	fmt.Fprintf(&b, "  %s; # left, . lost\n", f.Unit)
	_, err := io.WriteString(w, b.String())
	return err
}
