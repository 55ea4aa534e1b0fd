package clifftop

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// below says which rooms a room may import. A room is a folder with the folders below it, unless one of those is a room
// of its own. The rooms in [everywhere] may be imported by all.
var below = map[string][]string{
	"sim/clock": {},
	"sim/rule":  {},
	"internal":  {},
	"model":     {},
	"workload":  {},

	"sim/kv":        {"model", "workload"},
	"sim/sched":     {"workload"},
	"sim/network":   {},
	"sim/event":     {"sim/sched", "workload"},
	"sim/delivery":  {"sim/event"},
	"sim/queue":     {"sim/sched", "workload"},
	"sim/engine":    {"sim/delivery", "sim/queue", "sim/kv", "sim/sched", "sim/network", "sim/event", "model", "workload"},
	"sim/route":     {"sim/kv", "workload"},
	"sim/autoscale": {},
	"sim": {"sim/engine", "sim/delivery", "sim/queue", "sim/event", "sim/network", "sim/kv", "sim/sched", "sim/route", "sim/autoscale",
		"model", "workload"},
	"sim/simtest": {"sim/simtest/naive", "sim", "sim/engine", "sim/event", "sim/network", "sim/kv", "sim/sched",
		"sim/route", "sim/autoscale", "model", "workload"},
	"sim/simtest/naive": {"sim", "sim/engine", "sim/event", "sim/network", "sim/kv", "sim/sched", "sim/route",
		"sim/autoscale", "model", "workload"},

	"report/stats":   {},
	"report/layout":  {},
	"report/chart":   {},
	"report":         {"report/stats", "report/layout", "sim", "model", "workload"},
	"report/collect": {"report", "report/stats", "report/layout", "sim", "model", "workload"},
	"report/curve":   {"report", "report/collect", "report/stats", "report/layout", "model", "workload"},
	"report/verdict": {"report", "report/curve", "report/stats", "report/layout"},
	"report/plan":    {"report", "report/stats", "report/layout"},
	"report/inspect": {"report", "report/stats", "report/layout", "workload"},
	"report/table":   {"report", "report/curve", "report/stats", "report/layout"},
	"report/export":  {"report", "report/stats", "report/layout", "sim", "workload"},
	"report/plot": {"report", "report/curve", "report/verdict", "report/plan", "report/inspect", "report/stats",
		"report/layout", "report/chart", "sim"},
	"report/page": {"report", "report/curve", "report/verdict", "report/plan", "report/inspect", "report/table",
		"report/stats", "report/layout", "report/chart",
		"report/plot"},

	"experiments/internal":         {},
	"experiments/scenario/yamldoc": {"experiments/internal"},
	"experiments/scenario/unit":    {"experiments/scenario/yamldoc", "experiments/internal"},
	"experiments/scenario": {"experiments/scenario/unit", "experiments/scenario/yamldoc", "experiments/internal", "report",
		"sim", "model", "workload"},
	"experiments/grid": {},
	"experiments/steady": {"experiments/scenario", "experiments/scenario/unit", "experiments/scenario/yamldoc",
		"experiments/internal", "report", "sim", "workload"},
	"experiments": {"experiments/measured", "experiments/steady", "experiments/scenario",
		"experiments/scenario/unit", "experiments/scenario/yamldoc", "experiments/internal", "experiments/grid", "report",
		"sim", "model", "workload"},
	"experiments/hours":           {"experiments", "experiments/steady", "report", "sim"},
	"experiments/sweep":           {"experiments", "experiments/hours", "experiments/steady", "report", "sim", "model", "workload"},
	"experiments/compare":         {"experiments", "experiments/steady", "experiments/sweep", "report"},
	"experiments/merge":           {"experiments", "experiments/sweep", "experiments/compare", "report"},
	"experiments/planning":        {"experiments", "experiments/hours", "experiments/sweep", "report", "model", "workload"},
	"experiments/traces":          {"experiments", "report", "workload"},
	"experiments/estimate":        {"experiments", "report", "model"},
	"experiments/validation":      {"experiments", "report", "sim/event", "model", "workload"},
	"experiments/conformance":     {"experiments", "report", "sim", "model", "workload"},
	"experiments/calibration":     {"experiments", "experiments/validation", "model", "report/layout"},
	"experiments/iterations":      {"experiments", "model", "report"},
	"experiments/measured":        {"experiments/scenario/yamldoc", "report/chart", "workload"},
	"experiments/launch/shell":    {},
	"experiments/launch/flags":    {"experiments/scenario/yamldoc"},
	"experiments/launch":          {"experiments/launch/flags", "experiments/launch/shell", "experiments/scenario/yamldoc", "model"},
	"experiments/launch/manifest": {"experiments/launch", "experiments/launch/shell", "experiments/scenario/yamldoc"},
	"experiments/launch/export": {"experiments/launch", "experiments/launch/flags", "experiments/launch/manifest",
		"experiments/launch/shell", "experiments/scenario", "experiments/scenario/yamldoc", "model"},
	"experiments/verify": {"experiments", "experiments/measured", "experiments/scenario", "experiments/validation", "report",
		"model", "workload"},
	"experiments/lessons": {"experiments", "experiments/studies", "experiments/sweep", "experiments/compare",
		"report", "sim", "model", "workload"},
	"experiments/playground": {"experiments", "experiments/steady", "experiments/sweep", "experiments/lessons", "report"},
	"experiments/studies": {"experiments", "experiments/steady", "experiments/sweep", "experiments/compare", "experiments/planning",
		"experiments/merge", "experiments/validation", "report", "sim",
		"model", "workload"},
	"experiments/live/monitor": {"experiments", "report", "sim", "workload"},
	"experiments/live/load":    {"experiments", "experiments/scenario", "sim"},
	"experiments/own-policy":   {"experiments", "experiments/compare", "sim"},
	"experiments/scale-out":    {},

	"internal/release": {"experiments", "report", "workload"},

	".":               {"experiments", "experiments/sweep", "experiments/compare", "experiments/planning", "report"},
	"cmd/cli/console": {"experiments", "report"},
	"cmd":             {"cmd/cli/console", ".", "experiments", "report", "sim", "model", "workload"},
}

