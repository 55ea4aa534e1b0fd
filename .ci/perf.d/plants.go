package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The gate tests itself: it changes copies of the engine so that they cost more, and fails if it does not notice. The
// places are found by the names of functions. A copy gives the results of HEAD.

const (
	engineFolder = "sim/engine"
	repeatName   = "repeat"  // returns the length of a span
	enqueueName  = "Enqueue" // gets each request
)

// plant counts copies that cost more, and adds a fault if the gate would let them pass.
func (g *gate) plant() error {
	if !g.plants {
		return nil
	}
	list := cases()
	c := list[slices.IndexFunc(list, func(c Case) bool { return c.Name == plantCase })]
	spans := g.names.unit(plantUnit)
	now, worked := g.head[c.Name], g.worked[c.Name]
	turns := int(math.Round(0.03 * now[instr] / worked[plantUnit] / 3))
	fmt.Println()
	for _, planted := range []struct {
		name  string
		apply func(folder string) error
		seen  func(then, units Figures) []string
	}{
		{"a loop of 3 %", func(folder string) error { return plantLoop(folder, spans, turns) },
			func(then, _ Figures) []string { return losses(c, now, then) }},
		{"a span more per request", plantSpan,
			func(_, units Figures) []string {
				if units[plantUnit] < worked[plantUnit]+0.5 {
					return nil // it is not planted
				}
				return otherUnits(c, worked, units)
			}},
	} {
		if err := g.b.copy(); err != nil {
			return err
		}
		if err := planted.apply(g.b.source() + "/" + engineFolder); err != nil {
			return fmt.Errorf("%s cannot be planted: %w", planted.name, err)
		}
		path, err := g.b.build("planted")
		if err != nil {
			return fmt.Errorf("%s cannot be planted: %w", planted.name, err)
		}
		err = measure(Binary{Name: "planted", Path: path}, []Case{c}, g.jobs, g.b.scratch, func(_ Case, m *Measured) {
			seen := planted.seen(c.figures(m, nil), m.units(g.names.Units))
			fmt.Printf("planted %s: %s\n", planted.name, strings.Join(seen, "; "))
			if len(seen) == 0 {
				g.faults = append(g.faults, fmt.Sprintf("the gate does not notice %s: %.1f instr, %v", planted.name,
					m.Counts[0], m.units(g.names.Units)))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// plantLoop adds a loop of some turns, of three instructions each, to the functions that commit a span.
func plantLoop(folder string, commits Group, turns int) error {
	for _, name := range commits.Functions {
		if err := edit(folder, name[strings.LastIndexByte(name, '.')+1:], inBody, " plantedLoop();"); err != nil {
			return err
		}
	}
	return declare(folder, fmt.Sprintf(`//go:noinline
func plantedLoop() {
	for i := 0; i < %d; i++ {
	}
}
`, turns))
}

// plantSpan divides a span in two for each request.
func plantSpan(folder string) error {
	return errors.Join(
		edit(folder, enqueueName, inBody, " plantedSpans++;"),
		edit(folder, repeatName, afterName, "Planted"),
		declare(folder, fmt.Sprintf(`var plantedSpans int

func (e *Engine) %s(n int) int {
	n = e.%[1]sPlanted(n)
	if n > 1 && plantedSpans > 0 {
		plantedSpans--
		n /= 2
	}
	return n
}
`, repeatName)))
}

func inBody(f *ast.FuncDecl) token.Pos    { return f.Body.Lbrace + 1 }
func afterName(f *ast.FuncDecl) token.Pos { return f.Name.End() }

// edit inserts text at a place of the method of a name, in a package.
func edit(folder, name string, place func(*ast.FuncDecl) token.Pos, text string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	edited := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name && f.Recv != nil {
				at := files.Position(place(f)).Offset
				if err := os.WriteFile(path, []byte(string(source[:at])+text+string(source[at:])), 0o644); err != nil {
					return err
				}
				edited++
			}
		}
	}
	if edited != 1 {
		return fmt.Errorf("%s has %d methods %s, wanted is one: adapt .ci/perf.d/plants.go", engineFolder, edited, name)
	}
	return nil
}

// declare adds a file to the package of the engine.
func declare(folder, text string) error {
	return os.WriteFile(filepath.Join(folder, "planted.go"), []byte("package engine\n\n"+text), 0o644)
}
