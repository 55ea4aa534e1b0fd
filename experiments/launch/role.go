package launch

import (
	"encoding/json"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
)

// roleVariables are variables of Dynamo's workers, and the flags for which they stand.
var roleVariables = map[string]string{"DYN_VLLM_DISAGGREGATION_MODE": "disaggregation-mode",
	"DYN_VLLM_IS_PREFILL_WORKER": "is-prefill-worker", "DYN_VLLM_IS_DECODE_WORKER": "is-decode-worker",
	"DYN_TRTLLM_DISAGGREGATION_MODE": "disaggregation-mode"}

// RoleOf returns the role that the flags of a line give it, or else its variables: prefill, decode, or "" for both.
func (l *Line) RoleOf() string {
	if role := roleOf(l.Flags); role != "" || l.Stack != "dynamo" {
		return role
	}
	var list []Flag
	for _, f := range l.Env {
		if name := roleVariables[f.Name]; name != "" {
			list = append(list, Flag{Name: name, Value: f.Value})
		}
	}
	return roleOf(list)
}

func roleOf(list []Flag) string {
	for _, f := range list {
		switch plainName(f.Name) {
		case "disaggregation-mode", "disaggregation-role", "role", "server-role":
			switch v := strings.ToLower(f.Value); {
			case v == "prefill" || v == "context" || v == "ctx":
				return "prefill"
			case v == "decode" || v == "generation" || v == "gen":
				return "decode"
			}
		case "is-prefill-worker":
			if on, ok := readTruth(f.Value); f.Bare || ok && on {
				return "prefill"
			}
		case "is-decode-worker":
			if on, ok := readTruth(f.Value); f.Bare || ok && on {
				return "decode"
			}
		case "kv-transfer-config":
			var c transferConfig
			if json.Unmarshal([]byte(f.Value), &c) != nil {
				continue
			}
			switch c.Role {
			case "kv_producer":
				return "prefill"
			case "kv_consumer":
				return "decode"
			}
		}
	}
	return ""
}

func plainName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// transferConfig is vLLM's --kv-transfer-config.
type transferConfig struct {
	Connector string         `json:"kv_connector"`
	Role      string         `json:"kv_role"`
	Policy    string         `json:"kv_load_failure_policy"`
	Extra     map[string]any `json:"kv_connector_extra_config"`
}

// role sets the keys that pools with disaggregated prefill/decode need.
func (b *builder) role() {
	if b.group.Role == "" {
		b.group.Role = b.line.RoleOf()
	}
}

// transfer translates vLLM's KV connector.
func (b *builder) transfer(f Flag) {
	var c transferConfig
	if err := json.Unmarshal([]byte(f.Value), &c); err != nil {
		b.noValue(f, "JSON")
		return
	}
	name := strings.ToLower(c.Connector)
	switch {
	case strings.Contains(name, "offload") || strings.Contains(name, "lmcache") || strings.Contains(name, "simplecpu"):
		bytes := 0.0
		for _, key := range []string{"cpu_bytes_to_use", "cpu_bytes"} {
			if x, ok := c.Extra[key].(float64); ok {
				bytes = x
			}
		}
		b.tier(f, bytes)
	case b.group.Role != "" || b.line.RoleOf() != "" || c.Role == "kv_both":
		if c.Policy != "" && (c.Policy == "fail" || c.Policy == "recompute") {
			b.put("disaggregation.kv_load_failure_policy", text(c.Policy), f)
		}
		b.account(f, flags.Rule, "KV goes from prefill pools to decode pools by %s", yamldoc.Short(c.Connector))
	default:
		b.account(f, flags.Unmodelled, "KV connector %s", yamldoc.Short(c.Connector))
	}
}

// offload translates the size of KV memory on the host in GiB.
func (b *builder) offload(f Flag) {
	x, ok := readNumber(f.Value)
	if !ok {
		b.noValue(f, "a number of GiB")
		return
	}
	b.tier(f, x*(1<<30))
}

// hostTier is the memory of the host for KV if no flag says how much: what LMCache and vLLM take by default for a GPU.
const hostTier = 5 << 30

// tier adds host memory for KV.
func (b *builder) tier(f Flag, bytes float64) {
	if b.line.Engine != "vllm" {
		b.account(f, flags.Unmodelled, "KV in host memory is modelled for vLLM only")
		return
	}
	remark := ""
	if bytes <= 0 {
		bytes, remark = hostTier, "the size is assumed"
		b.assume("offload: the size of the host memory for KV is not given; 5GiB is assumed")
	}
	t := &yamldoc.Node{Kind: yamldoc.Map}
	t.Put("name", f.At, text("cpu"))
	t.Put("size", f.At, text(number(bytes/(1<<30)).Text+"GiB"))
	t.Put("bandwidth", f.At, text("25GB/s"))
	o := &yamldoc.Node{Kind: yamldoc.Map}
	o.Put("tiers", f.At, &yamldoc.Node{Kind: yamldoc.List, Items: []*yamldoc.Node{t}})
	b.putNote("offload", o, f, strings.TrimSuffix("the link is assumed; "+remark, "; "))
	b.account(f, flags.Rule, "offload: host memory of %sGiB", number(bytes/(1<<30)).Text)
}

func (b *builder) replicas() {
	n := max(b.group.Replicas, 1) * max(b.engines, 1)
	if n > 1 {
		from := Flag{Name: "replicas", Value: whole(n).Text, File: true, At: b.group.At}
		if f, ok := b.given["dp-size"]; ok && b.engines > 1 {
			from = f
		}
		b.put("deployment.replicas", whole(n), from)
	}
	b.checkGPUs()
}

// checkGPUs compares the GPUs of the flags with those that the file asks for.
func (b *builder) checkGPUs() {
	asked := b.group.GPUsPerNode * max(b.group.Nodes, 1)
	if asked == 0 {
		return
	}
	need := max(b.engines, 1)
	for _, key := range []string{"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"} {
		if v := b.root.Lookup("deployment", key); v != nil {
			need *= int(v.Number)
		}
	}
	if need > asked {
		b.fault(Flag{Name: "gpus", File: true, At: b.group.At}, "",
			"the flags need %d GPUs, but the file asks for %d (want as many)", need, asked)
	} else if need < asked {
		b.assume("%v: a replica asks for %d GPUs and uses %d; the others are not counted", b.group.At, asked, need)
	}
}
