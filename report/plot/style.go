package plot

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"

	"clifftop/report/layout"
)

type colour = color.NRGBA

func rgb(hex uint32) colour {
	return colour{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xFF}
}

// Colours by Okabe and Ito, which people with any colour vision can distinguish, and greys.
var (
	blue      = rgb(0x0072B2)
	green     = rgb(0x008A65) // a little darker, for text on white
	vermilion = rgb(0xD55E00)
	purple    = rgb(0xA84F80) // likewise
	black     = rgb(0x1A1A1A)
	grey      = rgb(0x606060)
	pale      = rgb(0x8C8C8C)
	hairline  = rgb(0xE2E2E2)
	shade     = rgb(0xF5F5F5)
	white     = rgb(0xFFFFFF)
)

// halo is nearly white: the SVG writer finds it by this value and gives it a stroke.
var halo = rgb(0xFEFEFD)

var (
	dotted = []vg.Length{1.6, 2.4}
	dashed = []vg.Length{5, 3}
)

// typeface parses the two faces once.
var typeface = sync.OnceValue(func() [2]*opentype.Font {
	var fonts [2]*opentype.Font
	for i, ttf := range [][]byte{liberationsansregular.TTF, liberationsansbold.TTF} {
		f, err := opentype.Parse(ttf)
		if err != nil {
			panic(fmt.Sprintf("plot: the embedded font is broken: %v", err))
		}
		fonts[i] = f
	}
	return fonts
})

// script is a way to set text.
type script struct {
	size  vg.Length
	bold  bool
	color colour
}

func (f script) face() font.Face {
	face := font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: f.size}, Face: typeface()[0]}
	if f.bold {
		face.Font.Weight, face.Face = 2, typeface()[1] // x/image/font.WeightBold
	}
	return face
}

// Proportions of the face, as parts of its size: the height of capitals and of lines, and how
// far letters reach below the baseline.
const (
	capital = 0.70
	leading = 1.22
	descent = 0.21
)

func (f script) width(text string) vg.Length {
	face, w := f.face(), vg.Length(0)
	for line := range strings.SplitSeq(layout.Lines(text), "\n") {
		w = max(w, face.Width(line))
	}
	return w
}

func (f script) height(text string) vg.Length {
	return f.size * vg.Length(capital+descent+leading*float64(strings.Count(text, "\n")))
}

// balance breaks text into as few lines as the width allows: at a semicolon, or else into lines alike
// in length.
func (f script) balance(text string, width vg.Length) string {
	text = f.wrap(text, width)
	lines := strings.Count(text, "\n")
	if head, tail, ok := strings.Cut(strings.ReplaceAll(text, "\n", " "), "; "); ok && lines == 1 &&
		f.width(head+";") <= width && f.width(tail) <= width {
		return head + ";\n" + tail
	}
	for w := width * 0.98; w > width/2; w -= width * 0.02 {
		narrow := f.wrap(text, w)
		if strings.Count(narrow, "\n") > lines || f.width(narrow) > w {
			break
		}
		text = narrow
	}
	return text
}

// wrap breaks text into lines no wider than width where it can, but never between a number and its unit.
func (f script) wrap(text string, width vg.Length) string {
	var words []string
	for _, word := range strings.Fields(text) {
		if n := len(words); n > 0 && (endsInNumber(words[n-1]) || words[n-1] == "≤" ||
			strings.HasSuffix(words[n-1], " ≤")) {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	var lines []string
	line := ""
	for _, word := range words {
		switch {
		case line == "":
			line = word
		case f.width(line+" "+word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// endsInNumber says whether the last word of a text is a number, such as 140 or 3.96k.
func endsInNumber(text string) bool {
	word := strings.TrimRight(text[strings.LastIndex(text, " ")+1:], "kMGT")
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}

// drawing is the canvas of a picture. Lengths are in points; y grows upwards.
type drawing struct {
	vg.Canvas
	vector bool
}

func rect(x0, y0, x1, y1 vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: x0, Y: y0}, Max: vg.Point{X: x1, Y: y1}}
}

func (s drawing) fill(r vg.Rectangle, c color.Color) {
	s.SetColor(c)
	s.Fill(r.Path())
}

// line strokes a path of straight pieces.
func (s drawing) line(c color.Color, width vg.Length, dash []vg.Length, points ...vg.Point) {
	if len(points) < 2 {
		return
	}
	s.SetColor(c)
	s.SetLineWidth(width)
	s.SetLineDash(dash, 0)
	var path vg.Path
	path.Move(points[0])
	for _, p := range points[1:] {
		path.Line(p)
	}
	s.Stroke(path)
}

// text sets text in the box whose lower left corner is at. Its lines are aligned left (0) to right (1).
func (s drawing) text(f script, at vg.Point, align float64, text string, haloed bool) {
	lines := strings.Split(layout.Lines(text), "\n") // control characters are no characters of XML
	face, width := f.face(), f.width(text)
	y := at.Y + f.size*vg.Length(descent+leading*float64(len(lines)-1))
	for _, line := range lines {
		p := vg.Point{X: at.X + vg.Length(align)*(width-face.Width(line)), Y: y}
		if haloed {
			s.halo(face, p, line)
		}
		s.SetColor(f.color)
		s.FillString(face, p, line)
		y -= f.size * leading
	}
}

const haloWidth = 1.5

func (s drawing) halo(face font.Face, p vg.Point, text string) {
	s.SetColor(halo)
	if s.vector {
		s.FillString(face, p, text)
		return
	}
	for i := range 12 {
		sin, cos := math.Sincos(float64(i) * math.Pi / 6)
		s.FillString(face, vg.Point{X: p.X + vg.Length(haloWidth*cos), Y: p.Y + vg.Length(haloWidth*sin)}, text)
	}
}

// shape is the form of a mark.
type shape int

const (
	dot      shape = iota
	diamond        // the knee
	triangle       // the peak
	inverted       // the collapse
)

func (m shape) path(p vg.Point, r vg.Length) vg.Path {
	var path vg.Path
	corners := [][2]vg.Length{}
	switch m {
	case dot:
		path.Move(vg.Point{X: p.X + r, Y: p.Y})
		path.Arc(p, r, 0, 2*math.Pi)
	case diamond:
		corners = [][2]vg.Length{{0, 1.25}, {1.25, 0}, {0, -1.25}, {-1.25, 0}}
	case triangle:
		corners = [][2]vg.Length{{0, 1.2}, {1.15, -0.8}, {-1.15, -0.8}}
	case inverted:
		corners = [][2]vg.Length{{0, -1.2}, {1.15, 0.8}, {-1.15, 0.8}}
	}
	for i, c := range corners {
		at := vg.Point{X: p.X + c[0]*r, Y: p.Y + c[1]*r}
		if i == 0 {
			path.Move(at)
		} else {
			path.Line(at)
		}
	}
	path.Close()
	return path
}

// mark draws a shape with a white edge; a hollow one has a white middle.
func (s drawing) mark(m shape, p vg.Point, r vg.Length, c color.Color, hollow bool) {
	s.SetLineDash(nil, 0)
	if hollow {
		s.SetColor(white)
		s.Fill(m.path(p, r))
		s.SetColor(c)
		s.SetLineWidth(1.1)
		s.Stroke(m.path(p, r))
		return
	}
	s.SetColor(white)
	s.Fill(m.path(p, r+0.9))
	s.SetColor(c)
	s.Fill(m.path(p, r))
}
