// Package export writes the deployment that a scenario describes: launch lines, a compose file, Kubernetes objects,
// values of Helm charts, and objects of autoscalers.
//
//	scenario.Setup → fromSetup → launch.System → Formats
//
// Settings without a flag, such as the options of a policy of another engine, become notes of the system, and a comment
// in each file.
package export

import (
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
)

// engines are the policies of engines that can be launched.
var engines = map[string]string{"vllm": "vllm", "vllm-v0": "vllm", "sglang": "sglang",
	"trtllm-guaranteed-no-evict": "trtllm", "trtllm-max-utilization": "trtllm", "trtllm-static": "trtllm"}

// fromSetup is the deployment of a scenario. A policy that no engine has is a fault.
func fromSetup(u *scenario.Setup) (*launch.System, error) {
	s := &launch.System{Name: u.Scenario.Name}
	for i := range u.Pools {
		p := &u.Pools[i]
		g := launch.Group{Replicas: u.Scenario.Deployment.Replicas, Nodes: 1}
		if len(u.Scenario.Pools) > 0 {
			pool := &u.Scenario.Pools[i]
			g.Name, g.Replicas = pool.Name, pool.Replicas
			if pool.Role != "both" {
				g.Role = pool.Role
			}
		}
		tree, err := yamldoc.Parse("scenario", p.Scenario.YAML(), false)
		if err != nil {
			return nil, err
		}
		w := &lineWriter{pool: p, tree: tree, group: &g, system: s}
		if err := w.write(); err != nil {
			return nil, err
		}
		s.Groups = append(s.Groups, g)
	}
	s.Router = router(u, s)
	if u.Scenario.Lifecycle != nil {
		for i := range s.Groups {
			scaler(u, s, i)
		}
	}
	for _, section := range []string{"clients", "overheads", "step_time"} {
		if u.Scenario.Given(section) {
			s.Notes = append(s.Notes, launch.Note{Text: section + " is of the simulation: no flag says it"})
		}
	}
	return s, nil
}

// lineWriter writes the launch line of one group.
type lineWriter struct {
	pool   *scenario.PoolSetup
	tree   *yamldoc.Node // of the group's scenario, as it was given
	group  *launch.Group
	system *launch.System
	done   map[string]bool // keys that a flag says
}

