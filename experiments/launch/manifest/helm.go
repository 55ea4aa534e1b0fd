package manifest

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
)

// Shapes of the charts: vllm-project/production-stack, helm/values.yaml and helm/templates; llm-d-incubation's
// llm-d-modelservice, charts/llm-d-modelservice/values.yaml; llm-d/llm-d, guides.

func isProductionStack(_ string, data []byte) bool { return hasKey(data, "servingEngineSpec") }

// readProductionStack reads values of the chart of vLLM's production stack.
func readProductionStack(name string, data []byte, o Options) (*launch.System, error) {
	r := newReader(name, data, o)
	docs, err := r.documents(data)
	if err != nil {
		return nil, err
	}
	r.system.Stack = "production-stack"
	for _, d := range docs {
		for _, m := range items(d, "servingEngineSpec", "modelSpec") {
			if err := stackModel(r, d, m); err != nil {
				return nil, err
			}
		}
		router := d.Lookup("routerSpec")
		if router != nil && (router.Lookup("enableRouter") == nil || truth(router, "enableRouter")) {
			stackRouter(r, router)
		}
	}
	return r.finish()
}

func stackModel(r *reader, d, m *yamldoc.Node) error {
	model := m.Lookup("modelURL")
	if model == nil {
		return fault(m.At, "servingEngineSpec.modelSpec", "", "the model has no modelURL (want modelURL: NAME)")
	}
	if strings.Contains(model.Text, "{{") {
		return templated(model.At, model.Text)
	}
	c := &container{name: text(m, "name"), at: m.At}
	if repository := text(m, "repository"); repository != "" {
		c.image = repository + ":" + text(m, "tag")
	}
	c.env = r.environment(m)
	if text(m, "vllmConfig", "v0") == "1" {
		c.env = append(c.env, shell.Variable{Name: "VLLM_USE_V1", Value: "0"})
	}
	c.command = wordsAt(model.At, "vllm", "serve", model.Text)
	sets := camelFlags(r, lookup(m, "vllmConfig"))
	c.args = append(sets, cacheFlags(r, lookup(m, "lmcacheConfig"))...)
	c.fixed = c.args
	var err error
	if c.gpus, err = r.whole(m, 0, "requestGPU"); err != nil {
		return err
	}
	if kind := text(m, "requestGPUType"); strings.Contains(kind, "mig-") {
		r.note(m.Lookup("requestGPUType").At, "%s is a part of a GPU; a whole one is taken", kind)
	}
	commands, err := r.launch(c)
	if err != nil || len(commands) == 0 || commands[0].Line == nil {
		return err
	}
	g := launch.Group{Nodes: 1, GPUsPerNode: c.gpus, Line: *commands[0].Line, At: m.At}
	if g.Replicas, err = r.whole(m, 1, "replicaCount"); err != nil {
		return err
	}
	if truth(m, "raySpec", "enabled") { // the replicas are machines of one engine, beside the head
		g.Nodes, g.Replicas = g.Replicas+1, 1
	}
	spec := m
	if spec.Lookup("nodeSelectorTerms") == nil && spec.Lookup("nodeSelector") == nil {
		spec = lookup(d, "servingEngineSpec")
	}
	g.Accelerator, g.AcceleratorAt = r.accelerator(spec)
	if g.Role == "" && g.Line.RoleOf() == "" && m.Lookup("lmcacheConfig", "nixlRole") != nil {
		g.Role = map[string]string{"sender": "prefill", "receiver": "decode"}[text(m, "lmcacheConfig", "nixlRole")]
	}
	if k := m.Lookup("keda"); k != nil && truth(k, "enabled") {
		if err := keda(r, &g, k, k.At); err != nil {
			return err
		}
	}
	r.add(g, "modelSpec", text(m, "name"))
	return nil
}

// stackKeys are the keys of vllmConfig that the templates of the chart and of the operator read
// (helm/templates/deployment-vllm-multi.yaml, ray-cluster.yaml).
var stackKeys = []string{"enableChunkedPrefill", "enablePrefixCaching", "maxModelLen", "dtype", "tensorParallelSize",
	"pipelineParallelSize", "maxNumSeqs", "gpuMemoryUtilization", "maxLoras", "extraArgs"}

// silentKeys are keys of vllmConfig without influence on the simulation.
var silentKeys = []string{"v0", "v1", "env", "port", "prometheusMultiprocDir"}

