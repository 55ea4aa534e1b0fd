package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files of the gate, in the folder .ci. Each is a list of lines of fields, some of which are NAME=NUMBER.
const (
	baseFile   = "perf-base"
	limitsFile = "perf-limits"
	unitsFile  = "perf-units"
	namesFile  = "perf-names"
)

// Figures has numbers by name.
type Figures map[string]float64

// Names of figures that every case has.
const (
	instr  = "instr"
	misses = "misses"
)

// records splits text into lines of fields. A line that begins with a space goes on with the line before it, and lines
// that begin with # are comments.
func records(text string) (lines [][]string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch n := len(lines); {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case line[0] == ' ' && n > 0:
			lines[n-1] = append(lines[n-1], fields...)
		default:
			lines = append(lines, fields)
		}
	}
	return lines
}

// record writes a line of fields, which goes on in further lines where it is long.
func record(fields ...string) string {
	const columns = 120
	var s strings.Builder
	length := 0
	for i, field := range strings.Fields(strings.Join(fields, " ")) {
		switch {
		case i == 0:
		case length+1+len(field) > columns:
			s.WriteString("\n ")
			length = 1
			fallthrough
		default:
			s.WriteByte(' ')
			length++
		}
		s.WriteString(field)
		length += len(field)
	}
	return s.String() + "\n"
}

// comments returns the lines at the top of text that are comments.
func comments(text string) (top string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		top += line
	}
	return top
}

func figures(fields []string) (Figures, error) {
	f := Figures{}
	for _, field := range fields {
		name, number, _ := strings.Cut(field, "=")
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not NAME=NUMBER", field)
		}
		f[name] = value
	}
	return f, nil
}

// String returns the figures as fields, instructions and misses first.
func (f Figures) String() string {
	names := slices.SortedFunc(maps.Keys(f), func(a, b string) int {
		first := []string{misses, instr}
		return cmp.Or(slices.Index(first, b)-slices.Index(first, a), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = name + "=" + strconv.FormatFloat(f[name], 'f', -1, 64)
	}
	return strings.Join(names, " ")
}

// table reads lines of a name and its figures.
func table(text string) (map[string]Figures, error) {
	rows := map[string]Figures{}
	for _, fields := range records(text) {
		f, err := figures(fields[1:])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fields[0], err)
		}
		rows[fields[0]] = f
	}
	return rows, nil
}

// tabled writes figures of cases under the comments at the top of text.
func tabled(text string, rows map[string]Figures) string {
	text = comments(text)
	for _, c := range cases() {
		if f := rows[c.Name]; len(f) > 0 {
			text += record(c.Name, f.String())
		}
	}
	return text
}

// Group is a named list of functions: a stage, or what is counted as a unit of work.
type Group struct {
	Name      string
	Functions []string // a * at the end stands for any text
}

func (g *Group) matches(function string) bool {
	return slices.ContainsFunc(g.Functions, func(name string) bool { return sameFunction(name, function) })
}

// sameFunction reports whether a function has a name, in which the path of the module is left out.
func sameFunction(name, function string) bool {
	function = strings.TrimPrefix(function, "clifftop/")
	if prefix, any := strings.CutSuffix(name, "*"); any {
		return strings.HasPrefix(function, prefix)
	}
	return name == function
}

// Names are the groups of functions that are looked at.
type Names struct {
	Stages []Group // of a request
	Starts []Group // of the start of a process
	Anchor []Group // functions of the anchor for both
	Units  []Group
}

// stages returns the stages of a case.
func (n *Names) stages(c *Case) []Group {
	if len(c.Sizes) == 1 {
		return n.Starts
	}
	return n.Stages
}

// anchored returns the stages of a case with the functions of the anchor.
func (n *Names) anchored(c *Case) (groups []Group) {
	for _, stage := range n.stages(c) {
		for _, g := range n.Anchor {
			if g.Name == stage.Name {
				groups = append(groups, g)
			}
		}
	}
	return groups
}

// unit returns the functions whose calls are a unit.
func (n *Names) unit(name string) Group {
	return n.Units[slices.IndexFunc(n.Units, func(g Group) bool { return g.Name == name })]
}

