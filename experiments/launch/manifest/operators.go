package manifest

import (
	"cmp"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
)

// Shapes: vllm-project/production-stack, docs/source/deployment/crd.rst and operator/config/samples
// (production-stack.vllm.ai/v1alpha1), and substratusai/kubeai, docs and api/k8s/v1/model_types.go (kubeai.org/v1).

// vllmRuntime reads a VLLMRuntime of the operator of vLLM's production stack.
func vllmRuntime(r *reader, o *yamldoc.Node) error {
	spec := lookup(o, "spec")
	model := spec.Lookup("model", "modelURL")
	if model == nil {
		return fault(spec.At, "spec.model", "", "the runtime has no modelURL (want modelURL: NAME)")
	}
	deployed := lookup(spec, "deploymentConfig")
	c := &container{name: text(o, "metadata", "name"), at: o.At, image: text(deployed, "image", "name"),
		command: wordsAt(model.At, "vllm", "serve", model.Text), env: r.environment(lookup(spec, "vllmConfig"))}
	settings := &yamldoc.Node{Kind: yamldoc.Map}
	for _, f := range append(fields(spec, "model"), fields(spec, "vllmConfig")...) {
		switch f.Name {
		case "modelURL", "enableLoRA", "enableTool", "toolCallParser", "hfTokenSecret", "hfTokenName",
			"env", "maxLoras":
		default:
			settings.Put(f.Name, f.At, f.Value)
		}
	}
	c.args = append(camelFlags(r, settings), cacheFlags(r, lookup(spec, "lmCacheConfig"))...)
	c.fixed = c.args
	var err error
	if c.gpus, err = r.whole(deployed, 0, "resources", "gpu"); err != nil {
		return err
	}
	commands, err := r.launch(c)
	if err != nil || len(commands) == 0 || commands[0].Line == nil {
		return err
	}
	g := launch.Group{Nodes: 1, GPUsPerNode: c.gpus, Line: *commands[0].Line, At: o.At}
	if g.Replicas, err = r.whole(deployed, 1, "replicas"); err != nil {
		return err
	}
	g.Accelerator, g.AcceleratorAt = r.accelerator(deployed)
	r.system.Stack = "production-stack"
	r.add(g, text(o, "kind"), text(o, "metadata", "name"))
	return nil
}

// vllmRouter reads a VLLMRouter of the same operator.
func vllmRouter(r *reader, o *yamldoc.Node) error {
	stackRouter(r, lookup(o, "spec"))
	return nil
}

// kubeAIModel reads a Model of KubeAI that runs vLLM.
func kubeAIModel(r *reader, o *yamldoc.Node) error {
	spec := lookup(o, "spec")
	url := spec.Lookup("url")
	if !strings.HasPrefix(text(o, "apiVersion"), "kubeai.org/") || url == nil {
		return nil
	}
	if engine := text(spec, "engine"); !strings.EqualFold(engine, "VLLM") {
		r.images = append(r.images, "that of the engine "+engine)
		return nil
	}
	profile, count, _ := strings.Cut(text(spec, "resourceProfile"), ":")
	c := &container{image: cmp.Or(text(spec, "image"), "vllm/vllm-openai"), at: o.At,
		command: wordsAt(url.At, "vllm", "serve", named(strings.Split(url.Text, "?")[0])),
		args:    r.words(spec.Lookup("args"))}
	for _, f := range fields(spec, "env") {
		c.env = append(c.env, shell.Variable{Name: f.Name, Value: f.Value.Text})
	}
	c.gpus, _ = strconv.Atoi(count)
	commands, err := r.launch(c)
	if err != nil || len(commands) == 0 || commands[0].Line == nil {
		return err
	}
	g := launch.Group{Nodes: 1, GPUsPerNode: max(c.gpus, 0), Line: *commands[0].Line, At: o.At}
	if g.Replicas, err = r.whole(spec, 1, "minReplicas"); err != nil {
		return err
	}
	if !generic(profile) && !strings.HasPrefix(strings.ToLower(profile), "cpu") {
		g.Accelerator, g.AcceleratorAt = profile, spec.Lookup("resourceProfile").At
	}
	if spec.Lookup("maxReplicas") != nil {
		if err := kubeAIScaler(r, &g, spec); err != nil {
			return err
		}
	}
	balance := lookup(spec, "loadBalancing")
	r.system.Router = &launch.Router{Kind: "kubeai", At: balance.At, Flags: keysOf("", balance, balance.At)}
	r.add(g, text(o, "kind"), text(o, "metadata", "name"))
	return nil
}

// kubeAIScaler reads the scale keys of KubeAI, which divides the mean of the active requests of 10 minutes by a target.
func kubeAIScaler(r *reader, g *launch.Group, spec *yamldoc.Node) error {
	if err := bounds(r, g, spec, "minReplicas", "maxReplicas"); err != nil {
		return err
	}
	target, err := r.whole(spec, 100, "targetRequests")
	if err != nil {
		return err
	}
	at := spec.Lookup("maxReplicas").At
	if g.Min == g.Max {
		return nil
	}
	g.Scaler = &launch.Scaler{Policy: "keda", Metric: "concurrency", Target: float64(target), At: at,
		Options: []launch.Flag{{Name: "window", Value: "600s", File: true, At: at}}}
	return nil
}
