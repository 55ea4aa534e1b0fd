package console

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

// AddChoice adds a flag that accepts one of the choices. The default is the current value, or the first choice if it is
// empty. Shells complete the choices.
func AddChoice(c *cobra.Command, value *string, name, usage string, choices ...string) {
	if *value == "" {
		*value = choices[0]
	}
	AddOptionalChoice(c, value, name, usage, choices...)
}

// AddOptionalChoice works as [AddChoice], for a flag without a default. The value stays empty if the flag is not given.
func AddOptionalChoice(c *cobra.Command, value *string, name, usage string, choices ...string) {
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

func (f *choice) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

// Type returns the type that help shows.
func (f *choice) Type() string { return "string" }

// AddCheck adds a check that runs when all flags are parsed, before the command itself.
func AddCheck(c *cobra.Command, check func() error) {
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
