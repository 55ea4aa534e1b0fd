package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// sides are the names of the two programs.
var sides = [2]string{"old", "new"}

// longest is the time after which a command is stopped.
const longest = 10 * time.Minute

// runKeys matches the names of stored runs, and the program that made them: both depend on the program's bytes.
// Files with such a name are not compared. What is made of them is.
var runKeys = regexp.MustCompile(`\b[0-9a-f]{32}\b|\b([0-9.]+:)[0-9a-f]{16}\b`)

// A testCase is a few command lines that run one after the other in an empty folder. They name the scenarios by in/.
type testCase struct {
	name  string
	steps []step
}

// A step is a command line without the program.
type step []string

// command is the name of the command, and of its kind if it has one.
func (s step) command() string {
	if len(s) > 1 && (s[0] == "trace" || s[0] == "estimate" || s[0] == "export" || s[0] == "catalog") {
		return s[0] + " " + s[1]
	}
	return s[0]
}

// label names what a step prints: its format, or text.
func (s step) label() string {
	for i, arg := range s[:len(s)-1] {
		if arg == "--format" {
			return s[i+1]
		}
	}
	return "text"
}

// An artifact is what a case leaves: an output of a step, or a file.
type artifact struct {
	command string // of the step that made it
	name    string // such as json, stderr, exit or curve.csv
	data    []byte
}

// runAll runs the cases on all processors and records how the programs differ.
func runAll(cases []testCase, programs [2]program, work, inputs string, found *findings) error {
	queue := make(chan int, len(cases)) // all are ready at once
	for i := range cases {
		queue <- i
	}
	close(queue)
	faults := make([]error, len(cases))
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range queue {
				if faults[i] = runCase(cases[i], programs, work, inputs, found); faults[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(faults...)
}

// runCase runs a case with both programs.
func runCase(c testCase, programs [2]program, work, inputs string, found *findings) error {
	var made [2]map[string]artifact
	var took [2]time.Duration
	for i, p := range programs {
		folder := filepath.Join(work, sides[i], "cases", c.name)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
		if err := os.Symlink(inputs, filepath.Join(folder, "in")); err != nil {
			return err
		}
		made[i] = map[string]artifact{}
		for n, s := range c.steps {
			cpu, err := runStep(n, s, p, folder, made[i])
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			took[i] += cpu
		}
	}
	found.compare(c, made[0], made[1], took)
	return nil
}

// runStep runs a command, adds what it leaves, and returns its CPU time.
func runStep(n int, s step, p program, folder string, made map[string]artifact) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	c := exec.CommandContext(ctx, p.path, s...)
	c.Dir = folder
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	status := 0
	if err := c.Run(); err != nil {
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return 0, fmt.Errorf("clifftop %s: not done after %v", strings.Join(s, " "), longest)
		case !errors.As(err, &exit):
			return 0, err
		}
		status = exit.ExitCode()
	}
	add := func(key, name string, data []byte) {
		data = bytes.ReplaceAll(data, []byte(folder), []byte("."))
		data = p.version.ReplaceAll(data, []byte("${1}VERSION"))
		data = runKeys.ReplaceAll(data, []byte("${1}KEY"))
		if before, ok := made[key]; !ok || !bytes.Equal(before.data, data) {
			made[key] = artifact{s.command(), name, data}
		}
	}
	add(fmt.Sprint(n, " stdout"), s.label(), stdout.Bytes())
	add(fmt.Sprint(n, " stderr"), "stderr", stderr.Bytes())
	add(fmt.Sprint(n, " exit"), "exit", fmt.Append(nil, status))
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	return cpu, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || runKeys.MatchString(entry.Name()) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		add(strings.TrimPrefix(path, folder), filepath.Base(path), data)
		return nil
	})
}
