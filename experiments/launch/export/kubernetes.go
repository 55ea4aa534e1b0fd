package export

import (
	"math"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
)

// products are the values of the label nvidia.com/gpu.product, as GPU feature discovery writes them, and of AMD's
// amd.com/gpu.product-name, by GPU of the catalog.
var products = map[string]string{
	"h100-sxm": "NVIDIA-H100-80GB-HBM3", "h100-pcie": "NVIDIA-H100-PCIe", "h100-nvl": "NVIDIA-H100-NVL",
	"h200-sxm": "NVIDIA-H200", "h20": "NVIDIA-H20", "b200-sxm": "NVIDIA-B200", "b300-sxm": "NVIDIA-B300-SXM6-AC",
	"gb200": "NVIDIA-GB200", "gb300": "NVIDIA-GB300", "gh200-96": "NVIDIA-GH200-480GB",
	"a100-80gb-sxm": "NVIDIA-A100-SXM4-80GB", "a100-40gb-sxm": "NVIDIA-A100-SXM4-40GB",
	"a100-80gb-pcie": "NVIDIA-A100-80GB-PCIe", "a10g": "NVIDIA-A10G", "a40": "NVIDIA-A40", "l4": "NVIDIA-L4",
	"l40s": "NVIDIA-L40S", "rtx-4090": "NVIDIA-GeForce-RTX-4090",
	"rtx-pro-6000-se": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
	"rtx-pro-6000-ws": "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition",
	"mi300x":          "AMD_Instinct_MI300X_OAM", "mi325x": "AMD_Instinct_MI325X_OAM",
	"mi355x": "AMD_Instinct_MI355X_OAM",
}

// selector is the node selector of a GPU; nil where no label is known.
func selector(gpu string) *yamldoc.Node {
	product := products[gpu]
	switch {
	case product == "":
		return nil
	case strings.HasPrefix(gpu, "mi"):
		return object("amd.com/gpu.product-name", product)
	}
	return object("nvidia.com/gpu.product", product)
}

func resource(gpu string) string {
	switch {
	case strings.HasPrefix(gpu, "mi"):
		return "amd.com/gpu"
	case strings.HasPrefix(gpu, "gaudi"):
		return "habana.ai/gaudi"
	case strings.HasPrefix(gpu, "trainium"):
		return "aws.amazon.com/neuron"
	case strings.HasPrefix(gpu, "tpu"):
		return "google.com/tpu"
	case strings.HasPrefix(gpu, "arc"):
		return "gpu.intel.com/xe"
	}
	return nvidia
}

// nvidia is the name of NVIDIA's GPUs as a resource.
const nvidia = "nvidia.com/gpu"

// servicePort is the port of the engine in its container.
const servicePort = 8000

// optionsFolder is where the file of options is in a container.
const optionsFolder = "/etc/engine"

// kubernetes writes the objects of every group and of the router.
func kubernetes(j *job) ([]File, error) {
	var objects []*yamldoc.Node
	for i := range j.system.Groups {
		more, err := j.group(i)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
		if a := j.horizontal(i); a != nil {
			objects = append(objects, a)
		}
	}
	if r := j.system.Router; r != nil {
		objects = append(objects, j.routerObjects(r)...)
	}
	return []File{{"kubernetes.yaml", j.documents(objects...)}}, nil
}

// group writes the workload and the service of a group, with the file of options if there is one.
func (j *job) group(i int) ([]*yamldoc.Node, error) {
	g, name := &j.system.Groups[i], j.poolLabel(i)
	labels := func() *yamldoc.Node { return object("app", name) }
	if g.Role != "" {
		plain := labels
		labels = func() *yamldoc.Node { // the routers of llm-d and of vLLM's production stack find pods by these
			n := plain()
			n.Put("llm-d.ai/role", yamldoc.Place{}, str(g.Role))
			n.Put("model", yamldoc.Place{}, str(g.Role))
			return n
		}
	}
	var objects []*yamldoc.Node
	var file *yamldoc.Node
	if o := options(&g.Line); o != nil {
		file = str(string(o))
		objects = append(objects, object("apiVersion", "v1", "kind", "ConfigMap", "metadata",
			object("name", name+"-options"), "data", object("options.yaml", file)))
	}
	pod := func(follower bool) (*yamldoc.Node, error) {
		spec, err := j.pod(g, name, file != nil, follower)
		if err != nil {
			return nil, err
		}
		notes := object("prometheus.io/scrape", "true", "prometheus.io/port", "8000", "prometheus.io/path", "/metrics")
		if g.Role == "prefill" && g.Line.Engine == "sglang" { // by which its router finds the port
			notes.Put("sglang.ai/bootstrap-port", yamldoc.Place{}, str("8998"))
		}
		return object("metadata", object("labels", labels(), "annotations", notes), "spec", spec), nil
	}
	leader, err := pod(false)
	if err != nil {
		return nil, err
	}
	workload := object("apiVersion", "apps/v1", "kind", "Deployment", "metadata",
		object("name", name, "labels", labels()),
		"spec", object("replicas", max(g.Replicas, 1), "selector", object("matchLabels", object("app", name)),
			"template", leader))
	if g.Nodes > 1 {
		worker, err := pod(true)
		if err != nil {
			return nil, err
		}
		workload = object("apiVersion", "leaderworkerset.x-k8s.io/v1", "kind", "LeaderWorkerSet", "metadata",
			object("name", name, "labels", labels()), "spec", object("replicas", max(g.Replicas, 1),
				"leaderWorkerTemplate", object("size", g.Nodes, "restartPolicy", "RecreateGroupOnPodRestart",
					"leaderTemplate", leader, "workerTemplate", worker)))
	}
	service := object("apiVersion", "v1", "kind", "Service", "metadata", object("name", name, "labels", labels()),
		"spec", object("selector", j.serviceSelector(g, name), "ports", list(object("name", "http", "port", servicePort,
			"targetPort", servicePort))))
	return append(objects, workload, service), nil
}

