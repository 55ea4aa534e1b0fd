package layout

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain makes a text from outside safe to show in a line: what has no shape of its own, such as control characters,
// marks of the direction of writing and invalid bytes, is written as in Go and JSON, for example \x1b, \n and \u202e.
func Plain(text string) string { return plain(text, invisible) }

// Lines is [Plain] for each line of a text. Tabs stay as they are.
//
// It works for JSON too: encoders escape control characters, and \u202e is a JSON escape.
func Lines(text string) string {
	return plain(text, func(r rune) bool { return r != '\n' && r != '\t' && invisible(r) })
}

func plain(text string, hidden func(r rune) bool) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !hidden(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ':
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
		text = text[size:]
	}
	return b.String()
}

// PlainWriter passes texts on as [Lines]. Each write holds whole characters.
func PlainWriter(w io.Writer) io.Writer { return plainWriter{w} }

type plainWriter struct{ w io.Writer }

func (p plainWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, Lines(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// invisible reports whether a character has no shape. Spaces of all widths have one.
func invisible(r rune) bool { return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) }

// markdown are the characters that mean something within a line of Markdown, each with its escape. An underscore within
// a word means nothing.
var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "<", `\<`, "|", `\|`)

// escapeMarkdown makes a text, also one from outside, show as it is in a line or in a cell of Markdown.
func escapeMarkdown(text string) string { return markdown.Replace(Plain(text)) }

// UnescapeMarkdown is the text that escapeMarkdown was given, as far as it is plain.
func UnescapeMarkdown(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\\`*[]<|", text[i+1]) >= 0 {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// MarkdownCells divides a row of a table at the bars that are not escaped.
func MarkdownCells(row string) []string {
	row = strings.TrimSuffix(strings.TrimPrefix(row, "| "), " |")
	var cells []string
	from := 0
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++
		case '|':
			cells = append(cells, row[from:i])
			from = i + 1
		}
	}
	return append(cells, row[from:])
}
