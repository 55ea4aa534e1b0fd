package launch_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
)

var update = flag.Bool("update", false, "write the expected scenarios anew")

// line is a launch line of the corpus.
type line struct {
	Name, Repository, Path, Commit, GPU, Command string
	Env                                          map[string]string
	Files                                        map[string]yaml.MapSlice
}

// corpus reads testdata/lines.yaml.
func corpus(t *testing.T) []line {
	t.Helper()
	data, err := os.ReadFile("testdata/lines.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict(), yaml.UseOrderedMap()).Decode(&lines); err != nil {
		t.Fatal(err)
	}
	return lines
}

// read is the scenario of the line.
func (l *line) read() (*launch.Imported, error) {
	o := launch.ScriptOptions{Env: l.Env, Read: func(name string) ([]byte, error) {
		keys, ok := l.Files[name]
		if !ok {
			return nil, os.ErrNotExist
		}
		return yaml.Marshal(keys)
	}}
	commands, notes, err := launch.ReadScript(l.Name, []byte(l.Command), o)
	if err != nil {
		return nil, err
	}
	s, err := launch.Assemble(l.Name, commands, notes, 0)
	if err != nil {
		return nil, err
	}
	return s.Scenario(launch.ImportOptions{GPU: l.GPU})
}

// Public launch lines import, each flag is accounted for, and the scenarios load. What became of each stands in
// testdata/lines.golden.
func TestPublicLaunchLinesImport(t *testing.T) {
	const enough = 50
	lines := corpus(t)
	if len(lines) < enough {
		t.Errorf("%d lines, want %d or more", len(lines), enough)
	}
	var all strings.Builder
	for _, l := range lines {
		t.Run(l.Name, func(t *testing.T) {
			if l.Repository == "" || l.Path == "" || len(l.Commit) != len("00143a1a4aace5143b6825bcaa0fc30505015c61") {
				t.Error("the source is not complete")
			}
			m, err := l.read()
			if err != nil {
				t.Fatal(err)
			}
			text := yamldoc.Marshal(m.Root)
			s, err := scenario.Parse(l.Name, text)
			if err == nil {
				_, err = s.Resolve()
			}
			if err != nil {
				t.Errorf("the scenario does not load: %v\n%s", err, text)
			}
			fmt.Fprintf(&all, "== %s\n%s%s", l.Name, withoutComments(string(text)), unmodelled(m))
		})
	}
	const golden = "testdata/lines.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(all.String(), "== ")
	for _, part := range got {
		if name, _, _ := strings.Cut(part, "\n"); !strings.Contains(string(want), "== "+part) && name != "" {
			t.Errorf("%s is not as in %s:\n%s", name, golden, part)
		}
	}
}

func withoutComments(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if before, _, ok := strings.Cut(line, "  # "); ok {
			lines[i] = before + "\n"
		}
	}
	return strings.Join(lines, "")
}

// unmodelled are the flags whose influence is left out.
func unmodelled(m *launch.Imported) string {
	var names []string
	for _, a := range m.Accounts {
		if a.Effect == flags.Unmodelled && !slices.Contains(names, a.Flag.Name) {
			names = append(names, a.Flag.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "# not modelled: " + strings.Join(names, ", ") + "\n"
}
