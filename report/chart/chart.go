// Package chart describes the content of pictures of results, not their look. Package [clifftop/report/plot] draws them
// into files and on terminals, the browser draws them from their JSON.
package chart

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Picture is something that can be drawn: [Lines], a [Timeline] or a [Waterfall].
type Picture interface {
	// Message is the title of the picture: what it shows.
	Message() string
}

var (
	_ Picture = (*Lines)(nil)
	_ Picture = (*Timeline)(nil)
	_ Picture = (*Waterfall)(nil)
)

// Lines is a picture of lines, in one panel or several.
type Lines struct {
	// Title is the message of the picture; Caption says what was simulated.
	Title   string `json:"title"`
	Caption string `json:"caption"`
	// Panels stand one above the other, or side by side.
	Panels []Panel `json:"panels"`
	Beside bool    `json:"beside"`
	// Notes stand below.
	Notes []string `json:"notes"`
}

// Message implements [Picture].
func (l *Lines) Message() string { return l.Title }

// Panel is one diagram of lines.
type Panel struct {
	// Title is left out where it is empty.
	Title string `json:"title"`
	X     Scale  `json:"x"`
	Y     Scale  `json:"y"`
	Lines []Line `json:"lines"`
	Rules []Rule `json:"rules"`
	// Height is the panel's part of the picture where panels stand above one another; 0 is 1.
	Height float64 `json:"height"`
}

// Scale is an axis of a panel.
type Scale struct {
	// Title names what is measured, with the unit where Unit does not write one.
	Title string `json:"title"`
	Unit  Unit   `json:"unit"`
	Log   bool   `json:"log"`
	// Min and Max are the ends; where both are 0 the lines choose them.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// Unit says how an axis writes its values.
type Unit int

// The units.
const (
	Plain        Unit = iota // 950, 1.2k
	Milliseconds             // 80 ms, 1.2 s
	Fraction                 // 0.25 is 25 %
	Dollars                  // $0.25
	Whole                    // 950, 12345: loads and the like
	Seconds                  // 1.2345
)

// MarshalText writes the unit's name.
func (u Unit) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

func (u Unit) String() string {
	switch u {
	case Milliseconds:
		return "ms"
	case Fraction:
		return "fraction"
	case Dollars:
		return "usd"
	case Whole:
		return "number"
	case Seconds:
		return "seconds"
	}
	return "plain"
}

// Line is a line of a panel. Lines take their colours in turn, those for comparison are grey.
type Line struct {
	// Name stands where the line ends, or at its point number NameAt if that is not 0; it may be empty.
	Name   string  `json:"name"`
	NameAt int     `json:"-"`
	Points []Point `json:"points"`
	// Dots marks the points, and Scattered leaves the line between them out.
	Dots      bool `json:"dots"`
	Scattered bool `json:"scattered"`
	// Guide is a thin line to compare with: the axes need not hold it.
	Guide bool `json:"guide"`
	// Stepped lines stay as they are up to the next point, and Filled ones shade what is below them; pages draw that.
	Stepped bool `json:"stepped,omitempty"`
	Filled  bool `json:"filled,omitempty"`
}

// Point is a point of a line.
type Point struct {
	X, Y float64
	// Label stands beside the point if there is room.
	Label string
	// Hollow marks a point without a steady state, which is to be read with care.
	Hollow bool
}

// MarshalJSON writes null for NaN and infinite values, which JSON does not have.
func (p Point) MarshalJSON() ([]byte, error) {
	finite := func(v float64) *float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	return json.Marshal(struct {
		X      *float64 `json:"x"`
		Y      *float64 `json:"y"`
		Label  string   `json:"label,omitempty"`
		Hollow bool     `json:"hollow,omitempty"`
	}{finite(p.X), finite(p.Y), p.Label, p.Hollow})
}

// Rule is a thin line across a panel at a value of the vertical axis, or of the horizontal one if it is Vertical.
type Rule struct {
	At       float64 `json:"at"`
	Vertical bool    `json:"vertical"`
	Name     string  `json:"name"`
	// Limit says that it is one of an objective.
	Limit bool `json:"limit,omitempty"`
}

// Distribution is a line from the smallest of the values to the greatest: how large a part of them is at most so
// large. The values are sorted in place.
func Distribution(name string, values []float64) Line {
	slices.Sort(values)
	l := Line{Name: name}
	const most = 400 // points
	n := len(values)
	for k := range min(n, most) {
		i := k
		if n > most {
			i = k * (n - 1) / (most - 1)
		}
		l.Points = append(l.Points, Point{X: values[i], Y: float64(i+1) / float64(n)})
	}
	return l
}

// Roofline is a panel of the arithmetic that a machine does each second against the arithmetic that a program does
// for each byte that it reads: neither can be above the roof. Peak is in FLOPs per second, bandwidth in bytes per
// second. The lines go in FLOPs per byte and TFLOPs per second.
func Roofline(peak, bandwidth float64, lines ...Line) Panel {
	lo, hi := peak/bandwidth, peak/bandwidth
	for _, l := range lines {
		for _, q := range l.Points {
			lo, hi = min(lo, q.X), max(hi, q.X)
		}
	}
	lo, hi = lo/1.6, hi*2.5
	ridge := peak / bandwidth
	top := peak / 1e12
	roof := Line{Guide: true, Points: []Point{{X: lo, Y: lo * bandwidth / 1e12}, {X: ridge, Y: top}, {X: hi, Y: top}}}
	return Panel{
		X: Scale{Title: "Arithmetic per byte read, FLOPs/byte (log scale)", Log: true, Min: lo, Max: hi},
		Y: Scale{Title: "Arithmetic done, TFLOPs/s (log scale)", Log: true, Min: 0.4 * lo * bandwidth / 1e12,
			Max: 2 * top},
		Lines: append([]Line{roof}, lines...),
		Rules: []Rule{{At: ridge, Vertical: true,
			Name: "ridge, " + strconv.FormatFloat(ridge, 'f', 0, 64) + " FLOPs/byte"}},
	}
}
