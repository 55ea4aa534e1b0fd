package testenv

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// outcome records how a test ends.
type outcome struct {
	testing.TB
	failed, skipped string
}

func (o *outcome) Helper() {}

func (o *outcome) Fatal(args ...any) {
	o.failed = fmt.Sprint(args...)
	runtime.Goexit()
}

func (o *outcome) Fatalf(format string, args ...any) { o.Fatal(fmt.Sprintf(format, args...)) }

func (o *outcome) Skip(args ...any) {
	o.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func (o *outcome) Skipf(format string, args ...any) { o.Skip(fmt.Sprintf(format, args...)) }

// end runs a function as a test and returns how the test ended.
func end(test func(t testing.TB)) *outcome {
	o := new(outcome)
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(o)
	}()
	<-done
	return o
}

func TestData(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "measured.csv")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, value, ci, path, skipped, failed string }{
		{"unset", "", "", "", "CLIFFTOP_REFERENCE is not set", ""},
		{"unset, CI off", "", "false", "", "CLIFFTOP_REFERENCE is not set", ""},
		{"unset in CI", "", "true", "", "", "CLIFFTOP_REFERENCE is not set"},
		{"set", folder, "true", file, "", ""},
		{"missing", filepath.Join(folder, "none"), "", "", "", "no such file"},
		{"a file", file, "", "", "", "is a file: want the folder of reference measurements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("CLIFFTOP_REFERENCE", c.value)
			t.Setenv("CI", c.ci)
			var path string
			o := end(func(t testing.TB) { path = Reference(t, "measured.csv") })
			if path != c.path || !holds(o.skipped, c.skipped) || !holds(o.failed, c.failed) {
				t.Errorf("path %q, skipped %q, failed %q", path, o.skipped, o.failed)
			}
		})
	}
	t.Setenv("CLIFFTOP_TRACES", folder)
	if got := Traces(t); got != folder {
		t.Errorf("Traces() is %q, want %q", got, folder)
	}
}

// holds reports whether a text contains a part, and whether it is empty if the part is.
func holds(text, part string) bool {
	return strings.Contains(text, part) && (text == "") == (part == "")
}

func TestTiers(t *testing.T) {
	for value, long := range map[string]bool{"": false, "0": false, "1": true, "true": true} {
		t.Setenv("CLIFFTOP_LONG", value)
		if Long() != long || (Choose(1, 2) == 2) != long {
			t.Errorf("CLIFFTOP_LONG=%q: Long() is %v", value, Long())
		}
		if o := end(func(t testing.TB) { NeedsLong(t, "a study") }); (o.skipped == "") != long {
			t.Errorf("CLIFFTOP_LONG=%q: skipped %q", value, o.skipped)
		}
	}
}

func TestChecks(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); !Long() && f.Value.String() != fmt.Sprint(ShortChecks) &&
		!given("rapid.checks") {
		t.Errorf("%s random cases of a property, want %d", f.Value, ShortChecks)
	}
}

func TestSeed(t *testing.T) {
	want := os.Getenv("CLIFFTOP_SEED")
	if f := flag.Lookup("rapid.seed"); want != "" && f.Value.String() != want && !given("rapid.seed") {
		t.Errorf("the seed of random cases is %s, want %s", f.Value, want)
	}
}

// given reports whether the command line sets a flag.
func given(name string) bool {
	for _, arg := range os.Args {
		if strings.Contains(arg, name) {
			return true
		}
	}
	return false
}
