package export

import (
	"strconv"

	"clifftop/experiments/scenario/yamldoc"
)

// compose writes a compose file: a service for each replica, and the router.
func compose(j *job) ([]File, error) {
	services := &yamldoc.Node{Kind: yamldoc.Map}
	configs := &yamldoc.Node{Kind: yamldoc.Map}
	var addresses [2][]string
	device := 0
	for i := range j.system.Groups {
		g := &j.system.Groups[i]
		if g.Nodes > 1 {
			return nil, refuse("deployment", "a replica has %d machines, which a compose file cannot have (want kubernetes)",
				g.Nodes)
		}
		pool, o := j.poolLabel(i), options(&g.Line)
		if o != nil {
			configs.Put(pool, yamldoc.Place{}, object("content", string(o)))
		}
		for k := range max(g.Replicas, 1) {
			name := pool
			if g.Replicas > 1 {
				name += "-" + strconv.Itoa(k+1)
			}
			var ids []string
			for n := range g.GPUsPerNode {
				ids = append(ids, strconv.Itoa(device+n))
			}
			device += g.GPUsPerNode
			c := object("image", g.Line.Image, "entrypoint", strs(program(g.Line.Engine)...), "command",
				strs(append(arguments(&g.Line, optionsFolder+"/options.yaml"), "--port", "8000")...))
			if len(g.Line.Env) > 0 {
				env := &yamldoc.Node{Kind: yamldoc.Map}
				for _, e := range g.Line.Env {
					env.Put(e.Name, yamldoc.Place{}, str(e.Value))
				}
				c.Put("environment", yamldoc.Place{}, env)
			}
			if o != nil {
				c.Put("configs", yamldoc.Place{}, list(object("source", pool, "target", optionsFolder+"/options.yaml")))
			}
			c.Put("ipc", yamldoc.Place{}, str("host"))
			c.Put("deploy", yamldoc.Place{}, object("resources", object("reservations", object("devices", list(object(
				"driver", "nvidia", "device_ids", strs(ids...), "capabilities", strs("gpu")))))))
			if j.system.Router == nil {
				c.Put("ports", yamldoc.Place{}, strs("8000:8000"))
			}
			services.Put(name, yamldoc.Place{}, c)
			which := 0
			if g.Role == "prefill" {
				which = 1
			}
			addresses[which] = append(addresses[which], "http://"+name+":8000")
		}
	}
	if r := j.system.Router; r != nil {
		words := routerCommand(r, addresses[0], addresses[1], servicePort)
		image := map[string]string{"sglang-router": "lmsysorg/sglang:latest",
			"dynamo-frontend": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:latest"}[r.Kind]
		services.Put("router", yamldoc.Place{}, object("image", cmpOr(image, "lmcache/lmstack-router:latest"), "entrypoint",
			strs(words[0]), "command", strs(words[1:]...), "ports", strs("8000:8000")))
	}
	root := object("name", j.name, "services", services)
	if len(configs.Fields) > 0 {
		root.Put("configs", yamldoc.Place{}, configs)
	}
	return []File{{"compose.yaml", j.documents(root)}}, nil
}
