package manifest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// objects are the readers of Kubernetes objects by kind. Others are not looked at.
var objects = map[string]func(r *reader, o *yamldoc.Node) error{
	"Deployment": workload, "StatefulSet": workload, "ReplicaSet": workload,
	"DaemonSet": workload, "Job": workload, "Rollout": workload, "Pod": barePod,
	"LeaderWorkerSet":  leaderWorkerSet,
	"InferenceService": inferenceService, "LLMInferenceService": llmInferenceService,
	"ModelService": modelService, "DynamoGraphDeployment": dynamoGraph,
	"VLLMRuntime": vllmRuntime, "VLLMRouter": vllmRouter, "Model": kubeAIModel,
	"StormService": stormService, "RoleSet": roleSet,
	"InferencePool": inferencePool, "EndpointPickerConfig": endpointPicker,
}

// isKubernetes reports whether a file has an object of Kubernetes.
func isKubernetes(_ string, data []byte) bool {
	return hasKey(data, "kind") && hasKey(data, "apiVersion")
}

// hasKey reports whether a line begins with a key of YAML or JSON.
func hasKey(data []byte, key string) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimLeft(bytes.TrimPrefix(line, []byte("- ")), " \t{\"")
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			rest = bytes.TrimLeft(rest, "\"")
			if len(rest) > 0 && rest[0] == ':' {
				return true
			}
		}
	}
	return false
}

func readKubernetes(name string, data []byte, o Options) (*launch.System, error) {
	r := newReader(name, data, o)
	if err := r.kubernetes(data); err != nil {
		return nil, err
	}
	return r.finish()
}

func (r *reader) kubernetes(data []byte) error {
	docs, err := r.documents(data)
	if err != nil {
		return err
	}
	var all []*yamldoc.Node
	for _, d := range docs {
		all = append(all, listed(d)...)
	}
	for _, o := range all {
		switch text(o, "kind") {
		case "ConfigMap":
			r.configs[text(o, "metadata", "name")] = o
		case "ServingRuntime", "ClusterServingRuntime":
			r.runtimes[text(o, "metadata", "name")] = o
		}
	}
	for _, o := range all {
		if kind := o.Lookup("kind"); kind != nil && strings.Contains(kind.Text, "{{") {
			return templated(kind.At, kind.Text)
		}
		read := objects[text(o, "kind")]
		if kind := text(o, "kind"); read == nil && kind != "" && !slices.Contains(r.others, kind) {
			r.others = append(r.others, yamldoc.Short(kind))
		}
		if read != nil {
			if err := read(r, o); err != nil {
				return err
			}
		}
	}
	for _, o := range all {
		if err := readScaler(r, o); err != nil {
			return err
		}
	}
	return pickers(r)
}

// documents parses the file. Of a file that is not YAML because it is a template the fault says so.
func (r *reader) documents(data []byte) ([]*yamldoc.Node, error) {
	docs, err := yamldoc.ParseAll(r.name, data)
	if err == nil {
		return docs, nil
	}
	if at, line, ok := template(r.name, data); ok {
		return nil, templated(at, line)
	}
	return nil, err
}

var opening = pattern.New(`\{\{-?\s*[.$\w(/"]`)

// template finds the first line with an action of a template.
func template(name string, data []byte) (at yamldoc.Place, line string, ok bool) {
	n := 0
	for text := range bytes.Lines(data) {
		n++
		if k := opening.Get().FindIndex(text); k != nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("#")) {
			return yamldoc.Place{Origin: name, Line: n, Column: k[0] + 1}, string(text[k[0]:]), true
		}
	}
	return at, "", false
}

// listed are the objects of a List, or the object itself.
func listed(o *yamldoc.Node) []*yamldoc.Node {
	if o.Kind == yamldoc.List {
		return o.Items
	}
	if kind := text(o, "kind"); strings.HasSuffix(kind, "List") && o.Lookup("items") != nil {
		return items(o, "items")
	}
	return []*yamldoc.Node{o}
}

