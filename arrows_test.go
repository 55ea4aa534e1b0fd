package clifftop

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// below says which packages a package may import. A name that ends in "/..." stands for a folder with all below it.
var below = map[string][]string{
	"internal/duplicate": {},
	"internal/faults":    {},
	"internal/input":     {},
	"internal/notices":   {},
	"internal/packed":    {},
	"internal/pattern":   {},
	"internal/pq":        {},
	"internal/testenv":   {},

	"workload":         {"workload/idtable"},
	"workload/idtable": {},
	"workload/trace":   {"workload"},

	"model":         {},
	"model/catalog": {"model"},

	"sim": {"sim/autoscale", "sim/delivery", "sim/engine", "sim/event", "sim/kv", "sim/part/connector",
		"sim/queue", "sim/route", "sim/sched", "workload", "workload/idtable", "model"},
	"sim/autoscale":      {},
	"sim/clock":          {},
	"sim/delivery":       {"sim/event"},
	"sim/engine":         {"sim/delivery", "sim/event", "sim/kv", "sim/queue", "sim/sched", "workload", "model"},
	"sim/event":          {"sim/sched", "workload"},
	"sim/kv":             {"workload", "model"},
	"sim/network":        {},
	"sim/part/connector": {"sim/engine", "sim/event", "sim/kv", "sim/network", "workload", "model"},
	"sim/queue":          {"sim/sched", "workload"},
	"sim/route":          {"sim/kv", "workload", "workload/idtable"},
	"sim/rule":           {},
	"sim/sched":          {"workload"},
	"sim/simtest": {"sim", "sim/autoscale", "sim/engine", "sim/event", "sim/kv", "sim/network", "sim/route",
		"sim/sched", "sim/simtest/naive", "workload", "model"},
	"sim/simtest/naive": {"sim", "sim/autoscale", "sim/engine", "sim/event", "sim/kv", "sim/network",
		"sim/route", "sim/sched", "workload", "model"},

	"report":       {"report/layout", "report/stats", "sim/event", "workload"},
	"report/chart": {},
	"report/collect": {"report", "report/layout", "report/stats", "sim/engine", "sim/event", "sim/sched",
		"workload", "model"},
	"report/curve":   {"report", "report/layout", "report/stats"},
	"report/export":  {"report/layout", "sim/event", "workload"},
	"report/inspect": {"report", "report/layout", "report/stats", "workload", "workload/trace"},
	"report/layout":  {},
	"report/page": {"report", "report/chart", "report/curve", "report/layout", "report/page/assets",
		"report/plan", "report/plot", "report/table", "report/verdict"},
	"report/page/assets": {},
	"report/plan":        {"report", "report/layout"},
	"report/plot": {"report", "report/chart", "report/curve", "report/inspect", "report/layout", "report/plan",
		"report/stats", "report/verdict", "sim/event"},
	"report/stats":   {},
	"report/table":   {"report", "report/layout", "report/stats"},
	"report/verdict": {"report", "report/layout", "report/stats"},

	"experiments": {"experiments/grid", "experiments/internal/optional", "experiments/measured",
		"experiments/scenario", "experiments/scenario/yamldoc",
		"experiments/steady", "report/...", "sim/...", "workload/...", "model/..."},
	"experiments/calibration": {"experiments", "experiments/scenario", "experiments/scenario/yamldoc",
		"experiments/validation", "report/...", "model/..."},
	"experiments/compare": {"experiments", "experiments/scenario", "experiments/scenario/yamldoc",
		"experiments/steady", "experiments/sweep", "report/..."},
	"experiments/conformance": {"experiments", "report/...", "sim/...", "workload/...", "model/..."},
	"experiments/estimate": {"experiments", "experiments/scenario", "experiments/scenario/yamldoc",
		"report/...", "model/..."},
	"experiments/grid": {},
	"experiments/hours": {"experiments", "experiments/scenario", "experiments/scenario/yamldoc",
		"experiments/steady", "report/..."},
	"experiments/internal/optional": {},
	"experiments/iterations": {"experiments", "experiments/scenario", "experiments/scenario/yamldoc",
		"report/...", "model/..."},
	"experiments/launch": {"experiments/launch/flags", "experiments/launch/shell",
		"experiments/scenario/yamldoc", "model/..."},
	"experiments/launch/export": {"experiments/launch", "experiments/launch/flags", "experiments/scenario",
		"experiments/scenario/yamldoc", "model/..."},
	"experiments/launch/flags": {"experiments/scenario/yamldoc"},
	"experiments/launch/manifest": {"experiments/launch", "experiments/launch/shell",
		"experiments/scenario/yamldoc"},
	"experiments/launch/shell": {},
	"experiments/lessons": {"experiments", "experiments/scenario", "experiments/scenario/yamldoc",
		"experiments/studies", "experiments/sweep", "report/...", "sim/...", "model/..."},
	"experiments/live": {"experiments/scenario", "sim", "sim/event", "workload", "workload/trace"},
	"experiments/live/api": {"experiments/live", "experiments/live/text", "experiments/scenario", "sim/event",
		"workload"},
	"experiments/live/kvevents": {"experiments/scenario", "sim/engine", "sim/event", "workload"},
	"experiments/live/monitor": {"experiments", "experiments/scenario", "report/export", "report/page/assets",
		"sim/event", "workload"},
	"experiments/live/text": {"workload"},
	"experiments/measured":  {"experiments/scenario/yamldoc", "report/chart", "workload", "workload/trace"},
	"experiments/merge": {"experiments", "experiments/compare", "experiments/grid", "experiments/sweep",
		"report/..."},
	"experiments/own-policy": {"experiments/compare", "experiments/scenario", "sim/..."},
	"experiments/planning": {"experiments", "experiments/grid", "experiments/hours",
		"experiments/internal/optional", "experiments/scenario", "experiments/scenario/yamldoc",
		"experiments/steady", "experiments/sweep", "report/...", "workload/...", "model/..."},
	"experiments/playground": {"experiments", "experiments/lessons", "experiments/scenario",
		"experiments/scenario/yamldoc", "experiments/steady", "experiments/sweep", "report/..."},
	"experiments/record": {"experiments/live/text", "workload", "workload/trace"},
	"experiments/scenario": {"experiments/internal/optional", "experiments/scenario/yamldoc",
		"report/...", "sim/...", "workload/...", "model/..."},
	"experiments/scenario/yamldoc": {},
	"experiments/steady": {"experiments/internal/optional", "experiments/scenario", "report/...", "sim/...",
		"workload/..."},
	"experiments/studies": {},
	"experiments/studies/autoscaling": {"experiments", "experiments/scenario", "experiments/studies/paper",
		"report/...", "workload/..."},
	"experiments/studies/buying": {"experiments/planning", "experiments/scenario", "experiments/studies/paper",
		"report/plan"},
	"experiments/studies/cliffs": {"experiments", "experiments/scenario", "experiments/studies/paper",
		"report/...", "model/..."},
	"experiments/studies/disaggregation": {"experiments", "experiments/scenario", "experiments/studies/paper",
		"experiments/sweep", "report/..."},
	"experiments/studies/failover": {"experiments", "experiments/scenario", "experiments/steady",
		"experiments/studies/paper", "report/...", "sim/..."},
	"experiments/studies/paper": {"report/plot"},
	"experiments/studies/policies": {"experiments", "experiments/scenario", "experiments/steady",
		"experiments/studies/paper", "report/..."},
	"experiments/studies/routers": {"experiments", "experiments/scenario", "experiments/scenario/yamldoc",
		"experiments/studies/paper", "report/..."},
	"experiments/sweep": {"experiments", "experiments/hours", "experiments/internal/optional",
		"experiments/scenario", "experiments/scenario/yamldoc",
		"experiments/steady", "report/..."},
	"experiments/traces": {"experiments", "experiments/scenario", "report/...", "workload/..."},
	"experiments/validation": {"experiments", "experiments/measured", "experiments/scenario",
		"experiments/scenario/yamldoc", "report/...", "sim/...", "workload/...", "model/..."},
	"experiments/verify": {"experiments", "experiments/measured", "experiments/scenario",
		"experiments/validation", "report/...", "workload/...", "model/..."},

	".": {"experiments", "experiments/compare", "experiments/planning", "experiments/scenario",
		"experiments/sweep", "report/..."},
	"cmd/cli": {"cmd/cli/console", "experiments/...", "report/...", "sim/...", "workload/...",
		"model/..."},
	"cmd/cli/console":      {"experiments", "experiments/scenario/yamldoc", "report/..."},
	"cmd/cli/gate":         {},
	"cmd/clifftop":         {"cmd/cli"},
	"cmd/clifftop-parquet": {},
	"cmd/clifftop-wasm":    {"experiments/playground"},
}

