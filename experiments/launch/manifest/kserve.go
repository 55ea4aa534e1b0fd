package manifest

import (
	"path"
	"slices"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
)

// Shapes of KServe: kserve/kserve, pkg/apis/serving (InferenceService v1beta1, LLMInferenceService v1alpha1 and
// v1alpha2), docs/samples/llmisvc, and python/huggingfaceserver.

// modelFolder is where KServe mounts the model.
const modelFolder = "/mnt/models"

// inferenceService reads KServe's InferenceService: a model with a serving runtime, or containers.
func inferenceService(r *reader, o *yamldoc.Node) error {
	predictor := lookup(o, "spec", "predictor")
	p := pod{spec: predictor}
	model := predictor.Lookup("model")
	uri := text(predictor, "model", "storageUri")
	if model != nil {
		runtime := r.runtimes[text(model, "runtime")]
		n, err := modelContainer(r, model, runtime)
		if err != nil {
			return err
		}
		spec := &yamldoc.Node{Kind: yamldoc.Map, At: predictor.At, Fields: slices.Clone(predictor.Fields)}
		spec.Put("containers", n.At, &yamldoc.Node{Kind: yamldoc.List, At: n.At, Items: []*yamldoc.Node{n}})
		p.spec = spec
		if n.Lookup("image") == nil && runtime == nil {
			n.Put("image", n.At, &yamldoc.Node{Kind: yamldoc.Text, Text: "kserve/huggingfaceserver", At: n.At})
		}
		if format := strings.ToLower(text(model, "modelFormat", "name")); runtime == nil &&
			!slices.Contains([]string{"huggingface", "vllm", ""}, format) {
			r.images = append(r.images, "that of the model format "+format)
			return nil
		}
	}
	p.replace = inFolder(uri, text(o, "metadata", "name"))
	g, ok, err := r.podGroup(p)
	if err != nil || !ok {
		return err
	}
	if g.Replicas, err = r.whole(predictor, 1, "minReplicas"); err != nil {
		return err
	}
	if g.Line.Model == "" && uri != "" && modelOf(&g.Line) == "" {
		g.Line.Model, g.Line.ModelAt = named(uri), predictor.Lookup("model", "storageUri").At
	}
	g.At = o.At
	r.system.Stack = "kserve"
	if err := knative(r, &g, predictor); err != nil {
		return err
	}
	r.add(g, text(o, "kind"), text(o, "metadata", "name"))
	return nil
}

// modelContainer is the container that a model with a runtime gets: that of the runtime with the arguments, variables
// and resources of the model. Without a runtime in the file it is KServe's Hugging Face server, which runs vLLM.
func modelContainer(r *reader, model, runtime *yamldoc.Node) (*yamldoc.Node, error) {
	n := &yamldoc.Node{Kind: yamldoc.Map, At: model.At, Fields: slices.Clone(model.Fields)}
	if runtime == nil {
		return n, nil
	}
	containers := items(runtime, "spec", "containers")
	if len(containers) == 0 {
		return n, nil
	}
	base := &yamldoc.Node{Kind: yamldoc.Map, At: model.At, Fields: slices.Clone(containers[0].Fields)}
	for _, f := range model.Fields {
		before := base.Lookup(f.Name)
		if (f.Name == "args" || f.Name == "env") && before != nil && before.Kind == yamldoc.List {
			list := &yamldoc.Node{Kind: yamldoc.List, At: f.Value.At, Items: slices.Concat(before.Items, f.Value.Items)}
			base.Put(f.Name, f.At, list)
			continue
		}
		base.Put(f.Name, f.At, f.Value)
	}
	return base, nil
}

// named is the name of a model at an address: that on Hugging Face, or the last part of a path.
func named(uri string) string {
	if name, ok := strings.CutPrefix(uri, "hf://"); ok {
		name = strings.Trim(name, `"`)
		name, _, _ = strings.Cut(name, ":") // a revision
		return name
	}
	if _, rest, ok := strings.Cut(uri, "://"); ok {
		return path.Base(rest)
	}
	return uri
}

// inFolder puts the name of a model in the place of the folder that it is mounted at, and the name of the service in
// that of KServe's template of it.
func inFolder(uri, name string) *strings.Replacer {
	if uri == "" {
		return strings.NewReplacer("{{.Name}}", name)
	}
	return strings.NewReplacer(modelFolder, named(uri), "{{.Name}}", name)
}

// llmInferenceService reads KServe's LLMInferenceService: pools of vLLM; one of them may compute prompts only.
func llmInferenceService(r *reader, o *yamldoc.Node) error {
	spec := lookup(o, "spec")
	prefill := spec.Lookup("prefill")
	name := text(o, "metadata", "name")
	for _, p := range []struct {
		n    *yamldoc.Node
		role string
	}{{spec, "decode"}, {prefill, "prefill"}} {
		if p.n == nil {
			continue
		}
		role := p.role
		if prefill == nil {
			role = ""
		}
		g, ok, err := llmPool(r, spec, p.n)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		g.Role, g.Name = role, role
		r.add(g, text(o, "kind"), name)
	}
	if prefill != nil && r.system.Name == "" {
		r.system.Name = name
	}
	r.system.Stack = "kserve"
	if s := spec.Lookup("router", "scheduler"); s != nil && r.system.Router == nil {
		r.system.Router = &launch.Router{Kind: "llm-d-epp", At: s.At}
		return schedulerConfig(r, s)
	}
	return nil
}

