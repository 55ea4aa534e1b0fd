package layout

import (
	"encoding/csv"
	"io"
	"strings"
)

// csvText makes a text from outside safe as a cell of a table: it is [Plain], and a text that a spreadsheet would take
// for a formula begins with an apostrophe.
func csvText(text string) string {
	text = Plain(text)
	if text != "" && strings.IndexByte("=+-@", text[0]) >= 0 && !isNumber(text) {
		text = "'" + text
	}
	return text
}

// isNumber reports whether a text consists of digits and the other characters of numbers.
func isNumber(text string) bool {
	return text[0] != '=' && text[0] != '@' && strings.Trim(text[1:], "0123456789.eE+-") == "" && len(text) > 1 &&
		strings.ContainsAny(text, "0123456789")
}

// CSVField is csvText with quotes where a field of CSV needs them.
func CSVField(text string) string {
	text = csvText(text)
	if !strings.ContainsAny(text, ",\"") && text == strings.TrimSpace(text) {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

// CSVWriter writes rows of CSV whose cells are made safe by csvText.
type CSVWriter struct{ *csv.Writer }

// NewCSVWriter returns a writer of rows.
func NewCSVWriter(w io.Writer) CSVWriter { return CSVWriter{csv.NewWriter(w)} }

// Write writes a row.
func (w CSVWriter) Write(row []string) error {
	safe := make([]string, len(row))
	for i, cell := range row {
		safe[i] = csvText(cell)
	}
	return w.Writer.Write(safe)
}

// WriteAll writes rows and flushes.
func (w CSVWriter) WriteAll(rows [][]string) error {
	for _, row := range rows {
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
