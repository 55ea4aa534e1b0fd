package export

import (
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
)

// compose writes a compose file: a service for each replica, and the router. It is for one machine.
func compose(j *job) ([]File, error) {
	size := j.setup.Pools[0].Deployment.GPU.NodeSize()
	if n := (rack{size: size}).machines(j.system); n > 1 {
		return nil, refuse("deployment", "the replicas need %d machines of %d GPUs, which a compose file cannot have "+
			"(want kubernetes)", n, size)
	}
	gpu := j.system.Groups[0].Accelerator
	if kind := resource(gpu); kind != nvidia && kind != "amd.com/gpu" {
		return nil, refuse("gpu", "a compose file has no reservation for %s (want kubernetes)", gpu)
	}
	services := &yamldoc.Node{Kind: yamldoc.Map}
	configs := &yamldoc.Node{Kind: yamldoc.Map}
	var servers []server
	device := 0
	for i := range j.system.Groups {
		g := &j.system.Groups[i]
		pool := j.poolLabel(i)
		if o := options(&g.Line); o != nil {
			configs.Put(pool, yamldoc.Place{}, object("content", string(o)))
		}
		for k := range max(g.Replicas, 1) {
			name := pool
			if g.Replicas > 1 {
				name += "-" + strconv.Itoa(k+1)
			}
			services.Put(name, yamldoc.Place{}, j.service(g, name, pool, device))
			device += g.GPUsPerNode
			servers = append(servers, server{host: name, port: servicePort, bootstrap: firstBootstrap, group: g})
		}
	}
	if r := j.system.Router; r != nil {
		words := routerCommand(r, servers, servicePort, optionsFolder+"/router.yaml")
		image := map[string]string{"sglang-router": "lmsysorg/sglang:latest",
			"trtllm-disaggregated": j.system.Groups[0].Line.Image}[r.Kind]
		service := object("image", cmpOr(image, "lmcache/lmstack-router:latest"), "entrypoint",
			strs(words[0]), "command", strs(words[1:]...), "ports", strs("8000:8000"))
		if file := routerConfig(r, servers, servicePort); file != "" {
			configs.Put("router", yamldoc.Place{}, object("content", file))
			service.Put("configs", yamldoc.Place{},
				list(object("source", "router", "target", optionsFolder+"/router.yaml")))
		}
		services.Put("router", yamldoc.Place{}, service)
	}
	root := object("name", j.name, "services", services)
	if len(configs.Fields) > 0 {
		root.Put("configs", yamldoc.Place{}, configs)
	}
	return []File{{"compose.yaml", j.documents(root)}}, nil
}

// service is the service of one replica, with its GPUs.
func (j *job) service(g *launch.Group, name, config string, device int) *yamldoc.Node {
	args := append(arguments(&g.Line, optionsFolder+"/options.yaml"), "--port", strconv.Itoa(servicePort))
	env := &yamldoc.Node{Kind: yamldoc.Map}
	for _, e := range g.Line.Env {
		env.Put(e.Name, yamldoc.Place{}, str(e.Value))
	}
	switch {
	case g.Role != "" && g.Line.Engine == "vllm":
		env.Put(sideChannelHost, yamldoc.Place{}, str(name))
	case g.Role != "" && g.Line.Engine == "sglang":
		args = append(args, "--disaggregation-bootstrap-port", strconv.Itoa(firstBootstrap))
	}
	var ids []string
	for n := range g.GPUsPerNode {
		ids = append(ids, strconv.Itoa(device+n))
	}
	c := object("image", g.Line.Image, "entrypoint", strs(program(g.Line.Engine)...), "command", strs(args...))
	amd := resource(g.Accelerator) != nvidia
	if amd {
		env.Put(visibleDevices(g.Accelerator), yamldoc.Place{}, str(strings.Join(ids, ",")))
	}
	if len(env.Fields) > 0 {
		c.Put("environment", yamldoc.Place{}, env)
	}
	if options(&g.Line) != nil {
		c.Put("configs", yamldoc.Place{}, list(object("source", config, "target", optionsFolder+"/options.yaml")))
	}
	c.Put("ipc", yamldoc.Place{}, str("host"))
	if amd {
		c.Put("devices", yamldoc.Place{}, strs("/dev/kfd", "/dev/dri"))
		c.Put("group_add", yamldoc.Place{}, strs("video"))
	} else {
		c.Put("deploy", yamldoc.Place{}, object("resources", object("reservations", object("devices", list(object(
			"driver", "nvidia", "device_ids", strs(ids...), "capabilities", strs("gpu")))))))
	}
	if j.system.Router == nil {
		c.Put("ports", yamldoc.Place{}, strs("8000:8000"))
	}
	return c
}