// serviceSelector selects the pods that answer: those of leaders, where a replica has several machines.
func (j *job) serviceSelector(g *launch.Group, name string) *yamldoc.Node {
	if g.Nodes > 1 {
		return object("app", name, "leaderworkerset.sigs.k8s.io/worker-index", "0")
	}
	return object("app", name)
}

// pod is the specification of a pod. A follower is a further machine of a replica.
func (j *job) pod(g *launch.Group, name string, withOptions, follower bool) (*yamldoc.Node, error) {
	l := &g.Line
	args := append(arguments(l, optionsFolder+"/options.yaml"), "--port", "8000")
	command := strs(program(l.Engine)...)
	argList := strs(args...)
	if g.Nodes > 1 {
		more, err := nodeFlags(g, "${LWS_WORKER_INDEX}", "${LWS_LEADER_ADDRESS}", follower)
		if err != nil {
			return nil, err
		}
		line := "exec " + join(append(program(l.Engine), args...))
		for _, w := range more {
			line += " " + w // variables of the pod, which the shell expands
		}
		command, argList = strs("/bin/bash", "-c"), strs(line)
	}
	env := &yamldoc.Node{Kind: yamldoc.List}
	for _, e := range l.Env {
		env.Items = append(env.Items, object("name", e.Name, "value", e.Value))
	}
	if l.Engine == "vllm" && g.Role != "" { // where other pods read the KV of this one
		env.Items = append(env.Items, object("name", sideChannelHost, "valueFrom", object("fieldRef",
			object("fieldPath", "status.podIP"))))
	}
	mounts := list(object("name", "shm", "mountPath", "/dev/shm"), object("name", "cache", "mountPath",
		"/root/.cache/huggingface"))
	volumes := list(object("name", "shm", "emptyDir", object("medium", "Memory", "sizeLimit", "16Gi")),
		object("name", "cache", "emptyDir", object()))
	if withOptions {
		mounts.Items = append(mounts.Items, object("name", "options", "mountPath", optionsFolder))
		volumes.Items = append(volumes.Items, object("name", "options", "configMap", object("name", name+"-options")))
	}
	limits := object(resource(g.Accelerator), number(g.GPUsPerNode))
	container := object("name", "engine", "image", l.Image, "command", command, "args", argList)
	if len(env.Items) > 0 {
		container.Put("env", yamldoc.Place{}, env)
	}
	container.Put("ports", yamldoc.Place{}, list(object("name", "http", "containerPort", servicePort)))
	container.Put("resources", yamldoc.Place{}, object("limits", limits, "requests", limits.Clone()))
	if !follower {
		j.probes(container)
	}
	container.Put("volumeMounts", yamldoc.Place{}, mounts)
	spec := object("nodeSelector", selector(g.Accelerator), "containers", list(container), "volumes", volumes)
	return spec, nil
}

const (
	probePeriod    = 10  // seconds between probes
	defaultStart   = 600 // seconds that a start may take if the scenario does not say
	startAllowance = 3   // multiple of the scenario's cold start
)

// probes adds the probes of a container. Loading a model takes minutes, which only the startup probe allows for.
func (j *job) probes(container *yamldoc.Node) {
	start := float64(defaultStart)
	if l := j.setup.Scenario.Lifecycle; l != nil && j.setup.Scenario.Given("lifecycle.cold_start") {
		start = math.Max(startAllowance*coldStart(l), probePeriod)
	}
	check := func() *yamldoc.Node { return object("path", "/health", "port", servicePort) }
	container.Put("startupProbe", yamldoc.Place{}, object("httpGet", check(), "periodSeconds", probePeriod,
		"failureThreshold", int(math.Ceil(start/probePeriod))))
	container.Put("readinessProbe", yamldoc.Place{}, object("httpGet", check(), "periodSeconds", 5,
		"failureThreshold", 3))
	container.Put("livenessProbe", yamldoc.Place{}, object("httpGet", check(), "periodSeconds", probePeriod,
		"failureThreshold", 6))
}

