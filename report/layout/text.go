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

const labelWidth = 13

// A Text collects lines. The zero Text is for a terminal.
type Text struct {
	// Markdown writes lists and tables of Markdown.
	Markdown bool
	// Columns is the width of lines; 0 is Width.
	Columns int

	b strings.Builder
}

func (t *Text) String() string { return t.b.String() }

// WriteTo writes the text.
func (t *Text) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, t.b.String())
	return int64(n), err
}

// Len is the length of the text in bytes.
func (t *Text) Len() int { return t.b.Len() }

// Shown is a text as it stands in this one, whatever it contains: [Plain], or escaped for Markdown.
func (t *Text) Shown(text string) string {
	if t.Markdown {
		return escapeMarkdown(text)
	}
	return Plain(text)
}

// Printf writes text as it is. What comes from outside goes through [Text.Shown] before.
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
	text := t.Shown(fmt.Sprintf(format, args...))
	if t.Markdown {
		t.Printf("### %s\n\n", text)
		return
	}
	t.b.WriteString(text + "\n")
}

// Paragraph writes a text, wrapped.
func (t *Text) Paragraph(text string) {
	if t.Markdown {
		t.Printf("%s\n\n", t.Shown(strings.Join(strings.Fields(text), " ")))
		return
	}
	t.wrap(text, 0, 0)
}

// Line writes a text under a label, wrapped.
func (t *Text) Line(label, text string) {
	if t.Markdown {
		t.Printf("* **%s**: %s\n", t.Shown(label), t.Shown(text))
		return
	}
	label = Plain(label)
	column := max(labelWidth, utf8.RuneCountInString(label)+2)
	t.b.WriteString(pad(label, column))
	t.wrap(text, column, labelWidth)
}

// Item writes a text beside a count, wrapped.
func (t *Text) Item(count, text string) {
	if t.Markdown {
		t.Printf("* %s %s\n", count, t.Shown(text))
		return
	}
	const indent = 6
	t.Printf("%*s ", indent-1, count)
	t.wrap(text, indent, indent-1)
}

// Command writes a command of a shell below an item.
func (t *Text) Command(command string) {
	command = Plain(command)
	if t.Markdown {
		fence := "`"
		if strings.Contains(command, "`") {
			fence = "``"
		}
		t.Printf("  %s%s%[1]s\n", fence, command)
		return
	}
	t.b.WriteString(Shell(command, 6, t.width()))
}

// Shell indents a shell command and continues it in further lines if it is longer than width. It is divided between
// words; a quoted text is one word. A command with a comment is left as it is.
func Shell(command string, indent, width int) string {
	const more = ` \`
	line := strings.Repeat(" ", indent)
	if utf8.RuneCountInString(line+command) <= width || strings.Contains(command, "#") {
		return line + command + "\n"
	}
	text := ""
	for i, word := range shellWords(command) {
		switch {
		case i == 0:
		case utf8.RuneCountInString(line+" "+word+more) > width:
			text += line + more + "\n"
			line = strings.Repeat(" ", indent+4)
		default:
			line += " "
		}
		line += word
	}
	return text + line + "\n"
}

// shellWords divides a command at spaces outside of quotes; a flag keeps the word after it.
func shellWords(command string) []string {
	var list []string
	quoted, flag, from := false, false, 0
	for i, r := range command {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted && !flag:
			list = append(list, command[from:i])
			from = i + 1
			flag = strings.HasPrefix(command[from:], "--")
		case r == ' ' && !quoted:
			flag = false
		}
	}
	return append(list, command[from:])
}

// wrap writes words from a column on; further lines are indented.
func (t *Text) wrap(text string, column, indent int) {
	width := t.width()
	used := column
	for i, word := range words(text) {
		word = Plain(word)
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

func (t *Text) width() int {
	if t.Columns == 0 {
		return Width
	}
	return t.Columns
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

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
