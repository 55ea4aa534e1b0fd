package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/launch"
	"clifftop/experiments/launch/flags"
	"clifftop/experiments/measured"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model/catalog"
	"clifftop/report/plot"
)

// resultFlags are the flags for results of load generators.
type resultFlags struct {
	name           string // of --run
	rate           float64
	users          int
	input, output  int
	picture, trace string
}

func (f *resultFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.name, "run", "", "take run `N` of a result with several, by number or name")
	flags.Float64Var(&f.rate, "rate", 0, "arrivals are Poisson with `N` requests per second, whatever the result says")
	flags.IntVar(&f.users, "users", 0, "arrivals are those of `N` users in a closed loop, whatever the result says")
	flags.IntVar(&f.input, "input", 0, "length of prompts in `TOKENS`, where the result does not say it")
	flags.IntVar(&f.output, "output", 0, "length of outputs in `TOKENS`, where the result does not say it")
	flags.StringVar(&f.picture, "picture", "", "draw the fit of the traffic into `FILE`, as PNG and as SVG")
	flags.StringVar(&f.trace, "trace", "", "write the measured requests into trace `FILE`, and replay it in the "+
		"scenario")
	console.AddCheck(c, func() error {
		switch {
		case f.rate < 0 || f.rate > 1e6:
			return fmt.Errorf("--rate: %g is not allowed (want more than 0, at most 1000000)", f.rate)
		case f.users < 0:
			return fmt.Errorf("--users: %d is not allowed (want 1 or more)", f.users)
		case f.input < 0 || f.output < 0:
			return fmt.Errorf("--input, --output: %d is not allowed (want 1 token or more)", min(f.input, f.output))
		case f.rate > 0 && f.users > 0:
			return errors.New("--rate and --users are given together (want one)")
		}
		return nil
	})
}

// given reports whether a flag is there that only results use.
func (f *resultFlags) given() string {
	switch {
	case f.name != "":
		return "--run"
	case f.picture != "":
		return "--picture"
	case f.trace != "":
		return "--trace"
	case f.rate > 0:
		return "--rate"
	case f.users > 0:
		return "--users"
	}
	return ""
}

// read reads launch files and results. traffic is nil without a result.
func (f *importCommand) read(args []string) (*launch.Imported, *measured.Traffic, error) {
	type source struct {
		path, name string
		data       []byte
	}
	var launches []source
	var files []measured.Named
	for _, path := range args {
		data, name, err := f.deployment.content(path)
		if err != nil {
			return nil, nil, err
		}
		if _, ok := measured.Recognise(name, data); ok || isResult(name, data) {
			files = append(files, measured.Named{Name: name, Data: data})
		} else {
			launches = append(launches, source{path, name, data})
		}
	}
	if len(launches) > 1 {
		return nil, nil, fmt.Errorf("import: %s and %s are no results (want one launch file, and results beside it)",
			launches[0].name, launches[1].name)
	}
	if len(files) == 0 {
		if flag := f.results.given(); flag != "" {
			return nil, nil, fmt.Errorf("%s: no result is given (want a result of a load generator beside the launch "+
				"file)",
				flag)
		}
		m, err := f.deployment.translate(launches[0].path, launches[0].name, launches[0].data)
		return m, nil, err
	}
	results, err := measured.ReadAll(files)
	if err != nil {
		return nil, nil, err
	}
	r, run, traffic, err := f.results.traffic(results)
	if err != nil {
		return nil, nil, err
	}
	traffic.Notes = append(slices.Clone(r.Notes), traffic.Notes...)
	if f.results.trace != "" {
		if err := f.replay(r, run, traffic); err != nil {
			return nil, nil, err
		}
	}
	var m *launch.Imported
	if len(launches) > 0 {
		m, err = f.deployment.translate(launches[0].path, launches[0].name, launches[0].data)
	} else {
		m, err = f.measuredDeployment(r, run, traffic)
	}
	if err != nil {
		return nil, nil, err
	}
	m.Root.Put("workload", yamldoc.Place{}, traffic.Workload)
	return m, traffic, nil
}

