// Package testenv reads the environment variables that decide how much the tests of this module do.
//
// Tests come in two tiers. go test ./... runs the short tier. The long tier, with CLIFFTOP_LONG=1, runs every study,
// seed and random case in full. [Choose] takes a size for each tier; [NeedsLong] leaves a test to the long one. In the
// short tier a package that imports this one checks each property with [ShortChecks] random cases instead of 100,
// unless -rapid.checks says otherwise. CLIFFTOP_SEED is the seed of these cases; 0, the default, draws one.
//
// Some tests need data that is not part of the module: CLIFFTOP_TRACES names a folder of recorded traces, and
// CLIFFTOP_REFERENCE a folder of measurements on real GPUs. Without the variable such a test is skipped, except where
// CI=true: there a missing variable fails the test, so that no test is left out unnoticed.
package testenv

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	_ "pgregory.net/rapid" // it defines -rapid.checks and -rapid.seed, whose defaults change here
)

// ShortChecks is the number of random cases of a property in the short tier.
const ShortChecks = 20

func init() {
	if !Long() {
		set("rapid.checks", strconv.Itoa(ShortChecks))
	}
	if seed := os.Getenv("CLIFFTOP_SEED"); seed != "" {
		set("rapid.seed", seed)
	}
}

// set changes the default of a flag. The command line is read later and overrides it.
func set(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}

// Long reports whether the tests of the long tier run: whether CLIFFTOP_LONG is set to a true value such as 1.
func Long() bool {
	return isTrue("CLIFFTOP_LONG")
}

// Choose returns the first value in the short tier and the second one in the long tier.
func Choose[T any](short, long T) T {
	if Long() {
		return long
	}
	return short
}

// NeedsLong skips a test in the short tier. The reason says what is left out.
func NeedsLong(t testing.TB, reason string) {
	t.Helper()
	if !Long() {
		t.Skipf("%s (CLIFFTOP_LONG=1 runs it)", reason)
	}
}

// Traces returns the path of a file in the folder of recorded traces. It skips the test if CLIFFTOP_TRACES is not set,
// and fails it where CI=true.
func Traces(t testing.TB, file ...string) string {
	t.Helper()
	return data(t, "CLIFFTOP_TRACES", "recorded traces", file)
}

// Reference returns the path of a file in the folder of reference measurements. It skips the test if
// CLIFFTOP_REFERENCE is not set, and fails it where CI=true.
func Reference(t testing.TB, file ...string) string {
	t.Helper()
	return data(t, "CLIFFTOP_REFERENCE", "reference measurements", file)
}

func data(t testing.TB, variable, content string, file []string) string {
	t.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		missing(t, "%s is not set: set it to the folder of %s", variable, content)
	} else if info, err := os.Stat(folder); err != nil {
		t.Fatalf("%s: %v", variable, err)
	} else if !info.IsDir() {
		t.Fatalf("%s: %s is a file: want the folder of %s", variable, folder, content)
	}
	return filepath.Join(folder, filepath.Join(file...))
}

// missing skips a test whose data is missing, and fails it where CI=true.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if isTrue("CI") {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func isTrue(variable string) bool {
	set, _ := strconv.ParseBool(os.Getenv(variable))
	return set
}
