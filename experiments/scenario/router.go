package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/sim/route"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Router spreads the requests of a fleet over its replicas: the name of a rule, or a map of the rule and its options.
type Router struct {
	// Policy is the rule: one of clifftop catalog routers.
	Policy string `json:"policy"`
	// FrontEnds is the number of independent routers that take the requests in turn.
	FrontEnds int `json:"front_ends" range:"[1,1024]"`
	// Scrape is the period at which routers read the metrics of replicas; 0 is continuous, and null the default of
	// the rule.
	Scrape *yamldoc.Duration `json:"scrape,omitempty" range:"[0,3600]"`

	yamldoc.Choice[route.Options]
}

func defaultRouter() Router { return Router{Policy: "round-robin", FrontEnds: 1} }

// named reports whether nothing but the rule is given.
func (r *Router) named() bool { return r.FrontEnds == 1 && r.Scrape == nil && r.Named() }

// router makes one of the routers of a fleet.
func (s *Scenario) router(r *Router, id route.Identity) (made route.Router, ok bool) {
	options, ok := r.Options(s.rules().Routers, r.Policy)
	if !ok {
		return nil, false
	}
	return options.Make(id), true
}

// scrapes reports whether a router reads the metrics of replicas.
func (s *Scenario) scrapes(r *Router) bool {
	made, _ := s.router(r, route.Identity{})
	bound := route.Bind(made)
	return bound.Requirements().Metrics
}

// Variants implements [yamldoc.Variants].
func (r *Router) Variants() (string, map[string]yamldoc.VariantKeys) {
	keys := r.VariantKeys(BuiltIn().Routers, yamldoc.VariantKeys{})
	keys[""] = yamldoc.VariantKeys{Optional: []string{"policy"}}
	keys["*"] = yamldoc.VariantKeys{Optional: []string{"front_ends", "scrape"}}
	return "policy", keys
}

// Names implements [yamldoc.Extended].
func (*Router) Names() []string { return nil }

// Decode implements [yamldoc.SelfDecoder].
func (r *Router) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	const example = "a rule such as round-robin, or a map such as {policy: round-robin, front_ends: 2}"
	*r = defaultRouter()
	rules := rulesOf(d).Routers
	named := n
	switch n.Kind {
	case yamldoc.Text:
		r.Policy = n.Text
	case yamldoc.Map:
		if named = n.Lookup("policy"); named == nil {
			d.Fault(n.At, key, fmt.Sprintf("policy is missing (want %s)", example), "")
			return
		}
		r.Rules(rules)
		d.Fields(n, key, r)
	default:
		d.Wrong(n, key, example)
		return
	}
	if _, ok := rules.Find(named.Text); named.Kind == yamldoc.Text && !ok {
		d.Unknown(named, key, rules.Names(), "clifftop catalog routers lists all of them")
	}
}

// MarshalJSON writes the rule's name, or the map.
func (r Router) MarshalJSON() ([]byte, error) {
	if r.named() {
		return json.Marshal(r.Policy)
	}
	type keys Router
	return r.Marshal(keys(r))
}

// routing checks that the router has the signals that it needs, and fills in how often it learns it.
func (u fleetResolver) routing() error {
	s := u.Scenario
	r := &s.Deployment.Router
	if n := u.replicas(); n > maxReplicas {
		return s.Fault("pools", "there are %d replicas (want %d or less)", n, maxReplicas)
	}
	u.bySession()
	if slices.ContainsFunc(u.Pools, func(p PoolSetup) bool { return p.Ranks > 1 }) && !s.Given("deployment.router") {
		r.Policy = "vllm-dp" // vLLM's own, among data-parallel ranks
	}
	if _, ok := s.router(r, route.Identity{}); !ok {
		return s.Fault("deployment.router", "%q is not known (want %s)", yamldoc.Short(r.Policy),
			yamldoc.OneOf(s.rules().Routers.Names()))
	}
	if !u.isFleet() {
		u.unused(!r.named() || r.Policy != defaultRouter().Policy, "deployment.router", "there is one replica")
		return nil
	}
	if !u.disaggregated() {
		return u.routes("deployment.router", r, u.Pools)
	}
	decode := slices.IndexFunc(u.Pools, func(p PoolSetup) bool { return p.role == "decode" })
	if err := u.routes("deployment.router", r, u.Pools[:decode]); err != nil {
		return err
	}
	if err := u.routes("disaggregation.router", &s.Disaggregation.Router, u.Pools[decode:]); err != nil {
		return err
	}
	return u.publishTogether(r, &s.Disaggregation.Router)
}

