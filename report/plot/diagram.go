package plot

import (
	"math"
	"strconv"
)

// Diagram is a panel of a figure as numbers, for programs that draw it in other ways, such as a page in a browser. The
// charts of report/page/assets define the keys of its JSON form.
type Diagram struct {
	Title string   `json:"title"`
	Text  string   `json:"text,omitempty"`  // stands below the title
	Notes []string `json:"notes,omitempty"` // stand below the chart
	// Alt stands for the diagram where it is not seen; empty for one made from the rest.
	Alt string `json:"alt,omitempty"`
	// Empty is the text of a panel without data.
	Empty  string          `json:"empty,omitempty"`
	Height int             `json:"height,omitempty"` // in pixels; 0 for the usual one
	Zoom   bool            `json:"zoom,omitempty"`   // the horizontal axis can be zoomed
	X      DiagramAxis     `json:"x"`
	Y      DiagramAxis     `json:"y"`
	Series []DiagramSeries `json:"series,omitempty"`
	Rules  []DiagramRule   `json:"rules,omitempty"`
	Bands  []DiagramBand   `json:"bands,omitempty"`
	Marks  []DiagramMark   `json:"marks,omitempty"`
	Tags   []DiagramMark   `json:"tags,omitempty"`
	Bars   []DiagramBar    `json:"bars,omitempty"`
	Kinds  []DiagramKind   `json:"kinds,omitempty"` // of bars
	// Scatter says that points are asked for one by one, not all of them at a place of the horizontal axis.
	Scatter bool `json:"scatter,omitempty"`
	// LabelTitle names the column of the series' labels in a table.
	LabelTitle string `json:"labelTitle,omitempty"`
}

// DiagramAxis is an axis. Where Min is Max the values choose.
type DiagramAxis struct {
	Title  string   `json:"title"`
	Unit   string   `json:"unit"`
	Log    bool     `json:"log,omitempty"`
	Min    Number   `json:"min,omitempty"`
	Max    Number   `json:"max,omitempty"`
	Places []string `json:"places,omitempty"` // names of the values 0, 1, 2 …
	Hold   []Number `json:"hold,omitempty"`   // more values that it must hold
}

// DiagramSeries is a line of a diagram, or dots.
type DiagramSeries struct {
	Name   string   `json:"name,omitempty"`
	Color  string   `json:"color"`
	X      []Number `json:"x"`
	Y      []Number `json:"y"`
	Low    []Number `json:"low,omitempty"` // ends of confidence intervals
	High   []Number `json:"high,omitempty"`
	Hollow []bool   `json:"hollow,omitempty"`
	Finite []bool   `json:"finite,omitempty"`
	Labels []string `json:"labels,omitempty"`
	NoLine bool     `json:"noLine,omitempty"`
	Dots   bool     `json:"dots,omitempty"`
	Dash   bool     `json:"dash,omitempty"`
	Guide  bool     `json:"guide,omitempty"`
	Step   bool     `json:"step,omitempty"`
	Fill   bool     `json:"fill,omitempty"`
}

// DiagramRule is a thin line across.
type DiagramRule struct {
	At       Number `json:"at"`
	Vertical bool   `json:"vertical,omitempty"`
	Name     string `json:"name,omitempty"`
	Color    string `json:"color"`
}

// DiagramBand shades a part of the horizontal axis.
type DiagramBand struct {
	From Number `json:"from"`
	To   Number `json:"to"`
	Name string `json:"name,omitempty"`
}

// DiagramMark is a text at a point, with a shape of diamond, triangle or inverted, or none.
type DiagramMark struct {
	X     Number   `json:"x"`
	Y     Number   `json:"y"`
	Text  string   `json:"text"`
	Shape string   `json:"shape,omitempty"`
	Order []string `json:"order,omitempty"` // where it should stand, best first
}

// DiagramBar is a horizontal bar.
type DiagramBar struct {
	From   Number `json:"from"`
	To     Number `json:"to"`
	Y      Number `json:"y"`
	Height Number `json:"height,omitempty"`
	Color  string `json:"color"`
	Label  string `json:"label,omitempty"`  // says what it is
	Inside string `json:"inside,omitempty"` // stands beside it
}

// DiagramKind names a colour of bars.
type DiagramKind struct {
	Name  string `json:"name"`
	Color string `json:"color"`
}

// Number is written with six digits, which is more than a picture shows; what is not finite is null.
type Number float64

func (n Number) MarshalJSON() ([]byte, error) {
	if !finite(float64(n)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 6, 64), nil
}

