package curve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"clifftop/report/layout"
)

const (
	indentation = "  " // of a result's JSON form
	jsonBuffer  = 64 << 10
)

// WriteJSON writes the curve as indented JSON, one point after the other: of results that are read when they are
// needed, no more than one is in memory.
func (c *Curve) WriteJSON(to io.Writer) error {
	w := bufio.NewWriterSize(to, jsonBuffer)
	frame := *c
	frame.Points = nil
	if c.Bounds != nil {
		bounds := *c.Bounds
		bounds.Points = nil
		frame.Bounds = &bounds
	}
	var b bytes.Buffer
	if err := writeIndented(&b, &frame, ""); err != nil {
		return err
	}
	rest := b.Bytes()
	// list writes what stands before a list that the frame lacks, and its items.
	list := func(indent string, n int, item func(i int) (any, error)) error {
		gap := "\n" + indent + `"points": `
		before, after, found := bytes.Cut(rest, []byte(gap+"null"))
		if !found {
			return fmt.Errorf("the JSON form of a curve has no place for its points")
		}
		rest = after
		if _, err := w.Write(append(before, gap...)); err != nil {
			return err
		}
		return writeList(w, indent, n, item)
	}
	if len(c.Points) > 0 {
		if err := list(indentation, len(c.Points), c.whole); err != nil {
			return err
		}
	}
	if c.Bounds != nil && len(c.Bounds.Points) > 0 {
		if err := list(indentation+indentation, len(c.Bounds.Points), func(i int) (any, error) {
			return &c.Bounds.Points[i], nil
		}); err != nil {
			return err
		}
	}
	if _, err := w.Write(rest); err != nil {
		return err
	}
	return w.Flush()
}

// whole is a point with its summary.
func (c *Curve) whole(i int) (any, error) {
	p := c.Points[i]
	var err error
	p.Summary, err = c.Summary(i)
	return &p, err
}

// writeList writes a JSON list whose bracket stands at an indentation, item by item.
func writeList(w io.Writer, indent string, n int, item func(i int) (any, error)) error {
	var b bytes.Buffer
	for i := range n {
		b.Reset()
		mark := ","
		if i == 0 {
			mark = "["
		}
		b.WriteString(mark + "\n" + indent + indentation)
		v, err := item(i)
		if err == nil {
			err = writeIndented(&b, v, indent+indentation)
		}
		if err == nil {
			_, err = w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
		}
		if err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "\n"+indent+"]")
	return err
}

// writeIndented writes a value as JSON, as it is: without escapes for HTML.
func writeIndented(w io.Writer, v any, prefix string) error {
	e := json.NewEncoder(layout.PlainWriter(w))
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indentation)
	return e.Encode(v)
}
