package console

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/layout"
)

// Failure is an error of a run. All other errors are errors of usage or input.
type Failure struct{ err error }

func (f *Failure) Error() string { return f.err.Error() }
func (f *Failure) Unwrap() error { return f.err }

// Failed marks an error as an error of the run, which gives exit status 1. It returns nil for nil. Of an error about a
// file that could not be written it keeps only the [WriteError], which names the file.
func Failed(err error) error {
	if err == nil {
		return nil
	}
	var w *WriteError
	if errors.As(err, &w) {
		err = w
	}
	return &Failure{err}
}

// UnknownName returns the error for a value that is not one of the known names. The first argument says where it was
// found, such as "--save".
func UnknownName(where, name string, known []string) error {
	return fmt.Errorf("%s: %q is not known (want %s)", where, name, strings.Join(known, ", "))
}

// nearestFlag returns a hint that names the flag most similar to the written one, or "" if none is similar.
func nearestFlag(c *cobra.Command, written string) string {
	if len(written) < 2 {
		return "" // one letter is similar to every short name
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return strings.Replace(yamldoc.DidYouMean(written, names), "mean ", "mean --", 1)
}

// wantedValues describes the values that flags of pflag's own types accept.
var wantedValues = map[string]string{
	"bool":     "true or false",
	"float64":  "a number",
	"int":      "a whole number",
	"int32":    "a whole number",
	"int64":    "a whole number",
	"intSlice": "whole numbers, separated by commas",
	"uint64":   "a whole number, 0 or more",
}

// FlagError rewrites an error of pflag in the form of this program's errors.
func FlagError(c *cobra.Command, err error) error {
	var faults yamldoc.Faults
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &faults):
		return faults
	case errors.As(err, &unknown):
		hint := cmp.Or(nearestFlag(c, unknown.GetSpecifiedName()), c.CommandPath()+" --help lists the flags")
		return fmt.Errorf("%w\nhint: %s", err, hint)
	case errors.As(err, &bare):
		want, _ := pflag.UnquoteUsage(bare.GetFlag())
		return fmt.Errorf("--%s: the value is missing (want %s)", bare.GetFlag().Name, want)
	case errors.As(err, &invalid):
		return invalidValue(invalid.GetFlag(), invalid.GetValue(), errors.Unwrap(invalid))
	}
	return err
}

// invalidValue returns the error for a value that a flag does not accept, given the flag's own error.
func invalidValue(flag *pflag.Flag, value string, err error) error {
	where := "--" + flag.Name
	if c, ok := flag.Value.(*choice); ok {
		return UnknownName(where, value, c.choices)
	}
	if want := wantedValues[flag.Value.Type()]; want != "" {
		return fmt.Errorf("%s: %q is not allowed (want %s)", where, value, want)
	}
	return fmt.Errorf("%s: %q is not allowed (%w)", where, value, err)
}

// AtMostOne allows at most one argument, which must not be empty. The argument is named in errors.
func AtMostOne(argument string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s: %d arguments, %s (want at most one %s)",
				c.Name(), len(args), strings.Join(args, " "), argument)
		}
		if len(args) == 1 && args[0] == "" {
			return fmt.Errorf("%s: the name of the %s is empty", c.Name(), argument)
		}
		return nil
	}
}

// maxFaults is the number of faults that are printed. The rest is only counted.
const maxFaults = 20

// PrintError prints an error and its hints to standard error. README.md has the rules for its form.
func PrintError(to io.Writer, err error) {
	var w strings.Builder
	defer func() { io.WriteString(to, layout.Lines(w.String())) }() // it may quote what files contain
	var faults yamldoc.Faults
	var fault *yamldoc.Fault
	switch {
	case errors.As(err, &faults):
		printFaults(&w, faults)
	case errors.As(err, &fault):
		printFaults(&w, yamldoc.Faults{fault})
	default:
		text, rest, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(&w, "clifftop: %s\n", text)
		if hint := hintAfter(text, rest); hint != "" {
			fmt.Fprintf(&w, "hint: %s\n", hint)
		}
	}
}

// hintAfter returns the hint for an error, given its first line and the rest. The rest may be a hint of this program
// or a suggestion of Cobra.
func hintAfter(text, rest string) string {
	if hint, ok := strings.CutPrefix(rest, "hint: "); ok {
		return hint
	}
	if names := strings.Fields(rest); strings.Contains(rest, "Did you mean this?") && len(names) > 4 {
		return "did you mean " + names[4] + "?"
	}
	if _, parent, ok := strings.Cut(text, " for "); ok && strings.HasPrefix(text, "unknown command") {
		return strings.Trim(parent, `"`) + " --help lists the commands"
	}
	return ""
}

// printFaults prints the faults of a scenario. Only the first has an excerpt, and equal hints are printed once.
func printFaults(w io.Writer, faults yamldoc.Faults) {
	for i, f := range faults {
		if i == maxFaults {
			fmt.Fprintf(w, "clifftop: and %d more\n", len(faults)-i)
			return
		}
		fmt.Fprintf(w, "clifftop: %s\n", f.Error())
		if i == 0 && f.Excerpt != "" {
			fmt.Fprintln(w, f.Excerpt)
		}
		printed := func(g *yamldoc.Fault) bool { return g.Hint == f.Hint }
		if f.Hint != "" && !slices.ContainsFunc(faults[:i], printed) {
			fmt.Fprintf(w, "hint: %s\n", f.Hint)
		}
	}
}
