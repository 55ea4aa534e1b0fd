package clifftop

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// items are the numbers of statements by section.
var items = map[string]int{"A": 37, "B": 24, "C": 13, "D": 15}

var (
	rowSyntax  = regexp.MustCompile(`^\| ([A-D])(\d+) \|`)
	testSyntax = regexp.MustCompile("`([a-z0-9_/-]+_test\\.go):((?:Test|Example)\\w+)`")
)

// TestRequirements fails when docs/requirements.md misses a statement or has one twice, names a test that does not
// exist, or when none of the tests of a statement that can be turned into numbers cites it.
func TestRequirements(t *testing.T) {
	text, err := os.ReadFile("docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]map[string]string{}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		m := rowSyntax.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number := m[1] + m[2]
		if seen[number] {
			t.Errorf("%s comes twice", number)
		}
		seen[number] = true
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			t.Errorf("%s has %d cells, want 6", number, len(cells))
			continue
		}
		kind := strings.TrimSpace(cells[1])
		cited := false
		tests := testSyntax.FindAllStringSubmatch(cells[5], -1)
		for _, test := range tests {
			source, ok := testsOf(t, files, test[1])[test[2]]
			if !ok {
				t.Errorf("%s: %s has no %s", number, test[1], test[2])
			}
			cited = cited || cites(source, number)
		}
		if strings.Count(cells[5], "_test.go") != len(tests) {
			t.Errorf("%s: a test is not written `file:Test`", number)
		}
		switch {
		case kind == "T" && !cited:
			t.Errorf("%s: none of its tests cites it", number)
		case kind == "F" && (!strings.Contains(cells[4], "`") || len(tests) == 0):
			t.Errorf("%s: no command or no test", number)
		case kind != "" && kind != "T" && kind != "F":
			t.Errorf("%s is of kind %q", number, kind)
		}
	}
	for section, n := range items {
		for i := 1; i <= n; i++ {
			if number := fmt.Sprint(section, i); !seen[number] {
				t.Errorf("%s is missing", number)
			}
			delete(seen, fmt.Sprint(section, i))
		}
	}
	for number := range seen {
		t.Errorf("there is no %s", number)
	}
}

// cites reports whether a source names a number, and not another that begins with it.
func cites(source, number string) bool {
	return regexp.MustCompile(`\b` + number + `\b`).MatchString(source)
}

// testsOf are the functions of a file by name: their comments and their text.
func testsOf(t *testing.T, files map[string]map[string]string, path string) map[string]string {
	if known, ok := files[path]; ok {
		return known
	}
	files[path] = map[string]string{}
	source, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Error(err)
		return nil
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, source, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			from := fn.Pos()
			if fn.Doc != nil {
				from = fn.Doc.Pos()
			}
			files[path][fn.Name.Name] = string(source[set.Position(from).Offset:set.Position(fn.End()).Offset])
		}
	}
	return files[path]
}
