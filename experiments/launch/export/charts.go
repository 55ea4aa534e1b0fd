package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
)

// only refuses engines and shapes that a chart does not have.
func (j *job) only(chart string, engines []string, nodes, apart bool) error {
	for i := range j.system.Groups {
		g := &j.system.Groups[i]
		switch {
		case !slices.Contains(engines, g.Line.Engine):
			return refuse("engine.policy", "%s does not launch %s (want kubernetes)", chart, g.Line.Engine)
		case g.Nodes > 1 && !nodes:
			return refuse("deployment", "a replica has %d machines, which %s does not have (want kubernetes)",
				g.Nodes, chart)
		case g.Role != "" && !apart:
			return refuse("pools", "%s does not have prefill and decode pools (want llm-d or dynamo)", chart)
		}
	}
	return nil
}

// refuse returns the fault of a key that a format cannot carry.
func refuse(key, format string, args ...any) error {
	return yamldoc.Faults{{Key: key, Problem: fmt.Sprintf(format, args...)}}
}

// helm writes values for the chart of vLLM's production stack.
func helm(j *job) ([]File, error) {
	const chart = "the chart of vLLM's production stack"
	if err := j.only(chart, []string{"vllm"}, false, false); err != nil {
		return nil, err
	}
	specs := &yamldoc.Node{Kind: yamldoc.List}
	for i := range j.system.Groups {
		g := &j.system.Groups[i]
		repository, tag, _ := strings.Cut(g.Line.Image, ":")
		config, extra := vllmConfig(&g.Line)
		if len(extra) > 0 {
			config.Put("extraArgs", yamldoc.Place{}, strs(extra...))
		}
		spec := object("name", j.poolLabel(i), "repository", repository, "tag", tag, "modelURL", g.Line.Model,
			"replicaCount", max(g.Replicas, 1), "requestCPU", 8, "requestMemory", "64Gi", "requestGPU", g.GPUsPerNode,
			"vllmConfig", config)
		if product := products[g.Accelerator]; product != "" {
			key := "nvidia.com/gpu.product"
			if strings.HasPrefix(g.Accelerator, "mi") {
				key = "amd.com/gpu.product-name"
				spec.Put("requestGPUType", yamldoc.Place{}, str("amd.com/gpu"))
			}
			spec.Put("nodeSelectorTerms", yamldoc.Place{}, list(object("matchExpressions", list(object("key", key,
				"operator", "In", "values", strs(product))))))
		}
		if len(g.Line.Env) > 0 {
			env := &yamldoc.Node{Kind: yamldoc.List}
			for _, e := range g.Line.Env {
				env.Items = append(env.Items, object("name", e.Name, "value", e.Value))
			}
			spec.Put("env", yamldoc.Place{}, env)
		}
		specs.Items = append(specs.Items, spec)
	}
	root := object("servingEngineSpec", object("modelSpec", specs))
	if r := j.system.Router; r != nil && len(r.Flags) > 0 {
		root.Put("routerSpec", yamldoc.Place{}, object("routingLogic", r.Flags[0].Value))
	}
	return []File{{"values.yaml", j.documents(root)}}, nil
}

// vllmConfig divides the flags of vLLM into the keys of the chart's vllmConfig and further arguments.
func vllmConfig(l *launch.Line) (config *yamldoc.Node, extra []string) {
	keys := map[string]string{"tensor-parallel-size": "tensorParallelSize", "max-num-seqs": "maxNumSeqs",
		"max-model-len": "maxModelLen", "dtype": "dtype", "gpu-memory-utilization": "gpuMemoryUtilization"}
	config = &yamldoc.Node{Kind: yamldoc.Map}
	// The chart turns prefix caching and chunked prefill off unless the values say otherwise.
	caching, chunks := true, true
	for _, f := range l.Flags {
		switch f.Name {
		case "no-enable-prefix-caching":
			caching = false
			continue
		case "no-enable-chunked-prefill":
			chunks = false
			continue
		case "enable-prefix-caching", "enable-chunked-prefill":
			continue
		}
		if key, ok := keys[f.Name]; ok && !f.Bare {
			config.Put(key, yamldoc.Place{}, value(f.Value))
			continue
		}
		extra = append(extra, "--"+f.Name)
		if !f.Bare {
			extra = append(extra, f.Value)
		}
	}
	config.Put("enablePrefixCaching", yamldoc.Place{}, value(strconv.FormatBool(caching)))
	config.Put("enableChunkedPrefill", yamldoc.Place{}, value(strconv.FormatBool(chunks)))
	return config, extra
}

