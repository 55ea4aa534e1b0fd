// Package layout lays results out for people: in lines for a terminal, or as Markdown.
package layout

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Width is the number of columns that lines keep to where nothing else is said.
const Width = 80

// labelWidth is that of the labels of lines.
const labelWidth = 13

// A Text collects lines. The zero Text is for a terminal.
type Text struct {
	// Markdown writes lists and tables of Markdown.
	Markdown bool
	// Columns is the width of lines; 0 is Width.
	Columns int

	b strings.Builder
}

// String is the text.
func (t *Text) String() string { return t.b.String() }

// WriteTo writes the text.
func (t *Text) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, t.b.String())
	return int64(n), err
}

// Len is the length of the text in bytes.
func (t *Text) Len() int { return t.b.Len() }

// Printf writes text as it is.
func (t *Text) Printf(format string, args ...any) { fmt.Fprintf(&t.b, format, args...) }

// Blank writes an empty line.
func (t *Text) Blank() { t.b.WriteString("\n") }

// Space writes an empty line on a terminal; Markdown has its own.
func (t *Text) Space() {
	if !t.Markdown {
		t.Blank()
	}
}

// Heading begins a part of the text.
func (t *Text) Heading(format string, args ...any) {
	if t.Len() > 0 {
		t.Blank()
	}
	text := fmt.Sprintf(format, args...)
	if t.Markdown {
		t.Printf("### %s\n\n", text)
		return
	}
	t.b.WriteString(text + "\n")
}

// Paragraph writes a text, wrapped.
func (t *Text) Paragraph(text string) {
	if t.Markdown {
		t.Printf("%s\n\n", strings.Join(strings.Fields(text), " "))
		return
	}
	t.wrap(text, 0, 0)
}

// Line writes a text under a label, wrapped.
func (t *Text) Line(label, text string) {
	if t.Markdown {
		t.Printf("* **%s**: %s\n", label, text)
		return
	}
	column := max(labelWidth, utf8.RuneCountInString(label)+2)
	t.b.WriteString(pad(label, column))
	t.wrap(text, column, labelWidth)
}

// Item writes a text beside a count, wrapped.
func (t *Text) Item(count, text string) {
	if t.Markdown {
		t.Printf("* %s %s\n", count, text)
		return
	}
	const indent = 6
	t.Printf("%*s ", indent-1, count)
	t.wrap(text, indent, indent-1)
}

// wrap writes words from a column on; further lines are indented.
func (t *Text) wrap(text string, column, indent int) {
	width := t.Columns
	if width == 0 {
		width = Width
	}
	used := column
	for i, word := range words(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > width:
			t.b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			t.b.WriteString(" ")
			used++
		}
		t.b.WriteString(word)
		used += n
	}
	t.b.WriteString("\n")
}

// words divides a text; a number keeps its unit.
func words(text string) []string {
	var list []string
	for _, word := range strings.Fields(text) {
		switch n := len(list); strings.TrimRight(word, ".,;:)") {
		case "%", "ms", "s", "min", "h", "times":
			if n > 0 && endsInDigit(list[n-1]) {
				list[n-1] += " " + word
				continue
			}
		}
		list = append(list, word)
	}
	return list
}

func endsInDigit(word string) bool {
	last := word[len(word)-1]
	return '0' <= last && last <= '9'
}

// Grid writes rows of cells; the first column is on the left, the others are numbers of at least the given width, so
// that the rows fill a line. A row may have fewer cells than others.
func (t *Text) Grid(rows [][]string, width int) {
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
	for _, row := range rows {
		line := pad(row[0], first)
		for _, c := range row[1:] {
			line += strings.Repeat(" ", max(1, width-utf8.RuneCountInString(c))) + c
		}
		t.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// Table writes rows of cells, each column as wide as it needs to be: the first ones on the left, the others, which
// are numbers, on the right, with so many spaces between.
func (t *Text) Table(rows [][]string, left, space int) {
	if t.Markdown {
		t.table(rows, left)
		return
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	gap := strings.Repeat(" ", space)
	for _, row := range rows {
		line := ""
		for i, c := range row {
			if i > 0 {
				line += gap
			}
			if fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)); i < left {
				line += c + fill
			} else {
				line += fill + c
			}
		}
		t.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// table writes a table of Markdown.
func (t *Text) table(rows [][]string, left int) {
	for i, row := range rows {
		t.b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			t.b.WriteString("|" + strings.Repeat("---|", left) + strings.Repeat("---:|", len(row)-left) + "\n")
		}
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
