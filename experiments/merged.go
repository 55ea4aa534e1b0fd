package experiments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// WriteJSON writes the curve as it would be if one process had made all runs. Results are read one at a time, so that
// memory does not grow by what is in them.
func (m *Merged) WriteJSON(w io.Writer) error {
	frame := *m.Curve
	frame.Points = slices.Clone(frame.Points)
	for i := range frame.Points {
		frame.Points[i].Summary = nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	const indent = "  "
	e.SetIndent("", indent)
	if err := e.Encode(&frame); err != nil {
		return err
	}
	const gap = "\n" + indent + indent + indent + `"summary": null`
	rest := b.Bytes()
	for i := range m.of {
		before, after, found := bytes.Cut(rest, []byte(gap))
		if !found {
			return fmt.Errorf("point %d of the curve has no place for a summary", i)
		}
		rest = after
		data, ok, err := m.runs.Get(m.of[i])
		if err != nil || !ok {
			return fmt.Errorf("the result of %s is gone: %w", m.runs.Manifest.Runs[m.of[i]].Label, err)
		}
		var text bytes.Buffer
		text.Write(before)
		text.WriteString(gap[:len(gap)-len("null")])
		if err := json.Indent(&text, bytes.TrimSpace(data), indent+indent+indent, indent); err != nil {
			return err
		}
		if _, err := w.Write(text.Bytes()); err != nil {
			return err
		}
	}
	_, err := w.Write(rest)
	return err
}