// llmD writes values for llm-d's modelservice chart. A deployment without roles has decode pods only.
func llmD(j *job) ([]File, error) {
	const chart = "llm-d's modelservice chart"
	if err := j.only(chart, []string{"vllm"}, true, true); err != nil {
		return nil, err
	}
	root := object("modelArtifacts", object("name", j.system.Groups[0].Line.Model, "uri", "hf://"+
		j.system.Groups[0].Line.Model, "size", "500Gi"), "routing", object("servicePort", servicePort))
	apart := false
	for i := range j.system.Groups {
		g := &j.system.Groups[i]
		role := cmpOr(g.Role, "decode")
		if root.Get(role) != nil {
			return nil, refuse("pools", "%s has one %s pool, and the scenario several (want kubernetes)", chart, role)
		}
		apart = apart || g.Role == "prefill"
		parallel, args := object(), &launch.Line{}
		for _, f := range g.Line.Flags {
			switch f.Name {
			case "tensor-parallel-size":
				parallel.Put("tensor", yamldoc.Place{}, value(f.Value))
			case "data-parallel-size":
				parallel.Put("data", yamldoc.Place{}, value(f.Value))
			case "data-parallel-size-local":
				parallel.Put("dataLocal", yamldoc.Place{}, value(f.Value))
			default:
				args.Flags = append(args.Flags, f)
			}
		}
		limits := object(resource(g.Accelerator), str(strconv.Itoa(g.GPUsPerNode)))
		container := object("name", "vllm", "image", g.Line.Image, "modelCommand", "vllmServe", "args",
			strs(arguments(args, "")[1:]...), "ports", list(object("containerPort", 8200, "name", "metrics", "protocol",
				"TCP")), "resources", object("limits", limits, "requests", limits.Clone()), "mountModelVolume", true)
		pool := object("create", true, "replicas", max(g.Replicas, 1))
		if len(parallel.Fields) > 0 {
			pool.Put("parallelism", yamldoc.Place{}, parallel)
		}
		if s := products[g.Accelerator]; s != "" && !strings.HasPrefix(g.Accelerator, "mi") {
			pool.Put("acceleratorTypes", yamldoc.Place{}, object("labelKey", "nvidia.com/gpu.product", "labelValues",
				strs(s)))
		}
		pool.Put("containers", yamldoc.Place{}, list(container))
		root.Put(role, yamldoc.Place{}, pool)
		if g.Nodes > 1 {
			root.Put("multinode", yamldoc.Place{}, value("true"))
		}
	}
	if !apart {
		root.Put("prefill", yamldoc.Place{}, object("create", false))
	}
	return []File{{"values.yaml", j.documents(root)}}, nil
}

// dynamo writes a DynamoGraphDeployment with a front end and a worker for each pool.
func dynamo(j *job) ([]File, error) {
	frontend := object("componentType", "frontend", "replicas", 1, "extraPodSpec",
		object("mainContainer", object("image",
			"nvcr.io/nvidia/ai-dynamo/"+runtime(j.system.Groups[0].Line.Engine)+":latest")))
	mode := "round-robin"
	if r := j.system.Router; r != nil && r.Kind == "dynamo-frontend" {
		mode = "kv"
	} else if rule := j.setup.Scenario.Deployment.Router.Policy; rule == "random" {
		mode = "random"
	}
	frontend.Put("envs", yamldoc.Place{}, list(object("name", "DYN_ROUTER_MODE", "value", mode)))
	services := object("Frontend", frontend)
	for i := range j.system.Groups {
		g := &j.system.Groups[i]
		l := g.Line
		l.Flags = slices.Clone(l.Flags)
		if g.Role != "" && l.Engine != "sglang" {
			l.Flags = append(l.Flags, launch.Flag{Name: "disaggregation-mode", Value: g.Role})
		}
		if l.Engine == "trtllm" && options(&l) != nil {
			return nil, refuse("engine.policy", "Dynamo's TensorRT-LLM workers with a file of options are not "+
				"exported (want kubernetes)")
		}
		args := arguments(&l, "")
		if l.Engine != "sglang" {
			args = append([]string{map[string]string{"vllm": "--model", "trtllm": "--model-path"}[l.Engine]}, args...)
		}
		name := cmpOr(g.Role, label(cmpOr(g.Name, "worker")))
		worker := object("componentType", "worker")
		if g.Role != "" {
			worker.Put("subComponentType", yamldoc.Place{}, str(g.Role))
		}
		worker.Put("replicas", yamldoc.Place{}, number(max(g.Replicas, 1)))
		worker.Put("resources", yamldoc.Place{}, object("limits", object("gpu", strconv.Itoa(g.GPUsPerNode))))
		if g.Nodes > 1 {
			worker.Put("multinode", yamldoc.Place{}, object("nodeCount", g.Nodes))
		}
		container := object("image", "nvcr.io/nvidia/ai-dynamo/"+runtime(l.Engine)+":latest", "command",
			strs("python3", "-m", "dynamo."+l.Engine), "args", strs(args...))
		spec := object("mainContainer", container, "nodeSelector", selector(g.Accelerator))
		worker.Put("extraPodSpec", yamldoc.Place{}, spec)
		services.Put(name, yamldoc.Place{}, worker)
	}
	root := object("apiVersion", "nvidia.com/v1alpha1", "kind", "DynamoGraphDeployment", "metadata",
		object("name", j.name), "spec", object("services", services))
	return []File{{"dynamo.yaml", j.documents(root)}}, nil
}

// runtime is the image of Dynamo with an engine.
func runtime(engine string) string {
	return map[string]string{"vllm": "vllm-runtime", "sglang": "sglang-runtime",
		"trtllm": "tensorrtllm-runtime"}[engine]
}
