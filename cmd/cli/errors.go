package cli

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
)

// Rules of what goes to standard error: every line begins with "clifftop: " or "hint: ", or is an
// excerpt of a file, indented; messages are in lower case and have no full stop; there is never a stack
// trace.

// nearFlag is a hint at the flag that is nearest to what was written, or empty.
func nearFlag(c *cobra.Command, written string) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if len(written) < 2 {
		return "" // a letter is near to everything
	}
	return strings.Replace(yamldoc.DidYouMean(written, names), "mean ", "mean --", 1)
}

// flagError puts what is wrong with a flag in this program's words.
func flagError(c *cobra.Command, err error) error {
	var faults yamldoc.Faults
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &faults):
		return faults
	case errors.As(err, &unknown):
		return fmt.Errorf("%w\nhint: %s", err, cmp.Or(nearFlag(c, unknown.GetSpecifiedName()), c.CommandPath()+" --help lists the flags"))
	case errors.As(err, &bare):
		want, _ := pflag.UnquoteUsage(bare.GetFlag())
		return fmt.Errorf("--%s: the value is missing (want %s)", bare.GetFlag().Name, want)
	case errors.As(err, &invalid):
		want := map[string]string{
			"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, 0 or more", "intSlice": "whole numbers, with commas between",
			"float64": "a number", "bool": "true or false",
		}
		if kind := want[invalid.GetFlag().Value.Type()]; kind != "" {
			return fmt.Errorf("--%s: %q is not allowed (want %s)", invalid.GetFlag().Name, invalid.GetValue(), kind)
		}
		return fmt.Errorf("--%s: %q is not allowed (%w)", invalid.GetFlag().Name, invalid.GetValue(), errors.Unwrap(invalid))
	}
	return err
}

// atMostOne allows one argument, which is not empty.
func atMostOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s: %d arguments, %s (want at most one %s)", c.Name(), len(args), strings.Join(args, " "), what)
		}
		if len(args) == 1 && args[0] == "" {
			return fmt.Errorf("%s: the name of the %s is empty", c.Name(), what)
		}
		return nil
	}
}

// maxFaults is the number of faults that are printed one by one.
const maxFaults = 20

// printError prints an error and its hints.
func printError(w io.Writer, err error) {
	var faults yamldoc.Faults
	var fault *yamldoc.Fault
	switch {
	case errors.As(err, &faults):
	case errors.As(err, &fault):
		faults = yamldoc.Faults{fault}
	default:
		text, hint, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(w, "clifftop: %s\n", text)
		if names := strings.Fields(hint); strings.Contains(hint, "Did you mean this?") && len(names) > 4 {
			fmt.Fprintf(w, "hint: did you mean %s?\n", names[4])
		} else if strings.HasPrefix(hint, "hint: ") {
			fmt.Fprintln(w, hint)
		} else if _, parent, ok := strings.Cut(text, " for "); ok && strings.HasPrefix(text, "unknown command") {
			fmt.Fprintf(w, "hint: %s --help lists the commands\n", strings.Trim(parent, `"`))
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
		if f.Hint != "" && !slices.ContainsFunc(faults[:i], func(g *yamldoc.Fault) bool { return g.Hint == f.Hint }) {
			fmt.Fprintf(w, "hint: %s\n", f.Hint)
		}
	}
}
