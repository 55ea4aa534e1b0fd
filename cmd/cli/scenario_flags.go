package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/experiments/launch"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/sweep"
)

// scenarioFlags collects the flags that set keys of the scenario, in the order of the command line: later ones win.
type scenarioFlags struct {
	settings []scenario.Setting
	from     deploymentFlags // a launch file in the place of a scenario
	imported func(*launch.Imported)
}

// keyFlag describes a flag that sets keys of the scenario.
type keyFlag struct {
	name  string
	value string // placeholder of the value in help
	usage string
	parse parser
	// completes names the kind of catalog entries that shells complete, such as "gpus".
	completes string
}

// parser turns the value of a flag into settings, without their Flag.
type parser func(text string) ([]scenario.Setting, error)

// Flags that set a key of the scenario.
var (
	modelFlag   = keyFlag{"model", "NAME", "model name or config.json", key("model"), "models"}
	seedFlag    = keyFlag{"seed", "N", "seed of the random numbers", key("run.seed"), ""}
	traceFlag   = keyFlag{"trace", "FILE", "replay recorded requests", key("workload.trace.file"), ""}
	unknownFlag = keyFlag{"allow-unknown", "bool", "accept a config.json with unknown kinds of layers: they count as " +
		"full attention", key("allow_unknown"), ""}
	commonKeys = []keyFlag{
		modelFlag,
		unknownFlag,
		{"gpu", "NAME", "GPU name or file", key("gpu"), "gpus"},
		{"tp", "N", "tensor-parallel size", key("deployment.tensor_parallel_size"), ""},
		{"replicas", "N", "number of replicas behind a router", key("deployment.replicas"), ""},
		{"router", "NAME", "routing policy of the replicas", key("deployment.router"), "routers"},
		{"rate", "R", "mean requests per second; scales a trace", key(scenario.RateKey), ""},
		{"burstiness", "X", "gamma arrivals of this shape: 1 is Poisson, less comes in bursts",
			key(scenario.BurstinessKey), ""},
		{"users", "N", "number of users of a closed loop", key(scenario.UsersKey), ""},
		{"requests", "N", "number of requests to send", key("run.requests"), ""},
		traceFlag,
		seedFlag,
		{"warm-prefix", "bool", "fill the prefix cache with the part of the trace before its slice",
			key("workload.trace.warm_prefix"), ""},
	}
)

// register adds --set and the flags that most commands share.
func (f *scenarioFlags) register(c *cobra.Command) {
	f.registerKeys(c, commonKeys...)
}

func (f *scenarioFlags) registerKeys(c *cobra.Command, keys ...keyFlag) {
	f.add(c, "", keyFlag{"set", "KEY=VALUE", "set a key of the scenario; repeatable", parseSetting, ""})
	for _, k := range keys {
		f.add(c, "", k)
	}
}

// registerReplications adds the flags of commands that can run a scenario several times.
func (f *scenarioFlags) registerReplications(c *cobra.Command, usage string) {
	f.add(c, "n", keyFlag{"replications", "N", usage, key("run.replications"), ""})
	f.add(c, "", keyFlag{"precision", "SHARE", "add runs until intervals are within ±SHARE of the value, such as 2%",
		key("run.precision"), ""})
}

func (f *scenarioFlags) registerSLO(c *cobra.Command, usage string) {
	f.add(c, "", keyFlag{"slo", "LIMITS", usage, func(text string) ([]scenario.Setting, error) {
		limits, err := sweep.ParseSLO(text)
		return []scenario.Setting{{Key: "slo", Value: limits}}, err
	}, ""})
}

// registerAccuracy adds the flag of commands that print error bars.
func (f *scenarioFlags) registerAccuracy(c *cobra.Command) {
	f.add(c, "", keyFlag{"accuracy", "FILE", "record of own measured runs, from validate --write", key("accuracy"), ""})
}

func (f *scenarioFlags) add(c *cobra.Command, shorthand string, k keyFlag) {
	c.Flags().VarP(&settingFlag{f, k}, k.name, shorthand, k.usage)
	if k.value == "bool" {
		c.Flags().Lookup(k.name).NoOptDefVal = "true"
	}
	if k.completes != "" {
		_ = c.RegisterFlagCompletionFunc(k.name, completeNames(k.completes))
	}
}

// completeNames completes names of the catalog, and files.
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

