package plot

import (
	"bytes"
	"fmt"
	"html"
	"image/png"
	"io"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"clifftop/report/layout"
)

// Figure is a picture: a title that says what it shows, panels, and notes.
type Figure struct {
	// Title is the message of the picture.
	Title string
	// Caption stands below the title, such as the scenario's name; it may be empty.
	Caption string

	detail        string // stands below the caption
	key           []keyEntry
	notes         []string
	width, height vg.Length
	rows          []row
}

// keyEntry names a colour, below the title.
type keyEntry struct {
	name  string
	color colour
}

// drawKey writes the names of colours in a line, or more where they do not fit, from the height y down, and answers
// where the rest begins.
func (f *Figure) drawKey(s drawing, left, right, y vg.Length) vg.Length {
	if len(f.key) == 0 {
		return y
	}
	const gap, radius = 14, 2.6
	height := nameText.height("x")
	x := left
	y -= height
	for _, k := range f.key {
		text := nameText
		text.color = k.color
		width := 4*radius + text.width(k.name)
		if x > left && x+width > right {
			x, y = left, y-height-3
		}
		s.mark(dot, vg.Point{X: x + radius, Y: y + text.size*(descent+capital/2)}, radius, k.color, false)
		s.text(text, vg.Point{X: x + 4*radius, Y: y}, 0, k.name, false)
		x += width + gap
	}
	return y - 5
}

// row is a line of panels of equal width.
type row struct {
	height vg.Length // as a part of all rows' heights
	panels []*panel
}

const (
	pixelsPerInch = 192
	pageMargin    = vg.Length(10)
	columnGap     = vg.Length(16)
	rowGap        = vg.Length(12)
)

// WritePNG writes the picture at 192 pixels per inch.
func (f *Figure) WritePNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(pixelsPerInch))
	f.draw(drawing{Canvas: c})
	if err := png.Encode(w, c.Image()); err != nil {
		return fmt.Errorf("writing a picture: %w", err)
	}
	return nil
}

// WriteSVG writes the picture with its text as text. It names Liberation Sans, and Arial and Helvetica,
// which are as wide, for readers without it.
func (f *Figure) WriteSVG(w io.Writer) error {
	c := vgsvg.New(f.width, f.height)
	f.draw(drawing{Canvas: c, vector: true})
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return fmt.Errorf("writing a picture: %w", err)
	}
	title := html.EscapeString(layout.Plain(strings.ReplaceAll(f.Title, "\n", " ")))
	svg := strings.NewReplacer(
		"font-family:Liberation Sans;", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;",
		"fill:#FEFEFD", fmt.Sprintf("fill:#FFFFFF;stroke:#FFFFFF;stroke-width:%g;stroke-linejoin:round", 2*haloWidth),
		`xmlns:xlink="http://www.w3.org/1999/xlink">`,
		`xmlns:xlink="http://www.w3.org/1999/xlink" role="img">`+"\n<title>"+title+"</title>",
	).Replace(b.String())
	if _, err := io.WriteString(w, svg); err != nil {
		return fmt.Errorf("writing a picture: %w", err)
	}
	return nil
}

// WriteFiles writes the picture as NAME.png and NAME.svg. keep creates a file with the
// content that fill writes: the whole file or none.
func (f *Figure) WriteFiles(name string, keep func(name string, fill func(io.Writer) error) error) error {
	if err := keep(name+".png", f.WritePNG); err != nil {
		return err
	}
	return keep(name+".svg", f.WriteSVG)
}

func (f *Figure) draw(s drawing) {
	s.fill(rect(0, 0, f.width, f.height), white)
	left, right := pageMargin, f.width-pageMargin
	y := f.height - pageMargin
	for _, t := range []struct {
		script
		text  string
		space vg.Length
	}{{headline, f.Title, 5}, {caption, f.Caption, 3}, {caption, f.detail, 3}} {
		if t.text == "" {
			continue
		}
		text := t.balance(t.text, right-left)
		y -= t.height(text)
		s.text(t.script, vg.Point{X: left, Y: y}, 0, text, false)
		y -= t.space
	}
	y = f.drawKey(s, left, right, y-2)
	y -= 5

	bottom := pageMargin
	for i := len(f.notes) - 1; i >= 0; i-- {
		text := tagText.wrap(f.notes[i], right-left)
		s.text(tagText, vg.Point{X: left, Y: bottom}, 0, text, false)
		bottom += tagText.height(text) + 3
	}
	if len(f.notes) > 0 {
		bottom += 4
	}
	f.drawRows(s, rect(left, bottom, right, y))
}

// drawRows tiles the panels, so that those of one column begin and end alike.
func (f *Figure) drawRows(s drawing, area vg.Rectangle) {
	parts := vg.Length(0)
	for _, r := range f.rows {
		parts += r.height
	}
	free := area.Max.Y - area.Min.Y - rowGap*vg.Length(len(f.rows)-1)
	boxes := make([][]vg.Rectangle, len(f.rows))
	need := make([][]margins, len(f.rows))
	y := area.Max.Y
	for i, r := range f.rows {
		n := vg.Length(len(r.panels))
		width := (area.Max.X - area.Min.X - columnGap*(n-1)) / n
		height := free * r.height / parts
		for k, p := range r.panels {
			x := area.Min.X + vg.Length(k)*(width+columnGap)
			boxes[i] = append(boxes[i], rect(x, y-height, x+width, y))
			need[i] = append(need[i], p.fit(vg.Point{X: width, Y: height}))
		}
		y -= height + rowGap
	}
	for i, r := range f.rows {
		for k, p := range r.panels {
			m := need[i][k]
			for j, other := range f.rows {
				if len(other.panels) == len(r.panels) {
					m.left, m.right = max(m.left, need[j][k].left), max(m.right, need[j][k].right)
				}
			}
			p.draw(s, boxes[i][k], m)
		}
	}
}
