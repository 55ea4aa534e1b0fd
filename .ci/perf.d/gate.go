package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// options of the gate.
type options struct {
	jobs          int
	times, plants bool
	write, accept bool
}

// gate compares the working tree with the bases.
type gate struct {
	options
	b      *Builder
	names  Names
	base   *Base
	limits map[string]Figures
	units  map[string]Figures // in the table
	head   map[string]Figures // counts of the working tree
	worked map[string]Figures // units of the working tree
	faults []string
	lost   []string // faults beside the accepted commit
	moved  []string // faults beside the table of units
}

// check runs the gate, and returns an error if the working tree does not pass.
func check(b *Builder, args []string) error {
	g := &gate{b: b, head: map[string]Figures{}, worked: map[string]Figures{}}
	set := flag.NewFlagSet("perf", flag.ContinueOnError)
	set.IntVar(&g.jobs, "jobs", 2, "processes at once")
	set.BoolVar(&g.times, "times", true, "compare CPU times too")
	set.BoolVar(&g.plants, "plants", true, "test the gate with slower copies")
	set.BoolVar(&g.write, "write", false, "write the tables of units and of BENCHMARKS.md")
	set.BoolVar(&g.accept, "accept", false, "write HEAD as the accepted commit, lower the limits, and write the tables")
	set.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		set.PrintDefaults()
	}
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("%s is no command (want count, times, or options: -h lists them)", set.Arg(0))
	}
	start := time.Now()
	if _, err := exec.LookPath("valgrind"); err != nil {
		return errors.New(noValgrind)
	}
	if g.accept {
		changed, err := b.git("status", "--porcelain", "--", ".", ":!.ci", ":!BENCHMARKS.md")
		if err != nil || changed != "" {
			return errors.Join(errors.New("-accept needs a HEAD with all changes of the product"), err)
		}
	}
	for _, step := range []func() error{g.readFiles, g.readBase, g.compare, g.plant} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Printf("\n%.1f minutes\n", time.Since(start).Minutes())
	if err := g.finish(); err != nil {
		return err
	}
	faults := slices.Concat(g.faults, g.lost, g.moved)
	for _, fault := range faults {
		fmt.Println("FAIL", fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d faults", len(faults))
	}
	return nil
}

// readFiles reads the files of the gate, and looks at the limits of commits since the accepted one.
func (g *gate) readFiles() (err error) {
	if err := g.readTexts(); err != nil {
		return err
	}
	if _, err := g.b.commit(g.base.Accepted.Hash); err != nil {
		fmt.Printf("%v\nwithout the accepted commit, times and raised limits are not looked at; counts are\n", err)
		g.times = false
		return nil
	}
	g.faults, err = g.b.raisedLimits(g.base.Accepted.Hash)
	return err
}

func (g *gate) readTexts() error {
	texts := map[string]string{}
	for _, name := range []string{limitsFile, unitsFile, namesFile, baseFile} {
		text, err := g.b.read(name)
		if err != nil {
			return err
		}
		texts[name] = text
	}
	var errs [4]error
	g.limits, errs[0] = table(texts[limitsFile])
	g.units, errs[1] = table(texts[unitsFile])
	g.names, errs[2] = parseNames(texts[namesFile])
	g.base, errs[3] = parseBase(texts[baseFile])
	return errors.Join(errs[:]...)
}

