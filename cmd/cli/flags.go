package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
)

// scenarioFlags are the flags that set keys of the scenario. Their order on the command line counts.
type scenarioFlags struct{ settings []scenario.Setting }

func (f *scenarioFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.Var(&settingFlag{to: f}, "set", "set a scenario's `KEY=VALUE`; may be repeated")
	for _, s := range []struct{ flag, key, kind, usage string }{
		{"model", "model", "NAME", "what is served"},
		{"gpu", "gpu", "NAME", "what it is served on"},
		{"tp", "deployment.tensor_parallel_size", "N", "GPUs that share every layer"},
		{"replicas", "deployment.replicas", "N", "copies of the deployment behind a router"},
		{"router", "deployment.router", "NAME", "how the router spreads requests over the replicas"},
		{"rate", scenario.RateKey, "R", "mean requests per second; keeps the process, and thins or superposes a trace"},
		{"users", scenario.UsersKey, "N", "users of a closed loop"},
		{"requests", "run.requests", "N", "end the arrivals after so many requests"},
		{"trace", "workload.trace.file", "FILE", "replay recorded requests"},
		{"seed", "run.seed", "N", "make other random numbers"},
	} {
		flags.Var(&settingFlag{to: f, key: s.key, flag: "--" + s.flag, kind: s.kind}, s.flag, s.usage)
	}
	warm := flags.VarPF(&settingFlag{to: f, key: "workload.trace.warm_prefix", flag: "--warm-prefix", kind: "BOOL"}, "warm-prefix", "",
		"let what a trace has before its slice fill the prefix cache")
	warm.NoOptDefVal = "true"
	_ = c.RegisterFlagCompletionFunc("model", completeNames("models"))
	_ = c.RegisterFlagCompletionFunc("gpu", completeNames("gpus"))
	_ = c.RegisterFlagCompletionFunc("router", completeNames("routers"))
}

// registerReplications adds the flags of commands that can run a scenario several times.
func (f *scenarioFlags) registerReplications(c *cobra.Command, shorthand, usage string) {
	flags := c.Flags()
	flags.VarP(&settingFlag{to: f, key: "run.replications", flag: "--replications", kind: "N"}, "replications", shorthand, usage)
	flags.Var(&settingFlag{to: f, key: "run.precision", flag: "--precision", kind: "SHARE"}, "precision", "replicate until intervals are within this `SHARE` of the value, such as 2%")
}

// completeNames completes names of the catalogue, and files.
func completeNames(kind string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		if l, err := experiments.Catalog(kind); err == nil {
			for _, e := range l.Items {
				names = append(names, e.Name)
			}
		}
		return names, cobra.ShellCompDirectiveDefault
	}
}

// registerSLO adds the flag of commands that judge by an objective.
func (f *scenarioFlags) registerSLO(c *cobra.Command, usage string) {
	c.Flags().Var(&settingFlag{to: f, key: "slo", flag: "--slo", kind: "LIMITS", parse: sweep.ParseSLO}, "slo", usage)
}

// settingFlag is a flag that appends to the settings.
type settingFlag struct {
	to              *scenarioFlags
	key, flag, kind string
	parse           func(string) (string, error) // into YAML; nil where the text is that
}

// Set implements [pflag.Value].
func (s *settingFlag) Set(text string) error {
	setting := scenario.Setting{Key: s.key, Value: text, Flag: s.flag}
	if s.key == "" {
		var err error
		if setting, err = scenario.ParseSetting(text); err != nil {
			return err
		}
	} else if strings.TrimSpace(text) == "" {
		return fmt.Errorf("want %s", s.kind)
	} else if s.parse != nil {
		var err error
		if setting.Value, err = s.parse(text); err != nil {
			return err
		}
	}
	s.to.settings = append(s.to.settings, setting)
	return nil
}

// String implements [pflag.Value]; there is no default.
func (s *settingFlag) String() string { return "" }

// Type implements [pflag.Value].
func (s *settingFlag) Type() string {
	if s.kind == "" {
		return "KEY=VALUE"
	}
	return s.kind
}

// load reads the scenario named on the command line, or the empty one.
func (f *scenarioFlags) load(args []string) (*scenario.Scenario, error) {
	if f.given("--users") && f.given("--rate") {
		return nil, errors.New("--users and --rate are given together (want one: users make a closed loop, a rate an open one)")
	}
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	return scenario.Load(path, f.settings...)
}

// given reports whether a flag that stands for a key was given.
func (f *scenarioFlags) given(flag string) bool {
	return slices.ContainsFunc(f.settings, func(s scenario.Setting) bool { return s.Flag == flag })
}

// outputFlags say what is printed and written.
type outputFlags struct {
	out, format, progress string
	quiet, check          bool
	runs                  bool // the command simulates
	jobs                  *int // runs at a time; nil for commands with one run
	formats               []string
}

// register adds the flags; the first format is the default.
func (f *outputFlags) register(c *cobra.Command, formats ...string) {
	f.formats = formats
	flags := c.Flags()
	flags.StringVar(&f.format, "format", formats[0], "how to print the result: "+strings.Join(formats, ", "))
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// registerRun adds the flags of commands that simulate.
func (f *outputFlags) registerRun(c *cobra.Command) {
	f.runs = true
	flags := c.Flags()
	flags.StringVar(&f.progress, "progress", "auto", "show progress: auto (a bar on a terminal), plain, off")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no warnings")
	flags.BoolVar(&f.check, "check", false, "assert the simulator's invariants throughout; slower")
	_ = c.RegisterFlagCompletionFunc("progress", cobra.FixedCompletions([]string{"auto", "plain", "off"}, cobra.ShellCompDirectiveNoFileComp))
}

// registerJobs adds the flag of commands that simulate several runs.
func (f *outputFlags) registerJobs(c *cobra.Command, jobs *int) {
	f.jobs = jobs
	c.Flags().IntVarP(jobs, "jobs", "j", 0, "`N` runs at a time (default one for each processor); changes no result")
}

func (f *outputFlags) validate() error {
	if f.jobs != nil && *f.jobs < 0 {
		return fmt.Errorf("--jobs: %d is not allowed (want 1 or more, or 0 for one for each processor)", *f.jobs)
	}
	if !slices.Contains(f.formats, f.format) {
		return fmt.Errorf("--format: %q is not known (want %s)", f.format, strings.Join(f.formats, ", "))
	}
	if f.runs && !slices.Contains([]string{"auto", "plain", "off"}, f.progress) {
		return fmt.Errorf("--progress: %q is not known (want auto, plain, off)", f.progress)
	}
	return nil
}

// warn prints warnings, each once.
func (f *outputFlags) warn(w io.Writer, texts []string) {
	if f.quiet {
		return
	}
	var seen []string
	for _, text := range texts {
		if !slices.Contains(seen, text) {
			fmt.Fprintf(w, "clifftop: warning: %s\n", text)
			seen = append(seen, text)
		}
	}
}
