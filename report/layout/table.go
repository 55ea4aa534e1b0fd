package layout

import (
	"strings"
	"unicode/utf8"
)

// Grid writes rows of cells; the first column is on the left, the others are numbers of at least the given width, so
// that the rows fill a line. A row may have fewer cells than others. A name that leaves too little room has a line of
// its own.
func (t *Text) Grid(rows [][]string, width int) {
	rows = t.shown(rows)
	if t.Markdown {
		t.table(rows, 1)
		t.Blank()
		return
	}
	first, cells := 0, 0
	for _, row := range rows {
		first, cells = max(first, utf8.RuneCountInString(row[0])+1), max(cells, len(row))
	}
	first = max(first, Width-width*(cells-1)-12)
	if room := t.width() - width*(cells-1); first > room {
		first = max(room, 2)
	}
	for _, row := range rows {
		name := row[0]
		if utf8.RuneCountInString(name) > first {
			t.b.WriteString(name + "\n")
			name = ""
		}
		line := pad(name, first)
		for _, c := range row[1:] {
			line += strings.Repeat(" ", max(1, width-utf8.RuneCountInString(c))) + c
		}
		t.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// shown are the cells as they stand in the text.
func (t *Text) shown(rows [][]string) [][]string {
	list := make([][]string, len(rows))
	for i, row := range rows {
		list[i] = make([]string, len(row))
		for k, cell := range row {
			list[i][k] = t.Shown(cell)
		}
	}
	return list
}

// Table writes rows of cells below a head, each column as wide as it needs to be: the first ones on the left, the
// others, which are numbers, on the right, with so many spaces between. Of a table that is wider than a line the head
// is wrapped, and then its texts; if that and less space between do not do, each row takes two lines, its first columns
// above the others.
func (t *Text) Table(rows [][]string, left, space int) {
	rows = t.shown(rows)
	if t.Markdown {
		t.table(rows, left)
		return
	}
	if f, ok := t.fitted(rows, left, space); ok {
		for i, row := range rows {
			f.write(&t.b, row, i == 0)
		}
		return
	}
	// Texts all the way: the first column is the name.
	names, texts := left, 1
	if left >= len(rows[0]) {
		names, texts = 1, left
	}
	t.stack(rows, names, texts, space)
}

// fitted is how a table fits into a line, with less space where it has to be, and whether it does.
func (t *Text) fitted(rows [][]string, left, space int) (f *fitting, ok bool) {
	for ; space >= 1; space-- {
		if f = newFitting(rows, left, space); f.fit(t.width()) {
			return f, true
		}
	}
	return f, false
}

// stack writes the first columns of each row above the others. left is the number of columns on the left, and an empty
// one stands before them.
func (t *Text) stack(rows [][]string, names, left, space int) {
	above, below := make([][]string, len(rows)), make([][]string, len(rows))
	for i, row := range rows {
		above[i], below[i] = row[:names], append([]string{" "}, row[names:]...)
	}
	f, _ := t.fitted(above, names, 2)
	g, _ := t.fitted(below, left, space)
	for i := range rows {
		f.write(&t.b, above[i], i == 0)
		g.write(&t.b, below[i], i == 0)
	}
}

func (t *Text) table(rows [][]string, left int) {
	for i, row := range rows {
		t.b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			t.b.WriteString("|" + strings.Repeat("---|", left) + strings.Repeat("---:|", len(row)-left) + "\n")
		}
	}
}

// fitting is how a table fits into a width.
type fitting struct {
	left, space int
	head        []string
	widths      []int // of the columns
	cells       []int // the widest cell below the head
	heads       []int // the widest part of the head that is not divided
	words       []int // the same of cells
}

// shortText is the width beyond which cells are texts and not numbers or names.
const shortText = 20

func newFitting(rows [][]string, left, space int) *fitting {
	n := len(rows[0])
	f := &fitting{left, space, rows[0], make([]int, n), make([]int, n), make([]int, n), make([]int, n)}
	for i, head := range rows[0] {
		f.widths[i] = utf8.RuneCountInString(head)
		f.heads[i] = widest(parts(head))
	}
	for _, row := range rows[1:] {
		for i, cell := range row {
			f.cells[i] = max(f.cells[i], utf8.RuneCountInString(cell))
			f.widths[i] = max(f.widths[i], f.cells[i])
			f.words[i] = max(f.words[i], widest(parts(cell)))
		}
	}
	return f
}

// fit makes columns narrower, as far as that is of use, and reports whether the table fits.
func (f *fitting) fit(width int) bool {
	least := make([]int, len(f.widths))
	for i := range least {
		least[i] = max(f.cells[i], f.heads[i])
	}
	if f.shrink(least, width) {
		for i, cell := range f.head { // the head may be in lines that are shorter yet
			f.widths[i] = max(f.cells[i], widest(wrapped(cell, f.widths[i])))
		}
		return true
	}
	for i := range least {
		if f.cells[i] > shortText {
			least[i] = max(f.words[i], f.heads[i])
		}
	}
	return f.shrink(least, width)
}

// shrink takes from the columns that are the furthest from their least widths.
func (f *fitting) shrink(least []int, width int) bool {
	for {
		total, most := f.space*(len(f.widths)-1), 0
		for i, w := range f.widths {
			if total += w; w-least[i] > f.widths[most]-least[most] {
				most = i
			}
		}
		if total <= width {
			return true
		}
		if f.widths[most] <= least[most] {
			return false
		}
		f.widths[most]--
	}
}

// write writes a row, in as many lines as its highest cell has. Those of a head stand at the bottom.
func (f *fitting) write(b *strings.Builder, row []string, head bool) {
	height := 1
	cells := make([][]string, len(row))
	for i, cell := range row {
		cells[i] = wrapped(cell, f.widths[i])
		height = max(height, len(cells[i]))
	}
	for k := range height {
		line := ""
		for i, lines := range cells {
			text, at := "", k
			if head {
				at -= height - len(lines)
			}
			if at >= 0 && at < len(lines) {
				text = lines[at]
			}
			if i > 0 {
				line += strings.Repeat(" ", f.space)
			}
			if fill := strings.Repeat(" ", max(0, f.widths[i]-utf8.RuneCountInString(text))); i < f.left {
				line += text + fill
			} else {
				line += fill + text
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// parts divides a text where it may be wrapped: after spaces, and after underscores and commas within words.
func parts(text string) []string {
	var list []string
	from := 0
	for i, r := range text {
		if strings.ContainsRune(" _,", r) {
			list = append(list, text[from:i+1])
			from = i + 1
		}
	}
	return append(list, text[from:])
}

// widest is the greatest width of parts, without the spaces after them.
func widest(parts []string) int {
	width := 0
	for _, p := range parts {
		width = max(width, utf8.RuneCountInString(strings.TrimRight(p, " ")))
	}
	return width
}

// wrapped is a text in lines of a width, if its parts are not wider.
func wrapped(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, p := range parts(text) {
		if line != "" && utf8.RuneCountInString(line+strings.TrimRight(p, " ")) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = ""
		}
		line += p
	}
	return append(lines, strings.TrimRight(line, " "))
}
