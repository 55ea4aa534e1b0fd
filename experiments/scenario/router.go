package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/sim/route"
	"clifftop/workload"
)

// Router spreads the requests of a fleet over its replicas: the name of a rule, or a map of the rule and its options.
type Router struct {
	// Policy is the rule: one of clifftop catalog routers.
	Policy string `json:"policy"`
	// FrontEnds is the number of routers that take the requests in turn and do not know of each other.
	FrontEnds int `json:"front_ends" range:"[1,1024]"`
	// Scrape is how often routers learn what the replicas say of themselves; 0 is always, and null the rule's own period.
	Scrape *unit.Duration `json:"scrape,omitempty" range:"[0,3600]"`
	// Ties says which of equally good replicas is taken.
	Ties *string `json:"ties,omitempty" one:"random first"`
	// Load is what power-of-two compares: the router's own outstanding requests, or what the replicas said last.
	Load *string `json:"load,omitempty" one:"outstanding scraped"`
	// Answer is the length that least-tokens expects of every answer, in tokens; null knows the true ones, which no
	// router does.
	Answer *int `json:"answer,omitempty" range:"[1,1000000000]"`
	// Uncached counts of a prompt only what the replica's prefix cache lacks, as its KV events tell.
	Uncached *bool `json:"uncached,omitempty"`
	// Running counts the requests of the batch beside those of the queue.
	Running *bool `json:"running,omitempty"`
	// Local adds the requests that this router has sent since the last scrape.
	Local *bool `json:"local,omitempty"`
	// By is what a consistent hash goes by.
	By *string `json:"by,omitempty" one:"session user prefix"`
	// PrefixTokens is how much of a prompt it looks at, by prefix.
	PrefixTokens *int `json:"prefix_tokens,omitempty" range:"[1,1000000000]"`
	// Factor bounds the load of a replica, as a multiple of the mean.
	Factor *float64 `json:"factor,omitempty" range:"[1,1000000]"`
	// BlockTokens is the granularity of prefixes, in tokens.
	BlockTokens *int `json:"block_tokens,omitempty" range:"[1,1000000]"`
	// MinTokens is the shortest prefix that decides; below it the fewest outstanding requests do.
	MinTokens *int `json:"min_tokens,omitempty" range:"[0,1000000000]"`
	// MaxBlocks is the most blocks remembered: of a replica, or by dynamo in all; 0 is no limit.
	MaxBlocks *int `json:"max_blocks,omitempty" range:"[0,1000000000000]"`
	// CacheThreshold is the part of the prompt that a prefix has to exceed.
	CacheThreshold *float64 `json:"cache_threshold,omitempty" range:"[0,1]"`
	// BalanceAbs and BalanceRel: loads are unbalanced if the largest exceeds the least by more requests than the one, and
	// by more than the other times.
	BalanceAbs *int     `json:"balance_abs_threshold,omitempty" range:"[0,1000000000]"`
	BalanceRel *float64 `json:"balance_rel_threshold,omitempty" range:"[0,1000000000]"`
	// SmallestTree sends a prompt without a long enough prefix to the smallest tree, as older versions did.
	SmallestTree *bool `json:"smallest_tree,omitempty"`
	// MaxTreeTokens is what a tree is trimmed to, every EvictionInterval; 0 is never.
	MaxTreeTokens    *int           `json:"max_tree_tokens,omitempty" range:"[0,1000000000000]"`
	EvictionInterval *unit.Duration `json:"eviction_interval,omitempty" range:"[0,)"`
	// MissingTokens is the largest part of a prompt that may be missing from a cache that kv-aware sends it to.
	MissingTokens *int `json:"missing_tokens,omitempty" range:"[0,1000000000]"`
	// Scorers are those of llm-d, with their weights.
	Scorers *Scorers `json:"scorers,omitempty"`
	// Picker says how llm-d chooses by the scores.
	Picker *string `json:"picker,omitempty" one:"max-score random weighted-random"`
	// Precise takes prefixes from KV events, and not from the router's own decisions.
	Precise *bool `json:"precise,omitempty"`
	// Affinity is llm-d's filter that keeps prompts where most of them is.
	Affinity *Affinity `json:"affinity,omitempty"`
	// MaxMatchTokens is how much of a prompt is looked at; 0 is all of it.
	MaxMatchTokens *int `json:"max_match_tokens,omitempty" range:"[0,1000000000]"`
	// StaleAfter is the age of metrics from which on a replica counts as full; 0 is never.
	StaleAfter *unit.Duration `json:"stale_after,omitempty" range:"[0,)"`
	// IdleThreshold is the number of own requests up to which a replica is idle, and MaxBusyScore the most that another one
	// gets, for the scorer active-requests.
	IdleThreshold *int     `json:"idle_threshold,omitempty" range:"[0,1000000000]"`
	MaxBusyScore  *float64 `json:"max_busy_score,omitempty" range:"[0,1]"`
	// TokenLimit is where the scorer token-load is 0, QueueLimit where load-aware is.
	TokenLimit *int `json:"token_limit,omitempty" range:"[1,1000000000000]"`
	QueueLimit *int `json:"queue_limit,omitempty" range:"[1,1000000000]"`
	// OverlapWeight is the worth of a block to prefill in active blocks, for dynamo.
	OverlapWeight *float64 `json:"overlap_weight,omitempty" range:"[0,1000000000]"`
	// Temperature of dynamo's softmax over costs; 0 takes the cheapest.
	Temperature *float64 `json:"temperature,omitempty" range:"[0,1000000000]"`
	// Approximate takes prefixes from the router's own decisions, and not from KV events. It believes each for TTL, 0 being
	// for ever, and beyond MaxBlocks forgets the oldest down to PruneTo of that.
	Approximate *bool          `json:"approximate,omitempty"`
	TTL         *unit.Duration `json:"ttl,omitempty" range:"[0,)"`
	PruneTo     *float64       `json:"prune_to,omitempty" range:"[0,1]"`
}

