package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed commands.txt
var commandList string

// allFiles are the kinds of --save.
const allFiles = "requests,timeseries,replicas,iterations,trace,metrics,bench"

// corpus lists the cases over the scenarios in a folder: each drawn scenario, each example, each command.
func corpus(inputs string, quick bool) ([]testCase, error) {
	drawn, err := filepath.Glob(filepath.Join(inputs, "*-*.yaml"))
	if err != nil {
		return nil, err
	}
	examples, err := filepath.Glob(filepath.Join(inputs, "examples", "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(drawn)
	var cases []testCase
	for i, path := range drawn {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		replicated := strings.Contains(string(data), `"replications"`) || strings.Contains(string(data), `"precision"`)
		cases = append(cases, scenarioCase(i, "in/"+filepath.Base(path), replicated))
	}
	for i, path := range examples {
		if quick && i%3 > 0 {
			continue
		}
		name := filepath.Base(path)
		cases = append(cases, exampleCase(name, i))
	}
	commands, err := commandCases(commandList, quick)
	return append(commands, cases...), err // the long ones first
}

// scenarioCase runs a drawn scenario. The first step prints JSON and observes no single iterations, so that the engine
// may take its fastest way. The second varies.
func scenarioCase(i int, path string, replicated bool) testCase {
	run := step{"run", path}
	second := [][]string{
		{"--format", "csv", "--out", "out"},
		{"--format", "vllm-bench", "--save", allFiles, "--out", "out"},
		{"--format", "table"},
		{"--format", "markdown", "--check"},
		{"--format", "csv", "--save", "requests,timeseries", "--out", "out"},
	}
	choice := second[i/3%len(second)] // three families of scenarios take turns
	if replicated {
		choice = second[2]
	}
	name := strings.TrimSuffix(filepath.Base(path), ".yaml")
	return testCase{name, []step{append(run, "--format", "json"), slices.Concat(run, choice)}}
}

// exampleCase runs an example, whole or with fewer requests.
func exampleCase(name string, i int) testCase {
	path := "in/examples/" + name
	steps := []step{{"run", path, "--requests", "200", "--format", "json"}}
	switch {
	case name == "fleet.yaml":
	case i%2 == 0:
		steps = append(steps, step{"run", path, "--requests", "100", "--out", "out", "--save", allFiles})
	default:
		steps = append(steps, step{"run", path, "--requests", "100", "--check", "--format", "csv"})
	}
	return testCase{"example-" + strings.TrimSuffix(name, ".yaml"), steps}
}

// commandCases reads the list of commands.
func commandCases(list string, quick bool) (cases []testCase, err error) {
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "|")
		name, long := strings.CutPrefix(strings.TrimSpace(parts[0]), "+")
		c := testCase{name: "command-" + name}
		for _, part := range parts[1:] {
			c.steps = append(c.steps, strings.Fields(part))
		}
		if len(c.steps) == 0 {
			return nil, fmt.Errorf("commands.txt: %s has no command line", name)
		}
		if !quick || !long {
			cases = append(cases, c)
		}
	}
	return cases, nil
}
