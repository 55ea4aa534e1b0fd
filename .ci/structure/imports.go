package structure

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// imports is measures 8, 10 and 11: packages of optional parts that a package of the engine imports, directly or not;
// how many packages of the module the widest ones import; and packages without an entry in arrows_test.go.
func imports(m *module, f *figures) error {
	of := map[string][]string{}
	for _, p := range m.packages {
		for path := range p.Imports {
			if short, ok := strings.CutPrefix(path, m.path); ok {
				of[p.short] = append(of[p.short], strings.TrimPrefix(short, "/"))
			}
		}
	}
	parts := 0
	for _, p := range m.packages {
		if p.within(enginePackages...) && !p.within("sim/part/...") {
			for _, part := range partsBelow(p.short, of) {
				parts++
				f.detail(8, p.short, p.short+" reaches "+part)
			}
		}
		if slices.Contains([]string{"cmd/cli", "experiments/scenario", "experiments"}, p.short) {
			f.set(10, p.short, "packages", len(of[p.short]))
			f.detail(10, p.short, p.short+" imports "+strings.Join(slices.Sorted(slices.Values(of[p.short])), ", "))
		}
	}
	f.set(8, all, "packages", parts)
	entries, err := tableKeys(filepath.Join(m.root, "arrows_test.go"), "below")
	if err != nil {
		return err
	}
	missing := 0
	for _, p := range m.packages {
		if !entries[p.short] {
			missing++
			f.detail(11, p.short, p.short+" has no entry of its own")
		}
	}
	f.set(11, all, "packages", missing)
	return nil
}

// partsBelow returns the packages of parts that a package reaches by imports.
func partsBelow(from string, of map[string][]string) []string {
	seen := map[string]bool{}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for _, next := range of[todo[0]] {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	maps.DeleteFunc(seen, func(name string, _ bool) bool { return !strings.HasPrefix(name, "sim/part/") })
	return slices.Sorted(maps.Keys(seen))
}

// tableKeys returns the keys of a map literal of strings, which a file declares as a variable.
func tableKeys(file, variable string) (map[string]bool, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != variable {
			return true
		}
		for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
			if key, ok := e.(*ast.KeyValueExpr).Key.(*ast.BasicLit); ok {
				text, _ := strconv.Unquote(key.Value)
				keys[text] = true
			}
		}
		return false
	})
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no table %s", file, variable)
	}
	return keys, nil
}
