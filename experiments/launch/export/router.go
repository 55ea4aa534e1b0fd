package export

import (
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

// router is what distributes requests over the replicas; nil for a single one.
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
		logic = "disaggregated_prefill"
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
			metric = string(*a.Metric)
		}
		g.Scaler = &launch.Scaler{Policy: string(a.Policy), Metric: metric, Target: a.Target}
		g.Replicas = max(g.Min, 1)
	}
}
