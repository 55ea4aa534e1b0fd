package estimate

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"clifftop/report/layout"
)

// tableWidth is the width of tables in columns.
const tableWidth = 80

// WriteTable writes each number, followed by its formula.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	b.WriteString(sentence(r.Of) + "\n\n")
	width := 0
	for i := range r.Lines {
		width = max(width, utf8.RuneCountInString(r.Lines[i].Text))
	}
	indent := strings.Repeat(" ", width+2)
	for i := range r.Lines {
		l := &r.Lines[i]
		b.WriteString(l.Text + strings.Repeat(" ", width+2-utf8.RuneCountInString(l.Text)) + wrap(l.says(),
			indent) + "\n")
		if l.Formula != "" {
			b.WriteString(l.arithmetic())
		}
	}
	for _, note := range r.Notes {
		b.WriteString("\n" + wrap(note, "") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// arithmetic returns the formula and its numbers, on one line if they fit.
func (l *Line) arithmetic() string {
	const indent = "    "
	formula, numbers := "= "+l.Formula, "= "+l.Numbers
	if whole := indent + formula + " " + numbers; utf8.RuneCountInString(whole) <= tableWidth {
		return whole + "\n"
	}
	return indent + wrap(formula, indent) + "\n" + indent + wrap(numbers, indent) + "\n"
}

// says returns the value with its unit and meaning.
func (l *Line) says() string {
	text := "–"
	if l.Value != nil {
		text = amount(*l.Value)
	}
	if l.Unit == "$" || l.Unit == "$/h" {
		text = "$" + text + strings.TrimPrefix(l.Unit, "$")
	} else if l.Unit != "" {
		text += " " + l.Unit
	}
	if l.Says != "" {
		text += " (" + l.Says + ")"
	}
	return text
}

// wrap breaks a text at spaces. Lines after the first begin with the indent. The caller writes the indent of the first.
func wrap(text, indent string) string {
	var b strings.Builder
	used := utf8.RuneCountInString(indent)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > tableWidth:
			b.WriteString("\n" + indent)
			used = utf8.RuneCountInString(indent)
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return strings.ToUpper(string(first)) + text[size:]
}

// WriteMarkdown writes a Markdown table, followed by the notes.
func (r *Result) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(sentence(r.Of) + "\n\n| | | formula | with numbers |\n|---|---:|---|---|\n")
	for i := range r.Lines {
		l := &r.Lines[i]
		b.WriteString("| " + strings.Join([]string{l.Text, l.says(), l.Formula, l.Numbers}, " | ") + " |\n")
	}
	for _, note := range r.Notes {
		b.WriteString("\n" + note + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCSV writes a header and a row for each line.
func (r *Result) WriteCSV(w io.Writer) error {
	rows := [][]string{{"name", "value", "unit", "formula", "numbers", "says"}}
	for i := range r.Lines {
		l := &r.Lines[i]
		value := ""
		if l.Value != nil {
			value = strconv.FormatFloat(*l.Value, 'g', 9, 64)
		}
		rows = append(rows, []string{l.Name, value, l.Unit, l.Formula, l.Numbers, l.Says})
	}
	return layout.NewCSVWriter(w).WriteAll(rows)
}
