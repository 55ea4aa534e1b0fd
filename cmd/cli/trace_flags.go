package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload/trace"
)

// traceFlags control how a trace is read, which rows are selected, and how its load is changed.
type traceFlags struct {
	options         trace.Options
	change          trace.Load
	mode, zero      string
	slice           string
	dequantise, cap string
}

// changesLoad reports whether a flag selects rows or changes the load.
func (f *traceFlags) changesLoad(c *cobra.Command) bool {
	names := []string{"slice", "class", "dequantise", "scale", "rate", "speedup", "loop", "limit", "max-total"}
	return slices.ContainsFunc(names, c.Flags().Changed)
}

func (f *traceFlags) register(c *cobra.Command) {
	f.registerReading(c)
	f.registerChanges(c)
	console.AddCheck(c, func() error { return f.checkPositive(c) })
	console.AddCheck(c, func() error { return f.parseSlice(c) })
}

func (f *traceFlags) registerReading(c *cobra.Command) {
	formats := []string{"auto"}
	for _, x := range trace.Formats() {
		formats = append(formats, x.Name)
	}
	flags := c.Flags()
	flags.StringVar(&f.options.Format, "read-as", "auto",
		"`FORMAT` of the trace; auto detects it from the header or keys")
	_ = c.RegisterFlagCompletionFunc("read-as", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	console.AddChoice(c, &f.mode, "mode", "handling of bad rows: strict, skip, fix", "strict", "skip", "fix")
	console.AddOptionalChoice(c, &f.zero, "zero-output", "handling of empty outputs in any mode: drop, one",
		"drop", "one")
	flags.Float64Var(&f.options.MaxBadFraction, "max-bad-fraction", 0,
		"largest `SHARE` of bad rows in mode skip (default 0.01)")
	flags.Int32Var(&f.options.BlockTokens, "block-tokens", 0, "`N` tokens per block id (default from the format)")
}

// registerChanges adds the flags that select rows or change the load.
func (f *traceFlags) registerChanges(c *cobra.Command) {
	flags, l := c.Flags(), &f.change
	flags.StringVar(&f.slice, "slice", "",
		"keep the recorded time `FROM..TO`, such as 10m..20m; either end may be empty")
	flags.StringSliceVar(&l.Classes, "class", nil, "keep the rows of class `NAME`; repeatable")
	console.AddChoice(c, &f.dequantise, "dequantise", "spread rows over the ticks of a coarse clock: off, auto, on",
		"off", "auto", "on")
	flags.Float64Var(&l.Scale, "scale", 0, "multiply the load by `K`, by thinning or superposition")
	flags.Float64Var(&l.Rate, "rate", 0, "scale to `R` rows per second")
	flags.Float64Var(&l.Speedup, "speedup", 0, "divide all times by `K`")
	flags.Int32Var(&l.Loop, "loop", 0, "replay the trace `N` times in a row")
	flags.Int64Var(&l.Limit, "limit", 0, "stop after `N` rows")
	flags.Int32Var(&l.MaxTotal, "max-total", 0, "limit input and output together to `N` tokens")
	console.AddChoice(c, &f.cap, "cap", "handling of longer requests: drop, truncate-input, truncate-output",
		"drop", "truncate-input", "truncate-output")
	flags.Uint64Var(&l.Seed, "seed", 1, "seed `N` of random choices")
}

// checkPositive rejects flags that were given with 0 or less.
func (f *traceFlags) checkPositive(c *cobra.Command) error {
	l := &f.change
	for _, x := range []struct {
		flag  string
		given float64
	}{
		{"scale", l.Scale},
		{"rate", l.Rate},
		{"speedup", l.Speedup},
		{"loop", float64(l.Loop)},
		{"limit", float64(l.Limit)},
		{"max-total", float64(l.MaxTotal)},
	} {
		if c.Flags().Changed(x.flag) && !(x.given > 0) {
			return fmt.Errorf("--%s: %v is not allowed (want more than 0)", x.flag, x.given)
		}
	}
	return nil
}

func (f *traceFlags) parseSlice(c *cobra.Command) error {
	if !c.Flags().Changed("slice") {
		return nil
	}
	bad := fmt.Errorf("--slice: %q is not a slice (want FROM..TO with units, such as 10m..20m)", f.slice)
	from, to, ok := strings.Cut(f.slice, "..")
	if !ok || from == "" && to == "" {
		return bad
	}
	if from != "" {
		d, ok := yamldoc.ParseDuration(from)
		if !ok {
			return bad
		}
		f.change.From = d.Clock()
	}
	if to != "" {
		d, ok := yamldoc.ParseDuration(to)
		if !ok {
			return bad
		}
		f.change.To = d.Clock()
		if f.change.To <= f.change.From {
			return fmt.Errorf("--slice: %q is empty (want an end after the start)", f.slice)
		}
	}
	return nil
}

// load returns the selection and the change of load.
func (f *traceFlags) load() *trace.Load {
	f.change.Dequantise, f.change.Cap = trace.Switch(f.dequantise), trace.CapPolicy(f.cap)
	return &f.change
}

func (f *traceFlags) file(path string) *scenario.TraceFile {
	o := f.options
	o.Mode, o.ZeroOutput, o.Seed = trace.Mode(f.mode), trace.ZeroOutput(f.zero), f.change.Seed
	return &scenario.TraceFile{Path: path, Options: o}
}
