package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario"
)

// routingLogics are the rules of vLLM's production stack for those of a scenario.
var routingLogics = map[string]string{"round-robin": "roundrobin", "session": "session", "bounded-hash": "session",
	"prefix": "prefixaware", "kv-aware": "kvaware"}

// sglangPolicies are the rules of SGLang's router.
var sglangPolicies = map[string]string{"round-robin": "round_robin", "random": "random", "power-of-two": "power_of_two",
	"sglang": "cache_aware", "prefix": "cache_aware", "least-requests": "power_of_two",
	"bounded-hash": "consistent_hashing", "session": "consistent_hashing"}

// router returns the router of the replicas; nil for a single replica.
func router(u *scenario.Setup, s *launch.System) *launch.Router {
	replicas, apart := 0, false
	for _, g := range s.Groups {
		replicas += g.Replicas
		apart = apart || g.Role != ""
	}
	if replicas < 2 && !apart && (u.Scenario.Lifecycle == nil || u.Scenario.Lifecycle.Autoscale == nil) {
		return nil
	}
	rule := u.Scenario.Deployment.Router.Policy
	switch engine := s.Groups[0].Line.Engine; {
	case rule == "dynamo":
		return &launch.Router{Kind: "dynamo-frontend", Flags: []launch.Flag{{Name: "router-mode", Value: "kv"}}}
	case rule == "llm-d":
		return &launch.Router{Kind: "llm-d-epp"}
	case engine == "sglang":
		return sglangRouter(rule, s)
	case engine == "trtllm" && apart:
		return &launch.Router{Kind: "trtllm-disaggregated"}
	default:
		return vllmRouter(rule, apart, s)
	}
}

func sglangRouter(rule string, s *launch.System) *launch.Router {
	policy, ok := sglangPolicies[rule]
	if !ok || rule == "least-requests" || rule == "prefix" || rule == "session" {
		if !ok {
			policy = "round_robin"
		}
		s.Notes = append(s.Notes, launch.Note{Text: "router " + rule + ": the nearest policy of SGLang's router is " +
			policy})
	}
	return &launch.Router{Kind: "sglang-router", Flags: []launch.Flag{{Name: "policy", Value: policy}}}
}

func vllmRouter(rule string, apart bool, s *launch.System) *launch.Router {
	logic, ok := routingLogics[rule]
	switch {
	case apart:
		logic = "disaggregated_prefill_orchestrated" // by the connector that vLLM has itself
	case !ok:
		logic = "roundrobin"
		s.Notes = append(s.Notes, launch.Note{Text: "router " + rule + ": vLLM's router has no such rule; " + logic +
			" stands in its place"})
	}
	return &launch.Router{Kind: "vllm-router", Flags: []launch.Flag{{Name: "routing-logic", Value: logic}}}
}

// scaler takes the autoscaler of a group from the scenario.
func scaler(u *scenario.Setup, s *launch.System, i int) {
	if u.Scenario.Lifecycle.Autoscale == nil {
		return
	}
	for k := range u.Scenario.Lifecycle.Autoscale.Scalers {
		a := &u.Scenario.Lifecycle.Autoscale.Scalers[k]
		g := &s.Groups[i]
		if a.Pool != nil && *a.Pool != g.Name {
			continue
		}
		g.Min, g.Max = 1, g.Replicas
		if a.Min != nil {
			g.Min = *a.Min
		}
		if a.Max != nil {
			g.Max = *a.Max
		}
		metric := "waiting"
		if a.Metric != nil {
			metric = a.Metric.String()
		}
		g.Scaler = &launch.Scaler{Policy: a.Policy, Metric: metric, Target: a.Target}
		g.Replicas = max(g.Min, 1)
	}
}

