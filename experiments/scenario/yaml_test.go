package scenario

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clifftop/experiments/scenario/yamldoc"
)

func TestYAML(t *testing.T) {
	for _, x := range []struct {
		file string
		sets []string
		want string
	}{
		{"", nil, "{}\n"},
		{"{}", []string{"rate=8", "model=mistral-7b-v0.3"},
			"workload:\n  arrivals: {rate: 8}\nmodel: mistral-7b-v0.3\n"},
		{"name: 'yes'\nrun: {requests: 1e3, seed: 3}", nil, "name: \"yes\"\nrun: {requests: 1e3, seed: 3}\n"},
		{"workload: {arrivals: [{duration: 60s, rate: 2}, {rate: 3, process: poisson, name: 'a: b'}]}", nil,
			"workload:\n  arrivals:\n    - {duration: 60s, rate: 2}\n    - {rate: 3, process: poisson, name: \"a: b\"}\n"},
		{"workload: {output: {distribution: mixture, parts: [{weight: 1, distribution: fixed, value: 3}]}}",
			[]string{"slo={ttft_p95: 300ms}", "engine.version=null"},
			"workload:\n  output:\n    distribution: mixture\n    parts:\n      - {weight: 1, distribution: fixed, value: 3}\nslo: {ttft_p95: 300ms}\nengine: {version: null}\n"},
	} {
		var sets []Setting
		for _, text := range x.sets {
			set, err := ParseSetting(text)
			if err != nil {
				t.Fatal(err)
			}
			sets = append(sets, set)
		}
		s, err := Parse("a.yaml", []byte(x.file), sets...)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(s.YAML()); got != x.want {
			t.Errorf("%s with %v is written\n%swant\n%s", x.file, x.sets, got, x.want)
		}
	}
}

// TestYAMLGivesTheSame reads every scenario that is with the program, writes it, and reads that.
func TestYAMLGivesTheSame(t *testing.T) {
	var files []string
	for _, pattern := range []string{"example.yaml", "../examples/*.yaml", "../*/scenarios/*.yaml",
		"../studies/*/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 10 {
		t.Fatalf("only %d scenarios were found", len(files))
	}
	read := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(file, data)
		if err != nil {
			continue // a plan's list of pairs
		}
		read++
		again, err := Parse(file, s.YAML())
		if err != nil {
			t.Errorf("%s: %v in\n%s", file, err, s.YAML())
			continue
		}
		a, _ := json.Marshal(s)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Errorf("%s: read\n%s\nwritten\n%s", file, a, b)
		}
	}
	if read < 10 {
		t.Errorf("only %d scenarios were read", read)
	}
}

// TestYAMLOfTrees writes trees of any texts and reads the same.
func TestYAMLOfTrees(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "yes", "1e6", "- a", "a: b", "#", "0x10",
		"12:30", "2026-01-01", "~", "_", "1_0", ".5", "a #b", "null", "é", "&a", "*a", "!!x", "60s", "5%", "-", "?",
		"'", `"`, "\\"}))
	var value func(depth int) *rapid.Generator[*yamldoc.Node]
	value = func(depth int) *rapid.Generator[*yamldoc.Node] {
		return rapid.Custom(func(t *rapid.T) *yamldoc.Node {
			kinds := []yamldoc.Kind{yamldoc.Null, yamldoc.Bool, yamldoc.Number, yamldoc.Text}
			if depth > 0 {
				kinds = append(kinds, yamldoc.List, yamldoc.Map)
			}
			n := &yamldoc.Node{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
			switch n.Kind {
			case yamldoc.Bool:
				n.Truth = rapid.Bool().Draw(t, "truth")
			case yamldoc.Number:
				n.Text = rapid.SampledFrom([]string{"0", "-1", "1.5", "1e6", ".5", "18446744073709551616"}).Draw(t,
					"number")
			case yamldoc.Text:
				n.Text = text.Draw(t, "text")
			case yamldoc.List:
				n.Items = rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "items")
			case yamldoc.Map:
				for _, v := range rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "values") {
					name := text.Draw(t, "key")
					if n.Get(name) == nil && name != "<<" {
						n.Fields = append(n.Fields, yamldoc.Field{Name: name, Value: v})
					}
				}
			}
			return n
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		root := &yamldoc.Node{Kind: yamldoc.Map,
			Fields: []yamldoc.Field{{Name: "root", Value: value(3).Draw(t, "value")}}}
		written := (&Scenario{origin: &origin{root: root}}).YAML()
		if len(written) > yamldoc.MaxBytes {
			return
		}
		again, err := yamldoc.Parse("", written, false)
		if err != nil {
			if badText(root) {
				return // what YAML does not hold
			}
			t.Fatalf("%v in\n%s", err, written)
		}
		if want, got := plainTree(root), plainTree(again); !reflect.DeepEqual(want, got) {
			t.Fatalf("%v, want %v, in\n%s", got, want, written)
		}
	})
}

// badText says that a tree has a text that the reader refuses in any form.
func badText(n *yamldoc.Node) bool {
	raw, _ := json.Marshal(plainTree(n))
	_, err := yamldoc.Parse("", raw, false)
	return err != nil
}

// plainTree is a tree as Go's own values.
func plainTree(n *yamldoc.Node) any {
	switch n.Kind {
	case yamldoc.Bool:
		return n.Truth
	case yamldoc.Number:
		return json.Number(n.Text)
	case yamldoc.Text:
		return n.Text
	case yamldoc.List:
		list := []any{}
		for _, v := range n.Items {
			list = append(list, plainTree(v))
		}
		return list
	case yamldoc.Map:
		m := map[string]any{}
		for _, f := range n.Fields {
			m[f.Name] = plainTree(f.Value)
		}
		return m
	}
	return nil
}

// TestWeightOutsideAMixture: a weight that nothing reads is refused.
func TestWeightOutsideAMixture(t *testing.T) {
	const law = "{distribution: fixed, value: 3, weight: 2}"
	_, err := Parse("s.yaml", []byte("workload: {output: "+law+"}\n"))
	if err == nil || !strings.Contains(err.Error(), "workload.output.weight: weight is for the parts of a mixture") {
		t.Errorf("%v", err)
	}
	if _, err := Parse("s.yaml", []byte("workload: {output: {distribution: mixture, parts: ["+law+"]}}\n")); err != nil {
		t.Error(err)
	}
}