// everywhere are the rooms that all others may import.
var everywhere = []string{"internal", "sim/clock", "sim/rule"}

// whole are the rooms whose name in a list of [below] stands for all rooms inside. They are named by rooms above them;
// inside, each room names what it may import.
var whole = []string{"experiments", "report", "sim"}

// impure are packages that the deterministic rooms must not use.
var impure = map[string]bool{"os": true, "log": true, "math/rand": true, "net/http": true}

// TestArrows fails when a room imports one that is not below it, or when one of the deterministic rooms
// reads files, logs, or draws numbers from a global source.
func TestArrows(t *testing.T) {
	for _, f := range sources(t) {
		from := room(path.Dir(f.name))
		if from == "" {
			t.Errorf("%s belongs to no room: add its folder to the table of this test", f.name)
			continue
		}
		top, _, _ := strings.Cut(from, "/")
		pure := top == "sim" || top == "model" || top == "workload"
		for _, spec := range f.ast.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if pure && impure[imported] {
				t.Errorf("%s imports %s: %s is deterministic and does no I/O", f.name, imported, top)
			}
			to := ""
			switch dir, ours := strings.CutPrefix(imported, "clifftop/"); {
			case imported == "clifftop":
				to = "."
			case ours:
				to = room(dir)
			}
			if to != "" && to != from && !allowed(from, to) {
				t.Errorf("%s imports %s: an arrow from %s to %s is not allowed", f.name, imported, from, to)
			}
		}
	}
}

// allowed reports whether a room may import another one.
func allowed(from, to string) bool {
	if slices.Contains(everywhere, to) || strings.HasPrefix(from, "internal") || slices.Contains(below[from], to) {
		return true
	}
	top, _, _ := strings.Cut(to, "/")
	outside := from != top && !strings.HasPrefix(from, top+"/")
	return slices.Contains(whole, top) && slices.Contains(below[from], top) && (outside || onlyBelow(from, to, top))
}

// onlyBelow reports whether a room that may import the top of its own tree may import another one inside: that is so if
// the top itself may.
func onlyBelow(from, to, top string) bool { return from != top && slices.Contains(below[top], to) }

// room is the nearest folder of a package's folder that is a room, or "".
func room(dir string) string {
	if dir == "." {
		return dir
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := below[dir]; ok {
			return dir
		}
	}
	return ""
}
