package clifftop

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// below says which rooms each room may import. A room is a top-level directory, or one named here.
var below = map[string][]string{
	"sim/clock":       {},
	"internal/pq":     {},
	"internal/faults": {},
	"model":           {"sim/clock", "internal/pq", "internal/faults"},
	"workload":        {"sim/clock", "internal/pq", "internal/faults"},
	"sim":             {"model", "workload", "sim/clock", "internal/pq", "internal/faults"},
	"report":          {"sim", "model", "workload", "sim/clock", "internal/pq", "internal/faults"},
	"experiments":     {"report", "sim", "model", "workload", "sim/clock", "internal/pq", "internal/faults"},
	"cmd":             {"experiments", "report", "sim", "model", "workload", "sim/clock", "internal/pq", "internal/faults"},
}

// impure are packages that the deterministic rooms must not use.
var impure = map[string]bool{"os": true, "log": true, "math/rand": true, "net/http": true}

// TestArrows fails when a room imports one that is not below it, or when one of the deterministic rooms
// reaches for the outside world.
func TestArrows(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		files++
		file = filepath.ToSlash(file)
		from := room(path.Dir(file))
		if from == "" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(file), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if pure := from == "sim" || from == "model" || from == "workload"; pure && impure[imported] {
				t.Errorf("%s imports %s: %s is deterministic and does no I/O", file, imported, from)
			}
			if to := room(strings.TrimPrefix(imported, "clifftop/")); strings.HasPrefix(imported, "clifftop/") && to != from && !allowed(from, to) {
				t.Errorf("%s imports %s: the arrow from %s to %s runs up", file, imported, from, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d files seen", files)
	}
}

func allowed(from, to string) bool {
	for _, room := range below[from] {
		if room == to {
			return true
		}
	}
	return false
}

// room is the room that a package directory belongs to, or "".
func room(dir string) string {
	if _, ok := below[dir]; ok {
		return dir
	}
	first, _, _ := strings.Cut(dir, "/")
	if _, ok := below[first]; ok {
		return first
	}
	return ""
}
