package experiments_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestInnerArrows fails when a package of this room imports one that is not below it. Packages that are not listed
// stand above all of these.
func TestInnerArrows(t *testing.T) {
	base := []string{"internal/optional", "scenario/unit", "scenario/yamldoc"}
	file := append([]string{"scenario", "scenario/router"}, base...)
	runs := append([]string{"", "grid"}, file...)
	below := map[string][]string{
		"internal/optional": nil,
		"grid":              nil,
		"scenario/yamldoc":  nil,
		"scenario/unit":     {"scenario/yamldoc"},
		"scenario/router":   base,
		"scenario":          append([]string{"scenario/router"}, base...),
		"":                  append([]string{"grid"}, file...),
		"sweep":             runs,
		"compare":           append([]string{"sweep"}, runs...),
		"traces":            runs,
		"planning":          append([]string{"sweep"}, runs...),
		"merge":             append([]string{"compare", "sweep"}, runs...),
	}
	for from, allowed := range below {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(from), "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no files: %v", from, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				to, inside := strings.CutPrefix(path, "clifftop/experiments")
				if to = strings.TrimPrefix(to, "/"); inside && !slices.Contains(allowed, to) {
					t.Errorf("%s imports %s: the arrow runs up", name, path)
				}
			}
		}
	}
}
