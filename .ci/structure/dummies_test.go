package structure

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dummies are rules that a scratch copy of the module gets by the recipes of CONTRIBUTING.md: one new file, and one
// line in the list of the package.
var dummies = []struct {
	file, to   string // the new file
	list, line string // the list and its new line
	setting    string // of a run that uses it
	wrong      string // a value that the tag of its option forbids
}{
	{"router.go", "sim/route/dummy.go", "sim/route/rules.go", "dummyRule,",
		"deployment.router={policy: dummy-router, replica: 1}",
		"deployment.router={policy: dummy-router, replica: 65}"},
	{"autoscaler.go", "sim/autoscale/dummy.go", "sim/autoscale/rules.go", "dummyRule,",
		"lifecycle.autoscale={policy: dummy-autoscaler, replicas: 2, max: 2, target: 5}",
		"lifecycle.autoscale={policy: dummy-autoscaler, replicas: 0, max: 2, target: 5}"},
	{"order.go", "sim/sched/dummy_order.go", "sim/sched/orders.go", "dummyOrderRule,",
		"engine.order={rule: dummy-order, weight: 2}",
		"engine.order={rule: dummy-order, weight: 10}"},
	{"policy.go", "sim/sched/dummy_policy.go", "sim/sched/policies.go", "dummyPolicyRule,",
		"engine={policy: dummy-policy, dummy: {seats: 3}}",
		"engine={policy: dummy-policy, dummy: {seats: -1}}"},
}

// TestDummies is measure 15: it fails when a router, autoscaler, queue order or batching policy needs more than a file
// and a line. The program must build with them, run with their options, and refuse values outside of the options' ranges.
func TestDummies(t *testing.T) {
	scratch := t.TempDir()
	copyModule(t, scratch)
	for _, d := range dummies {
		text, err := os.ReadFile(filepath.Join("testdata/dummies", d.file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(scratch, d.to), string(text))
		list := filepath.Join(scratch, d.list)
		if text, err = os.ReadFile(list); err != nil {
			t.Fatal(err)
		}
		before, after, ok := strings.Cut(string(text), "Rule,\n\t}\n")
		if !ok {
			t.Fatalf("%s has no list of rules", d.list)
		}
		write(t, list, before+"Rule,\n\t\t"+d.line+"\n\t}\n"+after)
	}
	program := filepath.Join(scratch, "clifftop-with-dummies")
	run := func(name string, args ...string) (string, error) {
		c := exec.Command(name, args...)
		c.Dir = scratch
		text, err := c.CombinedOutput()
		return string(text), err
	}
	if text, err := run("go", "build", "-o", program, "./cmd/clifftop"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, d := range dummies {
		with := func(setting string) (string, error) {
			return run(program, "run", "--rate", "5", "--requests", "50", "--quiet", "--set", "deployment.replicas=2",
				"--set", setting)
		}
		if text, err := with(d.setting); err != nil {
			t.Errorf("%s: %v\n%s", d.setting, err, text)
		}
		if text, err := with(d.wrong); err == nil || !strings.Contains(text, "want") {
			t.Errorf("%s: %v\n%s(want a fault)", d.wrong, err, text)
		}
	}
}

// copyModule copies the Go files of the module and what they embed.
func copyModule(t *testing.T, to string) {
	c := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!.ci", ":!docs",
		":!*_test.go")
	c.Dir = root
	names, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // deleted, not committed
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, name), string(text))
	}
}