// readBase counts the cases of the bases that are not in the file, and writes them there.
func (g *gate) readBase() error {
	toolchain, err := g.b.toolchain()
	if err != nil {
		return err
	}
	if g.base.Toolchain != toolchain {
		fmt.Printf("counts of both bases are of %q: they are counted anew with %s\n", g.base.Toolchain, toolchain)
		g.base.Toolchain = toolchain
		clear(g.base.Anchor.Cases)
		clear(g.base.Accepted.Cases)
	}
	for _, base := range []struct {
		commit *Commit
		anchor bool
		stages func(*Case) []Group
		keyed  func(*Case) []Group
	}{
		{&g.base.Anchor, true, g.names.anchored, g.names.anchored},
		{&g.base.Accepted, false, g.names.stages, func(*Case) []Group { return nil }},
	} {
		var missing []Case
		for _, c := range cases() {
			if base.commit.Cases[c.Name].Key != c.key(base.keyed(&c)) {
				missing = append(missing, c)
			}
		}
		if len(missing) == 0 {
			continue
		}
		fmt.Printf("counting %d cases of %.8s\n", len(missing), base.commit.Hash)
		path, err := g.b.buildCommit("base", base.commit.Hash)
		if err != nil {
			return err
		}
		binary := Binary{base.commit.Hash, path, base.anchor}
		err = measure(binary, missing, g.jobs, g.b.scratch, func(c Case, m *Measured) {
			base.commit.Cases[c.Name] = Counted{c.key(base.keyed(&c)), c.figures(m, base.stages(&c))}
		})
		if err != nil {
			return err
		}
		if err := g.rewrite(baseFile, g.base.written); err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces the text of a file of the gate.
func (g *gate) rewrite(name string, change func(text string) string) error {
	text, err := g.b.read(name)
	if err != nil {
		return err
	}
	fmt.Printf("writes .ci/%s\n", name)
	return os.WriteFile(g.b.file(name), []byte(change(text)), 0o644)
}

// compare counts the working tree, and compares it with the bases.
func (g *gate) compare() error {
	path, err := g.b.buildCommit("head", ".")
	if err != nil {
		return err
	}
	functions, err := functionsOf(path)
	if err != nil {
		return err
	}
	if faults := g.names.absent(functions); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	fmt.Printf("%-22s %11s %11s %11s %7s %7s   %s\n", "", "anchor", "accepted", "now", "", "", "misses of each")
	err = measure(Binary{Name: "now", Path: path}, cases(), g.jobs, g.b.scratch, func(c Case, m *Measured) {
		now := c.figures(m, g.names.stages(&c))
		g.head[c.Name] = now
		if len(c.Sizes) > 1 {
			g.worked[c.Name] = m.units(g.names.Units)
			g.moved = append(g.moved, otherUnits(c, g.units[c.Name], g.worked[c.Name])...)
		}
		anchor, accepted := g.base.Anchor.Cases[c.Name].Figures, g.base.Accepted.Cases[c.Name].Figures
		g.lost = append(g.lost, losses(c, accepted, now)...)
		g.faults = append(g.faults, overLimit(c, anchor, now, g.limits[c.Name])...)
		fmt.Printf("%-22s %11s %11s %11s %7.3f %7.3f   %s %s %s\n", c.Name, cell(anchor, instr), cell(accepted, instr),
			cell(now, instr), now[instr]/anchor[instr], now[instr]/accepted[instr], cell(anchor, misses),
			cell(accepted, misses), cell(now, misses))
	})
	if err != nil {
		return err
	}
	g.printStages()
	if !g.times {
		return nil
	}
	binaries := []Binary{{Name: "anchor", Anchor: true}, {Name: "accepted"}, {Name: "now", Path: path}}
	for i, hash := range []string{g.base.Anchor.Hash, g.base.Accepted.Hash} {
		if binaries[i].Path, err = g.b.buildCommit(binaries[i].Name, hash); err != nil {
			return err
		}
	}
	slow, err := times(binaries, work(g.b.scratch))
	g.faults = append(g.faults, slow...)
	return err
}

// printStages prints the instructions of the stages of each case that has lost, and of some that show all stages.
func (g *gate) printStages() {
	for _, c := range cases() {
		lost := slices.ContainsFunc(g.lost, func(fault string) bool { return strings.HasPrefix(fault, c.Name+":") })
		if !lost && !c.Shown {
			continue
		}
		fmt.Printf("\n%-22s %11s %11s %11s\n", c.Name, "anchor", "accepted", "now")
		for _, stage := range g.names.stages(&c) {
			anchor, accepted := g.base.Anchor.Cases[c.Name].Figures, g.base.Accepted.Cases[c.Name].Figures
			fmt.Printf("  %-20s %11s %11s %11s\n", stage.Name, cell(anchor, stage.Name), cell(accepted, stage.Name),
				cell(g.head[c.Name], stage.Name))
		}
	}
}

// cell is the figure of a name, or a dash if there is none.
func cell(f Figures, name string) string {
	if n, ok := f[name]; ok {
		return grouped(n)
	}
	return "–"
}

// figures returns what the gate keeps of a measured case.
func (c *Case) figures(m *Measured, stages []Group) Figures {
	round := func(n float64) float64 { return math.Round(10*n) / 10 }
	if len(c.Sizes) == 1 {
		round = math.Round
	}
	f := Figures{instr: round(m.Counts[0]), misses: round(m.Counts[1])}
	for _, stage := range stages {
		if cost := m.cost(stage); cost >= 1 {
			f[stage.Name] = math.Round(cost)
		}
	}
	return f
}

// cost returns the instructions of a stage.
func (m *Measured) cost(stage Group) (own float64) {
	if !strings.HasSuffix(stage.Functions[0], "*") {
		return m.into(stage.matches).instr
	}
	for function, instr := range m.self {
		if stage.matches(function) {
			own += instr
		}
	}
	return own
}

// units returns the units of work of a request, to a thousandth.
func (m *Measured) units(groups []Group) Figures {
	f := Figures{}
	for _, g := range groups {
		f[g.Name] = math.Round(1000*m.into(g.matches).calls) / 1000
	}
	return f
}

// finish writes the tables, and HEAD as the accepted commit, as the options say.
func (g *gate) finish() error {
	if g.accept {
		excused, err := g.b.excused(g.base.Accepted.Hash)
		if err != nil {
			return err
		}
		if len(g.faults) > 0 || len(g.moved) > 0 && !g.write || len(g.lost) > 0 && !excused {
			fmt.Println("HEAD is not accepted")
			g.accept = false
		}
	}
	if !g.write && !g.accept {
		return nil
	}
	g.moved = nil
	if err := g.rewrite(unitsFile, func(text string) string { return tabled(text, g.worked) }); err != nil {
		return err
	}
	if err := g.writeTable(); err != nil || !g.accept {
		return err
	}
	if err := g.rewrite(limitsFile, func(text string) string { return tabled(text, g.lower()) }); err != nil {
		return err
	}
	head, err := g.b.commit("HEAD")
	if err != nil {
		return err
	}
	g.base.Accepted = Commit{head, map[string]Counted{}}
	for _, c := range cases() {
		g.base.Accepted.Cases[c.Name] = Counted{c.key(nil), g.head[c.Name]}
	}
	g.lost = nil
	return g.rewrite(baseFile, g.base.written)
}

// lower returns the limits, lowered to a little over what is reached.
func (g *gate) lower() map[string]Figures {
	lower := map[string]Figures{}
	for _, c := range cases() {
		lower[c.Name] = maps.Clone(g.limits[c.Name])
		for count, slack := range map[string]float64{instr: 1.03, misses: 1.08} {
			reached := g.head[c.Name][count] / g.base.Anchor.Cases[c.Name].Figures[count]
			limit := math.Ceil(1000*slack*reached) / 1000
			if old, ok := lower[c.Name][count]; !ok || limit < old {
				lower[c.Name][count] = limit
			}
		}
	}
	return lower
}
