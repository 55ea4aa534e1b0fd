package manifest

import (
	"slices"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
)

// Shapes of Dynamo: ai-dynamo/dynamo, deploy/operator/api (DynamoGraphDeployment v1alpha1 with services, v1beta1 with
// components), and recipes/*/deploy.yaml.

// component is a component of a Dynamo graph in the shape that both versions share.
type component struct {
	name, kind, role string
	n                *yamldoc.Node // with replicas, resources, multinode
	spec             *yamldoc.Node // of the pod
}

func dynamoGraph(r *reader, o *yamldoc.Node) error {
	common := r.environment(lookup(o, "spec"))
	r.system.Stack = "dynamo"
	if r.system.Name == "" {
		r.system.Name = text(o, "metadata", "name")
	}
	for _, c := range components(r, o) {
		if strings.EqualFold(c.kind, "planner") {
			r.note(c.n.At, "Dynamo's planner %s scales the workers; it is not modelled", c.name)
			continue
		}
		env := append(slices.Clone(common), r.environment(c.n)...)
		if strings.EqualFold(c.kind, "frontend") {
			if err := frontend(r, &c, env); err != nil {
				return err
			}
			continue
		}
		if err := worker(r, o, &c, env); err != nil {
			return err
		}
	}
	return nil
}

// components returns the components of an object of either version.
func components(r *reader, o *yamldoc.Node) (list []component) {
	for _, f := range fields(o, "spec", "services") {
		spec := lookup(f.Value, "extraPodSpec")
		if main := spec.Lookup("mainContainer"); main != nil {
			spec = &yamldoc.Node{Kind: yamldoc.Map, At: spec.At, Fields: slices.Clone(spec.Fields)}
			main = withResources(main, f.Value)
			spec.Put("containers", main.At, &yamldoc.Node{Kind: yamldoc.List, Items: []*yamldoc.Node{main},
				At: main.At})
		}
		kind, role := text(f.Value, "componentType"), text(f.Value, "subComponentType")
		list = append(list, component{f.Name, kind, role, f.Value, spec})
	}
	for _, c := range items(o, "spec", "components") {
		spec := lookup(c, "podTemplate", "spec")
		list = append(list, component{text(c, "name"), text(c, "type"), text(c, "subType"), c, spec})
	}
	for i := range list {
		c := &list[i]
		switch role := strings.ToLower(c.role); {
		case slices.Contains([]string{"prefill", "decode"}, role):
			c.role = role
		case slices.Contains([]string{"prefill", "decode"}, strings.ToLower(c.kind)):
			c.role = strings.ToLower(c.kind)
		default:
			c.role = ""
		}
	}
	return list
}

// withResources gives a container the resources and mounts of its component where it has none.
func withResources(main, from *yamldoc.Node) *yamldoc.Node {
	n := &yamldoc.Node{Kind: yamldoc.Map, At: main.At, Fields: slices.Clone(main.Fields)}
	if v := from.Lookup("resources"); v != nil && n.Lookup("resources") == nil {
		n.Put("resources", v.At, v)
	}
	return n
}

// frontend reads the router: dynamo.frontend, also where the image runs it without a command.
func frontend(r *reader, c *component, env []shell.Variable) error {
	p := pod{spec: c.spec, env: env}
	if len(items(c.spec, "containers")) > 0 {
		if _, _, err := r.podGroup(p); err != nil {
			return err
		}
	}
	if r.system.Router == nil {
		main := &yamldoc.Node{Kind: yamldoc.Map, At: c.n.At}
		if list := items(c.spec, "containers"); len(list) > 0 {
			main = list[0]
		}
		box, err := r.container(main, &p)
		if err != nil {
			return err
		}
		box.command = wordsAt(c.n.At, "python3", "-m", "dynamo.frontend")
		commands, err := r.launch(box)
		if err != nil {
			return err
		}
		for _, cmd := range commands {
			r.system.Router = cmd.Router
		}
	}
	if r.system.Router == nil {
		r.system.Router = &launch.Router{Kind: "dynamo-frontend", At: c.n.At}
	}
	return nil
}

// worker reads a component that runs an engine.
func worker(r *reader, o *yamldoc.Node, c *component, env []shell.Variable) error {
	g, ok, err := r.podGroup(pod{spec: c.spec, env: env})
	if err != nil || !ok {
		return err
	}
	if g.Replicas, err = r.whole(c.n, 1, "replicas"); err != nil {
		return err
	}
	if g.Nodes, err = r.whole(c.n, 1, "multinode", "nodeCount"); err != nil {
		return err
	}
	if c.n.Lookup("autoscaling", "enabled") != nil && truth(c.n, "autoscaling", "enabled") {
		if err := bounds(r, &g, lookup(c.n, "autoscaling"), "minReplicas", "maxReplicas"); err != nil {
			return err
		}
	}
	g.Name, g.Role, g.At = c.name, c.role, c.n.At
	r.add(g, text(o, "kind"), text(o, "metadata", "name"))
	return nil
}
