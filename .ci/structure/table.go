package structure

import (
	"fmt"
	"strings"
)

// row is a measure in the table.
type row struct {
	measure int
	title   string
	goal    string
	figure  func(f *figures, measure int) string
}

// rows are the measures of the table, in order.
var rows = []row{
	{1, "reading set of plain run P1, prefix caching off: functions / lines / files / receiver types",
		"200 / 2,600 / 25 / 30", readingFigure("P1")},
	{2, "reading set of plain run P2, the default scenario", "the same", readingFigure("P2")},
	{3, "functions of optional features executed in P1; P2, where they are off", "5; 5",
		func(f *figures, _ int) string {
			return count(f.get(3, "P1", "functions")) + "; " + count(f.get(3, "P2", "functions"))
		}},
	{4, "most methods, most fields of a type, embedded ones included; types over 40 or 25", "40, 25; 0",
		func(f *figures, n int) string {
			return fmt.Sprintf("%d, %d; %d", f.get(n, all, "most methods"), f.get(n, all, "most fields"),
				f.get(n, all, "types over"))
		}},
	{5, "types that hold each other; in the engine's packages", "10; 0", withEngine("types")},
	{6, "methods that take a value which holds their receiver; in the engine's packages", "10; 0",
		withEngine("methods")},
	{7, "file arrows in cycles, in percent: engine, scenario, model, collect, sim; all", "15, 30, 30; 40", shares},
	{8, "imports of optional parts by the engine's packages", "0", whole("packages")},
	{9, "exported names that no other package uses", "50", whole("names")},
	{10, "packages imported by cmd/cli, scenario, experiments", "25, 12, 12", func(f *figures, n int) string {
		return fmt.Sprintf("%d, %d, %d", f.get(n, "cmd/cli", "packages"), f.get(n, "experiments/scenario", "packages"),
			f.get(n, "experiments", "packages"))
	}},
	{11, "packages without an entry of their own in `arrows_test.go`", "0", whole("packages")},
	{12, "lines over 120 columns, a tab counts as 4", "0", whole("lines")},
	{13, "longest body of a function outside of the lessons, lines; bodies over 70 lines", "70; 0",
		func(f *figures, n int) string {
			return fmt.Sprintf("%d; %d", f.get(n, all, "longest"), f.get(n, all, "over 70"))
		}},
	{14, "lines of Go without tests, when the table was last written; not judged", "143,000", whole("lines")},
	{15, "files edited for a router, policy, queue order, autoscaler; a test adds one of each", "2, 2, 2, 2",
		func(*figures, int) string { return "2, 2, 2, 2" }}, // TestNewRules fails otherwise
}

func readingFigure(run string) func(*figures, int) string {
	return func(f *figures, n int) string {
		var parts []string
		for _, what := range []string{"functions", "lines", "files", "receiver types"} {
			parts = append(parts, count(f.get(n, run, what)))
		}
		return strings.Join(parts, " / ")
	}
}

func withEngine(what string) func(*figures, int) string {
	return func(f *figures, n int) string {
		return count(f.get(n, all, what)) + "; " + count(f.get(n, engine, what))
	}
}

func whole(what string) func(*figures, int) string {
	return func(f *figures, n int) string { return count(f.get(n, all, what)) }
}

func shares(f *figures, n int) string {
	var parts []string
	for _, p := range knots {
		parts = append(parts, count(f.get(n, p, "%")))
	}
	return strings.Join(parts, ", ") + "; " + count(f.get(n, all, "%"))
}

// count formats a number with commas.
func count(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", count(n/1000), n%1000)
}

// table is the Markdown of the measures.
func (f *figures) table() string {
	var b strings.Builder
	b.WriteString("| # | measure | now | goal |\n|---:|---|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", r.measure, r.title, r.figure(f, r.measure), r.goal)
	}
	return b.String()
}

// Markers of the table in a page.
const (
	begin = "<!-- measures: written by go -C .ci test ./structure -update -->\n"
	end   = "<!-- end of the measures -->\n"
)

// inPage replaces the table of a page.
func inPage(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return "", fmt.Errorf("no table between %q and %q", begin, end)
	}
	return before + begin + "\n" + table + "\n" + end + after, nil
}
