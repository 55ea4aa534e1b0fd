package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"clifftop/experiments"
)

// Rules of what goes to standard error: every line begins with "clifftop: " or "hint: ", or is an
// excerpt of a file, indented; messages are in lower case and have no full stop; there is never a stack
// trace.

// maxFaults is the number of faults that are printed one by one.
const maxFaults = 20

// printError prints an error and its hints.
func printError(w io.Writer, err error) {
	var faults experiments.Faults
	var fault *experiments.Fault
	switch {
	case errors.As(err, &faults):
	case errors.As(err, &fault):
		faults = experiments.Faults{fault}
	default:
		text, hint, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(w, "clifftop: %s\n", text)
		if names := strings.Fields(hint); strings.Contains(hint, "Did you mean this?") && len(names) > 4 {
			fmt.Fprintf(w, "hint: did you mean %s?\n", names[4])
		}
		return
	}
	for i, f := range faults {
		if i == maxFaults {
			fmt.Fprintf(w, "clifftop: and %d more\n", len(faults)-i)
			return
		}
		fmt.Fprintf(w, "clifftop: %s\n", f.Error())
		if i == 0 && f.Excerpt != "" {
			fmt.Fprintln(w, f.Excerpt)
		}
		if f.Hint != "" {
			fmt.Fprintf(w, "hint: %s\n", f.Hint)
		}
	}
}