// write fills in the group.
func (w *lineWriter) write() error {
	e := &w.pool.Scenario.Engine
	engine, ok := engines[e.Policy]
	if e.Policy == "vllm" && (w.group.Role == "prefill" || w.group.Role == "decode") {
		if own := w.text("engine", "kernels"); own == "sglang" || strings.HasPrefix(own, "trtllm") {
			engine = engines[cmpOr(map[string]string{"trtllm": "trtllm-guaranteed-no-evict"}[own], own)]
		}
	}
	if !ok {
		f := w.pool.Scenario.Fault("engine.policy", "no engine has policy %s (want %s)", e.Policy,
			yamldoc.OneOf(sortedKeys(engines)))
		return yamldoc.Faults{f}
	}
	d := w.pool.Deployment
	w.done = map[string]bool{}
	w.group.Line = launch.Line{Engine: engine, Table: engine, Model: hubName(&d.LLM, w.pool.Scenario.Model),
		Release: w.release(engine)}
	w.group.Line.Image = image(engine, w.group.Line.Release, d.GPU.Name)
	w.group.Accelerator = d.GPU.Name
	if err := w.vendor(engine, d.GPU.Name); err != nil {
		return err
	}
	w.nodes(d)
	w.parallelism(engine)
	w.formats(engine)
	switch engine {
	case "vllm":
		w.vllm()
	case "sglang":
		w.sglang()
	case "trtllm":
		w.trtllm()
	}
	w.others(engine)
	return nil
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// hubName is the name of a model on Hugging Face, or else the path or name that the scenario has.
func hubName(m *model.LLM, given string) string {
	if strings.Contains(given, "/") {
		return given
	}
	best := given
	for _, a := range m.Aliases {
		if !strings.Contains(a, "/") {
			continue
		}
		if strings.Contains(a, "Instruct") || strings.HasSuffix(a, "-it") || strings.Contains(a, "Chat") {
			return a // people serve this one
		}
		if best == given {
			best = a
		}
	}
	return best
}

// release is the release of the engine that the scenario names, without its name.
func (w *lineWriter) release(engine string) string {
	v := w.pool.Scenario.Engine.Version
	if v == nil || !w.pool.Scenario.Given("engine.version") {
		return ""
	}
	w.done["engine.version"] = true
	return strings.TrimPrefix(*v, engine+"-")
}

func image(engine, release, gpu string) string {
	if release != "" && strings.Count(release, ".") == 1 && engine != "trtllm" {
		release += ".0"
	}
	amd := strings.HasPrefix(gpu, "mi")
	switch engine {
	case "sglang":
		if release == "" {
			return "lmsysorg/sglang:latest"
		}
		return "lmsysorg/sglang:v" + release
	case "trtllm":
		if release == "" || strings.Count(release, ".") == 1 {
			release = cmpOr(map[string]string{"1.1": "1.1.0"}[release], "1.2.0")
		}
		return "nvcr.io/nvidia/tensorrt-llm/release:" + release
	}
	repository := "vllm/vllm-openai"
	switch {
	case amd:
		repository = "vllm/vllm-openai-rocm"
	case strings.HasPrefix(gpu, "tpu"):
		repository = "vllm/vllm-tpu"
	}
	if release == "" {
		return repository + ":latest"
	}
	return repository + ":v" + release
}

// vendor names what the image lacks for GPUs that are not NVIDIA's.
func (w *lineWriter) vendor(engine, gpu string) error {
	tpu, amd := strings.HasPrefix(gpu, "tpu"), strings.HasPrefix(gpu, "mi")
	switch {
	case resource(gpu) == nvidia:
	case engine == "trtllm":
		return refuse("gpu", "TensorRT-LLM does not run on %s (want a GPU of NVIDIA, or policy vllm)", gpu)
	case engine == "vllm" && (amd || tpu):
	default:
		w.note("the image: %s is for GPUs of NVIDIA; name one for %s", w.group.Line.Image, gpu)
	}
	return nil
}

// nodes is the number of machines of a replica, and the GPUs of each.
func (w *lineWriter) nodes(d *model.Deployment) {
	n, size := d.GPUs(), d.GPU.NodeSize()
	if n > size && n%size == 0 {
		w.group.Nodes, w.group.GPUsPerNode = n/size, size
		return
	}
	w.group.GPUsPerNode = n
}

// lookup is the value of a key of the scenario that was given; nil if it was not, or is null.
func (w *lineWriter) lookup(names ...string) *yamldoc.Node {
	n := w.tree.Lookup(names...)
	if n == nil || n.Kind == yamldoc.Null {
		return nil
	}
	return n
}

// text is a value as text; "" if it was not given.
func (w *lineWriter) text(names ...string) string {
	if n := w.lookup(names...); n != nil {
		return n.Text
	}
	return ""
}

func (w *lineWriter) flag(name, value string) {
	w.group.Line.Flags = append(w.group.Line.Flags, launch.Flag{Name: w.spelled(name), Value: value})
}

func (w *lineWriter) toggle(name string) {
	w.group.Line.Flags = append(w.group.Line.Flags, launch.Flag{Name: w.spelled(name), Bare: true})
}

// option adds a key of the configuration file.
func (w *lineWriter) option(name, value string) {
	w.group.Line.Flags = append(w.group.Line.Flags, launch.Flag{Name: w.spelled(name), Value: value, File: true})
}

// spelled is the name of a flag as the engine's own documentation spells it.
func (w *lineWriter) spelled(name string) string {
	if w.group.Line.Engine == "trtllm" {
		return strings.ReplaceAll(name, "-", "_")
	}
	return name
}

// env adds an environment variable.
func (w *lineWriter) env(name, value string) {
	w.group.Line.Env = append(w.group.Line.Env, launch.Flag{Name: name, Value: value, Env: true})
}

// note says what the deployment does not have.
func (w *lineWriter) note(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(w.system.Notes, func(n launch.Note) bool { return n.Text == note }) {
		w.system.Notes = append(w.system.Notes, launch.Note{Text: note})
	}
}