func parseNames(text string) (n Names, err error) {
	for _, fields := range records(text) {
		if len(fields) < 3 {
			return n, fmt.Errorf("%s: %s has no functions", namesFile, strings.Join(fields, " "))
		}
		group := Group{fields[1], fields[2:]}
		switch fields[0] {
		case "stage":
			n.Stages = append(n.Stages, group)
		case "start":
			n.Starts = append(n.Starts, group)
		case "anchor":
			n.Anchor = append(n.Anchor, group)
		case "unit":
			n.Units = append(n.Units, group)
		default:
			return n, fmt.Errorf("%s: %q is none of unit, stage, start, anchor", namesFile, fields[0])
		}
	}
	if !slices.ContainsFunc(n.Units, func(g Group) bool { return g.Name == plantUnit }) {
		return n, fmt.Errorf("%s: no unit %s, with which the gate tests itself", namesFile, plantUnit)
	}
	return n, nil
}

// absent returns a line for each name that none of the functions has. Names of the anchor are left out.
func (n *Names) absent(functions []string) (faults []string) {
	for _, g := range slices.Concat(n.Stages, n.Starts, n.Units) {
		for _, name := range g.Functions {
			if !slices.ContainsFunc(functions, func(f string) bool { return sameFunction(name, f) }) {
				faults = append(faults, fmt.Sprintf("%s: no function %s is left: write its new name in .ci/%s",
					g.Name, name, namesFile))
			}
		}
	}
	return faults
}

// Base has the commits that HEAD is compared with, and their counts.
type Base struct {
	Anchor, Accepted Commit
	Toolchain        string // with which they were counted
}

// Commit is a commit and the counts of its cases.
type Commit struct {
	Hash  string
	Cases map[string]Counted
}

// Counted has the figures of a case: instructions, misses and the instructions of stages. Key stands for what was
// counted.
type Counted struct {
	Key     string
	Figures Figures
}

func parseBase(text string) (*Base, error) {
	b := &Base{Anchor: Commit{Cases: map[string]Counted{}}, Accepted: Commit{Cases: map[string]Counted{}}}
	of := map[string]*Commit{"anchor": &b.Anchor, "accepted": &b.Accepted}
	for _, fields := range records(text) {
		commit := of[fields[0]]
		switch {
		case fields[0] == "toolchain":
			b.Toolchain = strings.Join(fields[1:], " ")
		case commit != nil && len(fields) == 2:
			commit.Hash = fields[1]
		case commit != nil && len(fields) > 3:
			f, err := figures(fields[3:])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", baseFile, err)
			}
			commit.Cases[fields[1]] = Counted{fields[2], f}
		default:
			return nil, fmt.Errorf("%s: cannot read %q", baseFile, strings.Join(fields, " "))
		}
	}
	if len(b.Anchor.Hash) != 40 || len(b.Accepted.Hash) != 40 {
		return nil, fmt.Errorf("%s: wants the lines `anchor HASH` and `accepted HASH`, with whole hashes", baseFile)
	}
	return b, nil
}

// written is the text of a base under the comments at the top of text.
func (b *Base) written(text string) string {
	var s strings.Builder
	s.WriteString(comments(text))
	fmt.Fprintf(&s, "anchor %s\naccepted %s\ntoolchain %s\n", b.Anchor.Hash, b.Accepted.Hash, b.Toolchain)
	for _, commit := range []struct {
		name  string
		cases map[string]Counted
	}{{"anchor", b.Anchor.Cases}, {"accepted", b.Accepted.Cases}} {
		for _, c := range cases() {
			if counted, ok := commit.cases[c.Name]; ok {
				s.WriteString(record(commit.name, c.Name, counted.Key, counted.Figures.String()))
			}
		}
	}
	return s.String()
}

// key stands for what is counted of a case: its command line and sizes, the rows of its trace, and the functions of the
// stages. Those are left out for the accepted commit, whose figures stay when functions are renamed.
func (c *Case) key(stages []Group) string {
	text := fmt.Sprint(c.Args, c.Anchor, c.Sizes, c.Runs, stages)
	if len(c.Sizes) == 1 {
		text += fmt.Sprint(repeats)
	}
	if slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, "{trace}") }) {
		text += string(traceRows(50))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:8]
}

func (b *Builder) file(name string) string { return filepath.Join(b.root, ".ci", name) }

func (b *Builder) read(name string) (string, error) {
	text, err := os.ReadFile(b.file(name))
	return string(text), err
}
