package export

import (
	"fmt"
	"strconv"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
)

// Target is the target of an autoscaler that a simulation found: running requests per replica.
type Target struct {
	// Running is the mean number of requests that run on a replica at the highest load that meets the SLO, with a
	// margin.
	Running float64
	// Max is the largest number of replicas; 0 is twice the scenario's.
	Max int
	// Why says where the figure comes from, in one line.
	Why string
}

// scalings are metrics of a scenario with the expression of Prometheus over the pods of a group, by engine.
var scalings = map[string]map[string]string{
	"vllm": {"waiting": "vllm:num_requests_waiting", "running": "vllm:num_requests_running",
		"kv-usage": "vllm:kv_cache_usage_perc"},
	"sglang": {"waiting": "sglang:num_queue_reqs", "running": "sglang:num_running_reqs",
		"kv-usage": "sglang:token_usage"},
	"trtllm": {"waiting": "trtllm_queue_requests", "running": "trtllm_active_requests",
		"kv-usage": "trtllm_kv_cache_utilization"},
}

// scaled is the autoscaler of a group: the scenario's, or one on the target of the simulation; ok is false for none.
func (j *job) scaled(i int) (s launch.Scaler, lowest, highest int, why string, ok bool) {
	g := &j.system.Groups[i]
	switch {
	case g.Scaler != nil:
		return *g.Scaler, g.Min, max(g.Max, 1), "lifecycle.autoscale of the scenario", true
	case j.target != nil && g.Role != "prefill":
		highest := j.target.Max
		if highest == 0 {
			highest = 2 * max(g.Replicas, 1)
		}
		return launch.Scaler{Policy: "hpa", Metric: "running", Target: j.target.Running}, max(g.Replicas, 1), highest,
			j.target.Why, true
	}
	return s, 0, 0, "", false
}

func kindOf(g *launch.Group) *yamldoc.Node {
	if g.Nodes > 1 {
		return object("apiVersion", "leaderworkerset.x-k8s.io/v1", "kind", "LeaderWorkerSet")
	}
	return object("apiVersion", "apps/v1", "kind", "Deployment")
}

// horizontal is the HorizontalPodAutoscaler of a group; nil without one, or where KEDA makes it.
func (j *job) horizontal(i int) *yamldoc.Node {
	s, lowest, highest, why, ok := j.scaled(i)
	if !ok || s.Policy == "keda" {
		return nil
	}
	g, name := &j.system.Groups[i], j.poolLabel(i)
	ref := kindOf(g)
	ref.Put("name", yamldoc.Place{}, str(name))
	metrics := list(object("type", "Pods", "pods", object("metric", object("name",
		podMetric(g.Line.Engine, s.Metric)), "target", object("type", "AverageValue", "averageValue",
		quantity(s.Target)))))
	metrics.Comment = plain(why) + "; a Prometheus adapter serves the metric of the pods"
	return object("apiVersion", "autoscaling/v2", "kind", "HorizontalPodAutoscaler", "metadata", object("name", name),
		"spec", object("scaleTargetRef", ref, "minReplicas", max(lowest, 1), "maxReplicas", max(highest, lowest, 1),
			"metrics", metrics))
}

// podMetric is the name of a metric as an adapter of Prometheus serves it.
func podMetric(engine, metric string) string {
	if metric == "concurrency" {
		metric = "running"
	}
	return cmpOr(scalings[engine][metric], metric)
}

// quantity is a number as Kubernetes writes it: thousandths have the suffix m.
func quantity(x float64) string {
	if x == float64(int64(x)) {
		return strconv.FormatInt(int64(x), 10)
	}
	return fmt.Sprintf("%dm", int64(x*1000+0.5))
}

// keda writes a ScaledObject for each group.
func keda(j *job) ([]File, error) {
	var objects []*yamldoc.Node
	for i := range j.system.Groups {
		s, lowest, highest, why, ok := j.scaled(i)
		if !ok {
			continue
		}
		g, name := &j.system.Groups[i], j.poolLabel(i)
		ref := kindOf(g)
		ref.Put("name", yamldoc.Place{}, str(name))
		threshold := decimal(s.Target)
		query := fmt.Sprintf("sum(%s{pod=~\"%s-.*\"})", podMetric(g.Line.Engine, s.Metric), name)
		if s.Metric == "concurrency" {
			query += fmt.Sprintf(" + sum(%s{pod=~\"%s-.*\"})", podMetric(g.Line.Engine, "waiting"), name)
		}
		trigger := object("type", "prometheus", "metricType", "AverageValue", "metadata", object("serverAddress",
			"http://prometheus:9090", "query", query, "threshold", str(threshold.Text)))
		triggers := list(trigger)
		triggers.Comment = plain(why)
		objects = append(objects, object("apiVersion", "keda.sh/v1alpha1", "kind", "ScaledObject", "metadata",
			object("name", name), "spec", object("scaleTargetRef", ref, "minReplicaCount", lowest, "maxReplicaCount",
				max(highest, lowest, 1), "pollingInterval", 15, "cooldownPeriod", 300, "triggers", triggers)))
	}
	if len(objects) == 0 {
		return nil, refuse("lifecycle.autoscale", "there is nothing to scale by (want an autoscaler in the scenario, "+
			"or an SLO, from which the target is found)")
	}
	return []File{{"keda.yaml", j.documents(objects...)}}, nil
}

// coldStart is the mean time, in seconds, that a replica takes to start.
func coldStart(l *scenario.Lifecycle) float64 { return l.ColdStart.Mean.Clock().Seconds() }
