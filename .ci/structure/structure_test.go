package structure

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var (
	update  = flag.Bool("update", false, "write improvements to structure.txt and docs/architecture.md")
	details = flag.String("details", "", "show what the figures of a package consist of, or of `all`; needs -v")
)

const (
	root   = "../.."
	kept   = "structure.txt"
	listed = "optional-files.txt"
	page   = root + "/docs/architecture.md"
)

// TestMeasures fails when a figure is not the one written down. A worse one must become better again; one that has to
// stay is written into structure.txt by hand, and the commit message gives the reason.
func TestMeasures(t *testing.T) {
	before, err := readFigures(kept)
	if err != nil {
		t.Fatal(err)
	}
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	now, err := measured(m, listed, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range now.details {
		if *details == all || d.place == *details {
			t.Logf("measure %d: %s", d.measure, d.text)
		}
	}
	if *update {
		for _, c := range before.improve(now) {
			t.Errorf("%s: worse, not written down", c)
		}
		write(t, kept, before.text())
	} else {
		for _, c := range changes(before, now) {
			if c.worse() {
				t.Errorf("%s: worse", c)
			} else {
				t.Errorf("%s: better, write it down: go -C .ci test ./structure -update", c)
			}
		}
	}
	t.Logf("\n%s", now.table())
}

// TestPage fails when docs/architecture.md does not have the table of structure.txt.
func TestPage(t *testing.T) {
	before, err := readFigures(kept)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := inPage(string(text), before.table())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		write(t, page, want)
	} else if want != string(text) {
		t.Errorf("%s does not have this table (go -C .ci test ./structure -update):\n%s", page, before.table())
	}
}

func write(t *testing.T, file, text string) {
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestUpdate fails when an update writes a worse figure down, or refuses a better one or one that has moved.
func TestUpdate(t *testing.T) {
	of := func(engine, space, total int) *figures {
		f := newFigures()
		f.set(5, "sim/engine", "types", engine)
		if space > 0 {
			f.set(5, "sim/space", "types", space)
		}
		f.set(5, all, "types", total)
		return f
	}
	for _, c := range []struct {
		name    string
		now     *figures
		want    *figures
		refused string
	}{
		{"better", of(8, 0, 10), of(8, 0, 10), ""},
		{"worse", of(11, 0, 13), of(10, 0, 12),
			"measure 5, all, types: 12 before, 13 now; measure 5, sim/engine, types: 10 before, 11 now"},
		{"better here, worse there", of(12, 0, 9), of(10, 0, 9), "measure 5, sim/engine, types: 10 before, 12 now"},
		{"moved", of(6, 4, 12), of(6, 4, 12), ""},
		{"grown while it moved", of(6, 5, 13), of(6, 0, 12),
			"measure 5, all, types: 12 before, 13 now; measure 5, sim/space, types: none before, 5 now"},
	} {
		kept := of(10, 0, 12)
		var refused []string
		for _, c := range kept.improve(c.now) {
			refused = append(refused, c.String())
		}
		if got := strings.Join(refused, "; "); got != c.refused {
			t.Errorf("%s: refused %q (want %q)", c.name, got, c.refused)
		}
		if kept.text() != c.want.text() {
			t.Errorf("%s: kept\n%s(want\n%s)", c.name, kept.text(), c.want.text())
		}
	}
}

// TestPlanted measures a small module, whose figures were counted by hand.
func TestPlanted(t *testing.T) {
	const planted = "testdata/planted"
	m, err := load(planted)
	if err != nil {
		t.Fatal(err)
	}
	f, err := measured(m, planted+"/"+listed, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimPrefix(f.text(), header); got != plantedFigures {
		t.Errorf("\n%s(want\n%s)", got, plantedFigures)
	}
}

const plantedFigures = `1 P1 files 2
1 P1 functions 3
1 P1 lines 13
1 P1 receiver-types 1
2 P2 files 2
2 P2 functions 3
2 P2 lines 13
2 P2 receiver-types 1
3 P1 functions 1
3 P2 functions 1
4 all most-fields 27
4 all most-methods 41
4 all types-over 2
4 wide.secret fields 27
4 wide.wide methods 41
5 all types 2
5 engine types 2
5 sim/engine types 2
6 all methods 4
6 engine methods 4
6 sim/engine methods 4
7 all % 88
7 sim % 100
7 sim/engine % 83
8 all packages 2
9 all names 4
9 names names 2
9 wide names 2
11 all packages 5
12 all lines 1
13 all longest 72
13 all over-70 1
14 all lines 243
`
