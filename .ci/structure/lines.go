package structure

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Limits of text.
const (
	maxColumns  = 120 // a tab counts as 4
	maxFunction = 70  // lines of a body
)

// lessons is the package whose functions are tables of claims and pictures. Their length is not measured.
const lessons = "experiments/lessons"

// lines is measures 12, 13 and 14: long lines, long functions and the lines of all Go files of a folder.
func lines(m *module, f *figures) error {
	long, functions, longest, total := 0, 0, 0, 0
	err := filepath.WalkDir(m.root, func(name string, d fs.DirEntry, err error) error {
		hidden := name != m.root && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (hidden || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		below := m.below(name)
		total += bytes.Count(text, []byte("\n"))
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t"); n > maxColumns {
				long++
				f.detail(12, path.Dir(below), fmt.Sprintf("%s:%d: %d columns", below, i+1, n))
			}
		}
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || d.Body == nil || path.Dir(below) == lessons {
				continue
			}
			n := fset.Position(d.Body.Rbrace).Line - fset.Position(d.Body.Lbrace).Line + 1
			longest = max(longest, n)
			if n > maxFunction {
				functions++
				f.detail(13, path.Dir(below), fmt.Sprintf("%s:%d: %s has %d lines", below, fset.Position(d.Pos()).Line,
					d.Name.Name, n))
			}
		}
		return nil
	})
	f.set(12, all, "lines", long)
	f.set(13, all, "longest", longest)
	f.set(13, all, "over 70", functions)
	f.set(14, all, "lines", total)
	return err
}
