package export

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"clifftop/report/layout"
)

// panel is a chart of the dashboard.
type panel struct {
	title, description, unit string
	queries                  [][2]string // PromQL and the name of its line
}

// selector limits a query to the selected model and engine.
const selector = `{model_name="$model_name",engine=~"$engine"}`

// quantiles are queries for percentiles of a histogram, and for its mean.
func quantiles(name string) [][2]string {
	var list [][2]string
	for _, q := range [...]struct{ q, name string }{{"0.99", "p99"}, {"0.95", "p95"}, {"0.9", "p90"}, {"0.5", "p50"}} {
		list = append(list,
			[2]string{fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s_bucket%s[$__rate_interval])))", q.q,
				name, selector), q.name})
	}
	mean := fmt.Sprintf("sum(rate(%s_sum%[2]s[$__rate_interval])) / sum(rate(%[1]s_count%[2]s[$__rate_interval]))",
		name, selector)
	return append(list, [2]string{mean, "mean"})
}

// rate returns a query for the increase of a counter per second.
func rate(name, legend string) [2]string {
	return [2]string{fmt.Sprintf("sum(rate(%s%s[$__rate_interval]))", name, selector), legend}
}

// panels are the charts: what is asked of the engine, what it gives, and how full it is.
func (m *Metrics) panels() []panel {
	list := []panel{
		{"Time to first token", "From arrival at the server to the first token.", "s",
			quantiles("vllm:time_to_first_token_seconds")},
		{"Inter-token latency", "Between two outputs of one answer.", "s",
			quantiles("vllm:inter_token_latency_seconds")},
		{"End-to-end latency", "From arrival to the last token.", "s", quantiles("vllm:e2e_request_latency_seconds")},
		{"Time in the queue", "Until a request is first scheduled.", "s", quantiles("vllm:request_queue_time_seconds")},
		{"Requests", "In the batch, and waiting for it.", "short", [][2]string{
			{"sum(vllm:num_requests_running" + selector + ")", "running"},
			{"sum(vllm:num_requests_waiting" + selector + ")", "waiting"},
		}},
		{"Tokens per second", "Prompts count at their first token, cached ones included.", "short", [][2]string{
			rate("vllm:prompt_tokens_total", "prompt"), rate("vllm:generation_tokens_total", "generation"),
		}},
		{"KV cache in use", "1 is full: preemptions are near.", "percentunit",
			[][2]string{{"vllm:kv_cache_usage_perc" + selector, "engine {{engine}}"}}},
		{"Preemptions per second", "Each recomputes what its request had.", "short",
			[][2]string{rate("vllm:num_preemptions_total", "preemptions")}},
		{"Requests ended per second", "By reason; stop is an answer that is whole.", "reqps", [][2]string{
			{"sum by (finished_reason) (rate(vllm:request_success_total" + selector + "[$__rate_interval]))",
				"{{finished_reason}}"},
		}},
		{"Prefix cache hits", "Part of the prompts' tokens that the cache had.", "percentunit", [][2]string{
			{fmt.Sprintf("sum(rate(vllm:prefix_cache_hits_total%s[$__rate_interval])) / "+
				"sum(rate(vllm:prefix_cache_queries_total%[1]s[$__rate_interval]))", selector), "hits"},
		}},
		{"Prefill and decode time", "Means of the requests that ended.", "s", [][2]string{
			quantiles("vllm:request_prefill_time_seconds")[4], quantiles("vllm:request_decode_time_seconds")[4],
		}},
		{"Lengths", "Mean tokens of prompts and answers of the requests that ended.", "short", [][2]string{
			quantiles("vllm:request_prompt_tokens")[4], quantiles("vllm:request_generation_tokens")[4],
		}},
	}
	list[10].queries[0][1], list[10].queries[1][1] = "prefill", "decode"
	list[11].queries[0][1], list[11].queries[1][1] = "prompt", "answer"
	if m.info.Speculative {
		list = append(list, panel{"Accepted drafts", "Part of the draft tokens that were right.", "percentunit",
			[][2]string{
				{fmt.Sprintf("sum(rate(vllm:spec_decode_num_accepted_tokens_total%s[$__rate_interval])) / "+
					"sum(rate(vllm:spec_decode_num_draft_tokens_total%[1]s[$__rate_interval]))", selector), "accepted"},
			}})
	}
	if !m.limited() {
		list = append(list[:6], list[7:]...)
	}
	if m.info.Lifecycle {
		list = append(list, replicaPanels()...)
	}
	return list
}

