package console

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"clifftop/internal/pattern"
	"clifftop/report/layout"
)

// TerminalWidth is the width of text charts in columns.
const TerminalWidth = 80

// Tabular is a result that can be printed as a table. Other formats need further methods, see [printResult].
type Tabular interface{ WriteTable(io.Writer) error }

// printResult writes a result in a format. To add a format, add a case here and the name to the formats of each command
// whose results support it.
func printResult(w io.Writer, r Tabular, format string) error {
	switch format {
	case "table":
		markTable(w)
		return r.WriteTable(w)
	case "json":
		return PrintJSON(w, r)
	case "csv":
		if r, ok := r.(interface{ WriteCSV(io.Writer) error }); ok {
			return r.WriteCSV(w)
		}
	case "markdown":
		if r, ok := r.(interface{ WriteMarkdown(io.Writer) error }); ok {
			return r.WriteMarkdown(w)
		}
	}
	return fmt.Errorf("a %T cannot be printed as %s", r, format)
}

// PrintOnce fills a buffer and writes it at once, so that a reader never gets half a result of a failed command. A
// table has no control characters but those of this program: it is coloured if the writer shows colours.
func PrintOnce(w io.Writer, fill func(io.Writer) error) error {
	var b buffer
	if err := fill(&b); err != nil {
		return err
	}
	text := b.Bytes()
	if b.table {
		text = []byte(layout.Lines(b.String()))
	}
	if b.table && showsColours(w) {
		text = colour(text)
	}
	_, err := w.Write(text)
	return err
}

// buffer is the buffer of [PrintOnce].
type buffer struct {
	bytes.Buffer
	table bool // the content is a table, which may be coloured
}

// markTable marks the content of a buffer as a table. It does nothing with other writers.
func markTable(w io.Writer) {
	if b, ok := w.(*buffer); ok {
		b.table = true
	}
}

// Escape sequences that terminals need to switch colours.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1m"
	reset  = "\x1b[0m"
)

// colouredWords are the words of tables that are coloured. Colours repeat what the words say and move nothing.
var colouredWords = []struct {
	words  *pattern.Pattern
	colour string
}{
	{pattern.New(`(?m)^(?:warning|partial|collapse|useful output|sign at [0-9.e+-]+)\b|` +
		`\bNOT STATIONARY\b|\bSLO undecided\b|\bNOT DIST\.|\bNOT RELEV\.`), yellow},
	{pattern.New(`\bFAILS?\b|\bSLO MISSED\b|\bNO PLAN\b`), red},
	{pattern.New(`\bPASS\b|\bSLO met\b|(?m)^holds\b`), green},
	{pattern.New(`(?m)^(?:knee|peak|capacity|throughput|first limit)\b`), bold},
}

// colour colours the words of a table.
func colour(text []byte) []byte {
	for _, c := range colouredWords {
		text = c.words.Get().ReplaceAllFunc(text, func(words []byte) []byte {
			return []byte(c.colour + string(words) + reset)
		})
	}
	return text
}

// showsColours reports whether output to w may have colours. It may on a terminal, unless NO_COLOR is set
// (https://no-color.org), and elsewhere if CLICOLOR_FORCE is set.
func showsColours(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	if o, ok := w.(*Output); ok {
		w = o.Writer
	}
	return IsTerminal(w)
}

// Output keeps the first write error. Cobra's help functions do not return it.
type Output struct {
	io.Writer
	Err error
}

// Write implements [io.Writer].
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.Err == nil {
		o.Err = err
	}
	return n, err
}
