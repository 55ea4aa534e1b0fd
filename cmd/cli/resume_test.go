package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/internal/testenv"
)

// TestResumeKnowsThePolicysCode: a grid that one program began is not gone on with by another whose policy has other
// code, though version and scenario are the same; and not with other settings of the policy.
func TestResumeKnowsThePolicysCode(t *testing.T) {
	testenv.NeedsLong(t, "builds the program twice, 20 s")
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := func(name string, flags ...string) string {
		t.Helper()
		program := filepath.Join(dir, name)
		c := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-o", program}, flags...),
			"./cmd/clifftop")...)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return program
	}
	// The changed policy schedules prompts in smaller chunks.
	file := filepath.Join(root, "sim", "sched", "sarathi.go")
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(code), "v.Budget()", "v.Budget()/2", 1)
	if changed == string(code) {
		t.Fatal("the policy has nothing to change")
	}
	other := filepath.Join(dir, "sarathi.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: other}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	for path, data := range map[string][]byte{other: []byte(changed), list: overlay} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, second := build("first"), build("second", "-overlay", list)
	results := filepath.Join(dir, "results")
	run := func(program string, more ...string) (string, error) {
		args := append([]string{"sweep", "--over", "rate=8,16", "--requests", "200", "--quiet", "--set",
			"engine.policy=sarathi", "--out", results, "--resume"}, more...)
		out, err := exec.Command(program, args...).CombinedOutput()
		return string(out), err
	}
	if out, err := run(first); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run(first); err != nil {
		t.Errorf("the same program does not go on: %v\n%s", err, out)
	}
	const refused = "holds results of something else"
	if out, err := run(second); err == nil || !strings.Contains(out, refused) {
		t.Errorf("a program with another policy goes on: %v\n%s", err, out)
	}
	out, err := run(first, "--set", "engine.max_num_batched_tokens=1024")
	if err == nil || !strings.Contains(out, refused) {
		t.Errorf("other settings go on: %v\n%s", err, out)
	}
}