// workload reads an object with replicas of one pod template.
func workload(r *reader, o *yamldoc.Node) error {
	replicas, err := r.whole(o, 1, "spec", "replicas")
	if err != nil {
		return err
	}
	if text(o, "kind") == "Job" {
		if replicas, err = r.whole(o, 1, "spec", "parallelism"); err != nil {
			return err
		}
	}
	return r.template(o, lookup(o, "spec", "template"), replicas, 1, nil)
}

func barePod(r *reader, o *yamldoc.Node) error { return r.template(o, o, 1, 1, nil) }

// template reads a pod template, and adds the group if it launches an engine.
func (r *reader) template(o, template *yamldoc.Node, replicas, nodes int, env []shell.Variable) error {
	g, ok, err := r.podGroup(pod{spec: lookup(template, "spec"), env: env})
	if err != nil || !ok {
		return err
	}
	g.Replicas, g.Nodes, g.At = replicas, nodes, o.At
	if v := o.Lookup("spec", "replicas"); v != nil {
		g.At = v.At
	}
	g.Role = labelledRole(template, o)
	if g.Role != "" && r.system.Stack == "" {
		r.system.Stack = "llm-d"
	}
	r.add(g, text(o, "kind"), text(o, "metadata", "name"))
	return nil
}

// labelledRole is the role that llm-d's label gives.
func labelledRole(list ...*yamldoc.Node) string {
	for _, n := range list {
		for _, label := range []string{"llm-d.ai/role", "disagg.llm-d.ai/role"} {
			if v := text(n, "metadata", "labels", label); v == "prefill" || v == "decode" {
				return v
			}
		}
	}
	return ""
}

// leaderWorkerSet reads groups of pods: the leader of each runs the engine over all of them.
func leaderWorkerSet(r *reader, o *yamldoc.Node) error {
	replicas, err := r.whole(o, 1, "spec", "replicas")
	if err != nil {
		return err
	}
	size, err := r.whole(o, 1, "spec", "leaderWorkerTemplate", "size")
	if err != nil {
		return err
	}
	template := lookup(o, "spec", "leaderWorkerTemplate", "leaderTemplate")
	if len(fields(template)) == 0 {
		template = lookup(o, "spec", "leaderWorkerTemplate", "workerTemplate")
	}
	return r.template(o, template, replicas, size, groupVariables(size))
}

// groupVariables are those that a LeaderWorkerSet sets in the leader.
func groupVariables(size int) []shell.Variable {
	return []shell.Variable{{Name: "LWS_GROUP_SIZE", Value: strconv.Itoa(max(size, 1))},
		{Name: "LWS_WORKER_INDEX", Value: "0"}, {Name: "LWS_LEADER_ADDRESS", Value: "leader"}}
}

// stormService reads AIBrix's service of several roles.
func stormService(r *reader, o *yamldoc.Node) error {
	replicas, err := r.whole(o, 1, "spec", "replicas")
	if err != nil {
		return err
	}
	return aibrixRoles(r, o, items(o, "spec", "template", "spec", "roles"), replicas)
}

// roleSet reads one set of AIBrix's roles.
func roleSet(r *reader, o *yamldoc.Node) error {
	return aibrixRoles(r, o, items(o, "spec", "roles"), 1)
}

func aibrixRoles(r *reader, o *yamldoc.Node, roles []*yamldoc.Node, sets int) error {
	for _, role := range roles {
		g, ok, err := r.podGroup(pod{spec: lookup(role, "template", "spec")})
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		n, err := r.whole(role, 1, "replicas")
		if err != nil {
			return err
		}
		size, err := r.whole(role, 1, "podGroupSize")
		if err != nil {
			return err
		}
		name := text(role, "name")
		g.Replicas, g.Nodes, g.Name, g.At = n*max(sets, 1), size, name, role.At
		if slices.Contains([]string{"prefill", "decode"}, name) {
			g.Role = name
		}
		r.add(g, text(o, "kind"), text(o, "metadata", "name"))
	}
	return nil
}
