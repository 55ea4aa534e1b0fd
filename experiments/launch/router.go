package launch

import (
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
)

// rule is a rule of deployment.router with its options.
type rule struct {
	name   string
	keys   []option
	from   Flag   // that names it
	remark string // what differs
	caches bool   // it needs prefix caching on every replica
}

// option is a key of a rule.
type option struct {
	key   string
	value *yamldoc.Node
}

// route writes the router: deployment.router, which chooses the replica for the prompt, and disaggregation.router,
// which chooses that for the output.
func (m *Imported) route(r *Router, builders []*builder) {
	if r == nil {
		return
	}
	first, second := r.rules()
	if !apart(builders) {
		first, second = pick(first, second), rule{}
	}
	m.put("deployment", first, r, replicasOf(builders, "decode"), builders)
	if second.name != "" {
		m.put("disaggregation", second, r, replicasOf(builders, "prefill"), builders)
	}
}

func pick(a, b rule) rule {
	if a.name == "" {
		return b
	}
	return a
}

// replicasOf counts the replicas, or the most that an autoscaler allows, of the groups without a role.
func replicasOf(builders []*builder, without string) (n int) {
	split := apart(builders)
	for _, b := range builders {
		if !split || b.group.Role != without {
			n += max(b.group.Replicas, b.group.Max, 1) * max(b.engines, 1)
		}
	}
	return n
}

func (m *Imported) put(section string, x rule, r *Router, replicas int, builders []*builder) {
	if x.name == "" || replicas < 2 {
		return
	}
	if x.caches && !cached(builders) {
		x = rule{name: "least-requests", from: x.from, remark: "the replicas keep no prefixes"}
	}
	if x.from.Name == "" {
		x.from = Flag{Name: "router", Value: r.Kind, File: true, At: r.At}
	}
	n := text(x.name)
	if len(x.keys) > 0 {
		n = &yamldoc.Node{Kind: yamldoc.Map}
		n.Put("policy", r.At, text(x.name))
		for _, o := range x.keys {
			n.Put(o.key, r.At, o.value)
		}
	}
	n.Comment = x.from.Written()
	if x.remark != "" {
		n.Comment += ": " + x.remark
		m.Assumed = append(m.Assumed, section+".router is "+x.name+": "+x.remark)
	}
	m.Root.MapAt(section, r.At).Put("router", r.At, n)
}

// cached reports whether all replicas keep the KV of prefixes.
func cached(builders []*builder) bool {
	for _, b := range builders {
		if v := b.root.Lookup("engine", "enable_prefix_caching"); v != nil && !v.Truth {
			return false
		}
		if v := b.root.Lookup("engine", "sglang", "disable_radix_cache"); v != nil && v.Truth {
			return false
		}
	}
	return true
}

// flag returns the last flag with one of the names, or the environment variable. sglang_router.launch_server has the
// flags of the router with the prefix router-.
func (r *Router) flag(names ...string) (f Flag, ok bool) {
	for _, g := range r.Flags {
		for _, name := range names {
			got, want := plainName(g.Name), plainName(name)
			if (got == want || got == "router-"+want) && (!g.Env || !ok) {
				f, ok = g, true
			}
		}
	}
	return f, ok
}

// rules translates a router: the rule for prompts, and that for outputs where it is another one.
func (r *Router) rules() (prompt, output rule) {
	switch r.Kind {
	case "vllm-router":
		return r.vllm(), rule{}
	case "sglang-router":
		prompt, output = r.sglang("policy"), rule{}
		if _, ok := r.flag("prefill-policy"); ok {
			prompt = r.sglang("prefill-policy")
		}
		output = r.sglang("policy")
		if _, ok := r.flag("decode-policy"); ok {
			output = r.sglang("decode-policy")
		}
		return prompt, output
	case "dynamo-frontend":
		prompt = r.dynamo()
		return prompt, rule{name: "round-robin", from: prompt.from}
	case "llm-d-epp":
		return r.llmD(""), r.llmD("decode.")
	case "kubeai":
		return r.kubeAI(), rule{}
	case "trtllm-disaggregated":
		return r.trtllm("context-servers.router.type"), r.trtllm("generation-servers.router.type")
	}
	return rule{}, rule{}
}

// vllm translates --routing-logic of the production stack (src/vllm_router/parsers/parser.py,
// src/vllm_router/routers/routing_logic.py). The routers of sessions and of caches send requests without a session to
// the replica with the lowest rate.
func (r *Router) vllm() rule {
	f, _ := r.flag("routing-logic", "policy")
	switch plainName(f.Value) {
	case "", "roundrobin", "round-robin", "disaggregated-prefill", "disaggregated-prefill-orchestrated":
		return rule{name: "round-robin", from: f}
	case "session", "consistent-hash":
		return rule{name: "least-requests", from: f,
			remark: "requests without a session; with workload.sessions write deployment.router: session"}
	case "prefixaware", "prefix-aware", "cache-aware":
		return rule{name: "prefix", from: f, caches: true}
	case "kvaware", "ttft":
		x := rule{name: "kv-aware", from: f, caches: true}
		if t, ok := r.flag("kv-aware-threshold"); ok {
			if n, ok := humanInt(t.Value); ok && n >= 0 {
				x.keys = []option{{"missing_tokens", whole(n)}}
			}
		}
		return x
	case "random":
		return rule{name: "random", from: f}
	case "power-of-two":
		return rule{name: "power-of-two", from: f}
	}
	return rule{name: "round-robin", from: f, remark: "routing by " + yamldoc.Short(f.Value) + " is not modelled"}
}

