package manifest

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// gpuResources are the resources that count GPUs, in the order in which they are looked for. Dynamo writes gpu.
var gpuResources = []string{"nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "aws.amazon.com/neuron", "gpu"}

// helmAction is an action of a Helm template. KServe has templates of its own, such as {{.Name}}.
var helmAction = pattern.New(`\{\{-?\s*(\.Values|\.Release|\.Chart|include|template|tpl|toYaml|if|with|range)\b`)

// pod is the content of a pod template.
type pod struct {
	spec *yamldoc.Node
	// env are variables that every container has.
	env []shell.Variable
	// first are words that stand before the arguments of a container without a command, and last those after.
	first, last []shell.Word
	// image stands for one that is not given.
	image string
	// replace maps texts in arguments to their values, such as the folder of a model.
	replace *strings.Replacer
}

// podGroup reads a pod: a group with the engine that one of its containers runs. ok is false if there is none. A
// container with a router sets that of the system. Init containers are not looked at.
func (r *reader) podGroup(p pod) (g launch.Group, ok bool, err error) {
	for _, n := range items(p.spec, "containers") {
		c, err := r.container(n, &p)
		if err != nil {
			return g, false, err
		}
		commands, err := r.launch(c)
		if err != nil {
			return g, false, err
		}
		for _, cmd := range commands {
			if cmd.Router != nil && r.system.Router == nil {
				r.system.Router = cmd.Router
			}
			if cmd.Line != nil && ok {
				r.note(c.at, "container %s launches an engine too; only the first of a pod is read", c.name)
			}
			if cmd.Line == nil || ok {
				continue
			}
			ok = true
			g = launch.Group{Replicas: 1, Nodes: 1, GPUsPerNode: c.gpus, Line: *cmd.Line, At: cmd.Line.At}
			if cmd.Line.Stack != "" {
				r.system.Stack = cmd.Line.Stack
			}
		}
		if len(commands) == 0 && c.image != "" && (c.gpus > 0 || len(items(p.spec, "containers")) == 1) {
			r.images = append(r.images, c.image)
		}
	}
	g.Accelerator, g.AcceleratorAt = r.accelerator(p.spec)
	return g, ok, nil
}

func (r *reader) container(n *yamldoc.Node, p *pod) (*container, error) {
	c := &container{name: text(n, "name"), image: text(n, "image"), at: n.At, files: map[string]mounted{}}
	if c.image == "" {
		c.image = p.image
	}
	for key, to := range map[string]*[]shell.Word{"command": &c.command, "args": &c.args} {
		v := n.Lookup(key)
		switch {
		case v == nil:
		case v.Kind != yamldoc.List && strings.Contains(v.Text, "{{"):
			return nil, templated(v.At, v.Text)
		case v.Kind != yamldoc.List:
			return nil, fault(v.At, key, `for example [sh, -c, "vllm serve MODEL"]`, "%s (want a list of texts)",
				v.Describe())
		default:
			*to = r.words(v)
		}
		for i := range *to {
			w := &(*to)[i]
			if helmAction.Get().MatchString(w.Text) {
				return nil, templated(yamldoc.Place{Origin: r.name, Line: w.Line, Column: 1}, w.Text)
			}
			if p.replace != nil {
				w.Text = p.replace.Replace(w.Text)
			}
		}
	}
	if len(c.command) == 0 && len(p.first)+len(p.last) > 0 {
		c.args, c.fixed = slices.Concat(p.first, c.args, p.last), p.last
	}
	c.env = append(append(c.env, p.env...), r.environment(n)...)
	var err error
	if c.gpus, err = r.gpus(n); err != nil {
		return nil, err
	}
	r.mount(c, n, p.spec)
	return c, nil
}

// gpus counts those that a container asks for.
func (r *reader) gpus(n *yamldoc.Node) (int, error) {
	for _, part := range []string{"limits", "requests"} {
		for _, name := range gpuResources {
			if v := n.Lookup("resources", part, name); v != nil {
				return r.whole(n, 0, "resources", part, name)
			}
		}
		for _, f := range fields(n, "resources", part) {
			if strings.HasPrefix(f.Name, "nvidia.com/mig-") {
				r.note(f.At, "%s is a part of a GPU; a whole one is taken", f.Name)
			}
		}
	}
	return 0, nil
}

// environment reads the variables of a container. What secrets and fields of the pod give is not known.
func (r *reader) environment(n *yamldoc.Node) (list []shell.Variable) {
	for _, from := range items(n, "envFrom") {
		if config := r.configs[text(from, "configMapRef", "name")]; config != nil {
			for _, f := range fields(config, "data") {
				list = append(list, shell.Variable{Name: f.Name, Value: f.Value.Text})
			}
		}
	}
	for _, key := range []string{"env", "envs"} {
		for _, v := range items(n, key) {
			name := text(v, "name")
			if name == "" {
				continue
			}
			value := "${" + name + "}"
			switch {
			case v.Lookup("value") != nil:
				value = text(v, "value")
			case v.Lookup("valueFrom") == nil:
				value = ""
			default:
				ref := lookup(v, "valueFrom", "configMapKeyRef")
				if config := r.configs[text(ref, "name")]; config != nil {
					if entry := config.Lookup("data", text(ref, "key")); entry != nil {
						value = entry.Text
					}
				}
			}
			list = append(list, shell.Variable{Name: name, Value: value})
		}
	}
	return list
}

// mount finds the files of ConfigMaps that a container sees.
func (r *reader) mount(c *container, n, spec *yamldoc.Node) {
	for _, m := range items(n, "volumeMounts") {
		for _, v := range items(spec, "volumes") {
			if text(v, "name") != text(m, "name") || text(v, "name") == "" {
				continue
			}
			refs := []*yamldoc.Node{v.Lookup("configMap")}
			for _, s := range items(v, "projected", "sources") {
				refs = append(refs, s.Lookup("configMap"))
			}
			for _, ref := range refs {
				if ref != nil {
					r.mountConfig(c, ref, text(m, "mountPath"), text(m, "subPath"))
				}
			}
		}
	}
}

// mountConfig adds the entries of one ConfigMap. With a subPath one of them is the file itself.
func (r *reader) mountConfig(c *container, ref *yamldoc.Node, at, sub string) {
	config := r.configs[text(ref, "name")]
	if config == nil {
		return
	}
	for _, f := range fields(config, "data") {
		name := f.Name
		for _, item := range items(ref, "items") {
			if text(item, "key") == f.Name {
				name = text(item, "path")
			}
		}
		where := path.Join(at, name)
		if sub != "" {
			if sub != name {
				continue
			}
			where = at
		}
		c.files[where] = mounted{f.Value.Text, r.textLine(f.Value)}
	}
}

func wordsAt(at yamldoc.Place, texts ...string) []shell.Word {
	var list []shell.Word
	for _, t := range texts {
		list = append(list, shell.Word{Text: t, Line: max(at.Line, 1)})
	}
	return list
}

// sizeFlag is a flag with a number above 1 that a key of the file gives; nil if there is none.
func (r *reader) sizeFlag(flag string, n *yamldoc.Node, path ...string) ([]shell.Word, int, error) {
	size, err := r.whole(n, 1, path...)
	if err != nil || size <= 1 {
		return nil, 1, err
	}
	return wordsAt(n.Lookup(path...).At, flag, strconv.Itoa(size)), size, nil
}