// publishTogether gives both routers the same time between scrapes if both read metrics, because replicas publish them
// to all routers at once: the one that is given, or the longer one.
func (u fleetResolver) publishTogether(first, second *Router) error {
	s := u.Scenario
	if !s.scrapes(first) || !s.scrapes(second) {
		return nil
	}
	a, b := *first.Scrape, *second.Scrape
	switch given, also := s.Given("deployment.router.scrape"), s.Given("disaggregation.router.scrape"); {
	case given && also && a != b:
		return s.Fault("disaggregation.router.scrape",
			"%v is not that of deployment.router, %v (want the same: replicas publish metrics to all routers at once)", b, a)
	case given:
		b = a
	case also:
		a = b
	default:
		a = max(a, b)
		b = a
	}
	*first.Scrape, *second.Scrape = a, b
	return nil
}

// bySession warns of batching policies that go by sessions where there are none.
func (u fleetResolver) bySession() {
	for i := range u.Pools {
		p := u.Pools[i].Setup
		if o, ok := p.policy.options.(sched.IdleOptions); ok && !u.hasSessions() {
			key := o.BySession()
			u.unused(key != "", "engine."+p.policy.rule.Section+"."+key, "no request has a session")
		}
	}
}

// hasSessions reports whether requests have sessions.
func (u *Setup) hasSessions() bool {
	if u.served {
		return true
	}
	if t := u.Scenario.Workload.Trace; t != nil && t.Statistics != nil {
		return t.Statistics.Sessions > 0
	}
	spec := &u.Traffic.Spec
	return spec.Sessions != nil || slices.ContainsFunc(spec.Classes, func(c workload.ClassSpec) bool {
		return c.Sessions != nil
	})
}

// routes checks that a router has the signals that it needs at the pools that it sends requests to, and fills in how
// often it learns it.
func (u fleetResolver) routes(key string, r *Router, pools []PoolSetup) error {
	s := u.Scenario
	made, _ := s.router(r, route.Identity{})
	if v, ok := made.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return s.Fault(key, "%s: %v", r.Policy, err)
		}
	}
	known := u.Traffic.Recording != nil || len(u.Traffic.Spec.Arrivals) > 0
	if err := route.Check(made, u.offers(pools)); err != nil && known {
		return s.Fault(key, "%s: %v", r.Policy, err)
	}
	bound := route.Bind(made)
	if needs := bound.Requirements(); needs.Metrics {
		optional.Default(&r.Scrape, yamldoc.Duration(needs.Scrape))
	} else {
		u.unused(r.Scrape != nil, yamldoc.Join(key, "scrape"), r.Policy+" does not read metrics of replicas")
	}
	return nil
}

// offers is what routers can go by: what all replicas of some pools tell, and what some requests have.
func (u fleetResolver) offers(pools []PoolSetup) route.Offers {
	o := route.Offers{KVUsage: true, PrefixCaching: true, Users: u.Traffic.Closed, Sessions: u.hasSessions()}
	for _, p := range pools {
		c := &p.Setup.Config
		o.KVUsage = o.KVUsage && c.NumGPUBlocks > 0
		o.PrefixCaching = o.PrefixCaching && c.PrefixCaching
	}
	return o
}

// routers makes the routers of a run, numbered from first on, and says how often they learn what replicas say.
func (s *Scenario) routers(r *Router, first int) (all []route.Router, scrape clock.Duration) {
	for k := range r.FrontEnds {
		made, _ := s.router(r, route.Identity{Seed: s.Run.Seed, Number: first + k, Of: r.FrontEnds})
		all = append(all, made)
	}
	if s.scrapes(r) {
		scrape = optional.Value(r.Scrape).Clock()
	}
	return all, scrape
}
