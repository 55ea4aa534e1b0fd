// Package cli implements the command line of Clifftop. Each command has one file. It turns arguments and flags into a
// scenario, calls the package that does the work, and prints or writes the result.
//
// Start with [Main] and with run.go, the smallest command that simulates. README.md explains how to add a command and
// lists the rules for output. Only programs import this package; Go code that simulates uses package clifftop.
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

	"clifftop/cmd/cli/console"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/input"
	"clifftop/report/layout"
)

// Exit statuses.
const (
	exitFailed      = 1   // a run or a verdict failed
	exitUsage       = 2   // wrong usage or bad input
	exitInterrupted = 130 // interrupted by a signal
	exitUnread      = 141 // the reader closed standard output early
)

// interruptWindow is the time within which several interrupts count as one.
const interruptWindow = time.Second

// Main runs the command line in [os.Args] and ends the process. The exit status is 0 on success, 1 if a run or a
// verdict failed, 2 for wrong usage or bad input, 130 after an interrupt, and 141 if the reader of standard output
// closed it early.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE) // write files even if the reader closed standard output
	// A second interrupt ends the program at once. Shells and timeout(1) send an interrupt to the process and to its
	// group, so interrupts within interruptWindow count as one.
	context.AfterFunc(ctx, func() { time.AfterFunc(interruptWindow, stop) })
	input.Watch(ctx, func() {
		io.WriteString(os.Stderr, "clifftop: interrupted\n")
		os.Exit(exitInterrupted)
	})
	os.Exit(Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// commands returns the command that the arguments name, or else all commands below the root: a command has dozens of
// flags, and a run needs only its own. To add a command, add its name and its constructor here.
func commands(args []string) []*cobra.Command {
	all := []struct {
		name string
		make func() *cobra.Command
	}{
		{"calibrate", newCalibrate},
		{"catalog", newCatalog},
		{"compare", newCompare},
		{"estimate", newEstimate},
		{"explain", newExplain},
		{"export", newExport},
		{"import", newImport},
		{"init", newInit},
		{"lesson", newLesson},
		{"merge", newMerge},
		{"plan", newPlan},
		{"play", newPlay},
		{"run", newRun},
		{"serve", newServe},
		{"record", newRecord},
		{"sweep", newSweep},
		{"trace", newTrace},
		{"validate", newValidate},
		{"verify", newVerify},
		{"version", newVersion},
	}
	var made []*cobra.Command
	for _, c := range all {
		if len(args) > 0 && args[0] == c.name {
			return []*cobra.Command{c.make()}
		}
	}
	for _, c := range all {
		made = append(made, c.make())
	}
	return made
}

// Run executes a command line without the name of the program and returns the exit status, as [Main] describes it. A
// context that is cancelled interrupts the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &console.Output{Writer: stdout}
	root := newRoot(args)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	console.RejectUnknownTopics(root)
	err := root.ExecuteContext(ctx)
	switch {
	case errors.Is(out.Err, syscall.EPIPE):
		return exitUnread
	case out.Err != nil:
		err = console.Failed(fmt.Errorf("standard output: %s", console.Cause(out.Err)))
	case err == nil:
		return 0
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		io.WriteString(stderr, "clifftop: interrupted\n")
		return exitInterrupted
	}
	console.PrintError(stderr, err)
	if f := (*console.Failure)(nil); errors.As(err, &f) && !yamldoc.BadInput(err) {
		return exitFailed
	}
	return exitUsage
}

func newRoot(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "clifftop",
		Short: "Simulate LLM serving: throughput, latency, goodput and cost",
		Long: `Clifftop simulates LLM serving. Describe a model, the GPUs, the engine and the traffic in a
scenario file. Clifftop reports throughput, latency percentiles, goodput and cost. It shows at which load
the system saturates and why, and how well simulated numbers match measured ones.

Without a scenario file, Clifftop simulates llama-3.1-8b on one h100-sxm with chat traffic.`,
		Example: `  clifftop sweep
  clifftop run scenario.yaml --rate 8 --set engine.max_num_seqs=512
  clifftop init scenario.yaml`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("clifftop {{.Version}}\n")
	root.AddCommand(commands(args)...)
	root.SetFlagErrorFunc(console.FlagError)
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d |", layout.Width)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages |", wrapped))
	console.WrapHelp(root)
	return root
}