// replicaPanels are the charts of replicas that come and go. The first asks kube-state-metrics, which a cluster has.
func replicaPanels() []panel {
	const chosen = `{deployment=~"$deployment",namespace=~"$namespace"}`
	count := func(what, legend string) [2]string {
		return [2]string{"sum(kube_deployment_status_replicas_" + what + chosen + ")", legend}
	}
	return []panel{
		{"Replicas", "Ready ones, those that load or have failed, and those that drain.", "short", [][2]string{
			count("ready", "ready"), count("unavailable", "unavailable"), count("terminating", "terminating"),
		}},
		{"GPUs paid for", "By what they do. Idle are those of replicas that serve; a real server does not tell.",
			"short", [][2]string{
				{"sum by (mode) (rate(clifftop_gpu_seconds_total" + chosen + "[$__rate_interval]))", "{{mode}}"},
			}},
	}
}

// WriteDashboard writes a dashboard for Grafana 9 and later. It opens on the time of the run, and its variables let it
// show a real server just as well.
func (m *Metrics) WriteDashboard(w io.Writer, title string) error {
	m.closeLifecycles()
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var charts []object
	for i, p := range m.panels() {
		var targets []object
		for k, q := range p.queries {
			targets = append(targets, object{
				"refId": string(rune('A' + k)), "datasource": source, "expr": q[0], "legendFormat": q[1], "range": true,
				"interval": m.Interval().String(),
			})
		}
		charts = append(charts, object{
			"id": i + 1, "type": "timeseries", "title": p.title, "description": p.description, "datasource": source,
			"gridPos": object{"h": 8, "w": 12, "x": i % 2 * 12, "y": i / 2 * 8},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0,
				"custom": object{"drawStyle": "line", "showPoints": "never"}}, "overrides": []object{}},
			"options": object{"legend": object{"displayMode": "list", "placement": "bottom"},
				"tooltip": object{"mode": "multi"}},
			"targets": targets,
		})
	}
	variable := func(name, query string, all bool) object {
		return object{
			"type": "query", "name": name, "label": name, "datasource": source, "query": query, "refresh": 2,
			"includeAll": all, "multi": all, "allValue": ".*", "current": object{},
		}
	}
	variables := []object{
		{"type": "datasource", "name": "datasource", "label": "data source", "query": "prometheus",
			"current": object{}},
		variable("model_name", "label_values(vllm:num_requests_running, model_name)", false),
		variable("engine", `label_values(vllm:num_requests_running{model_name="$model_name"}, engine)`, true),
	}
	if m.info.Lifecycle {
		variables = append(variables,
			variable("namespace", "label_values(kube_deployment_status_replicas, namespace)", true),
			variable("deployment", `label_values(kube_deployment_status_replicas{namespace=~"$namespace"}, deployment)`,
				true))
	}
	e := json.NewEncoder(layout.PlainWriter(w))
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(object{
		"title": title, "tags": []string{"vllm", "clifftop"}, "schemaVersion": 37, "editable": true, "timezone": "utc",
		"time": object{"from": Epoch.Format(time.RFC3339),
			"to": Epoch.Add(m.Length() + time.Second - 1).Format(time.RFC3339)},
		"refresh": "", "graphTooltip": 1, "panels": charts,
		"templating": object{"list": variables},
	})
}
