package structure

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newRules are rules as a contributor adds them, by the recipes of CONTRIBUTING.md: a file, and a line after another
// one of a list.
var newRules = []struct{ kind, file, text, list, after, line string }{
	{"routers", "sim/route/added.go", `package route

import "clifftop/workload"

var addedRule = Rule{Name: "added-router", Does: "the same replica for all", New: func() Options { return new(added) }}

type added struct {
	Pick int32 ` + "`json:\"pick\" range:\"[0,7]\" doc:\"the replica that gets all requests\"`" + `
}

func (a *added) Make(Identity) Router { return a }

func (a *added) Route(v View, _ *workload.Request) int { return int(a.Pick) % v.Len() }
`, "sim/route/rules.go", "\t\trandomRule,", "\t\taddedRule,"},
	{"policies", "sim/sched/added.go", `package sched

var addedRule = Rule{Name: "added-policy", Does: "as vllm", Section: "added", New: func() Options { return new(added) }}

type added struct {
	Most int ` + "`json:\"most\" range:\"[0,100]\" doc:\"a number without a meaning\"`" + `
}

func (*added) Make(k *Keys) Scheduler { r, _ := Policies().Find("vllm"); return r.New().Make(k) }

func (*added) Defaults() Defaults { return Defaults{} }
`, "sim/sched/policies.go", "\t\torcaRule,", "\t\taddedRule,"},
	{"orders", "sim/sched/added_order.go", `package sched

var addedOrderRule = OrderRule{Name: "added-order", Does: "the last first",
	New: func() OrderOptions { return new(last) }}

type last struct {
	Weight int32 ` + "`json:\"weight\" range:\"[0,9]\" doc:\"how much later counts\"`" + `
}

func (l *last) Make(uint64) Order { return *l }

func (l last) Key(w *Waiting) int64 { return -int64(l.Weight) * w.Urgency.Arrival }
`, "sim/sched/orders.go", "\t\tsjfRule,", "\t\taddedOrderRule,"},
	{"autoscalers", "sim/autoscale/added.go", `package autoscale

var addedRule = Rule{Name: "added-scaler", Does: "as keda", New: func() Options { return &added{KEDA: *NewKEDA(0)} }}

type added struct {
	KEDA
	Extra float64 ` + "`json:\"extra\" range:\"[0,1]\" doc:\"a number without a meaning\"`" + `
}
`, "sim/autoscale/rules.go", "\t\tkedaRule,", "\t\taddedRule,"},
}

// TestNewRules fails if a router, batching policy, queue order or autoscaler needs more than its file and a line in the
// list of its package: for the catalogue, scenarios, --set, results and the faults of options. The schema is generated.
// The files overlay the module, which does not change.
func TestNewRules(t *testing.T) {
	folder := t.TempDir()
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	over := map[string]string{}
	put := func(name, text string) {
		over[filepath.Join(base, name)] = filepath.Join(folder, strings.ReplaceAll(name, "/", "_"))
		write(t, over[filepath.Join(base, name)], text)
	}
	for _, r := range newRules {
		list, err := os.ReadFile(filepath.Join(base, r.list))
		if err != nil || strings.Count(string(list), r.after+"\n") != 1 {
			t.Fatalf("%s: %q does not stand there once, %v", r.list, r.after, err)
		}
		put(r.file, r.text)
		put(r.list, strings.Replace(string(list), r.after+"\n", r.after+"\n"+r.line+"\n", 1))
	}
	data, err := json.Marshal(map[string]any{"Replace": over})
	if err != nil {
		t.Fatal(err)
	}
	overlay, program := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "clifftop")
	write(t, overlay, string(data))
	run := func(name string, args ...string) string {
		c := exec.Command(name, args...)
		c.Dir = base
		out, err := c.CombinedOutput()
		if _, exited := err.(*exec.ExitError); err != nil && !exited {
			t.Fatal(err)
		}
		return string(out)
	}
	if out := run("go", "build", "-pgo=off", "-overlay", overlay, "-o", program, "./cmd/clifftop"); out != "" {
		t.Fatal(out)
	}
	file := filepath.Join(folder, "added.yaml")
	write(t, file, `deployment: {replicas: 2, router: {policy: added-router, pick: 1}}
engine: {policy: added-policy, added: {most: 3}, order: {rule: added-order, weight: 2}}
lifecycle: {autoscale: {policy: added-scaler, target: 5, extra: 0.5}}
workload: {arrivals: {process: poisson, rate: 5}}
run: {requests: 50}
`)
	result := run(program, "run", file, "--format", "json")
	kinds := run(program, "catalog") // not all kinds of rules are listed
	for i, key := range []string{"deployment.router.pick", "engine.added.most", "engine.order.weight",
		"lifecycle.autoscale.extra"} {
		r := newRules[i]
		name := strings.Split(strings.SplitN(r.text, `Name: "`, 2)[1], `"`)[0]
		option := key[strings.LastIndex(key, ".")+1:]
		if out := run(program, "catalog", r.kind); strings.Contains(kinds, r.kind) && !strings.Contains(out, name) {
			t.Errorf("catalog %s lacks %s:\n%s", r.kind, name, out)
		}
		if !strings.Contains(result, name) || !strings.Contains(result, `"`+option+`"`) {
			t.Errorf("the result lacks %s or %s:\n%.2000s", name, option, result)
		}
		out := run(program, "run", file, "--set", key+"=1000")
		if !strings.Contains(out, key+": 1000 is not allowed (want ") {
			t.Errorf("--set %s=1000: %s", key, out)
		}
	}
}
