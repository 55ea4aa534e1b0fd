package launch

import (
	"encoding/json"
	"strconv"

	"clifftop/experiments/launch/flags"
)

// vllmBackends maps vLLM's backends of the exchange with experts to the values of a scenario, with a remark on
// differences.
var vllmBackends = map[string]struct{ backend, remark string }{
	"naive":                        {"allgather_reducescatter", "broadcasts count as all-gathers"},
	"allgather_reducescatter":      {"allgather_reducescatter", ""},
	"deepep_low_latency":           {"deepep_low_latency", ""},
	"deepep_high_throughput":       {"deepep_high_throughput", ""},
	"flashinfer_all2allv":          {"flashinfer_all2allv", ""},
	"flashinfer_nvlink_two_sided":  {"flashinfer_all2allv", ""},
	"flashinfer_nvlink_one_sided":  {"flashinfer_all2allv", ""},
	"pplx":                         {"deepep_low_latency", "pplx counts as DeepEP's kernels of low latency"},
	"mori":                         {"deepep_low_latency", "MoRI counts as DeepEP's kernels of low latency"},
	"mori_low_latency":             {"deepep_low_latency", "MoRI counts as DeepEP's kernels of low latency"},
	"mori_high_throughput":         {"deepep_high_throughput", "MoRI counts as DeepEP's kernels of high throughput"},
	"nixl_ep":                      {"deepep_low_latency", "NIXL counts as DeepEP's kernels of low latency"},
	"deepep_auto":                  {"deepep", ""},
	"deepep_v2":                    {"deepep", ""},
	"flashinfer_moe_a2a_latency":   {"flashinfer_all2allv", ""},
	"flashinfer_moe_a2a_bandwidth": {"flashinfer_all2allv", ""},
}

// vllmExchange translates --all2all-backend and VLLM_ALL2ALL_BACKEND.
func vllmExchange(b *builder, f Flag) {
	way, known := vllmBackends[plainValue(f.Value)]
	switch {
	case f.Value == "":
		b.account(f, flags.Rule, "the default of deployment.all2all_backend")
	case !known:
		b.account(f, flags.Unmodelled, "the exchange is that of the default backend")
	case !b.isMoE():
		b.account(f, flags.Rule, "the model has no experts")
	case !b.has("enable-expert-parallel"):
		b.account(f, flags.Rule, "experts are not spread over ranks")
	default:
		b.putNote("deployment.all2all_backend", text(way.backend), f, way.remark)
		b.account(f, flags.Rule, "deployment.all2all_backend: %s", way.backend)
	}
}

// redundantExperts translates the number of redundant experts, alone or in --eplb-config.
func redundantExperts(b *builder, f Flag) {
	value := f.Value
	if plainName(f.Name) == "eplb-config" {
		var c struct {
			Redundant int `json:"num_redundant_experts"`
		}
		if err := json.Unmarshal([]byte(value), &c); err != nil {
			b.noValue(f, "JSON")
			return
		}
		value = strconv.Itoa(c.Redundant)
	} else if rest, ok := dotted(f.Name, "eplb-config"); ok && rest != "num-redundant-experts" {
		b.account(f, flags.Unmodelled, "experts do not move; num_redundant_experts balances them")
		return
	}
	n, ok := humanInt(value)
	switch {
	case !ok || n < 0:
		b.noValue(f, "a whole number, 0 or more")
	case n == 0 || !b.isMoE():
		b.account(f, flags.Rule, "no redundant experts")
	default:
		b.put("deployment.num_redundant_experts", whole(n), f)
		b.account(f, flags.Rule, "deployment.num_redundant_experts: %d", n)
	}
}

// plainValue is a value in the form in which values are compared.
func plainValue(s string) string {
	out := []byte(s)
	for i, c := range out {
		switch {
		case c == '-':
			out[i] = '_'
		case c >= 'A' && c <= 'Z':
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// dotted returns what stands behind the dot of a flag such as --eplb-config.step_interval.
func dotted(name, flag string) (rest string, ok bool) {
	name = plainName(name)
	if len(name) > len(flag) && name[:len(flag)] == flag && name[len(flag)] == '.' {
		return name[len(flag)+1:], true
	}
	return "", false
}