// sglang translates a policy of SGLang's router (sgl-model-gateway, router_args.py).
func (r *Router) sglang(name string) rule {
	f, ok := r.flag(name)
	switch value := plainName(f.Value); {
	case !ok && name == "policy", value == "cache-aware":
		return rule{name: "sglang", from: f, caches: true,
			keys: r.options(numberOf("cache_threshold", "cache-threshold"),
				numberOf("balance_abs_threshold", "balance-abs-threshold"),
				numberOf("balance_rel_threshold", "balance-rel-threshold"),
				secondsOf("eviction_interval", "eviction-interval-secs"),
				tokensOf("max_tree_tokens", "max-tree-size"))}
	case value == "round-robin", value == "random":
		return rule{name: value, from: f}
	case value == "power-of-two":
		return rule{name: "power-of-two", from: f}
	}
	return rule{name: "least-requests", from: f, remark: "routing by " + yamldoc.Short(f.Value) + " is not modelled"}
}

// routerOption is an option of a rule: its key, the flags that set it, and how a number becomes its value.
type routerOption struct {
	key   string
	flags []string
	value func(x float64) *yamldoc.Node
}

func numberOf(key string, flags ...string) routerOption { return routerOption{key, flags, number} }

func wholeOf(key string, flags ...string) routerOption {
	return routerOption{key, flags, func(x float64) *yamldoc.Node { return whole(int(x)) }}
}

func secondsOf(key string, flags ...string) routerOption {
	return routerOption{key, flags, func(x float64) *yamldoc.Node {
		return text(strconv.FormatFloat(x, 'f', -1, 64) + "s")
	}}
}

// charactersPerToken is about that of English text in the tokenizers of most models.
const charactersPerToken = 4

func tokensOf(key string, flags ...string) routerOption {
	return routerOption{key, flags, func(x float64) *yamldoc.Node { return whole(int(x / charactersPerToken)) }}
}

// options are those that flags set. routerFlags reports values that are no numbers.
func (r *Router) options(list ...routerOption) (keys []option) {
	for _, o := range list {
		f, ok := r.flag(o.flags...)
		if !ok {
			continue
		}
		if x, ok := optionNumber(f.Value); ok {
			keys = append(keys, option{o.key, o.value(x)})
		}
	}
	return keys
}

// optionNumber reads a number that an option of a rule may have.
func optionNumber(s string) (x float64, ok bool) {
	const most = 1e12
	x, ok = readNumber(s)
	return x, ok && x >= 0 && x <= most
}

// routerFlags accounts for the flags of the router, which belong to no group. Routers of manifests without a table have
// no flags of their own.
func (m *Imported) routerFlags(s *System) yamldoc.Faults {
	if s.Router == nil {
		return nil
	}
	table, err := flags.Of(s.Router.Kind)
	if err != nil || s.Router.Kind == "trtllm-disaggregated" { // its file has the keys of the servers
		return nil
	}
	b := &builder{system: s, line: &Line{}, table: table, index: -1, given: map[string]Flag{}}
	for _, f := range s.Router.Flags {
		var k *flags.Flag
		if f.Env {
			if k = table.Variable(f.Name); k == nil {
				if strings.HasPrefix(f.Name, "DYN_ROUTER_") {
					b.account(f, flags.Unmodelled, "no table has this variable of the router")
				}
				continue
			}
			b.variable(f)
		} else if k = b.look(f); k != nil && k.Effect() == flags.Rule {
			b.rule(f, k)
		}
		if k == nil || k.Effect() != flags.Rule || k.Type != "int" && k.Type != "float" {
			continue
		}
		if _, ok := optionNumber(f.Value); !ok {
			b.noValue(f, "a number, 0 to 1e12")
		}
	}
	m.Accounts = append(m.Accounts, b.accounts...)
	return b.faults
}

