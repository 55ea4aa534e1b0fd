package launch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
)

// system is n replicas of an engine behind a router, or two pools.
func system(r *launch.Router, pools bool) *launch.System {
	line := launch.Line{Engine: "vllm", Table: "vllm", Model: "meta-llama/Llama-3.1-8B-Instruct"}
	s := &launch.System{Router: r, Groups: []launch.Group{{Name: "a", Replicas: 4, Nodes: 1, Line: line}}}
	if pools {
		s.Groups = append(s.Groups, launch.Group{Name: "b", Replicas: 2, Nodes: 1, Line: line, Role: "decode"})
		s.Groups[0].Role = "prefill"
	}
	return s
}

// flagsOf are flags written as "name value".
func flagsOf(texts ...string) (list []launch.Flag) {
	for _, t := range texts {
		name, value, _ := strings.Cut(t, " ")
		list = append(list, launch.Flag{Name: name, Value: value, Bare: value == "", Env: strings.HasPrefix(t, "DYN_")})
	}
	return list
}

// loaded imports a system, and returns a section of the scenario without comments. The scenario must load.
func loaded(t *testing.T, s *launch.System, path ...string) string {
	t.Helper()
	m, err := s.Scenario(launch.ImportOptions{GPU: "h100"})
	if err != nil {
		t.Fatal(err)
	}
	text := yamldoc.Marshal(m.Root)
	sc, err := scenario.Parse("scenario.yaml", text)
	if err == nil {
		_, err = sc.Resolve()
	}
	if err != nil {
		t.Errorf("the scenario does not load: %v\n%s", err, text)
	}
	v := m.Root.Lookup(path...)
	if v == nil {
		return ""
	}
	plain := v.Clone()
	plain.Comment = ""
	root := &yamldoc.Node{Kind: yamldoc.Map}
	root.Put("r", yamldoc.Place{}, plain)
	return strings.Join(strings.Fields(strings.TrimPrefix(string(yamldoc.Marshal(root)), "r:")), " ")
}

