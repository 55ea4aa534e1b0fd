// Package cli is the command line of Clifftop: one file for each command, which turns flags into a scenario, calls the
// package that does the work, and prints or writes the result.
//
// Start with [Main] and with run.go, the smallest command that simulates. flags.go has the flags that commands share,
// output.go writes result files, and errors.go has the rules for standard error. Nothing imports this package but
// programs: package clifftop is for code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"clifftop/experiments"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/layout"
)

// Exit statuses.
const (
	exitFailed      = 1 // the run failed
	exitUsage       = 2 // wrong usage or bad input
	exitInterrupted = 130
	exitUnread      = 141 // the reader of the output left early
)

// oneInterrupt is how long interrupts count as the same.
const oneInterrupt = time.Second

// Main runs the command line of the process and ends the process with the exit status: 0 when the command is done, 1
// when a run or a verdict failed, 2 for wrong usage or bad input, 130 after an interrupt.
func Main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // files are written even if nobody reads the output
	// A second interrupt ends the program at once. Those that come together are one: shells and timeout(1) send
	// it to a process and to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(oneInterrupt, stop) })
	root := newRoot()
	out := &output{Writer: stdout}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	strict(root)
	err := root.ExecuteContext(ctx)
	if errors.Is(out.err, syscall.EPIPE) {
		return exitUnread
	}
	if out.err != nil {
		err = failed(fmt.Errorf("standard output: %s", cause(out.err)))
	}
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		io.WriteString(stderr, "clifftop: interrupted\n")
		return exitInterrupted
	}
	printError(stderr, err)
	var f *failure
	if errors.As(err, &f) && !yamldoc.BadInput(err) {
		return exitFailed
	}
	return exitUsage
}

// output remembers that writing failed, which printers of help do not tell.
type output struct {
	io.Writer
	err error
}

// Write writes on.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// failure is an error of a run, as opposed to one of usage.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed marks an error as one of the run.
func failed(err error) error {
	if err == nil {
		return nil
	}
	var w *writeError
	if errors.As(err, &w) {
		err = w // whatever was being written
	}
	return &failure{err}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "clifftop",
		Short: "Simulate LLM serving: throughput, latency, goodput, cost, and where the cliff is",
		Long: `Clifftop simulates LLM serving. Describe a model, the GPUs, the engine and the traffic in a
scenario file; it answers with throughput, latency percentiles, goodput and cost, shows where
the system saturates and why, and says how far the numbers can be trusted.

Without a scenario the defaults hold: llama-3.1-8b on one h100-sxm under chat traffic.`,
		Example: `  clifftop sweep
  clifftop run scenario.yaml --rate 8 --set engine.max_num_seqs=512
  clifftop init scenario.yaml`,
		Version:       experiments.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("clifftop {{.Version}}\n")
	root.AddCommand(newRun(), newSweep(), newMerge(), newCompare(), newPlan(), newValidate(), newCalibrate(), newExplain(), newEstimate(), newLesson(), newPlay(), newTrace(), newCatalog(), newInit(), newVersion())
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages |", fmt.Sprintf(".FlagUsagesWrapped %d |", layout.Width)))
	wrapHelp(root)
	return root
}

// wrapHelp makes the texts of commands fit into lines; paragraphs that are indented stay as they are.
func wrapHelp(c *cobra.Command) {
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
	example := ""
	for line := range strings.Lines(c.Example) {
		example += layout.Shell(strings.TrimSpace(line), 2, layout.Width)
	}
	c.Example = strings.TrimSuffix(example, "\n")
	for _, sub := range c.Commands() {
		wrapHelp(sub)
	}
}

// strict makes the commands that cobra adds refuse what they do not know, rather than print help. Its
// output must be set before.
func strict(root *cobra.Command) {
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

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), "clifftop "+experiments.Version+"\n")
			return failed(err)
		},
	}
}