// load reads the scenario named in the arguments, or the default scenario, and applies the settings.
func (f *scenarioFlags) load(args []string) (*scenario.Scenario, error) {
	if f.given("users") && f.given("rate") {
		return nil, errors.New("--users and --rate are given together " +
			"(want one: --users for a closed loop, --rate for an open loop)")
	}
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	if f.from.path != "" {
		return f.loadDeployment(path)
	}
	return scenario.Load(path, f.settings...)
}

// registerFrom adds the flags that take a launch file in the place of a scenario. With anyGPU the file need not say on
// which GPU it runs.
func (f *scenarioFlags) registerFrom(c *cobra.Command, anyGPU bool) {
	c.Flags().StringVar(&f.from.path, "from", "", "simulate a launch `FILE` or command, as clifftop import reads it")
	f.from.registerChoice(c)
	if anyGPU {
		f.from.fallback = scenario.Default().GPU
	}
	f.imported = func(m *launch.Imported) { reportImport(c, &console.OutputFlags{}, m) }
}

// loadDeployment imports the launch file of --from and applies the settings. Their model and GPU stand for those that
// the file does not name.
func (f *scenarioFlags) loadDeployment(path string) (*scenario.Scenario, error) {
	if path != "" {
		return nil, fmt.Errorf("--from: %s is given too (want a scenario or --from)", path)
	}
	d := f.from
	for _, s := range f.settings {
		switch s.Key {
		case "gpu":
			d.gpu = s.Value
		case "model":
			d.model = s.Value
		}
	}
	m, err := d.read(d.path)
	if err != nil {
		return nil, err
	}
	f.imported(m)
	return scenario.Parse(d.path+" (imported)", yamldoc.Marshal(m.Root), f.settings...)
}

func (f *scenarioFlags) resolve(args []string) (*scenario.Setup, error) {
	s, err := f.load(args)
	if err != nil {
		return nil, err
	}
	return s.Resolve()
}

// given reports whether a flag that sets a key was given.
func (f *scenarioFlags) given(name string) bool {
	return slices.ContainsFunc(f.settings, func(s scenario.Setting) bool { return s.Flag == "--"+name })
}

// settingFlag is the value of a flag that appends settings.
type settingFlag struct {
	flags *scenarioFlags
	keyFlag
}

// Set implements [github.com/spf13/pflag.Value].
func (s *settingFlag) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("want %s", s.value)
	}
	settings, err := s.parse(text)
	if err != nil {
		return err
	}
	for _, x := range settings {
		if s.name != "set" { // errors name --set with the key
			x.Flag = "--" + s.name
		}
		s.flags.settings = append(s.flags.settings, x)
	}
	return nil
}

// String returns "": the flag has no default.
func (s *settingFlag) String() string { return "" }

// Type returns the placeholder that help shows.
func (s *settingFlag) Type() string { return s.value }

// parseSetting parses KEY=VALUE.
func parseSetting(text string) ([]scenario.Setting, error) {
	s, err := scenario.ParseSetting(text)
	return []scenario.Setting{s}, err
}

func key(path string) parser {
	return func(text string) ([]scenario.Setting, error) {
		return []scenario.Setting{{Key: path, Value: text}}, nil
	}
}

// fractionKey returns a parser that sets a key to a number, which may be given in percent.
func fractionKey(path string) parser {
	return func(text string) ([]scenario.Setting, error) {
		if percent, ok := strings.CutSuffix(text, "%"); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64); err == nil {
				text = strconv.FormatFloat(v/100, 'g', -1, 64)
			}
		}
		return key(path)(text)
	}
}

func listKey(path string) parser {
	return func(text string) ([]scenario.Setting, error) {
		var items []string
		for item := range strings.SplitSeq(text, ",") {
			item = strings.TrimSpace(item)
			if item == "" {
				return nil, errors.New("want values separated by commas, none of them empty")
			}
			if _, err := strconv.ParseFloat(item, 64); err != nil {
				item = strconv.Quote(item)
			}
			items = append(items, item)
		}
		return key(path)("[" + strings.Join(items, ", ") + "]")
	}
}

// mapKeys returns a parser that sets the key prefix.NAME for each NAME=VALUE.
func mapKeys(prefix string) parser {
	return func(text string) ([]scenario.Setting, error) {
		var sets []scenario.Setting
		for item := range strings.SplitSeq(text, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(item), "=")
			if !ok || name == "" || value == "" || strings.Contains(name, ".") {
				return nil, errors.New("want NAME=VALUE, several separated by commas")
			}
			sets = append(sets, scenario.Setting{Key: prefix + "." + name, Value: value})
		}
		return sets, nil
	}
}
