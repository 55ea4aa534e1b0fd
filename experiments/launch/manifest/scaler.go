package manifest

import (
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// Shapes: Kubernetes autoscaling/v1 and v2 (HorizontalPodAutoscaler), KEDA keda.sh/v1alpha1 (ScaledObject), and the
// scale keys of KServe's predictor.

// readScaler reads an autoscaler and gives it to the group that it scales.
func readScaler(r *reader, o *yamldoc.Node) error {
	var read func(*reader, *launch.Group, *yamldoc.Node, yamldoc.Place) error
	switch text(o, "kind") {
	case "HorizontalPodAutoscaler":
		read = hpa
	case "ScaledObject":
		read = keda
	default:
		return nil
	}
	kind, name := text(o, "spec", "scaleTargetRef", "kind"), text(o, "spec", "scaleTargetRef", "name")
	k := slices.IndexFunc(r.owners, func(w owner) bool { return w.name == name && (w.kind == kind || kind == "") })
	if k < 0 {
		r.note(o.At, "%s scales %s, which launches no engine here", text(o, "kind"), yamldoc.Short(name))
		return nil
	}
	return read(r, &r.system.Groups[k], lookup(o, "spec"), o.At)
}

// bounds reads the smallest and the largest number of replicas.
func bounds(r *reader, g *launch.Group, n *yamldoc.Node, least, most string) (err error) {
	if g.Min, err = r.whole(n, 1, least); err != nil {
		return err
	}
	g.Max, err = r.whole(n, 0, most)
	return err
}

// hpa reads a HorizontalPodAutoscaler. The first metric that is one of an engine counts.
func hpa(r *reader, g *launch.Group, spec *yamldoc.Node, at yamldoc.Place) error {
	if err := bounds(r, g, spec, "minReplicas", "maxReplicas"); err != nil {
		return err
	}
	s := &launch.Scaler{Policy: "hpa", At: at}
	for _, m := range items(spec, "metrics") {
		kind := strings.ToLower(text(m, "type"))
		one := lookup(m, kind)
		name := text(one, "metric", "name")
		if kind == "resource" || kind == "containerresource" {
			name = text(lookup(m, "resource"), "name") + text(lookup(m, "containerResource"), "name")
		}
		if target, ok := quantity(text(one, "target", "averageValue")); ok && name != "" {
			s.Metric, s.Target, s.At = name, target, m.At
			break
		}
		if s.Metric == "" {
			s.Metric = name
		}
	}
	if s.Metric == "" && spec.Lookup("targetCPUUtilizationPercentage") != nil {
		s.Metric = "cpu"
	}
	if w := spec.Lookup("behavior", "scaleDown", "stabilizationWindowSeconds"); w != nil && w.Kind == yamldoc.Number {
		s.Options = append(s.Options, launch.Flag{Name: "stabilization_window", Value: w.Text + "s",
			File: true, At: w.At})
	}
	g.Scaler = s
	return nil
}

// keda reads a ScaledObject, or the same keys in a chart. The first trigger on Prometheus counts.
func keda(r *reader, g *launch.Group, spec *yamldoc.Node, at yamldoc.Place) error {
	if err := bounds(r, g, spec, "minReplicaCount", "maxReplicaCount"); err != nil {
		return err
	}
	if spec.Lookup("minReplicaCount") == nil {
		g.Min = 0
	}
	if g.Max == 0 {
		g.Max = 100 // KEDA's default
	}
	s := &launch.Scaler{Policy: "keda", At: at}
	for _, t := range items(spec, "triggers") {
		if s.Metric == "" {
			s.Metric = text(t, "type")
		}
		query, threshold := text(t, "metadata", "query"), text(t, "metadata", "threshold")
		target, ok := quantity(threshold)
		if text(t, "type") != "prometheus" || !ok {
			continue
		}
		s.Metric, s.Target, s.At = query, target, t.At
		averaged := strings.HasPrefix(strings.TrimSpace(query), "avg")
		switch {
		case text(t, "metricType") == "Value" && averaged:
			s.Policy = "hpa" // the threshold is the target of the mean
		case text(t, "metricType") == "Value", averaged:
			s.Target = 0 // a sum against a fixed value, or a mean divided by the replicas
		}
		break
	}
	for _, k := range []struct{ from, to string }{{"pollingInterval", "polling_interval"},
		{"cooldownPeriod", "cooldown_period"}} {
		if v := spec.Lookup(k.from); v != nil && v.Kind == yamldoc.Number && s.Policy == "keda" {
			s.Options = append(s.Options, launch.Flag{Name: k.to, Value: v.Text + "s", File: true, At: v.At})
		}
	}
	g.Scaler = s
	return nil
}

// knative reads the scale keys of a predictor of KServe.
func knative(r *reader, g *launch.Group, predictor *yamldoc.Node) error {
	if predictor.Lookup("maxReplicas") == nil {
		return nil
	}
	if err := bounds(r, g, predictor, "minReplicas", "maxReplicas"); err != nil {
		return err
	}
	s := &launch.Scaler{Policy: "knative", Metric: text(predictor, "scaleMetric"),
		At: predictor.Lookup("maxReplicas").At}
	if target, ok := quantity(text(predictor, "scaleTarget")); ok && (s.Metric == "" || s.Metric == "concurrency") {
		s.Metric, s.Target = "concurrency", target
	}
	g.Scaler = s
	return nil
}

var quantityText = pattern.New(`^(\d+(?:\.\d+)?)(m|k|M)?$`)

// quantity reads a quantity of Kubernetes: 500m is 0.5.
func quantity(s string) (float64, bool) {
	m := quantityText.Get().FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	x, err := strconv.ParseFloat(m[1], 64)
	return x * map[string]float64{"": 1, "m": 1e-3, "k": 1e3, "M": 1e6}[m[2]], err == nil && x > 0
}
