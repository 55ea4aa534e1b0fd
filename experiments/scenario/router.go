package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/router"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/sim/route"
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

	options router.Options // of the rule; nil where none is given
}

func defaultRouter() Router { return Router{Policy: "round-robin", FrontEnds: 1} }

// named reports whether nothing but the rule is given.
func (r *Router) named() bool {
	return *r == Router{Policy: r.Policy, FrontEnds: 1} || r.FrontEnds == 1 && r.Scrape == nil &&
		reflect.ValueOf(r.options).Elem().IsZero()
}

// rule is the rule that a router follows, with its options.
func (r *Router) rule() (router.Rule, router.Options, bool) {
	k, ok := router.Rules().Find(r.Policy)
	options := r.options
	if ok && options == nil {
		options = k.Options()
	}
	return k, options, ok
}

// scrapes reports whether the rule reads the metrics of replicas.
func scrapes(o router.Options) bool {
	s, ok := o.(router.Scraping)
	return ok && s.Scrapes()
}

// routerKeys is Router without its short form.
type routerKeys Router

// Variants implements [yamldoc.Variants].
func (r *routerKeys) Variants() (string, map[string]yamldoc.VariantKeys) {
	keys := router.Rules().Variants(yamldoc.VariantKeys{})
	keys[""] = yamldoc.VariantKeys{Optional: []string{"policy"}}
	keys["*"] = yamldoc.VariantKeys{Optional: []string{"front_ends", "scrape"}}
	return "policy", keys
}

// Extension implements [yamldoc.Extended].
func (r *routerKeys) Extension(name string) any { return router.Rules().Choose(name, &r.options) }

// Decode implements [yamldoc.SelfDecoder].
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
		d.Value(n, key, (*routerKeys)(r), "")
	default:
		d.Wrong(n, key, example)
		return
	}
	if _, ok := router.Rules().Find(named.Text); named.Kind == yamldoc.Text && !ok {
		d.Unknown(named, key, router.Rules().Names(), "clifftop catalog routers lists all of them")
	}
}

// MarshalJSON writes the rule's name, or the map.
func (r Router) MarshalJSON() ([]byte, error) {
	switch {
	case r.named():
		return json.Marshal(r.Policy)
	case r.options == nil:
		return json.Marshal(routerKeys(r))
	}
	return yamldoc.MarshalObject(routerKeys(r), r.options)
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
	if _, _, ok := r.rule(); !ok {
		return s.Fault("deployment.router", "%q is not known (want %s)", yamldoc.Short(r.Policy),
			yamldoc.OneOf(router.Rules().Names()))
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
	for _, r := range []*Router{first, second} {
		if _, options, _ := r.rule(); !scrapes(options) {
			return nil
		}
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
		if p.policy.BySession == nil || u.hasSessions() {
			continue
		}
		section := p.policy.Section.Key
		key := p.policy.BySession(p.Scenario.Engine.Options.Of(&p.policy))
		u.unused(key != "", "engine."+section+"."+key, "no request has a session")
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
	rule, options, _ := r.rule()
	made := options.Router(route.Identity{})
	if v, ok := made.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return s.Fault(key, "%s: %v", rule.Name, err)
		}
	}
	known := u.Traffic.Recording != nil || len(u.Traffic.Spec.Arrivals) > 0
	if err := route.Check(made, u.offers(pools)); err != nil && known {
		return s.Fault(key, "%s: %v", rule.Name, err)
	}
	if scrapes(options) {
		bound := route.Bind(made)
		optional.Default(&r.Scrape, yamldoc.Duration(bound.Requirements().Scrape))
	} else {
		u.unused(r.Scrape != nil, yamldoc.Join(key, "scrape"), rule.Name+" does not read metrics of replicas")
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

// routers makes the routers of a run, and says how often they learn what replicas say. A single engine has none.
func (u fleetBuilder) routers() (all []route.Router, scrape clock.Duration) {
	if !u.isFleet() {
		return nil, 0
	}
	r := &u.Scenario.Deployment.Router
	_, options, _ := r.rule()
	for k := range r.FrontEnds {
		all = append(all, options.Router(route.Identity{Seed: u.Scenario.Run.Seed, Number: k, Of: r.FrontEnds}))
	}
	if scrapes(options) {
		scrape = optional.Value(r.Scrape).Clock()
	}
	return all, scrape
}
