package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/launch"
	"clifftop/experiments/launch/flags"
	"clifftop/experiments/launch/manifest"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/input"
)

// deploymentFlags are the flags that add what a launch file does not say.
type deploymentFlags struct {
	path       string // of --from
	gpu, model string
	fallback   string // GPU of a file that names none
	line       int
	env        []string
}

// registerChoice adds the flags that choose among what a file launches.
func (f *deploymentFlags) registerChoice(c *cobra.Command) {
	c.Flags().IntVar(&f.line, "line", 0, "take engine `N` of a launch file with alternatives")
	c.Flags().StringArrayVar(&f.env, "env", nil, "`NAME=VALUE` of an environment variable of the launch file; "+
		"repeatable")
}

func (f *deploymentFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.gpu, "gpu", "", "GPU `NAME`, where the file does not name it")
	flags.StringVar(&f.model, "model", "", "model `NAME` or config.json, in the place of the one in the file")
	f.registerChoice(c)
	_ = c.RegisterFlagCompletionFunc("gpu", completeNames("gpus"))
	_ = c.RegisterFlagCompletionFunc("model", completeNames("models"))
}

// read reads a launch file and translates it.
func (f *deploymentFlags) read(path string) (*launch.Imported, error) {
	data, name, err := f.content(path)
	if err != nil {
		return nil, err
	}
	return f.translate(path, name, data)
}

func (f *deploymentFlags) translate(path, name string, data []byte) (*launch.Imported, error) {
	o := manifest.Options{Line: f.line}
	o.Env = map[string]string{}
	for _, pair := range f.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--env: %q is not allowed (want NAME=VALUE)", pair)
		}
		o.Env[name] = value
	}
	dir := filepath.Dir(path)
	beside := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, filepath.FromSlash(name))
	}
	o.Read = func(name string) ([]byte, error) { return input.ReadFile(beside(name)) }
	system, err := manifest.Read(name, data, o)
	if err != nil {
		return nil, err
	}
	m, err := system.Scenario(launch.ImportOptions{GPU: f.gpu, DefaultGPU: f.fallback, Model: f.model, Source: name,
		Beside: func(name string) bool {
			info, err := os.Stat(beside(name))
			return err == nil && !info.IsDir()
		}})
	if err != nil {
		return nil, err
	}
	return m, loads(m)
}

// loads checks the scenario. Values that it does not allow are faults of their flags.
func loads(m *launch.Imported) error {
	_, err := scenario.Parse("scenario", yamldoc.Marshal(m.Root))
	var faults yamldoc.Faults
	if !errors.As(err, &faults) {
		return err
	}
	for _, f := range faults {
		if v := m.Root.Lookup(strings.Split(f.Key, ".")...); v != nil && v.Comment != "" {
			f.Where, f.Excerpt = v.Comment, ""
		}
	}
	return faults
}

// content is a file, standard input for "-", or the argument itself where it is a command line.
func (f *deploymentFlags) content(path string) (data []byte, name string, err error) {
	if strings.ContainsAny(path, " \n") {
		if _, err := os.Stat(path); err != nil {
			return []byte(path), "command", nil
		}
	}
	if path == "-" {
		data, err = io.ReadAll(input.Stdin())
		return data, "standard input", err
	}
	data, err = console.ReadFile("import", path)
	return data, filepath.Base(path), err
}

type importCommand struct {
	deployment deploymentFlags
	results    resultFlags
	output     console.OutputFlags
	to         string
	force      bool
}

