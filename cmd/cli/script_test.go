package cli

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"clifftop/internal/testenv"
	"clifftop/report/layout"
)

var update = flag.Bool("update", false, "write what the scripts print to the files they compare it with")

// TestMain makes the program a command of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"clifftop": Main})
}

// TestScripts runs the files in testdata/script. Beside testscript's own commands they have
//
//	status N PROGRAM ARG…            runs a program that must end with this exit status
//	status N full PROGRAM ARG…       the same with a standard output that is full
//	fits PROGRAM ARG…                runs a program whose output must keep to 80 columns
//	interrupt REGEXP N PROGRAM ARG…  interrupts it at the first line of standard error that matches
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Condition: func(name string) (bool, error) {
			if name != "long" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return testenv.Long(), nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": func(ts *testscript.TestScript, _ bool, args []string) {
				if args[1] == "full" {
					args = append([]string{args[0], "sh", "-c", `exec "$@" >/dev/full`}, args[1:]...)
				}
				err := ts.Exec(args[1], args[2:]...)
				ts.Check(checkStatus(err, args[0]))
				if strings.Contains(ts.ReadFile("stderr"), "goroutine ") {
					ts.Fatalf("a stack trace")
				}
			},
			"fits": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(ts.Exec(args[0], args[1:]...))
				for line := range strings.Lines(ts.ReadFile("stdout")) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > layout.Width {
						ts.Fatalf("a line of %d: %s", n, line)
					}
				}
			},
			"interrupt": func(ts *testscript.TestScript, _ bool, args []string) {
				c := exec.Command(args[2], args[3:]...)
				c.Dir, c.Stdout = ts.MkAbs("."), ts.Stdout()
				ts.Check(checkStatus(interruptAt(regexp.MustCompile(args[0]), c, ts), args[1]))
			},
		},
	})
}

// checkStatus compares the exit status of a program that was run with err.
func checkStatus(err error, want string) error {
	status := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		return err
	}
	if strconv.Itoa(status) != want {
		return fmt.Errorf("exit status %d, want %s", status, want)
	}
	return nil
}

// interruptAt runs a program and interrupts it when it says something.
func interruptAt(when *regexp.Regexp, c *exec.Cmd, ts *testscript.TestScript) error {
	stderr, err := c.StderrPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	sent := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		fmt.Fprintln(ts.Stderr(), lines.Text())
		if !sent && when.MatchString(lines.Text()) {
			sent = true
			if err := c.Process.Signal(os.Interrupt); err != nil {
				return err
			}
		}
	}
	return c.Wait()
}
