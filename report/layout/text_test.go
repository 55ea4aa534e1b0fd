package layout

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// write puts one of everything on a Text.
func write(t *Text) string {
	t.Heading("Loads of %d kinds", 2)
	t.Line("window", strings.Repeat("one two three ", 9)+"4 %")
	t.Item("12", strings.Repeat("rows of a trace ", 7))
	t.Paragraph(strings.Repeat("a long tale ", 12))
	t.Grid([][]string{{"ms", "mean", "p50"}, {"TTFT", "12.5", "–"}}, 9)
	t.Table([][]string{{"run", "µs", "n"}, {"first", "7", "1000"}}, 1, 2)
	return t.String()
}

func TestLinesKeepToTheirWidth(t *testing.T) {
	for _, columns := range []int{0, 40, 120} {
		width := max(columns, 0)
		if width == 0 {
			width = Width
		}
		for _, line := range strings.Split(write(&Text{Columns: columns}), "\n") {
			if n := utf8.RuneCountInString(line); n > max(width, Width) {
				t.Errorf("%d columns: a line of %d: %q", columns, n, line)
			}
			if strings.HasSuffix(line, " ") {
				t.Errorf("%d columns: %q ends in a space", columns, line)
			}
		}
	}
}

func TestUnitsStayWithTheirNumbers(t *testing.T) {
	var l Text
	l.Line("x", strings.Repeat("a ", 32)+"12 %")
	if got := l.String(); strings.Contains(got, "12\n") {
		t.Errorf("%q divides a number from its unit", got)
	}
}

func TestTables(t *testing.T) {
	rows := [][]string{{"run", "µs", "n"}, {"first", "7", "1000"}}
	for _, c := range []struct {
		text Text
		want string
	}{
		{Text{}, "run    µs     n\nfirst   7  1000\n"},
		{Text{Markdown: true}, "| run | µs | n |\n|---|---:|---:|\n| first | 7 | 1000 |\n"},
	} {
		c.text.Table(rows, 1, 2)
		if got := c.text.String(); got != c.want {
			t.Errorf("got\n%swant\n%s", got, c.want)
		}
	}
}

// TestShortRowsKeepTheirColumns puts a row with fewer cells below one with all.
func TestShortRowsKeepTheirColumns(t *testing.T) {
	var l Text
	l.Grid([][]string{{"ms", "mean", "p50", "n"}, {"  ±", "12"}}, 9)
	lines := strings.Split(l.String(), "\n")
	if strings.Index(lines[0], "mean")+len("mean") != utf8.RuneCountInString(lines[1]) {
		t.Errorf("the mean is not below its head:\n%s", l.String())
	}
}