func newImport() *cobra.Command {
	var f importCommand
	c := &cobra.Command{
		Use:   "import FILE | 'COMMAND' | RESULT...",
		Short: "Make a scenario of a launch line, a manifest or a measured run",
		Long: `Read how a deployment is launched, and write the scenario that simulates it to standard output.

FILE is a shell script or a command line that runs vllm serve, python -m sglang.launch_server, trtllm-serve or
a worker of Dynamo; a Dockerfile; a compose file; Kubernetes objects (Deployment, StatefulSet,
LeaderWorkerSet, InferenceService, DynamoGraphDeployment); or values of the Helm charts of vLLM's
production stack and llm-d. A command may stand in quotes in the place of the file; - is standard input.

Each value of the scenario has a comment with the flag and the line from which it comes. Every flag is
accounted for on standard error: those whose influence is not modelled by name, and the others by their
number. --format json prints all of them. docs/flags.md lists the flags of each engine.

A RESULT of a load generator, metrics of Prometheus or a trace of requests gives the traffic: arrivals and
lengths are fitted, and each line says from what. Alone it takes model, engine and GPU from the result too;
beside a launch file it takes the traffic only. docs/results.md lists the formats.`,
		Example: `  clifftop import serve.sh --gpu h100 > scenario.yaml
  clifftop import 'vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2' --gpu h200
  clifftop import deployment.yaml --format json
  clifftop import serve.sh benchmarks.json --gpu h100 --run 2 --picture fit.png
  clifftop run --from serve.sh --gpu h100 --rate 4`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return fmt.Errorf("import: %d arguments (want a file, - or a command in quotes)", len(args))
			}
			return nil
		},
		RunE: f.run,
	}
	f.deployment.register(c)
	f.results.register(c)
	f.output.RegisterFormat(c, "yaml", "json")
	f.output.RegisterQuiet(c, "print no account of the flags")
	c.Flags().StringVarP(&f.to, "out", "o", "", "write the scenario into `FILE`")
	c.Flags().BoolVar(&f.force, "force", false, "replace the files of --out, --picture and --trace")
	return c
}

func (f *importCommand) run(c *cobra.Command, args []string) error {
	m, traffic, err := f.read(args)
	if err != nil {
		return err
	}
	if traffic == nil || len(m.Accounts) > 0 {
		reportImport(c, &f.output, m)
	}
	if traffic != nil {
		f.output.Warn(c, traffic.Notes)
		for _, fit := range traffic.Fits {
			f.output.Say(c, "%s: %s; %d values, KS distance %.3f", fit.Title, fit.Law, len(fit.Measured), fit.Distance)
		}
		if err := f.draw(c, traffic, args); err != nil {
			return err
		}
	}
	if f.output.Format == "json" {
		return console.Failed(console.PrintOnce(c.OutOrStdout(), func(w io.Writer) error {
			return console.PrintJSON(w, newImportRecord(m))
		}))
	}
	text := yamldoc.Marshal(m.Root)
	if f.to != "" {
		if err := console.WriteNew(f.to, text, f.force); err != nil {
			return err
		}
		f.output.Say(c, "wrote %s: clifftop run %s", f.to, f.to)
		return nil
	}
	return console.Failed(console.PrintOnce(c.OutOrStdout(), func(w io.Writer) error {
		_, err := bytes.NewReader(text).WriteTo(w)
		return err
	}))
}

// reportImport prints the effect of each flag, and the assumptions of the scenario.
func reportImport(c *cobra.Command, output *console.OutputFlags, m *launch.Imported) {
	counts := map[flags.Effect]int{}
	for _, a := range m.Accounts {
		counts[a.Effect]++
	}
	output.Say(c, "%d flags: %d set keys, %d have no influence, %d are not modelled", len(m.Accounts),
		counts[flags.Key]+counts[flags.Rule], counts[flags.None], counts[flags.Unmodelled])
	var texts []string
	for _, a := range m.Accounts {
		if a.Effect == flags.Unmodelled {
			texts = append(texts, fmt.Sprintf("%s is not modelled: %s", a.Flag.Written(), a.Meaning))
		}
	}
	texts = append(texts, m.Assumed...)
	for _, n := range m.Notes {
		texts = append(texts, n.Text)
	}
	output.Warn(c, texts)
}

// importRecord is the result of import as JSON.
type importRecord struct {
	Schema   string         `json:"schema"`
	Scenario string         `json:"scenario"`
	Flags    []importedFlag `json:"flags"`
	Assumed  []string       `json:"assumed"`
	Notes    []string       `json:"notes"`
}

type importedFlag struct {
	Flag    string `json:"flag"`
	Value   string `json:"value"`
	Place   string `json:"place"`
	Group   int    `json:"group"`
	Effect  string `json:"effect"`
	Meaning string `json:"meaning"`
}

func newImportRecord(m *launch.Imported) *importRecord {
	r := &importRecord{Schema: "clifftop.import/1", Scenario: string(yamldoc.Marshal(m.Root)), Flags: []importedFlag{},
		Assumed: append([]string{}, m.Assumed...), Notes: []string{}}
	for _, a := range m.Accounts {
		r.Flags = append(r.Flags, importedFlag{a.Flag.Name, a.Flag.Value, a.Flag.At.String(), a.Group, string(a.Effect),
			a.Meaning})
	}
	for _, n := range m.Notes {
		r.Notes = append(r.Notes, n.Text)
	}
	return r
}
