package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// testCase is a scenario with commands that use it.
type testCase struct {
	name     string
	commands []string // for bash, in order
	scenario string   // written into scenario.yaml, unless empty
}

// readCases reads the cases of all text files in folder. A case begins with "== NAME"; lines that begin with "$ " are
// its commands, and the others its scenario. Lines that begin with "##" are comments.
func readCases(folder string) ([]testCase, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	var cases []testCase
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for number, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
			switch {
			case strings.HasPrefix(line, "##"):
			case strings.HasPrefix(line, "== "):
				name := strings.TrimPrefix(line, "== ")
				if seen[name] {
					return nil, fmt.Errorf("%s:%d: two cases have the name %s", file, number+1, name)
				}
				seen[name] = true
				cases = append(cases, testCase{name: name})
			case len(cases) == 0:
				return nil, fmt.Errorf("%s:%d: want == NAME first", file, number+1)
			case strings.HasPrefix(line, "$ "):
				last := &cases[len(cases)-1]
				last.commands = append(last.commands, strings.TrimPrefix(line, "$ "))
			default:
				cases[len(cases)-1].scenario += line + "\n"
			}
		}
	}
	for i := range cases {
		cases[i].scenario = strings.TrimLeft(cases[i].scenario, "\n")
	}
	return cases, nil
}

// needs reports whether a command of the case names the folder.
func (c testCase) needs(folder string) bool {
	return strings.Contains(c.scenario, folder+"/") || strings.Contains(strings.Join(c.commands, "\n"), folder+"/")
}
