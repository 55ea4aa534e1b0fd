package console

import (
	"strings"

	"github.com/spf13/cobra"

	"clifftop/report/layout"
)

// WrapHelp makes the help of all commands wrap long texts and examples to [layout.Width] columns, but for the commands
// that Cobra adds.
func WrapHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		path := strings.Fields(c.CommandPath())
		if len(path) == 1 || path[1] != "help" && path[1] != "completion" {
			wrap(c)
		}
		help(c, args)
	})
}

// wrap wraps the long text and the example of a command. Indented paragraphs stay as they are.
func wrap(c *cobra.Command) {
	var paragraphs []string
	for p := range strings.SplitSeq(c.Long, "\n\n") {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			t := &layout.Text{}
			t.Paragraph(p)
			p = strings.TrimSuffix(t.String(), "\n")
		}
		paragraphs = append(paragraphs, p)
	}
	c.Long = strings.Join(paragraphs, "\n\n")
	var example strings.Builder
	for line := range strings.Lines(c.Example) {
		example.WriteString(layout.Shell(strings.TrimSpace(line), 2, layout.Width))
	}
	c.Example = strings.TrimSuffix(example.String(), "\n")
}

// RejectUnknownTopics makes Cobra's help and completion commands return an error for an unknown topic, where they
// would print help. The root's output must be set before.
func RejectUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			help := c.Run
			c.Run, c.RunE = nil, func(c *cobra.Command, args []string) error {
				if _, _, err := root.Find(args); err != nil {
					return err
				}
				help(c, args)
				return nil
			}
		case "completion":
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}
