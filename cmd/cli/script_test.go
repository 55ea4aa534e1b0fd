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
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"clifftop/internal/testenv"
	"clifftop/report/layout"
)

var update = flag.Bool("update", false, "replace the files that scripts compare output with")

// TestMain makes clifftop a command of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"clifftop": Main})
}

// TestScripts runs the files in testdata/script. Scripts have these commands besides those of testscript:
//
//	status N PROGRAM ARG…            runs a program that must end with exit status N
//	status N full PROGRAM ARG…       does so with a standard output that is full
//	fits PROGRAM ARG…                runs a program whose output must fit into 80 columns
//	interrupt REGEXP N PROGRAM ARG…  runs a program, interrupts it at the first line of standard error that matches,
//	                                 and requires exit status N
//	starve N PROGRAM ARG…            makes a named pipe, fifo, runs a program, interrupts it when it has opened the pipe,
//	                                 and requires exit status N
//
// The condition [long] holds in the long tier of tests, see package testenv.
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
			"starve": func(ts *testscript.TestScript, _ bool, args []string) {
				c := exec.Command(args[1], args[2:]...)
				c.Dir, c.Stdout, c.Stderr = ts.MkAbs("."), ts.Stdout(), ts.Stderr()
				ts.Check(syscall.Mkfifo(ts.MkAbs("fifo"), 0o600))
				ts.Check(c.Start())
				in, err := os.OpenFile(ts.MkAbs("fifo"), os.O_WRONLY, 0) // waits for the program to open it
				ts.Check(err)
				defer in.Close()
				ts.Check(c.Process.Signal(syscall.SIGTERM))
				ts.Check(checkStatus(c.Wait(), args[0]))
			},
		},
	})
}

// checkStatus checks the exit status in the error of a program that was run.
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

// interruptAt runs a program and interrupts it at the first line of standard error that matches.
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
