package plot

import "gonum.org/v1/plot/vg"

// Stack is figures one above the other, with one title and the keys and notes of all.
func Stack(title string, figures ...*Figure) *Figure {
	f := &Figure{Title: title, width: pageWidth}
	for _, g := range figures {
		parts := vg.Length(0)
		for _, r := range g.rows {
			parts += r.height
		}
		for _, r := range g.rows {
			f.rows = append(f.rows, row{r.height / parts * g.height, r.panels})
		}
		f.height += g.height
		f.key, f.notes = append(f.key, g.key...), append(f.notes, g.notes...)
	}
	return f
}
