package manifest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/manifest"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
)

var update = flag.Bool("update", false, "write the expected scenarios anew")

// Each fixture has an expected result: what was read, and the scenario that it becomes. The scenario must load.
func TestFixturesBecomeScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) < 18 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := manifest.Read(filepath.Base(file), data, manifest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.Scenario(launch.ImportOptions{DefaultGPU: "h100"})
			if err != nil {
				t.Fatal(err)
			}
			text := yamldoc.Marshal(m.Root)
			got := describe(s) + string(text)
			golden := file + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || string(want) != got {
				t.Errorf("%v\ngot:\n%s\nwant:\n%s", err, got, want)
			}
			sc, err := scenario.Parse("scenario.yaml", text)
			if err == nil {
				_, err = sc.Resolve()
			}
			if err != nil {
				t.Errorf("the scenario does not load: %v\n%s", err, text)
			}
		})
	}
}

// describe is what was read, as comments above the scenario.
func describe(s *launch.System) string {
	var b strings.Builder
	if s.Stack != "" {
		fmt.Fprintf(&b, "# stack %s\n", s.Stack)
	}
	for _, g := range s.Groups {
		fmt.Fprintf(&b, "# group %q role %q: %d × %d nodes × %d GPUs %q at %v\n", g.Name, g.Role, g.Replicas, g.Nodes,
			g.GPUsPerNode, g.Accelerator, g.At)
		fmt.Fprintf(&b, "#   %s, image %q, release %q\n", g.Line.Table, g.Line.Image, g.Line.Release)
		for _, f := range g.Line.Flags {
			fmt.Fprintf(&b, "#   %v %s = %s\n", f.At, f.Name, f.Value)
		}
		if c := g.Scaler; c != nil {
			fmt.Fprintf(&b, "#   %d to %d by %s: %s, %g at %v\n", g.Min, g.Max, c.Policy, c.Metric, c.Target, c.At)
		}
	}
	if r := s.Router; r != nil {
		fmt.Fprintf(&b, "# router %s at %v\n", r.Kind, r.At)
		for _, f := range r.Flags {
			fmt.Fprintf(&b, "#   %v %s = %s\n", f.At, f.Name, f.Value)
		}
	}
	for _, n := range s.Notes {
		fmt.Fprintf(&b, "# note: %s\n", n.Text)
	}
	return b.String()
}
