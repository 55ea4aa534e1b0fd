package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/unit"
	"clifftop/workload/trace"
)

// traceFlags say how to read a trace, what to select from it and how to change its load.
type traceFlags struct {
	options         trace.Options
	change          trace.Load
	mode, zero      string
	slice           string
	dequantise, cap string
}

// loadFlags are the flags that select or change.
func loadFlags() []string {
	return []string{"slice", "class", "dequantise", "scale", "rate", "speedup", "loop", "limit", "max-total"}
}

func (f *traceFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.options.Format, "read-as", "auto", "the trace's `FORMAT`; auto tells it by the header or the keys")
	flags.StringVar(&f.mode, "mode", "strict", "what to do about bad rows: strict, skip, fix")
	flags.StringVar(&f.zero, "zero-output", "", "what to do about empty answers whatever the mode: drop, one")
	flags.Float64Var(&f.options.MaxBadFraction, "max-bad-fraction", 0, "`SHARE` of bad rows above which mode skip stops (default 0.01)")
	flags.Int32Var(&f.options.BlockTokens, "block-tokens", 0, "`N` tokens of a block id, where the trace has ids (default the format's)")

	flags.StringVar(&f.slice, "slice", "", "keep the recorded time `FROM..TO`, such as 10m..20m; either may be left out")
	flags.StringSliceVar(&f.change.Classes, "class", nil, "keep the rows of class `NAME`; may be repeated")
	flags.StringVar(&f.dequantise, "dequantise", "off", "spread rows over the ticks of a coarse clock: auto, on, off")
	flags.Float64Var(&f.change.Scale, "scale", 0, "multiply the load by `K`, by thinning or superposition")
	flags.Float64Var(&f.change.Rate, "rate", 0, "scale to `R` rows per second")
	flags.Float64Var(&f.change.Speedup, "speedup", 0, "divide all times by `K`")
	flags.Int32Var(&f.change.Loop, "loop", 0, "play the trace `N` times, one after another")
	flags.Int64Var(&f.change.Limit, "limit", 0, "end after `N` rows")
	flags.Int32Var(&f.change.MaxTotal, "max-total", 0, "hold prompt and answer together to `N` tokens")
	flags.StringVar(&f.cap, "cap", "drop", "what to do about longer requests: drop, truncate-input, truncate-output")
	flags.Uint64Var(&f.change.Seed, "seed", 1, "make other random choices")
	var names []string
	for _, x := range trace.Formats() {
		names = append(names, x.Name)
	}
	for flag, values := range map[string][]string{
		"read-as": names, "mode": {"strict", "skip", "fix"}, "zero-output": {"drop", "one"}, "dequantise": {"auto", "on", "off"},
		"cap": {"drop", "truncate-input", "truncate-output"},
	} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// load is the change of load, and whether there is any.
func (f *traceFlags) load(c *cobra.Command) (*trace.Load, bool, error) {
	flags := c.Flags()
	for _, x := range []struct {
		flag, value string
		want        []string
	}{
		{"mode", f.mode, []string{"strict", "skip", "fix"}},
		{"zero-output", f.zero, []string{"", "drop", "one"}},
		{"dequantise", f.dequantise, []string{"auto", "on", "off"}},
		{"cap", f.cap, []string{"drop", "truncate-input", "truncate-output"}},
	} {
		if !slices.Contains(x.want, x.value) {
			return nil, false, fmt.Errorf("--%s: %q is not known (want %s)", x.flag, x.value, strings.Trim(strings.Join(x.want, ", "), ", "))
		}
	}
	l := &f.change
	for _, x := range []struct {
		flag  string
		given float64
	}{{"scale", l.Scale}, {"rate", l.Rate}, {"speedup", l.Speedup}, {"loop", float64(l.Loop)}, {"limit", float64(l.Limit)}, {"max-total", float64(l.MaxTotal)}} {
		if flags.Changed(x.flag) && !(x.given > 0) {
			return nil, false, fmt.Errorf("--%s: %v is not allowed (want more than 0)", x.flag, x.given)
		}
	}
	if flags.Changed("slice") {
		if err := f.parseSlice(); err != nil {
			return nil, false, err
		}
	}
	l.Dequantise, l.Cap = trace.Switch(f.dequantise), trace.CapPolicy(f.cap)
	return l, slices.ContainsFunc(loadFlags(), flags.Changed), nil
}

func (f *traceFlags) parseSlice() error {
	from, to, ok := strings.Cut(f.slice, "..")
	bad := fmt.Errorf("--slice: %q is not a slice (want FROM..TO with units, such as 10m..20m)", f.slice)
	if !ok || from == "" && to == "" {
		return bad
	}
	if from != "" {
		d, ok := unit.ParseDuration(from)
		if !ok {
			return bad
		}
		f.change.From = d.Clock()
	}
	if to != "" {
		d, ok := unit.ParseDuration(to)
		if !ok {
			return bad
		}
		f.change.To = d.Clock()
		if f.change.To <= f.change.From {
			return fmt.Errorf("--slice: %q is empty (want an end after the beginning)", f.slice)
		}
	}
	return nil
}

// file is the trace at a path.
func (f *traceFlags) file(path string) *scenario.TraceFile {
	o := f.options
	o.Mode, o.ZeroOutput, o.Seed = trace.Mode(f.mode), trace.ZeroOutput(f.zero), f.change.Seed
	return &scenario.TraceFile{Path: path, Options: o}
}