// dynamo translates --router-mode of Dynamo's front end (components/src/dynamo/frontend/frontend_args.py).
func (r *Router) dynamo() rule {
	f, _ := r.flag("router-mode", "DYN_ROUTER_MODE")
	switch mode := plainName(f.Value); mode {
	case "kv":
		x := rule{name: "dynamo", from: f, caches: true, keys: r.options(
			numberOf("overlap_weight", "kv-overlap-score-weight", "DYN_KV_OVERLAP_SCORE_WEIGHT",
				"DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT"),
			numberOf("temperature", "router-temperature", "DYN_ROUTER_TEMPERATURE"),
			wholeOf("block_tokens", "kv-cache-block-size", "DYN_KV_CACHE_BLOCK_SIZE"))}
		events, given := r.flag("router-kv-events", "kv-events", "DYN_ROUTER_USE_KV_EVENTS")
		_, none := r.flag("no-router-kv-events", "no-kv-events")
		if on, ok := readTruth(events.Value); none || given && ok && !on {
			x.keys = append(x.keys, option{"approximate", truth(true)})
			x.keys = append(x.keys, r.options(secondsOf("ttl", "router-ttl-secs", "router-ttl"),
				wholeOf("max_blocks", "router-max-tree-size"), numberOf("prune_to", "router-prune-target-ratio"))...)
		}
		return x
	case "", "round-robin":
		return rule{name: "round-robin", from: f}
	case "random", "power-of-two":
		return rule{name: mode, from: f}
	case "least-loaded":
		return rule{name: "least-requests", from: f}
	}
	return rule{name: "round-robin", from: f, remark: "routing by " + yamldoc.Short(f.Value) + " is not modelled"}
}

// scorers are plugins of llm-d's endpoint picker with the scorers of a scenario
// (llm-d/llm-d-inference-scheduler, docs/architecture.md).
var scorers = map[string]string{"queue-scorer": "queue", "kv-cache-utilization-scorer": "kv-usage",
	"prefix-cache-scorer": "prefix", "precise-prefix-cache-scorer": "prefix", "load-aware-scorer": "load-aware",
	"active-request-scorer": "active-requests", "token-load-scorer": "token-load", "no-hit-lru-scorer": "no-hit-lru",
	"running-requests-size-scorer": "running"}

// llmD translates the plugins of a profile of the endpoint picker, whose names begin with a prefix. Without any it has
// its own defaults.
func (r *Router) llmD(prefix string) rule {
	x := rule{name: "llm-d", caches: true}
	weights := &yamldoc.Node{Kind: yamldoc.Map}
	precise := false
	for _, f := range r.Flags {
		kind, ok := strings.CutPrefix(plainName(f.Name), prefix)
		if !ok {
			continue
		}
		if score := scorers[kind]; score != "" {
			if w, ok := readNumber(f.Value); ok && w >= 0 {
				weights.Put(score, f.At, number(w))
				precise = precise || strings.HasPrefix(kind, "precise")
			}
		}
		switch kind {
		case "prefix-cache-affinity-filter":
			x.keys = append(x.keys, option{"affinity", &yamldoc.Node{Kind: yamldoc.Map}})
		case "random-picker":
			x.keys = append(x.keys, option{"picker", text("random")})
		case "weighted-random-picker":
			x.keys = append(x.keys, option{"picker", text("weighted-random")})
		}
	}
	if prefix != "" && len(weights.Fields) == 0 {
		return r.llmD("")
	}
	if len(weights.Fields) > 0 {
		x.keys = append(x.keys, option{"scorers", weights})
		affine := slices.ContainsFunc(x.keys, func(o option) bool { return o.key == "affinity" })
		x.caches = affine || weights.Get("prefix") != nil || weights.Get("no-hit-lru") != nil
	}
	if precise {
		x.keys = append(x.keys, option{"precise", truth(true)})
	}
	return x
}

// kubeAI translates loadBalancing of KubeAI's Model (api/k8s/v1/model_types.go): the fewest requests, or a hash of the
// first 100 characters of the prompt within 125 % of the mean load.
func (r *Router) kubeAI() rule {
	f, _ := r.flag("strategy")
	if f.Value != "PrefixHash" {
		return rule{name: "least-requests", from: f}
	}
	x := rule{name: "bounded-hash", from: f}
	factor, length := 125.0, 100.0
	for _, k := range []struct {
		name string
		to   *float64
	}{{"prefixHash.meanLoadFactor", &factor}, {"prefixHash.prefixCharLength", &length}} {
		if g, ok := r.flag(k.name); ok {
			if v, ok := readNumber(g.Value); ok && v > 0 {
				*k.to = v
			}
		}
	}
	x.keys = []option{{"by", text("prefix")}, {"prefix_tokens", whole(max(int(length/charactersPerToken), 1))},
		{"factor", number(max(factor/100, 1))}}
	return x
}

// trtllm translates the router of a pool of trtllm-serve disaggregated (tensorrt_llm/serve/router.py).
func (r *Router) trtllm(name string) rule {
	f := Flag{}
	for _, g := range r.Flags {
		if strings.ReplaceAll(plainName(g.Name), "_", "-") == name {
			f = g
		}
	}
	switch plainName(f.Value) {
	case "", "round-robin":
		return rule{name: "round-robin", from: f}
	case "load-balancing":
		return rule{name: "least-requests", from: f}
	case "kv-cache-aware":
		return rule{name: "kv-aware", from: f, caches: true}
	}
	return rule{name: "round-robin", from: f, remark: "routing by " + yamldoc.Short(f.Value) + " is not modelled"}
}