// camelFlags are the keys of vllmConfig as flags of vLLM: enablePrefixCaching is --enable-prefix-caching, which the
// templates turn off where the key is missing.
func camelFlags(r *reader, config *yamldoc.Node) (words []shell.Word) {
	if len(config.Fields) > 0 && config.Lookup("enablePrefixCaching") == nil {
		words = wordsAt(config.At, "--no-enable-prefix-caching")
		r.note(config.At, "enablePrefixCaching is not given: the production stack turns prefix caching off")
	}
	for _, f := range config.Fields {
		name := "--" + dashed(f.Name)
		switch v := f.Value; {
		case slices.Contains(silentKeys, f.Name):
		case !slices.Contains(stackKeys, f.Name):
			hint := yamldoc.DidYouMean(f.Name, stackKeys)
			if hint != "" {
				hint = "; " + hint
			}
			r.note(f.At, "the production stack does not read vllmConfig.%s%s", f.Name, hint)
		case f.Name == "extraArgs":
			for _, item := range v.Items { // an item may hold a flag with its value
				if strings.HasPrefix(item.Text, "-") && strings.Contains(item.Text, " ") {
					words = append(words, splitWords(item.Text, r.textLine(item))...)
				} else {
					words = append(words, shell.Word{Text: item.Text, Line: r.textLine(item)})
				}
			}
		case v.Kind == yamldoc.Null, v.Text == "" && v.Kind == yamldoc.Text:
		case v.Kind == yamldoc.Bool && v.Truth:
			words = append(words, wordsAt(f.At, name)...)
		case v.Kind == yamldoc.Bool: // the chart writes --no-enable-… for two of them, and nothing for the others
			if strings.HasPrefix(f.Name, "enable") {
				words = append(words, wordsAt(f.At, "--no-"+dashed(f.Name))...)
			}
		case v.Kind == yamldoc.Map, v.Kind == yamldoc.List:
			words = append(words, wordsAt(f.At, name, asJSON(v))...)
		default:
			words = append(words, wordsAt(f.At, name, v.Text)...)
		}
	}
	return words
}

// dashed is a name in camel case as a flag: maxModelLen is max-model-len.
func dashed(name string) string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// cacheFlags are the flags that the chart makes of lmcacheConfig: KV goes to other pools, or to memory of the host.
func cacheFlags(r *reader, cache *yamldoc.Node) []shell.Word {
	if !truth(cache, "enabled") {
		return nil
	}
	config := &yamldoc.Node{Kind: yamldoc.Map}
	put := func(key, value string) {
		config.Put(key, cache.At, &yamldoc.Node{Kind: yamldoc.Text, Text: value})
	}
	put("kv_connector", "LMCacheConnectorV1")
	role := text(cache, "kvRole")
	if role == "" {
		role = "kv_both"
	}
	put("kv_role", role)
	if role != "kv_both" {
		config.Put("kv_connector", cache.At, &yamldoc.Node{Kind: yamldoc.Text, Text: "NixlConnector"})
		return wordsAt(cache.At, "--kv-transfer-config", asJSON(config))
	}
	size := text(cache, "cpuOffloadingBufferSize")
	if size == "" {
		size = text(cache, "maxLocalCpuSize")
	}
	if gib, err := strconv.ParseFloat(size, 64); err == nil && gib > 0 {
		extra := &yamldoc.Node{Kind: yamldoc.Map}
		bytes := strconv.FormatFloat(gib*(1<<30), 'f', 0, 64)
		extra.Put("cpu_bytes_to_use", cache.At, &yamldoc.Node{Kind: yamldoc.Number, Text: bytes})
		config.Put("kv_connector_extra_config", cache.At, extra)
	} else if size == "0" {
		return nil
	}
	return wordsAt(cache.At, "--kv-transfer-config", asJSON(config))
}

// stackRouter reads routerSpec as flags of vllm-router.
func stackRouter(r *reader, n *yamldoc.Node) {
	router := &launch.Router{Kind: "vllm-router", At: n.At}
	for _, f := range n.Fields {
		switch f.Name {
		case "routingLogic", "sessionKey", "kvAwareThreshold", "engineScrapeInterval":
			router.Flags = append(router.Flags, launch.Flag{Name: dashed(f.Name), Value: f.Value.Text,
				File: true, At: f.At})
		}
	}
	extra := items(n, "extraArgs")
	for i := 0; i < len(extra); i++ {
		name := strings.TrimLeft(extra[i].Text, "-")
		name, value, ok := strings.Cut(name, "=")
		if !ok && i+1 < len(extra) && !strings.HasPrefix(extra[i+1].Text, "-") {
			i++
			value = extra[i].Text
		}
		router.Flags = append(router.Flags, launch.Flag{Name: name, Value: value, Bare: value == "", At: extra[i].At})
	}
	r.system.Router = router
}

// isModelService reports whether a file has values of llm-d's chart.
func isModelService(_ string, data []byte) bool {
	return hasKey(data, "modelArtifacts") && (hasKey(data, "decode") || hasKey(data, "prefill"))
}

// readModelService reads values of llm-d's chart llm-d-modelservice, also where they stand below its name.
func readModelService(name string, data []byte, o Options) (*launch.System, error) {
	r := newReader(name, data, o)
	docs, err := r.documents(data)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		if d.Lookup("modelArtifacts") == nil {
			for _, f := range d.Fields {
				if f.Value.Lookup("modelArtifacts") != nil {
					d = f.Value
				}
			}
		}
		if err := llmDPools(r, d, "values", text(d, "modelArtifacts", "labels", "llm-d.ai/guide")); err != nil {
			return nil, err
		}
	}
	return r.finish()
}