// Diagrams are the panels of the figure, row by row. One that is alone has the figure's title.
func (f *Figure) Diagrams() []Diagram {
	var out []Diagram
	for _, r := range f.rows {
		for _, p := range r.panels {
			out = append(out, p.diagram())
		}
	}
	for i := range out {
		d := &out[i]
		for _, k := range f.key {
			d.Kinds = append(d.Kinds, DiagramKind{k.name, colourName(k.color)})
		}
		if len(d.Series) > 0 && len(d.Bars) == 0 && len(f.key) > 0 {
			d.nameByColour()
		}
	}
	if len(out) == 1 {
		out[0].Title, out[0].Text, out[0].Notes = f.Title, f.detail, f.notes
	}
	return out
}

// Text returns the text below the figure's title, and Notes the text below the figure.
func (f *Figure) Text() string { return f.detail }

// Notes stand below the figure.
func (f *Figure) Notes() []string { return f.notes }

// nameByColour gives series the names that the key has for their colours.
func (d *Diagram) nameByColour() {
	for i := range d.Series {
		for _, k := range d.Kinds {
			if s := &d.Series[i]; !s.Guide && s.Name == "" && s.Color == k.Color {
				s.Name = k.Name
			}
		}
	}
	d.Kinds = nil
}

func (p *panel) diagram() Diagram {
	d := Diagram{Title: p.title, X: p.x.diagram(), Y: p.y.diagram(), Empty: p.empty}
	for _, v := range p.hold {
		d.Y.Hold = append(d.Y.Hold, Number(v))
	}
	for _, s := range p.series {
		d.Scatter = d.Scatter || s.scattered
		d.Series = append(d.Series, s.diagram())
	}
	for _, r := range p.rules {
		d.Rules = append(d.Rules, DiagramRule{At: Number(r.at), Vertical: r.vertical, Name: r.name,
			Color: colourName(r.color)})
	}
	for _, b := range p.bands {
		d.Bands = append(d.Bands, DiagramBand{Number(b.from), Number(b.to), b.name})
	}
	for _, m := range p.marks {
		d.Marks = append(d.Marks, DiagramMark{Number(m.x), Number(m.y), m.text, m.shape.name(),
			directionNames(m.order)})
	}
	for _, t := range p.tags {
		d.Tags = append(d.Tags, DiagramMark{X: Number(t.x), Y: Number(t.y), Text: t.text,
			Order: directionNames(t.order)})
	}
	for _, b := range p.bars {
		d.Bars = append(d.Bars, DiagramBar{Number(b.from), Number(b.to), Number(b.y), Number(b.height),
			colourName(b.color), b.text, b.inside})
	}
	return d
}

func (a *axis) diagram() DiagramAxis {
	unit := a.unit.String()
	return DiagramAxis{Title: a.title, Unit: unit, Log: a.log, Min: Number(a.min), Max: Number(a.max), Places: a.places}
}

func (s *series) diagram() DiagramSeries {
	d := DiagramSeries{
		Name: s.name, Color: colourName(s.color), NoLine: s.scattered, Dots: s.radius > 0, Guide: s.guide,
		Dash: s.dash != nil, Step: s.stepped, Fill: s.filled,
		X: []Number{}, Y: []Number{},
	}
	hollow, finite, barred, named := false, false, false, false
	for _, q := range s.points {
		hollow, finite = hollow || q.hollow, finite || q.finite
		barred, named = barred || q.low < q.high, named || q.text != ""
	}
	for _, q := range s.points {
		d.X, d.Y = append(d.X, Number(q.x)), append(d.Y, Number(q.y))
		if hollow {
			d.Hollow = append(d.Hollow, q.hollow)
		}
		if finite {
			d.Finite = append(d.Finite, q.finite)
		}
		if named {
			d.Labels = append(d.Labels, q.text)
		}
		if !barred {
			continue
		}
		low, high := q.low, q.high
		if !(low < high) {
			low, high = math.NaN(), math.NaN()
		}
		d.Low, d.High = append(d.Low, Number(low)), append(d.High, Number(high))
	}
	return d
}

func colourName(c colour) string {
	for _, k := range [...]struct {
		colour
		name string
	}{
		{blue, "blue"}, {green, "green"}, {vermilion, "vermilion"}, {purple, "purple"}, {black, "black"},
		{grey, "grey"}, {pale, "pale"},
		{rgb(0xB07D00), "orange"}, {rgb(0x3A94CF), "sky"}, {lostColour, "lost"},
	} {
		if c == k.colour {
			return k.name
		}
	}
	return "grey"
}

func (s shape) name() string {
	switch s {
	case diamond:
		return "diamond"
	case triangle:
		return "triangle"
	case inverted:
		return "inverted"
	}
	return "dot"
}

func directionNames(order []direction) []string {
	var names []string
	for _, d := range order {
		for _, k := range [...]struct {
			direction
			name string
		}{
			{north, "north"}, {northEast, "northEast"}, {east, "east"}, {southEast, "southEast"},
			{south, "south"}, {southWest, "southWest"}, {west, "west"}, {northWest, "northWest"},
		} {
			if d == k.direction {
				names = append(names, k.name)
			}
		}
	}
	return names
}
