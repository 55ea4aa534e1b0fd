package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Marks around the tables in BENCHMARKS.md that the gate writes.
const (
	tablesBegin = "<!-- .ci/perf -write: begin -->\n"
	tablesEnd   = "<!-- .ci/perf -write: end -->\n"
)

// writeTable replaces the tables in BENCHMARKS.md.
func (g *gate) writeTable() error {
	path := filepath.Join(g.b.root, "BENCHMARKS.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(text), tablesBegin)
	_, after, ended := strings.Cut(rest, tablesEnd)
	if !begun || !ended {
		return fmt.Errorf("BENCHMARKS.md lacks the marks\n%s%s", tablesBegin, tablesEnd)
	}
	fmt.Println("writes the tables of BENCHMARKS.md")
	return os.WriteFile(path, []byte(before+tablesBegin+g.tables()+tablesEnd+after), 0o644)
}

// tables returns a table of all cases, and one of the stages of those that show them.
func (g *gate) tables() string {
	var s strings.Builder
	anchor, accepted := g.base.Anchor, g.base.Accepted
	old, last := anchor.Hash[:8], accepted.Hash[:8]
	fmt.Fprintf(&s, "\n| case | instructions: %s | %s | now | now / %[1]s | goal |", old, last)
	fmt.Fprintf(&s, " misses: %s | %s | now | goal |\n|---|%s\n", old, last, strings.Repeat("---:|", 9))
	for _, c := range cases() {
		a, b, now := anchor.Cases[c.Name].Figures, accepted.Cases[c.Name].Figures, g.head[c.Name]
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %.2f | %s |", c.Name, cell(a, instr), cell(b, instr), cell(now, instr),
			now[instr]/a[instr], goal(c.Goal[0]))
		fmt.Fprintf(&s, " %s | %s | %s | %s |\n", cell(a, misses), cell(b, misses), cell(now, misses), goal(c.Goal[1]))
	}
	s.WriteString("\n| stage, instructions |")
	var shown []Case
	for _, c := range cases() {
		if c.Shown {
			shown = append(shown, c)
			fmt.Fprintf(&s, " %s: %s | now |", c.Name, old)
		}
	}
	s.WriteString("\n|---|" + strings.Repeat("---:|---:|", len(shown)) + "\n")
	for _, stage := range slices.Concat(g.names.Stages, g.names.Starts) {
		s.WriteString("| " + stage.Name + " |")
		for _, c := range shown {
			a := anchor.Cases[c.Name].Figures
			fmt.Fprintf(&s, " %s | %s |", cell(a, stage.Name), cell(g.head[c.Name], stage.Name))
		}
		s.WriteString("\n")
	}
	s.WriteString("\n" + g.missed() + "\n")
	return s.String()
}

// missed lists the cases that are over a goal or cost more than the anchor, with their largest stages.
func (g *gate) missed() string {
	s := "Cases over a goal, or over the anchor where there is no goal, in instructions and misses, with their\n" +
		"largest stages. Stages contain each other.\n"
	for _, c := range cases() {
		now := g.head[c.Name]
		var over []string
		for i, count := range []string{instr, misses} {
			wanted := c.Goal[i]
			if wanted == 0 {
				wanted = g.base.Anchor.Cases[c.Name].Figures[count]
			}
			if now[count] > wanted {
				over = append(over, fmt.Sprintf("%.2f × %s", now[count]/wanted, count))
			}
		}
		if len(over) == 0 {
			continue
		}
		stages := slices.DeleteFunc(slices.Clone(g.names.stages(&c)), func(s Group) bool { return now[s.Name] == 0 })
		slices.SortStableFunc(stages, func(a, b Group) int { return cmp.Compare(now[b.Name], now[a.Name]) })
		s += "\n* " + c.Name + ": " + strings.Join(over, ", ")
		for i, stage := range stages[:min(3, len(stages))] {
			s += []string{"; ", ", "}[min(i, 1)] + stage.Name + " " + cell(now, stage.Name)
		}
	}
	return s + "\n"
}

func goal(n float64) string {
	if n == 0 {
		return ""
	}
	return "≤ " + grouped(n)
}
