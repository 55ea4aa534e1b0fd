package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const checkout = "../.."

func readAll(t *testing.T) *gate {
	t.Helper()
	g := &gate{b: &Builder{root: checkout}, head: map[string]Figures{}, worked: map[string]Figures{}}
	if err := g.readTexts(); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestFiles fails when a case lacks its line in a file of the gate, or when a file does not keep its bytes.
func TestFiles(t *testing.T) {
	g := readAll(t)
	for _, c := range cases() {
		anchor, accepted := g.base.Anchor.Cases[c.Name], g.base.Accepted.Cases[c.Name]
		if anchor.Key != c.key(g.names.anchored(&c)) || accepted.Key != c.key(nil) {
			t.Errorf("%s: its counts in %s are of something else: run .ci/perf", c.Name, baseFile)
		}
		limits := g.limits[c.Name]
		if faults := overLimit(c, anchor.Figures, accepted.Figures, limits); len(faults) > 0 {
			t.Errorf("the accepted commit is over a limit: %s", faults)
		}
		if units := len(g.units[c.Name]); len(c.Sizes) > 1 && units != len(g.names.Units) {
			t.Errorf("%s: %s has %d units of %d", c.Name, unitsFile, units, len(g.names.Units))
		}
	}
	for name, write := range map[string]func(string) string{
		baseFile:   g.base.written,
		limitsFile: func(text string) string { return tabled(text, g.limits) },
		unitsFile:  func(text string) string { return tabled(text, g.units) },
	} {
		text, err := g.b.read(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := write(text); got != text {
			t.Errorf("%s would be written as\n%s", name, got)
		}
	}
}

// TestTables fails when the tables in BENCHMARKS.md differ from the gate's files.
func TestTables(t *testing.T) {
	g := readAll(t)
	text, err := os.ReadFile(filepath.Join(checkout, "BENCHMARKS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begun := strings.Cut(string(text), tablesBegin)
	written, _, ended := strings.Cut(rest, tablesEnd)
	if !begun || !ended {
		t.Fatalf("BENCHMARKS.md lacks the marks\n%s%s", tablesBegin, tablesEnd)
	}
	// No file has the figures of HEAD: of the rows only the first cells are compared.
	wanted, rows := tableRows(g.tables()), tableRows(written)
	if len(rows) != len(wanted) {
		t.Fatalf("%d lines, want %d:\n%s", len(rows), len(wanted), g.tables())
	}
	for i, row := range rows {
		cells, want := strings.Split(row, " | "), strings.Split(wanted[i], " | ")
		if len(cells) != len(want) || cells[0] != want[0] {
			t.Errorf("row %q, want one like %q", row, wanted[i])
			continue
		}
		for k := range cells {
			if k == 1 && cells[k] != want[k] {
				t.Errorf("row %q: the anchor has %s", row, want[k])
			}
		}
	}
}

func tableRows(text string) (rows []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, strings.TrimSuffix(line, "\n"))
		}
	}
	return rows
}

// TestNames fails when the command has no function of a name that the gate looks at.
func TestNames(t *testing.T) {
	g := readAll(t)
	b := &Builder{root: checkout, scratch: t.TempDir()}
	path, err := b.buildCommit("head", ".")
	if err != nil {
		t.Fatal(err)
	}
	functions, err := functionsOf(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range g.names.absent(functions) {
		t.Error(fault)
	}
}

// TestJudge plants losses in figures.
func TestJudge(t *testing.T) {
	c := Case{Name: "p1-10", Sizes: []int{1, 2}}
	base := Figures{instr: 1000, misses: 100}
	for _, test := range []struct {
		name  string
		now   Figures
		wants int
	}{
		{"equal", Figures{instr: 1000, misses: 100}, 0},
		{"a little more", Figures{instr: 1019, misses: 104.9}, 0},
		{"instructions", Figures{instr: 1021, misses: 100}, 1},
		{"misses", Figures{instr: 900, misses: 109}, 1},
		{"both", Figures{instr: 1030, misses: 110}, 2},
	} {
		if got := losses(c, base, test.now); len(got) != test.wants {
			t.Errorf("%s: %q, want %d faults", test.name, got, test.wants)
		}
	}
	limits := Figures{instr: 0.5, misses: 0.5}
	if got := overLimit(c, base, Figures{instr: 500, misses: 50}, limits); len(got) != 0 {
		t.Error(got)
	}
	if got := overLimit(c, base, Figures{instr: 501, misses: 51}, limits); len(got) != 2 {
		t.Error(got)
	}
	if got := overLimit(c, base, base, Figures{instr: 1}); len(got) != 1 {
		t.Error("a limit that is absent is no fault:", got)
	}
	units := Figures{"spans": 3.456, "allocations": 0.25}
	for spans, wants := range map[float64]int{3.456: 0, 3.457: 0, 3.47: 1, 4.456: 1} {
		if got := otherUnits(c, units, Figures{"spans": spans, "allocations": 0.25}); len(got) != wants {
			t.Errorf("%g spans: %q", spans, got)
		}
	}
	if got := otherUnits(c, units, Figures{"spans": 3.456}); len(got) != 1 {
		t.Error("a unit that is absent is no fault:", got)
	}
	old := map[string]Figures{"p1-10": {instr: 0.5, misses: 0.5}}
	for _, test := range []struct {
		now   Figures
		wants int
	}{
		{Figures{instr: 0.5, misses: 0.4}, 0},
		{Figures{instr: 0.51, misses: 0.4}, 1},
		{Figures{instr: 0.5}, 1},
		{nil, 2},
	} {
		if got := raisedIn(old, map[string]Figures{"p1-10": test.now}); len(got) != test.wants {
			t.Errorf("%v: %q, want %d", test.now, got, test.wants)
		}
	}
	for message, wants := range map[string]bool{
		"a: b\n\nperf-limit: exact sums\n": true,
		"a: b\n\nperf-limit:\n":            false,
		"a: b\n\nsee perf-limit: no\n":     false,
	} {
		if reasoned.MatchString(message) != wants {
			t.Errorf("%q: reason %v", message, !wants)
		}
	}
}

// TestPlants fails when the copies with which the gate tests itself cannot be made.
func TestPlants(t *testing.T) {
	g := readAll(t)
	spans := g.names.unit(plantUnit)
	for name, plant := range map[string]func(folder string) error{
		"loop": func(folder string) error { return plantLoop(folder, spans, 10) },
		"span": plantSpan,
	} {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(filepath.Join(checkout, engineFolder))); err != nil {
			t.Fatal(err)
		}
		if err := plant(folder); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := edit(t.TempDir(), repeatName, afterName, "x"); err == nil {
		t.Error("a plant that has no place is no error")
	}
}

// TestParse reads a file of callgrind with names that are given once, calls, and costs.
func TestParse(t *testing.T) {
	p, err := parse(strings.NewReader(`events: Ir I1mr
fn=(1) main.a
3 10 1
cfn=(2) main.b
calls=4 7
3 100 2
fn=(2)
7 60 1
cfn=(3) main.c
calls=2 9
+1 40
fn=(3)
* 40
totals: 110 4
`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Counts[0] != 110 || p.Counts[1] != 4 || p.self["main.b"] != 60 || p.self["main.c"] != 40 {
		t.Errorf("%v %v", p.Counts, p.self)
	}
	both := Group{"b and c", []string{"main.b", "main.c"}}
	if got := p.into(both.matches); got != (traffic{4, 100}) {
		t.Errorf("calls and instructions of b and c: %v", got)
	}
	half := p.minus(newProfile(), 2)
	if got := half.into((&Group{"", []string{"main.c"}}).matches); got != (traffic{1, 20}) {
		t.Errorf("half of the calls of c: %v", got)
	}
	if _, err := parse(strings.NewReader("events: Ir\nfn=(1) a\n1 2\n")); err == nil {
		t.Error("a file without totals is no error")
	}
}

// TestAbsent finds names that no function has.
func TestAbsent(t *testing.T) {
	functions := []string{"clifftop/sim.(*A).run", "runtime.mallocgcTiny"}
	groups := []Group{{"a", []string{"sim.(*A).run", "runtime.mallocgc*"}}, {"b", []string{"sim.(*A).gone"}}}
	names := Names{Stages: groups[:1], Units: groups[1:]}
	if got := names.absent(functions); len(got) != 1 || !strings.Contains(got[0], "sim.(*A).gone") {
		t.Errorf("%q", got)
	}
}

// TestCases fails when the names of cases are not different, or when a trace is not the same twice.
func TestCases(t *testing.T) {
	var names []string
	for _, c := range cases() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(cases()) {
		t.Error(names)
	}
	if string(traceRows(20)) != string(traceRows(21))[:len(traceRows(20))] {
		t.Error("a trace is not the beginning of a longer one")
	}
}

// TestRaisedLimits raises a limit in commits with and without a reason, and in the working tree.
func TestRaisedLimits(t *testing.T) {
	b := &Builder{root: t.TempDir()}
	git := func(args ...string) {
		t.Helper()
		identity := []string{"-c", "user.name=a", "-c", "user.email=a@b"}
		if _, err := b.git(append(identity, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	limit := func(ratio string) {
		t.Helper()
		path := b.file(limitsFile)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("p1-10 instr="+ratio+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	faults := func(wants int) {
		t.Helper()
		if got, err := b.raisedLimits("accepted"); err != nil || len(got) != wants {
			t.Errorf("%q, %v, want %d", got, err, wants)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "a: a")
	git("tag", "accepted")
	for i, step := range []struct {
		ratio, message string
		tree, commit   int // faults before and after the commit
	}{
		{"0.9", "a: first", 0, 0},
		{"0.8", "a: lower", 0, 0},
		{"0.85", "a: higher\n\nperf-limit: sums are exact", 1, 0},
		{"0.86", "a: higher", 1, 1},
	} {
		limit(step.ratio)
		faults(step.tree)
		git("add", "-A")
		git("commit", "-q", "-m", step.message)
		faults(step.commit)
		if excused, err := b.excused("accepted"); err != nil || excused != (i >= 2) {
			t.Errorf("step %d: excused %v, %v", i, excused, err)
		}
	}
}
