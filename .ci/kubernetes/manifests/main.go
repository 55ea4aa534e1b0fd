// Command check decodes manifests strictly into the types of Kubernetes, LeaderWorkerSet, KEDA and the Gateway API, and
// renders values of Helm charts with Helm's own engine. It prints one line for each file.
//
//	check manifests FILE…    check values FILE…
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	infv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	eppv1alpha1 "sigs.k8s.io/gateway-api-inference-extension/apix/config/v1alpha1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// kinds are the types of the objects.
var kinds = map[string]func() any{
	"v1 ConfigMap":                                 func() any { return &corev1.ConfigMap{} },
	"v1 ServiceAccount":                            func() any { return &corev1.ServiceAccount{} },
	"rbac.authorization.k8s.io/v1 Role":            func() any { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1 RoleBinding":     func() any { return &rbacv1.RoleBinding{} },
	"v1 Service":                                   func() any { return &corev1.Service{} },
	"apps/v1 Deployment":                           func() any { return &appsv1.Deployment{} },
	"autoscaling/v2 HorizontalPodAutoscaler":       func() any { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"leaderworkerset.x-k8s.io/v1 LeaderWorkerSet":  func() any { return &lwsv1.LeaderWorkerSet{} },
	"keda.sh/v1alpha1 ScaledObject":                func() any { return &kedav1alpha1.ScaledObject{} },
	"gateway.networking.k8s.io/v1 Gateway":         func() any { return &gatewayv1.Gateway{} },
	"gateway.networking.k8s.io/v1 HTTPRoute":       func() any { return &gatewayv1.HTTPRoute{} },
	"inference.networking.k8s.io/v1 InferencePool": func() any { return &infv1.InferencePool{} },
	"inference.networking.x-k8s.io/v1alpha1 EndpointPickerConfig": func() any {
		return &eppv1alpha1.EndpointPickerConfig{}
	},
}

// adapterConfig is the configuration of the Prometheus adapter, with the fields of its pkg/config/config.go that
// manifests here use.
type adapterConfig struct {
	Rules []struct {
		SeriesQuery string `json:"seriesQuery"`
		Resources   struct {
			Overrides map[string]struct {
				Group    string `json:"group"`
				Resource string `json:"resource"`
			} `json:"overrides"`
		} `json:"resources"`
		Name struct {
			Matches string `json:"matches"`
			As      string `json:"as"`
		} `json:"name"`
		MetricsQuery string `json:"metricsQuery"`
	} `json:"rules"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: check manifests|values FILE…")
	}
	for _, name := range args[1:] {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		check := manifests
		if args[0] == "values" {
			check = values
		}
		if err := check(name, data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// manifests decodes each document into its type. Unknown fields are errors.
func manifests(name string, data []byte) error {
	count := 0
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		if err := manifest(doc); err != nil {
			return err
		}
		count++
	}
	fmt.Printf("%s: %d objects\n", name, count)
	return nil
}

// manifest decodes a document, and the configuration that a ConfigMap in it has for a program of known type.
func manifest(doc []byte) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := sigsyaml.Unmarshal(doc, &head); err != nil {
		return err
	}
	kind := head.APIVersion + " " + head.Kind
	make := kinds[kind]
	if make == nil {
		return fmt.Errorf("no type for %q", kind)
	}
	object := make()
	if err := sigsyaml.UnmarshalStrict(doc, object); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	m, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil
	}
	if text, ok := m.Data["plugins.yaml"]; ok {
		if err := manifest([]byte(text)); err != nil {
			return fmt.Errorf("%s: plugins.yaml: %w", kind, err)
		}
	}
	if text, ok := m.Data["config.yaml"]; ok {
		if err := sigsyaml.UnmarshalStrict([]byte(text), &adapterConfig{}); err != nil {
			return fmt.Errorf("%s: config.yaml: %w", kind, err)
		}
	}
	return nil
}

// template writes what a chart would take from the values: it fails where a value is missing.
const template = `{{- range .Values.servingEngineSpec.modelSpec }}
{{ required "name" .name }} {{ required "modelURL" .modelURL }} {{ required "requestGPU" .requestGPU }}
{{- range (default list (get .vllmConfig "extraArgs")) }} {{ . | quote }}{{ end }}
{{ end }}`

// values renders a chart that reads the values as the production stack's does.
func values(name string, data []byte) error {
	var v map[string]any
	if err := sigsyaml.Unmarshal(data, &v); err != nil {
		return err
	}
	text := template
	if _, ok := v["modelArtifacts"]; ok {
		text = "{{ required \"name\" .Values.modelArtifacts.name }} {{ range $p := list \"prefill\" \"decode\" }}" +
			"{{ with index $.Values $p }}{{ if .create }}{{ range .containers }}{{ required \"image\" .image }} " +
			"{{ range .args }}{{ . | quote }} {{ end }}{{ end }}{{ end }}{{ end }}{{ end }}"
	}
	c := &chart.Chart{Metadata: &chart.Metadata{Name: "check", Version: "0.1.0", APIVersion: "v2"},
		Templates: []*chart.File{{Name: "templates/check.yaml", Data: []byte(text)}}}
	merged, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "check"}, nil)
	if err != nil {
		return err
	}
	out, err := engine.Engine{Strict: true}.Render(c, merged)
	if err != nil {
		return err
	}
	rendered := strings.TrimSpace(out["check/templates/check.yaml"])
	if rendered == "" {
		return errors.New("nothing was rendered")
	}
	fmt.Printf("%s: rendered %d bytes\n", name, len(rendered))
	return nil
}
