package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that accepts one of a list of words.
type choice struct {
	value   *string
	choices []string
}

// addChoice adds a flag that accepts one of the choices. The default is what the value holds already, or the first
// choice if it is empty. Shells complete the choices.
func addChoice(c *cobra.Command, value *string, name, usage string, choices ...string) {
	if *value == "" {
		*value = choices[0]
	}
	addOptionalChoice(c, value, name, usage, choices...)
}

// addOptionalChoice works as addChoice, for a flag without a default. The value stays empty if the flag is not given.
func addOptionalChoice(c *cobra.Command, value *string, name, usage string, choices ...string) {
	c.Flags().Var(&choice{value, choices}, name, usage)
	_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// Set implements [github.com/spf13/pflag.Value].
func (f *choice) Set(text string) error {
	if !slices.Contains(f.choices, text) {
		return fmt.Errorf("want one of %v", f.choices)
	}
	*f.value = text
	return nil
}

// String returns the current value.
func (f *choice) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

// Type returns the type that help shows.
func (f *choice) Type() string { return "string" }

// addCheck adds a check that runs when all flags are parsed, before the command itself.
func addCheck(c *cobra.Command, check func() error) {
	earlier := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(c, args); err != nil {
				return err
			}
		}
		return check()
	}
}