// everywhere are the packages that all others may import. Packages of internal import only internal.
var everywhere = []string{"internal/...", "sim/clock", "sim/rule"}

// impure are packages that the deterministic rooms must not use.
var impure = map[string]bool{"os": true, "log": true, "math/rand": true, "net/http": true}

// TestArrows fails when a package imports one that is not below it, when it has no entry, or when one of the
// deterministic rooms reads files, logs, or draws numbers from a global source.
func TestArrows(t *testing.T) {
	packages := map[string]bool{}
	for _, f := range sources(t) {
		packages[path.Dir(f.name)] = true
		for _, fault := range wrongArrows(f) {
			t.Error(fault)
		}
	}
	for dir, allowed := range below {
		if !packages[dir] {
			t.Errorf("the table has an entry for %s, which has no Go files", dir)
		}
		for _, to := range allowed {
			if !packages[strings.TrimSuffix(to, "/...")] {
				t.Errorf("the entry of %s has %s, which has no Go files", dir, to)
			}
		}
	}
}

// TestWrongArrows fails when the check of imports misses one of these.
func TestWrongArrows(t *testing.T) {
	for from, imported := range map[string]string{
		"cmd/clifftop":          "clifftop/sim",
		"experiments/launch":    "clifftop/experiments",
		"experiments/live/text": "clifftop/report/plot",
		"experiments/scenario":  "clifftop/cmd/cli",
		"internal/pq":           "clifftop/experiments/scenario",
		"model":                 "clifftop/workload",
		"report/stats":          "clifftop/report",
		"sim":                   "clifftop/report/collect",
		"sim/kv":                "clifftop/sim/engine",
		"sim/queue":             "clifftop/sim/delivery",
		"sim/sched":             "os",
		"workload":              "clifftop",
		"workload/new":          "clifftop/sim/clock",
	} {
		fset := token.NewFileSet()
		text := fmt.Sprintf("package planted\n\nimport _ %q\n", imported)
		f, err := parser.ParseFile(fset, from+"/planted.go", text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		if faults := wrongArrows(sourceFile{from + "/planted.go", f, fset}); len(faults) != 1 {
			t.Errorf("%s imports %s: %q (want one fault)", from, imported, faults)
		}
	}
}

// wrongArrows returns what is wrong with the imports of a file.
func wrongArrows(f sourceFile) (faults []string) {
	from := path.Dir(f.name)
	if _, ok := below[from]; !ok {
		return []string{fmt.Sprintf("%s has no entry in the table of arrows_test.go", from)}
	}
	top, _, _ := strings.Cut(from, "/")
	pure := top == "sim" || top == "model" || top == "workload"
	for _, spec := range f.ast.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		to, ours := strings.CutPrefix(imported, "clifftop")
		to = path.Clean(strings.TrimPrefix(to, "/"))
		switch {
		case pure && impure[imported]:
			faults = append(faults, fmt.Sprintf("%s imports %s: %s is deterministic and does no I/O", f.name, imported,
				top))
		case ours && !allowed(from, to):
			faults = append(faults, fmt.Sprintf("%s imports %s: an arrow from %s to %s is not allowed", f.name,
				imported, from, to))
		}
	}
	return faults
}

// allowed reports whether a package may import another one.
func allowed(from, to string) bool {
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(x string) bool {
			tree, folder := strings.CutSuffix(x, "/...")
			return to == tree || folder && strings.HasPrefix(to, tree+"/")
		})
	}
	return in(below[from]) || in(everywhere[:1]) || !strings.HasPrefix(from, "internal/") && in(everywhere)
}
