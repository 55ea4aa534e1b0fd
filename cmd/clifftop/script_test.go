package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestScripts runs the files in testdata. A script is a list of commands, and after it the files that it
// finds in its directory, each below a line "-- NAME --":
//
//	clifftop ARG…          runs the program, which must succeed; 'quotes' keep an argument whole
//	status N clifftop ARG… wants that exit status
//	stdout REGEXP          wants a match in what the last command printed; also stderr
//	! stdout REGEXP        wants none
//	empty stdout           wants that nothing was printed; also stderr
//	same stdout FILE       wants equal bytes; also stderr
//	file NAME REGEXP       wants a file with a match; ! file NAME wants that there is none
//	count stderr N         wants so many lines; also stdout
func TestScripts(t *testing.T) {
	scripts, _ := filepath.Glob("testdata/*.txtar")
	if len(scripts) < 5 {
		t.Fatalf("only %d scripts", len(scripts))
	}
	for _, path := range scripts {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			commands, files := readArchive(string(data))
			t.Chdir(t.TempDir())
			for name, text := range files {
				if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			s := &script{t: t, files: files}
			for i, line := range strings.Split(commands, "\n") {
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				if err := s.step(line); err != nil {
					t.Fatalf("line %d: %s\n%v\nstdout:\n%s\nstderr:\n%s", i+1, line, err, s.out["stdout"], s.out["stderr"])
				}
			}
		})
	}
}

// readArchive splits a script from its files.
func readArchive(text string) (commands string, files map[string]string) {
	files = map[string]string{}
	mark := regexp.MustCompile(`(?m)^-- (\S+) --\n`)
	places := mark.FindAllStringSubmatchIndex(text, -1)
	commands = text
	for i, p := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		files[text[p[2]:p[3]]] = text[p[1]:end]
	}
	if len(places) > 0 {
		commands = text[:places[0][0]]
	}
	return commands, files
}

type script struct {
	t     *testing.T
	files map[string]string
	out   map[string]string // stdout and stderr of the last command
}

var word = regexp.MustCompile(`'[^']*'|\S+`)

func (s *script) step(line string) error {
	words := word.FindAllString(line, -1)
	for i, w := range words {
		words[i] = strings.Trim(w, "'")
	}
	negated := words[0] == "!"
	if negated {
		words = words[1:]
	}
	switch name, args := words[0], words[1:]; name {
	case "clifftop":
		return s.run(0, args)
	case "status":
		status, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return s.run(status, args[2:])
	case "stdout", "stderr":
		return match(s.out[name], strings.Join(args, " "), negated)
	case "empty":
		return match(s.out[args[0]], `^$`, false)
	case "same":
		if want := s.files[args[1]]; s.out[args[0]] != want {
			return fmt.Errorf("want\n%s", want)
		}
	case "count":
		if got := strings.Count(s.out[args[0]], "\n"); strconv.Itoa(got) != args[1] {
			return fmt.Errorf("%d lines", got)
		}
	case "file":
		data, err := os.ReadFile(args[0])
		if negated {
			if err == nil {
				return fmt.Errorf("the file is there")
			}
			return nil
		}
		if err != nil {
			return err
		}
		return match(string(data), strings.Join(args[1:], " "), false)
	default:
		return fmt.Errorf("unknown command")
	}
	return nil
}

func (s *script) run(status int, args []string) error {
	var stdout, stderr bytes.Buffer
	got := run(args, &stdout, &stderr)
	s.out = map[string]string{"stdout": stdout.String(), "stderr": stderr.String()}
	if strings.Contains(stderr.String(), "goroutine ") {
		return fmt.Errorf("a stack trace")
	}
	if got != status {
		return fmt.Errorf("exit status %d, want %d", got, status)
	}
	return nil
}

func match(text, pattern string, negated bool) error {
	re, err := regexp.Compile(`(?m)` + pattern)
	if err != nil {
		return err
	}
	if re.MatchString(text) == negated {
		return fmt.Errorf("match of %s: %v", pattern, !negated)
	}
	return nil
}
