package layout

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTablesFit(t *testing.T) {
	rows := func(rows ...string) [][]string {
		var list [][]string
		for _, r := range rows {
			list = append(list, strings.Split(r, "|"))
		}
		return list
	}
	for name, c := range map[string]struct {
		rows        [][]string
		left, width int
		want        string
	}{
		"as it is": {rows("run|µs", "first|7"), 1, 12, "run    µs\nfirst   7\n"},
		"head": {rows("run|in time, tokens/s", "first|1,000"), 1, 20, "" +
			"       in time,\n" +
			"run    tokens/s\n" +
			"first     1,000\n"},
		"texts": {rows("name|does", "fcfs|the one that came first goes first"), 2, 24, "" +
			"name  does\n" +
			"fcfs  the one that came\n" +
			"      first goes first\n"},
		"two lines": {rows("run|a|b", "policy=trtllm|1,000|2,000"), 1, 18, "" +
			"run\n" +
			"       a      b\n" +
			"policy=trtllm\n" +
			"   1,000  2,000\n"},
		"less space": {rows("run|a|b", "policy=trtllm|1,000|2,000"), 1, 25, "" +
			"run               a     b\n" +
			"policy=trtllm 1,000 2,000\n"},
	} {
		text := Text{Columns: c.width}
		text.Table(c.rows, c.left, 2)
		if got := text.String(); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.want)
		}
	}
}

// TestTablesKeepTheirWords lays out tables of any cells: every word is there, in order, and lines fit unless a word
// does not.
func TestTablesKeepTheirWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 8).Draw(t, "columns")
		cell := rapid.StringMatching(`([a-z_]{1,9} ){0,8}[a-z]{1,9}`)
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, columns, columns), 1, 5).Draw(t, "rows")
		left := rapid.IntRange(0, columns).Draw(t, "left")
		text := Text{Columns: rapid.IntRange(30, 120).Draw(t, "width")}
		text.Table(rows, left, 2)
		letters := func(s string) int { return len(s) - strings.Count(s, " ") - strings.Count(s, "\n") }
		want := 0
		for _, row := range rows {
			want += letters(strings.Join(row, ""))
		}
		if got := letters(text.String()); got != want {
			t.Fatalf("%d letters of %d:\n%s", got, want, text.String())
		}
		for _, line := range strings.Split(text.String(), "\n") {
			if strings.HasSuffix(line, " ") {
				t.Fatalf("%q ends in a space", line)
			}
		}
	})
}

func TestLongNamesStandAbove(t *testing.T) {
	var text Text
	text.Grid([][]string{{"ms", "mean"}, {strings.Repeat("long name ", 8), "12.5"}}, 8)
	for _, line := range strings.Split(text.String(), "\n") {
		if utf8.RuneCountInString(line) > Width {
			t.Errorf("%q is wider than a line", line)
		}
	}
}

func TestCommands(t *testing.T) {
	text := Text{Columns: 50}
	text.Command("clifftop run a.yaml --set 'clients={timeout: 6s, retries: 3}' --set seed=1 --over users=1,2")
	want := "" +
		"      clifftop run a.yaml \\\n" +
		"          --set 'clients={timeout: 6s, retries: 3}' \\\n" +
		"          --set seed=1 --over users=1,2\n"
	if got := text.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestSpark(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values []float64
		width  int
		want   string
		most   float64
	}{
		{nil, 8, "", nan},
		{[]float64{nan}, 8, " ", nan},
		{[]float64{0, 0}, 8, "▁▁", 0},
		{[]float64{0, 8, 0, 8}, 2, "██", 4},
		{[]float64{0, 0, 8, 8}, 2, "▁█", 8},
		{[]float64{nan, nan, 8, nan}, 2, " █", 8},
		{[]float64{0, 2, 4, 8}, 4, "▁▃▅█", 8},
		{[]float64{3, 0, 0}, 2, "█▁", 2},
	} {
		if got, most := Spark(c.values, c.width); got != c.want || most != c.most &&
			!(math.IsNaN(most) && math.IsNaN(c.most)) {
			t.Errorf("%v in %d: %q up to %g, want %q up to %g", c.values, c.width, got, most, c.want, c.most)
		}
	}
}