func defaultRouter() Router { return Router{Policy: "round-robin", FrontEnds: 1} }

// rule is the rule that a router follows.
func (r *Router) rule() (RoutingRule, bool) {
	for _, k := range RoutingRules() {
		if k.Name == r.Policy {
			return k, true
		}
	}
	return RoutingRule{}, false
}

func routerNames() []string {
	var names []string
	for _, k := range RoutingRules() {
		names = append(names, k.Name)
	}
	return names
}

// routerVariants are the keys that go with each rule.
func routerVariants() (string, map[string]yamldoc.VariantKeys) {
	keys := map[string]yamldoc.VariantKeys{
		"":  {Optional: []string{"policy"}},
		"*": {Optional: []string{"front_ends", "scrape"}},
	}
	for _, k := range RoutingRules() {
		keys[k.Name] = yamldoc.VariantKeys{Optional: k.options}
	}
	return "policy", keys
}

func (r *Router) Variants() (string, map[string]yamldoc.VariantKeys) { return routerVariants() }

// routerOptions is Router without its short form.
type routerOptions Router

func (r *routerOptions) Variants() (string, map[string]yamldoc.VariantKeys) { return routerVariants() }

func (r *Router) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	const example = "a rule such as round-robin, or a map such as {policy: round-robin, front_ends: 2}"
	*r = defaultRouter()
	named := n
	switch n.Kind {
	case yamldoc.Text:
		r.Policy = n.Text
	case yamldoc.Map:
		if named = n.Lookup("policy"); named == nil {
			d.Fault(n.At, key, fmt.Sprintf("policy is missing (want %s)", example), "")
			return
		}
		d.Value(n, key, (*routerOptions)(r), "")
	default:
		d.Wrong(n, key, example)
		return
	}
	if _, ok := r.rule(); named.Kind == yamldoc.Text && !ok {
		d.Fault(named.At, key, fmt.Sprintf("%q is not known (want %s)", yamldoc.Short(named.Text), yamldoc.OneOf(routerNames())), yamldoc.DidYouMean(named.Text, routerNames()))
	}
	if by := n.Get("by"); r.Policy == "session" && optional.Value(r.By) == "prefix" {
		d.Refuse(by, yamldoc.Join(key, "by"), "session or user; bounded-hash goes by prefixes")
	}
}

// MarshalJSON writes the rule's name, or the map.
func (r Router) MarshalJSON() ([]byte, error) {
	if r == (Router{Policy: r.Policy, FrontEnds: 1}) {
		return json.Marshal(r.Policy)
	}
	return json.Marshal(routerOptions(r))
}

