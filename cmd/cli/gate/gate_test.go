package gate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clifftop/cmd/cli"
)

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "gate-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// fataler is a test, or a case of one.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// longest is the time after which a command hangs.
const longest = 2 * time.Minute

// output is what a command leaves.
type output struct {
	status         int
	stdout, stderr string
}

// command runs a command and asserts what holds of any.
func command(t fataler, args ...string) (o output) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(longest, cancel)
	defer timer.Stop()
	var stdout, stderr bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v\nclifftop %s", p, shown(args))
		}
	}()
	o.status = cli.Run(ctx, args, &stdout, &stderr)
	o.stdout, o.stderr = stdout.String(), stderr.String()
	if err := o.check(); err != nil {
		t.Fatalf("%v\nclifftop %s", err, shown(args))
	}
	return o
}

// check asserts the rules for exit statuses and standard error.
func (o *output) check() error {
	switch {
	case o.status == 130:
		return fmt.Errorf("not done after %v", longest)
	case o.status < 0 || o.status > 2:
		return fmt.Errorf("exit status %d", o.status)
	case o.status == 2 && o.stdout != "":
		return fmt.Errorf("exit status 2 with a result:\n%s", o.stdout)
	case o.status != 0 && o.stderr == "":
		return fmt.Errorf("exit status %d without a reason", o.status)
	case strings.Contains(o.stderr, "goroutine ") || strings.Contains(o.stderr, "%!"):
		return fmt.Errorf("standard error: %s", o.stderr)
	}
	for line := range strings.Lines(o.stderr) {
		if !strings.HasPrefix(line, "clifftop: ") && !strings.HasPrefix(line, "hint: ") && !strings.HasPrefix(line, " ") {
			return fmt.Errorf("standard error: %s", o.stderr)
		}
	}
	return nil
}

// shown is a command line with the content of its files.
func shown(args []string) string {
	var b strings.Builder
	b.WriteString(strings.Join(args, " "))
	for _, arg := range args {
		if strings.HasSuffix(arg, ".yaml") {
			if data, err := os.ReadFile(arg); err == nil {
				fmt.Fprintf(&b, "\n%s:\n%s", filepath.Base(arg), data)
			}
		}
	}
	return b.String()
}

// file writes a scenario and returns its name.
func (s doc) file(t fataler, name string) string {
	t.Helper()
	path := filepath.Join(folder, name+".yaml")
	if err := os.WriteFile(path, s.bytes(), 0o666); err != nil {
		t.Fatalf("%v", err)
	}
	return path
}
