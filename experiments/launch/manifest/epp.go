package manifest

import (
	"maps"
	"slices"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
)

// Shapes: kubernetes-sigs/gateway-api-inference-extension (InferencePool, EndpointPickerConfig
// inference.networking.x-k8s.io/v1alpha1), and llm-d/llm-d-inference-scheduler, docs/architecture.md.

// inferencePool notes that llm-d's endpoint picker routes to the replicas.
func inferencePool(r *reader, o *yamldoc.Node) error {
	if r.system.Router == nil {
		r.system.Router = &launch.Router{Kind: "llm-d-epp", At: o.At}
	}
	return nil
}

// pickers reads the configuration of the endpoint picker from the ConfigMaps.
func pickers(r *reader) error {
	for _, name := range slices.Sorted(maps.Keys(r.configs)) {
		c := r.configs[name]
		for _, f := range fields(c, "data") {
			if !strings.Contains(f.Value.Text, "EndpointPickerConfig") {
				continue
			}
			first := r.textLine(f.Value)
			docs, err := yamldoc.ParseAll(r.name, []byte(strings.Repeat("\n", first-1)+f.Value.Text))
			if err != nil {
				return err
			}
			for _, d := range docs {
				if text(d, "kind") == "EndpointPickerConfig" {
					_ = endpointPicker(r, d)
				}
			}
		}
	}
	return nil
}

// schedulerConfig reads the configuration of the endpoint picker in an LLMInferenceService.
func schedulerConfig(r *reader, s *yamldoc.Node) error {
	if in := s.Lookup("config", "inline"); in != nil && in.Kind == yamldoc.Map {
		return endpointPicker(r, in)
	}
	return nil
}

// endpointPicker reads the plugins with their weights: those of the first profile or of the profile prefill, and those
// of the profile decode, with its name before them.
func endpointPicker(r *reader, o *yamldoc.Node) error {
	kinds := map[string]string{} // by name
	for _, p := range items(o, "plugins") {
		name := text(p, "name")
		if name == "" {
			name = text(p, "type")
		}
		kinds[name] = text(p, "type")
	}
	router := &launch.Router{Kind: "llm-d-epp", At: o.At}
	for _, profile := range items(o, "schedulingProfiles") {
		var flags []launch.Flag
		for _, p := range items(profile, "plugins") {
			weight := "1"
			if w := text(p, "weight"); w != "" {
				weight = w
			}
			kind := kinds[text(p, "pluginRef")]
			if kind == "" {
				kind = text(p, "pluginRef")
			}
			flags = append(flags, launch.Flag{Name: kind, Value: weight, File: true, At: p.At})
		}
		switch name := text(profile, "name"); {
		case name == "decode":
			for _, f := range flags {
				f.Name = "decode." + f.Name
				router.Flags = append(router.Flags, f)
			}
		case len(router.Flags) == 0 || name == "prefill":
			router.Flags = append(router.Flags, flags...)
		}
	}
	r.system.Router = router
	return nil
}