// The rules of routers: the left side is what a command or a manifest says, the right side deployment.router.
func TestRoutersBecomeRules(t *testing.T) {
	for _, c := range []struct {
		kind  string
		flags []string
		want  string
	}{
		{"vllm-router", []string{"routing-logic roundrobin"}, "round-robin"},
		{"vllm-router", nil, "round-robin"},
		{"vllm-router", []string{"routing-logic session", "session-key x-user-id"}, "least-requests"},
		{"vllm-router", []string{"routing-logic prefixaware"}, "prefix"},
		{"vllm-router", []string{"routing-logic kvaware", "kv-aware-threshold 2000"},
			"{policy: kv-aware, missing_tokens: 2000}"},
		{"vllm-router", []string{"policy power_of_two"}, "power-of-two"},
		{"vllm-router", []string{"routing-logic fancy"}, "round-robin"},
		{"sglang-router", nil, "sglang"},
		{"sglang-router", []string{"policy cache_aware", "cache-threshold 0.5", "balance-abs-threshold 32"},
			"{policy: sglang, cache_threshold: 0.5, balance_abs_threshold: 32}"},
		{"sglang-router", []string{"router-policy cache_aware", "router-eviction-interval-secs 60",
			"router-max-tree-size 4000000"}, "{policy: sglang, eviction_interval: 60s, max_tree_tokens: 1000000}"},
		{"sglang-router", []string{"router-policy random"}, "random"},
		{"sglang-router", []string{"policy round_robin"}, "round-robin"},
		{"sglang-router", []string{"policy power_of_two"}, "power-of-two"},
		{"sglang-router", []string{"policy random"}, "random"},
		{"sglang-router", []string{"policy bucket"}, "least-requests"},
		{"dynamo-frontend", nil, "round-robin"},
		{"dynamo-frontend", []string{"router-mode kv"}, "dynamo"},
		{"dynamo-frontend", []string{"DYN_ROUTER_MODE kv", "DYN_ROUTER_TEMPERATURE 0.2"},
			"{policy: dynamo, temperature: 0.2}"},
		{"dynamo-frontend", []string{"router-mode random", "DYN_ROUTER_MODE kv"}, "random"},
		{"dynamo-frontend", []string{"router-mode kv", "kv-overlap-score-weight 2", "no-kv-events"},
			"{policy: dynamo, overlap_weight: 2, approximate: true}"},
		{"dynamo-frontend", []string{"router-mode least-loaded"}, "least-requests"},
		{"dynamo-frontend", []string{"router-mode kv", "router-kv-events false", "router-ttl-secs 60",
			"kv-cache-block-size 32"}, "{policy: dynamo, block_tokens: 32, approximate: true, ttl: 60s}"},
		{"llm-d-epp", nil, "llm-d"},
		{"llm-d-epp", []string{"precise-prefix-cache-scorer 3", "queue-scorer 2", "weighted-random-picker 1",
			"decode.queue-scorer 9"},
			"policy: llm-d picker: weighted-random scorers: {prefix: 3, queue: 2} precise: true"},
		{"llm-d-epp", []string{"prefix-cache-affinity-filter 1", "token-load-scorer 1"},
			"policy: llm-d affinity: {} scorers: {token-load: 1}"},
		{"trtllm-disaggregated", []string{"context_servers.router.type kv_cache_aware"}, "kv-aware"},
		{"kubeai", []string{"strategy LeastLoad"}, "least-requests"},
		{"kubeai", []string{"strategy PrefixHash"}, "{policy: bounded-hash, by: prefix, prefix_tokens: 25, factor: 1.25}"},
		{"haproxy", nil, ""},
	} {
		r := &launch.Router{Kind: c.kind, Flags: flagsOf(c.flags...)}
		if got := loaded(t, system(r, false), "deployment", "router"); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.kind, c.flags, got, c.want)
		}
	}
}

// A flag that a router does not have, or a value that it does not take, is a fault and not a default without a word.
func TestFaultsOfRouters(t *testing.T) {
	for _, c := range []struct{ kind, flag, want, hint string }{
		{"sglang-router", "polcy random", "--polcy: unknown flag of python -m sglang_router.launch_router", "policy"},
		{"vllm-router", "routing-logc session", "--routing-logc: unknown flag of vllm-router", "routing-logic"},
		{"vllm-router", "cache-threshold much", `--cache-threshold: "much" is not allowed (want a number`, ""},
		{"dynamo-frontend", "router-mod kv", "--router-mod: unknown flag of python -m dynamo.frontend", "router-mode"},
		{"dynamo-frontend", "router-temperature hot", `--router-temperature: "hot" is not allowed (want a number`, ""},
		{"dynamo-frontend", "router-temperature nan", `"nan" is not allowed`, ""},
		{"dynamo-frontend", "router-mode", "--router-mode: the value is missing", ""},
		{"dynamo-frontend", "DYN_ROUTER_TEMPERATURE hot", `DYN_ROUTER_TEMPERATURE: "hot" is not allowed`, ""},
	} {
		_, err := system(&launch.Router{Kind: c.kind, Flags: flagsOf(c.flag)}, false).Scenario(
			launch.ImportOptions{GPU: "h100"})
		var faults yamldoc.Faults
		if !errors.As(err, &faults) || len(faults) != 1 || !strings.Contains(faults[0].Error(), c.want) ||
			!strings.Contains(faults[0].Hint, c.hint) {
			t.Errorf("%s %s: %v, want %q and the hint %q", c.kind, c.flag, err, c.want, c.hint)
		}
	}
}