// isResult reports whether a file that no format fits is meant as a result: JSON that is no manifest.
func isResult(name string, data []byte) bool {
	name = strings.TrimSuffix(name, ".gz")
	return (strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")) &&
		!bytes.Contains(data, []byte(`"apiVersion"`)) && !bytes.Contains(data, []byte(`"services"`)) &&
		!bytes.Contains(data, []byte(`"servingEngineSpec"`)) && !bytes.Contains(data, []byte(`"modelArtifacts"`))
}

// traffic fits the traffic to a run: the first one that has arrivals and lengths.
func (f *resultFlags) traffic(results []*measured.Result) (*measured.Result, *measured.Run, *measured.Traffic, error) {
	var first error
	for _, r := range results {
		run, err := r.Choose(f.name)
		if err == nil {
			changed := *run
			switch {
			case f.rate > 0:
				one := 1.0
				changed.Load = measured.Load{Rate: &f.rate, Burstiness: &one}
			case f.users > 0:
				changed.Load = measured.Load{Concurrency: &f.users}
			}
			for _, k := range []struct {
				to *measured.Lengths
				n  int
			}{{&changed.Input, f.input}, {&changed.Output, f.output}} {
				if x := float64(k.n); k.n > 0 && k.to.Mean == nil {
					k.to.Mean, k.to.Min, k.to.Max = &x, &x, &x
				}
			}
			var t *measured.Traffic
			if t, err = changed.Traffic(r.File); err == nil {
				return r, run, t, nil
			}
		}
		if first == nil {
			first = err
		}
	}
	return nil, nil, nil, first
}

// replay writes the requests as a trace and makes it the workload.
func (f *importCommand) replay(r *measured.Result, run *measured.Run, traffic *measured.Traffic) error {
	var b bytes.Buffer
	rows, err := run.WriteTrace(&b, r.File)
	if err != nil {
		return err
	}
	if err := console.WriteNew(f.results.trace, b.Bytes(), f.force); err != nil {
		return err
	}
	path := f.results.trace
	if f.to != "" {
		if relative, err := filepath.Rel(filepath.Dir(f.to), path); err == nil {
			path = filepath.ToSlash(relative)
		}
	}
	file := &yamldoc.Node{Kind: yamldoc.Text, Text: path, Comment: fmt.Sprintf("%d requests of %s", rows, r.File)}
	section, replayed := &yamldoc.Node{Kind: yamldoc.Map}, &yamldoc.Node{Kind: yamldoc.Map}
	replayed.Put("file", yamldoc.Place{}, file)
	section.Put("trace", yamldoc.Place{}, replayed)
	traffic.Workload = section
	return nil
}

// measuredDeployment makes a scenario from the deployment that a result describes.
func (f *importCommand) measuredDeployment(r *measured.Result, run *measured.Run,
	traffic *measured.Traffic) (*launch.Imported,
	error) {
	model := run.Model
	if f.deployment.model != "" {
		model = f.deployment.model
	}
	if model == "" || strings.ContainsAny(model, "'\n") {
		return nil, yamldoc.Faults{{Where: r.File, Problem: "the result does not name the model (want --model NAME, " +
			"or a launch file " +
			"beside it)"}}
	}
	engine := run.Engine
	command := "vllm serve '" + model + "' "
	switch engine {
	case "sglang":
		command = "python -m sglang.launch_server --model-path '" + model + "' "
	case "trtllm":
		command = "trtllm-serve '" + model + "' "
	case "vllm":
	default:
		traffic.Notes = append(traffic.Notes, "the result does not name the engine: vLLM with its defaults is taken "+
			"(a launch file "+
			"beside it says more)")
	}
	if f.deployment.fallback == "" {
		f.deployment.fallback = gpuIn(run.GPU)
	}
	const place = "command"
	m, err := f.deployment.translate(r.File, place, []byte(command+run.Flags))
	var faults yamldoc.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			f.Where, f.Excerpt = r.File, ""
		}
	}
	if err != nil {
		return nil, err
	}
	placeComments(m.Root, "("+place+":1)", "("+r.File+")")
	m.Accounts = slices.DeleteFunc(m.Accounts, func(a launch.Account) bool { return a.Effect != flags.Unmodelled })
	return m, nil
}

// placeComments names the result in comments, in the place of the command that was made of it.
func placeComments(n *yamldoc.Node, from, to string) {
	n.Comment = strings.ReplaceAll(n.Comment, from, to)
	for _, f := range n.Fields {
		placeComments(f.Value, from, to)
	}
	for _, v := range n.Items {
		placeComments(v, from, to)
	}
}

// gpuIn finds a GPU of the catalogue in a name such as "NVIDIA H100 80GB HBM3"; empty is none.
func gpuIn(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '-' || r == '_' })
	for _, g := range catalog.GPUs() {
		for _, alias := range append([]string{g.Name}, g.Aliases...) {
			if slices.Contains(words, strings.ToLower(alias)) {
				return g.Name
			}
		}
	}
	return ""
}

// draw draws the fit as PNG and SVG.
func (f *importCommand) draw(c *cobra.Command, traffic *measured.Traffic, args []string) error {
	if f.results.picture == "" {
		return nil
	}
	if len(traffic.Fits) == 0 {
		return fmt.Errorf("--picture: the result has no single requests, so that there is no fit to draw (want a " +
			"result with " +
			"requests)")
	}
	base := f.results.picture
	if ext := strings.ToLower(filepath.Ext(base)); ext == ".png" || ext == ".svg" {
		base = base[:len(base)-len(ext)]
	}
	picture := plot.Draw(traffic.Picture(filepath.Base(args[len(args)-1])))
	return picture.WriteFiles(filepath.Base(base), func(name string, fill func(io.Writer) error) error {
		var b bytes.Buffer
		if err := fill(&b); err != nil {
			return console.Failed(err)
		}
		path := filepath.Join(filepath.Dir(base), name)
		if err := console.WriteNew(path, b.Bytes(), f.force); err != nil {
			return err
		}
		f.output.Say(c, "wrote %s", path)
		return nil
	})
}
