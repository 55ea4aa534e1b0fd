package manifest

import (
	"slices"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
)

// gpuLabels are labels of nodes that say which GPU they have, and instanceLabels those that say the type of machine.
// The sources are the documents of NVIDIA's, AMD's and Intel's GPU operators, GKE, EKS, Karpenter and CoreWeave.
var (
	gpuLabels = []string{"nvidia.com/gpu.product", "gpu.nvidia.com/model", "gpu.nvidia.com/class",
		"cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name", "amd.com/gpu.product-name",
		"beta.amd.com/gpu.product-name", "amd.com/gpu.family", "habana.ai/gaudi.type", "k8s.amazonaws.com/accelerator",
		"gpu.product", "accelerator", "gpu-type", "gpu"}
	instanceLabels = []string{"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
		"karpenter.k8s.aws/instance-family", "node.kubernetes.io/instance-family"}
)

// requirement is a label with the values that a node may have.
type requirement struct {
	key    string
	values []*yamldoc.Node
}

// accelerator finds the kind of GPU that a pod asks for: what the labels of nodes say, or else the type of machine.
func (r *reader) accelerator(spec *yamldoc.Node) (string, yamldoc.Place) {
	var all []requirement
	for _, f := range fields(spec, "nodeSelector") {
		all = append(all, requirement{f.Name, []*yamldoc.Node{f.Value}})
	}
	terms := items(spec, "nodeSelectorTerms") // of vLLM's production stack
	affinity := lookup(spec, "affinity", "nodeAffinity")
	terms = append(terms, items(affinity, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")...)
	for _, p := range items(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
		terms = append(terms, lookup(p, "preference"))
	}
	for _, t := range terms {
		for _, e := range items(t, "matchExpressions") {
			if op := text(e, "operator"); op == "In" || op == "" {
				all = append(all, requirement{text(e, "key"), items(e, "values")})
			}
		}
	}
	return r.chosen(all)
}

// chosen picks the label that says most.
func (r *reader) chosen(all []requirement) (string, yamldoc.Place) {
	for _, labels := range [][]string{gpuLabels, instanceLabels} {
		for _, label := range labels {
			k := slices.IndexFunc(all, func(q requirement) bool { return q.key == label && len(q.values) > 0 })
			if k < 0 {
				continue
			}
			v := all[k].values[0]
			if len(all[k].values) > 1 {
				r.note(v.At, "%s allows several kinds; the first, %s, is taken", label, yamldoc.Short(v.Text))
			}
			if generic(v.Text) {
				continue
			}
			if strings.HasSuffix(label, "instance-family") {
				return v.Text + ".", v.At // as at the beginning of a type of machine
			}
			return v.Text, v.At
		}
	}
	return "", yamldoc.Place{}
}

// generic reports whether the value of a label names no kind of GPU.
func generic(value string) bool {
	return slices.Contains([]string{"", "true", "false", "nvidia", "amd", "gpu", "nvidia-gpu"}, strings.ToLower(value))
}