// routing checks that the router has what it goes by, and fills in how often it learns it.
func (u *Setup) routing() error {
	s := u.Scenario
	r := &s.Deployment.Router
	if n := u.replicas(); n > maxReplicas {
		return s.Fault("pools", "there are %d replicas (want %d or less)", n, maxReplicas)
	}
	if slices.ContainsFunc(u.Pools, func(p PoolSetup) bool { return p.Ranks > 1 }) && !s.Given("deployment.router") {
		r.Policy = "vllm-dp" // vLLM's own, among data-parallel ranks
	}
	if _, ok := r.rule(); !ok {
		return s.Fault("deployment.router", "%q is not known (want %s)", yamldoc.Short(r.Policy), yamldoc.OneOf(routerNames()))
	}
	if !u.isFleet() {
		u.unused(*r != defaultRouter(), "deployment.router", "there is one replica")
		return nil
	}
	if !u.disaggregated() {
		return u.routes("deployment.router", r, u.Pools)
	}
	answers := slices.IndexFunc(u.Pools, func(p PoolSetup) bool { return p.role == "decode" })
	if err := u.routes("deployment.router", r, u.Pools[:answers]); err != nil {
		return err
	}
	second := &s.Disaggregation.Router
	given := s.Given("deployment.router.scrape") && s.Given("disaggregation.router.scrape")
	if err := u.routes("disaggregation.router", second, u.Pools[answers:]); err != nil {
		return err
	}
	if a, b := r.Scrape, second.Scrape; given && *a != *b {
		return s.Fault("disaggregation.router.scrape", "%v is not that of deployment.router, %v (want the same: replicas tell all routers at once)", *b, *a)
	}
	return nil
}

// routes checks that a router has what it goes by at the pools that it sends requests to, and fills in how often it learns
// it.
func (u *Setup) routes(key string, r *Router, pools []PoolSetup) error {
	s := u.Scenario
	rule, _ := r.rule()
	made := rule.make(r, route.Identity{})
	if v, ok := made.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return s.Fault(key, "%s: %v", rule.Name, err)
		}
	}
	known := u.Traffic.Recording != nil || len(u.Traffic.Spec.Arrivals) > 0
	if err := route.Check(made, u.offers(pools)); err != nil && known {
		return s.Fault(key, "%s: %v", rule.Name, err)
	}
	if rule.looks(r) {
		bound := route.Bind(made)
		optional.Default(&r.Scrape, unit.Duration(bound.Requirements().Scrape))
	} else {
		u.unused(r.Scrape != nil, yamldoc.Join(key, "scrape"), rule.Name+" does not look at what replicas say of themselves")
	}
	return nil
}

// offers is what routers can go by: what all replicas of some pools tell, and what some requests have.
func (u *Setup) offers(pools []PoolSetup) route.Offers {
	o := route.Offers{KVUsage: true, PrefixCaching: true, Users: u.Traffic.Closed}
	if t := u.Scenario.Workload.Trace; t != nil && t.Statistics != nil {
		o.Sessions = t.Statistics.Sessions > 0
	} else {
		spec := &u.Traffic.Spec
		o.Sessions = spec.Sessions != nil || slices.ContainsFunc(spec.Classes, func(c workload.ClassSpec) bool { return c.Sessions != nil })
	}
	for _, p := range pools {
		c := &p.Setup.Config
		o.KVUsage = o.KVUsage && c.NumGPUBlocks > 0
		o.PrefixCaching = o.PrefixCaching && c.PrefixCaching
	}
	return o
}

// routers makes the routers of a run, and says how often they learn what replicas say. A single engine has none.
func (u *Setup) routers() (all []route.Router, scrape clock.Duration) {
	if !u.isFleet() {
		return nil, 0
	}
	r := &u.Scenario.Deployment.Router
	rule, _ := r.rule()
	for k := range r.FrontEnds {
		all = append(all, rule.make(r, route.Identity{Seed: u.Scenario.Run.Seed, Number: k, Of: r.FrontEnds}))
	}
	if rule.looks(r) {
		scrape = optional.Value(r.Scrape).Clock()
	}
	return all, scrape
}