// llmPool reads one pool of an LLMInferenceService.
func llmPool(r *reader, spec, n *yamldoc.Node) (launch.Group, bool, error) {
	model := lookup(spec, "model")
	name := text(model, "name")
	if uri := text(model, "uri"); name == "" || strings.HasPrefix(uri, "hf://") {
		name = named(uri)
	}
	p := pod{spec: lookup(n, "template"), image: "vllm/vllm-openai", replace: strings.NewReplacer(modelFolder, name)}
	if len(items(p.spec, "containers")) == 0 {
		main := &yamldoc.Node{Kind: yamldoc.Map, At: n.At}
		main.Put("name", n.At, &yamldoc.Node{Kind: yamldoc.Text, Text: "main", At: n.At})
		p.spec = &yamldoc.Node{Kind: yamldoc.Map, At: n.At, Fields: slices.Clone(p.spec.Fields)}
		p.spec.Put("containers", n.At, &yamldoc.Node{Kind: yamldoc.List, Items: []*yamldoc.Node{main}, At: n.At})
	}
	p.first = wordsAt(model.At, "vllm", "serve", name)
	sizes, nodes, err := parallelism(r, n)
	if err != nil {
		return launch.Group{}, false, err
	}
	p.last = append(sizes, speculator(r, spec)...)
	for _, c := range items(p.spec, "containers") {
		for _, v := range items(c, "env") {
			if text(v, "name") == "VLLM_ADDITIONAL_ARGS" && text(v, "value") != "" {
				p.last = append(p.last, splitWords(text(v, "value"), r.textLine(v.Lookup("value")))...)
			}
		}
	}
	if n.Lookup("worker") == nil {
		nodes = 1
	}
	g, ok, err := r.podGroup(p)
	if err != nil || !ok {
		return g, ok, err
	}
	g.Replicas, err = r.whole(n, 1, "replicas")
	g.Nodes, g.At = nodes, n.At
	return g, true, err
}

// parallelism reads the sizes in the parallelism sections of KServe and llm-d as flags of vLLM, and the number of
// machines.
func parallelism(r *reader, n *yamldoc.Node) (flags []shell.Word, nodes int, err error) {
	sizes := map[string]int{}
	for _, s := range []struct{ key, flag string }{{"tensor", "--tensor-parallel-size"},
		{"pipeline", "--pipeline-parallel-size"}, {"data", "--data-parallel-size"},
		{"dataLocal", "--data-parallel-size-local"}} {
		words, size, err := r.sizeFlag(s.flag, n, "parallelism", s.key)
		if err != nil {
			return nil, 0, err
		}
		sizes[s.key] = size
		flags = append(flags, words...)
	}
	if truth(n, "parallelism", "expert") {
		flags = append(flags, wordsAt(n.Lookup("parallelism", "expert").At, "--enable-expert-parallel")...)
	}
	nodes = 1
	if n.Lookup("parallelism", "dataLocal") != nil {
		nodes = max(sizes["data"]/max(sizes["dataLocal"], 1), 1)
	}
	return flags, nodes, nil
}

// speculator is the flag of speculative decoding of an LLMInferenceService.
func speculator(r *reader, spec *yamldoc.Node) []shell.Word {
	s := spec.Lookup("speculator")
	if s == nil {
		return nil
	}
	config := &yamldoc.Node{Kind: yamldoc.Map}
	for _, f := range fields(s, "config") {
		config.Put(f.Name, f.At, f.Value)
	}
	if uri := text(s, "model", "uri"); uri != "" {
		config.Put("model", s.At, &yamldoc.Node{Kind: yamldoc.Text, Text: named(uri)})
	}
	return wordsAt(s.At, "--speculative-config", asJSON(config))
}

// serverFlags are flags of KServe's Hugging Face server that vLLM does not have (python/huggingfaceserver,
// huggingfaceserver/__main__.py); true is a switch.
var serverFlags = map[string]bool{"model-name": false, "model-id": false, "model-dir": false, "model-revision": false,
	"backend": false, "use-vllm": false, "task": false, "http-port": false, "grpc-port": false, "workers": false,
	"max-threads": false, "max-length": false, "tensor-input-names": false, "return-probabilities": true,
	"return-token-type-ids": true, "disable-lower-case": true, "disable-special-tokens": true, "enable-docs-url": false,
	"enable-grpc": false, "enable-latency-logging": false, "configure-logging": false, "log-config-file": false,
	"predictor-host": false, "predictor-protocol": false}

// huggingFaceServer translates the arguments of KServe's Hugging Face server, which runs vLLM, to those of vLLM.
func huggingFaceServer(image string, args []shell.Word) []shell.Word {
	serves := strings.Contains(image, "huggingfaceserver")
	if k := slices.IndexFunc(args, func(w shell.Word) bool { return w.Text == "huggingfaceserver" }); k >= 0 {
		serves, args = true, args[k+1:]
	}
	if !serves || slices.ContainsFunc(args, func(w shell.Word) bool { return w.Text == "serve" || w.Text == "-c" }) {
		return args
	}
	var rest []shell.Word
	model := map[string]shell.Word{}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i].Text, "=")
		plain := strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
		isSwitch, own := serverFlags[plain]
		if !own || !strings.HasPrefix(name, "-") {
			rest = append(rest, args[i])
			continue
		}
		line := args[i].Line
		if !joined && !isSwitch && i+1 < len(args) && !strings.HasPrefix(args[i+1].Text, "-") {
			i++
			value = args[i].Text
		}
		model[plain] = shell.Word{Text: value, Line: line}
		if plain == "backend" && value == "huggingface" {
			return nil // without an engine
		}
	}
	line := 1
	if len(args) > 0 {
		line = args[0].Line
	}
	out := []shell.Word{{Text: "vllm", Line: line}, {Text: "serve", Line: line}}
	for _, key := range []string{"model-id", "model-dir", "model-name"} {
		if w := model[key]; w.Text != "" && w.Text != modelFolder {
			out = append(out, w)
			break
		}
	}
	return append(out, rest...)
}