// fallback replaces the router of another stack, whose workers are not those of the format, by that of the engine.
func fallback(u *scenario.Setup, s *launch.System, format string) {
	if s.Router == nil {
		return
	}
	stack := map[string]string{"dynamo-frontend": "dynamo", "llm-d-epp": "llm-d"}[s.Router.Kind]
	if stack == "" || stack == format {
		return
	}
	apart := slices.ContainsFunc(s.Groups, func(g launch.Group) bool { return g.Role != "" })
	s.Notes = append(s.Notes, launch.Note{Text: "router " + stack + ", which needs the workers of " + stack +
		" (write the format " + stack + "): one that goes by prefixes stands in its place"})
	switch engine := s.Groups[0].Line.Engine; {
	case engine == "sglang":
		s.Router = sglangRouter("sglang", s)
	case engine == "trtllm" && apart:
		s.Router = &launch.Router{Kind: "trtllm-disaggregated"}
	default:
		s.Router = vllmRouter("prefix", apart, s)
	}
}

// server is an engine behind a router.
type server struct {
	host            string
	port, bootstrap int
	group           *launch.Group
}

func (s *server) url() string { return fmt.Sprintf("http://%s:%d", s.host, s.port) }

// sessionKey is the header by which routers find the session of a request.
const sessionKey = "x-session-id"

// routerCommand starts a router in front of engines. config is the name of the file of [routerConfig].
func routerCommand(r *launch.Router, servers []server, port int, config string) []string {
	flag := func(name string) string {
		for _, f := range r.Flags {
			if f.Name == name {
				return f.Value
			}
		}
		return ""
	}
	at := strconv.Itoa(port)
	switch r.Kind {
	case "sglang-router":
		c := []string{"python3", "-m", "sglang_router.launch_router", "--policy", flag("policy"), "--port", at}
		apart := slices.ContainsFunc(servers, func(s server) bool { return s.group.Role != "" })
		if apart {
			c = append(c, "--pd-disaggregation")
		} else {
			c = append(c, "--worker-urls")
		}
		for i := range servers {
			switch s := &servers[i]; {
			case !apart:
				c = append(c, s.url())
			case s.group.Role == "prefill":
				c = append(c, "--prefill", s.url(), strconv.Itoa(s.bootstrap))
			default:
				c = append(c, "--decode", s.url())
			}
		}
		return c
	case "dynamo-frontend":
		return []string{"python3", "-m", "dynamo.frontend", "--router-mode", cmpOr(flag("router-mode"), "kv"),
			"--http-port", at}
	case "trtllm-disaggregated":
		return []string{"trtllm-serve", "disaggregated", "-c", config}
	}
	var urls, models, roles []string
	for i := range servers {
		urls, models = append(urls, servers[i].url()), append(models, servers[i].group.Line.Model)
		roles = append(roles, servers[i].group.Role)
	}
	c := []string{"vllm-router", "--port", at, "--service-discovery", "static", "--static-backends",
		strings.Join(urls, ","), "--static-models", strings.Join(models, ",")}
	logic := cmpOr(flag("routing-logic"), "roundrobin")
	if strings.HasPrefix(logic, "disaggregated") {
		c = append(c, "--static-model-labels", strings.Join(roles, ","))
	}
	return append(c, routing(logic)...)
}

// routing returns the flags of vLLM's router that choose a rule and set its options.
func routing(logic string) []string {
	c := []string{"--routing-logic", logic}
	switch {
	case strings.HasPrefix(logic, "disaggregated"):
		c = append(c, "--prefill-model-labels", "prefill", "--decode-model-labels", "decode")
	case logic == "session":
		c = append(c, "--session-key", sessionKey)
	}
	return c
}

// routerConfig is the file that the router of TensorRT-LLM reads; empty for others.
func routerConfig(r *launch.Router, servers []server, port int) string {
	if r.Kind != "trtllm-disaggregated" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "hostname: 0.0.0.0\nport: %d\nbackend: pytorch\n", port)
	for _, pool := range []struct{ key, role string }{{"context_servers", "prefill"},
		{"generation_servers", "decode"}} {
		var urls []string
		for i := range servers {
			if servers[i].group.Role == pool.role {
				urls = append(urls, fmt.Sprintf("    - %q\n", servers[i].host+":"+strconv.Itoa(servers[i].port)))
			}
		}
		fmt.Fprintf(&b, "%s:\n  num_instances: %d\n  urls:\n%s", pool.key, len(urls), strings.Join(urls, ""))
	}
	return b.String()
}