// modelService reads llm-d's former ModelService object, whose spec has the keys of the chart.
func modelService(r *reader, o *yamldoc.Node) error {
	spec := lookup(o, "spec")
	if config := r.configs[text(spec, "baseConfigMapRef", "name")]; config != nil {
		r.note(config.At, "the templates of the base ConfigMap are not read")
	}
	return llmDPools(r, spec, "ModelService", text(o, "metadata", "name"))
}

// llmDPools reads the sections decode and prefill.
func llmDPools(r *reader, d *yamldoc.Node, kind, name string) error {
	r.system.Stack = "llm-d"
	if r.system.Name == "" {
		r.system.Name = name
	}
	for _, role := range []string{"decode", "prefill"} {
		n := d.Lookup(role)
		if n == nil || n.Lookup("create") != nil && !truth(n, "create") {
			continue
		}
		other := d.Lookup(map[string]string{"decode": "prefill", "prefill": "decode"}[role])
		alone := other == nil || other.Lookup("create") != nil && !truth(other, "create")
		if err := llmDPool(r, d, n, role, alone, kind, name); err != nil {
			return err
		}
	}
	if r.system.Router == nil {
		r.system.Router = &launch.Router{Kind: "llm-d-epp", At: d.At}
	}
	return nil
}

func llmDPool(r *reader, d, n *yamldoc.Node, role string, alone bool, kind, name string) error {
	model := text(d, "modelArtifacts", "name")
	uri := text(d, "modelArtifacts", "uri")
	if model == "" || strings.HasPrefix(uri, "hf://") && !strings.Contains(uri, "{{") {
		model = named(uri)
	}
	if routing := text(d, "routing", "modelName"); model == "" && routing != "" {
		model = routing
	}
	sizes, nodes, err := parallelism(r, n)
	if err != nil {
		return err
	}
	workers, err := r.whole(n, 1, "parallelism", "workers")
	if err != nil {
		return err
	}
	if nodes = max(nodes, workers); !truth(d, "multinode") {
		nodes = 1
	}
	env := groupVariables(nodes)
	for _, v := range []struct{ name, key string }{{"TP_SIZE", "tensor"}, {"DP_SIZE", "data"},
		{"DP_SIZE_LOCAL", "dataLocal"}} {
		size, err := r.whole(n, 1, "parallelism", v.key)
		if err != nil {
			return err
		}
		env = append(env, shell.Variable{Name: v.name, Value: strconv.Itoa(size)})
	}
	artifacts := lookup(d, "modelArtifacts")
	g, ok, err := r.podGroup(pod{spec: withFirstContainer(n), env: env, image: "vllm/vllm-openai",
		first: wordsAt(artifacts.At, "vllm", "serve", model), last: sizes,
		replace: strings.NewReplacer("{{ .Values.modelArtifacts.name }}", model, "/model-cache/models/", "")})
	if err != nil || !ok {
		return err
	}
	if g.Replicas, err = r.whole(n, 1, "replicas"); err != nil {
		return err
	}
	if labels := items(n, "acceleratorTypes", "labelValues"); len(labels) > 0 {
		g.Accelerator, g.AcceleratorAt = labels[0].Text, labels[0].At
	}
	g.Nodes, g.At = nodes, n.At
	if g.GPUsPerNode == 0 { // the chart asks for as many as the ranks of one machine need
		for _, v := range env {
			if size, err := strconv.Atoi(v.Value); err == nil && (v.Name == "TP_SIZE" || v.Name == "DP_SIZE_LOCAL") {
				g.GPUsPerNode = max(g.GPUsPerNode, 1) * size
			}
		}
		if len(items(n, "containers")) > 0 && text(items(n, "containers")[0], "modelCommand") == "custom" {
			g.GPUsPerNode = 0 // the command may say otherwise
		}
	}
	if g.Name = role; !alone {
		g.Role = role
	}
	r.add(g, kind, name)
	return nil
}

// withFirstContainer is a section whose containers without a command of their own run vLLM: those with the
// modelCommand vllmServe or imageDefault. Only the first one is the engine.
func withFirstContainer(n *yamldoc.Node) *yamldoc.Node {
	list := items(n, "containers")
	if len(list) == 0 {
		return n
	}
	first := *list[0]
	if c := text(&first, "modelCommand"); c != "" && c != "custom" {
		first.Put("command", first.At, nil)
	}
	out := *n
	out.Fields = slices.Clone(n.Fields)
	out.Put("containers", n.At, &yamldoc.Node{Kind: yamldoc.List, At: first.At, Items: []*yamldoc.Node{&first}})
	return &out
}