// Two pools have two routers: one for prompts and one for outputs.
func TestPoolsHaveTwoRouters(t *testing.T) {
	for _, c := range []struct {
		kind           string
		flags          []string
		prompt, output string
	}{
		{"sglang-router", []string{"policy random", "prefill-policy cache_aware"}, "sglang", "random"},
		{"dynamo-frontend", []string{"router-mode kv"}, "dynamo", "round-robin"},
		{"llm-d-epp", []string{"prefix-cache-scorer 2", "decode.queue-scorer 1"}, "policy: llm-d scorers: {prefix: 2}",
			"policy: llm-d scorers: {queue: 1}"},
		{"trtllm-disaggregated", []string{"generation_servers.router.type load_balancing"}, "round-robin", "least-requests"},
	} {
		s := system(&launch.Router{Kind: c.kind, Flags: flagsOf(c.flags...)}, true)
		prompt, output := loaded(t, s, "deployment", "router"), loaded(t, s, "disaggregation", "router")
		if prompt != c.prompt || output != c.output {
			t.Errorf("%s %v: %q and %q, want %q and %q", c.kind, c.flags, prompt, output, c.prompt, c.output)
		}
	}
}

// A single replica has no router, and one pool takes no KV of another one.
func TestOneReplicaHasNoRouter(t *testing.T) {
	s := system(&launch.Router{Kind: "llm-d-epp"}, false)
	s.Groups[0].Replicas = 1
	if got := loaded(t, s, "deployment", "router"); got != "" {
		t.Error(got)
	}
	s.Groups[0].Line.Flags = flagsOf(`kv-transfer-config {"kv_connector":"NixlConnector","kv_role":"kv_both",` +
		`"kv_load_failure_policy":"fail"}`)
	m, err := s.Scenario(launch.ImportOptions{GPU: "h100"})
	if err == nil && m.Root.Get("disaggregation") != nil {
		t.Error("disaggregation without pools")
	}
}

// The autoscalers of manifests: metric, bounds and target, or a note where a scenario has no such metric.
func TestScalersBecomeAutoscalers(t *testing.T) {
	for _, c := range []struct {
		scaler   launch.Scaler
		min, max int
		want     string
		note     string
	}{
		{launch.Scaler{Policy: "hpa", Metric: "vllm:num_requests_waiting", Target: 2.5}, 2, 8,
			"{policy: hpa, min: 2, max: 8, initial: 4, metric: waiting, target: 2.5}", ""},
		{launch.Scaler{Policy: "keda", Metric: "sum(vllm:num_requests_running + vllm:num_requests_waiting)", Target: 30},
			0, 8, "{policy: keda, min: 0, max: 8, initial: 4, metric: concurrency, target: 30}", ""},
		{launch.Scaler{Policy: "keda", Metric: "vllm:gpu_cache_usage_perc", Target: 0.5}, 0, 4,
			"{policy: keda, min: 1, max: 4, initial: 4, metric: kv-usage, target: 0.5}", ""},
		{launch.Scaler{Policy: "knative", Metric: "concurrency", Target: 10}, 1, 6,
			"{policy: knative, min: 1, max: 6, initial: 4, target: 10}", ""},
		{launch.Scaler{Policy: "hpa", Metric: "cpu"}, 1, 8, "",
			"scaling by cpu is not modelled; there are always 4 replicas"},
		{launch.Scaler{Policy: "keda", Metric: "sum(vllm:num_requests_waiting)"}, 1, 8, "",
			"scaling by sum(vllm:num_requests_waiting) is not modelled; there are always 4 replicas"},
	} {
		s := system(nil, false)
		s.Groups[0].Scaler, s.Groups[0].Min, s.Groups[0].Max = &c.scaler, c.min, c.max
		if got := loaded(t, s, "lifecycle", "autoscale"); got != c.want {
			t.Errorf("%v: %q, want %q", c.scaler, got, c.want)
		}
		m, err := s.Scenario(launch.ImportOptions{GPU: "h100"})
		if err != nil || c.note != "" && !strings.Contains(fmt.Sprint(m.Notes), c.note) {
			t.Errorf("%v: notes %v, want %q", err, m.Notes, c.note)
		}
	}
}