// routerObjects returns the Deployment and the Service of the router, and the objects that they need.
func (j *job) routerObjects(r *launch.Router) []*yamldoc.Node {
	name := j.name + "-router"
	image := "lmcache/lmstack-router:latest"
	switch r.Kind {
	case "sglang-router":
		image = "lmsysorg/sglang:latest"
	case "trtllm-disaggregated":
		image = j.system.Groups[0].Line.Image
	}
	labels := func() *yamldoc.Node { return object("app", name) }
	var servers []server
	for i := range j.system.Groups {
		servers = append(servers, server{host: j.poolLabel(i), port: servicePort, bootstrap: 8998,
			group: &j.system.Groups[i]})
	}
	command, finds := j.podRouter(r, servers)
	container := object("name", "router", "image", image, "command", strs(command[:1]...), "args", strs(command[1:]...),
		"ports", list(object("name", "http", "containerPort", servicePort)))
	spec := object()
	if finds {
		spec.Put("serviceAccountName", yamldoc.Place{}, str(name))
	}
	spec.Put("containers", yamldoc.Place{}, list(container))
	var objects []*yamldoc.Node
	if file := routerConfig(r, servers, servicePort); file != "" {
		objects = append(objects, object("apiVersion", "v1", "kind", "ConfigMap", "metadata",
			object("name", name+"-options"), "data", object("router.yaml", file)))
		container.Put("volumeMounts", yamldoc.Place{}, list(object("name", "options", "mountPath", optionsFolder)))
		spec.Put("volumes", yamldoc.Place{},
			list(object("name", "options", "configMap", object("name", name+"-options"))))
	}
	if finds {
		objects = append(objects, podReader(name)...)
	}
	return append(objects,
		object("apiVersion", "apps/v1", "kind", "Deployment", "metadata", object("name", name, "labels", labels()),
			"spec", object("replicas", 1, "selector", object("matchLabels", labels()), "template", object("metadata",
				object("labels", labels()), "spec", spec))),
		object("apiVersion", "v1", "kind", "Service", "metadata", object("name", name, "labels", labels()), "spec",
			object("selector", labels(), "ports",
				list(object("name", "http", "port", servicePort, "targetPort", servicePort)))))
}

// podRouter is the command of the router in a pod. Routers that find the pods of engines by their labels know each
// replica; a Service would hide them.
func (j *job) podRouter(r *launch.Router, servers []server) (command []string, finds bool) {
	port := strconv.Itoa(servicePort)
	alike := 0 // pools that no selector distinguishes
	for _, g := range j.system.Groups {
		if g.Role == "" {
			alike++
		}
	}
	switch {
	case r.Kind == "sglang-router" && alike < 2:
		command = routerCommand(r, nil, servicePort, "")
		command = append(command[:len(command)-1], "--service-discovery", "--service-discovery-port", port)
		apart := false
		for i := range j.system.Groups {
			flag := map[string]string{"prefill": "--prefill-selector",
				"decode": "--decode-selector"}[j.system.Groups[i].Role]
			apart = apart || flag != ""
			command = append(command, cmpOr(flag, "--selector"), "app="+j.poolLabel(i))
		}
		if apart {
			command = append(command, "--pd-disaggregation")
		}
		return command, true
	case r.Kind == "vllm-router":
		logic := ""
		for _, f := range r.Flags {
			if f.Name == "routing-logic" {
				logic = f.Value
			}
		}
		command = []string{"vllm-router", "--port", port, "--service-discovery", "k8s", "--k8s-label-selector",
			"app in (" + strings.Join(j.poolLabels(), ", ") + ")", "--k8s-port", port}
		return append(command, routing(cmpOr(logic, "roundrobin"))...), true
	}
	return routerCommand(r, servers, servicePort, optionsFolder+"/router.yaml"), false
}

// podReader is an account that may list pods.
func podReader(name string) []*yamldoc.Node {
	const group = "rbac.authorization.k8s.io"
	return []*yamldoc.Node{
		object("apiVersion", "v1", "kind", "ServiceAccount", "metadata", object("name", name)),
		object("apiVersion", group+"/v1", "kind", "Role", "metadata", object("name", name), "rules", list(object(
			"apiGroups", strs(""), "resources", strs("pods"), "verbs", strs("get", "list", "watch")))),
		object("apiVersion", group+"/v1", "kind", "RoleBinding", "metadata", object("name", name), "roleRef", object(
			"apiGroup", group, "kind", "Role", "name", name), "subjects",
			list(object("kind", "ServiceAccount", "name", name))),
	}
}

func (j *job) poolLabels() (names []string) {
	for i := range j.system.Groups {
		names = append(names, j.poolLabel(i))
	}
	return names
}
