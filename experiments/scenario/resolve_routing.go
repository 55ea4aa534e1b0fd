package scenario

import (
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/sim/route"
	"clifftop/sim/sched"
)

func newRouter(s *Scenario, r *Router, id route.Identity) (made route.Router, ok bool) {
	options, ok := r.Options(s.rules().Routers, r.Policy)
	if !ok {
		return nil, false
	}
	return options.Make(id), true
}

// scrapes reports whether a router reads the metrics of replicas.
func scrapes(s *Scenario, r *Router) bool {
	made, _ := newRouter(s, r, route.Identity{})
	bound := route.Bind(made)
	return bound.Requirements().Metrics
}

// newRouters makes the routers of a run, numbered from first on, and says how often they learn what replicas say.
func newRouters(s *Scenario, r *Router, first int) (all []route.Router, scrape clock.Duration) {
	for k := range r.FrontEnds {
		made, _ := newRouter(s, r, route.Identity{Seed: s.Run.Seed, Number: first + k, Of: r.FrontEnds})
		all = append(all, made)
	}
	if scrapes(s, r) {
		scrape = optional.Value(r.Scrape).Clock()
	}
	return all, scrape
}

// resolveRouting checks that the routers have the signals that they need, and fills in how often they learn them:
// the routers of the deployment, and of disaggregated pools.
func resolveRouting(s *Scenario, l pools, d *Disaggregation, t *Traffic, served bool) (r Router, _ *Disaggregation,
	found findings) {
	r = s.Deployment.Router
	if n := l.engines(); n > maxReplicas {
		return r, d, s.refuse("pools", "there are %d replicas (want %d or less)", n, maxReplicas)
	}
	sessions := served || t.hasSessions()
	found.add(l.bySession(sessions))
	if slices.ContainsFunc(l, func(p PoolSetup) bool { return p.Ranks > 1 }) && !s.Given("deployment.router") {
		r.Policy = "vllm-dp" // vLLM's own, among data-parallel ranks
	}
	if _, ok := newRouter(s, &r, route.Identity{}); !ok {
		return r, d, s.refuse("deployment.router", "%q is not known (want %s)", yamldoc.Short(r.Policy),
			yamldoc.OneOf(s.rules().Routers.Names()))
	}
	if !isFleet(s, l) {
		found.unused(!r.named() || r.Policy != defaultRouter().Policy, "deployment.router", "there is one replica")
		return r, d, found
	}
	const first, second = "deployment.router", "disaggregation.router"
	if d == nil {
		r, more := resolveRouter(s, first, r, l.offers(t, sessions), t)
		found.add(more)
		return r, nil, found
	}
	own := *d
	decode := slices.IndexFunc(l, func(p PoolSetup) bool { return p.Scenario.role == "decode" })
	r, more := resolveRouter(s, first, r, l[:decode].offers(t, sessions), t)
	if !found.add(more) {
		return r, d, found
	}
	if own.Router, more = resolveRouter(s, second, d.Router, l[decode:].offers(t, sessions), t); !found.add(more) {
		return r, d, found
	}
	if scrapes(s, &r) && scrapes(s, &own.Router) {
		together, fault := scrapeTogether(s, *r.Scrape, *own.Router.Scrape)
		if fault != nil {
			return r, d, refuse(fault)
		}
		r.Scrape, own.Router.Scrape = &together, &together
	}
	return r, &own, found
}

// scrapeTogether is the time between scrapes of both routers, because replicas publish metrics to all routers at once:
// the one that is given, or the longer one.
func scrapeTogether(s *Scenario, first, second yamldoc.Duration) (yamldoc.Duration, *yamldoc.Fault) {
	switch given, also := s.Given("deployment.router.scrape"), s.Given("disaggregation.router.scrape"); {
	case given && also && first != second:
		return 0, s.Fault("disaggregation.router.scrape",
			"%v differs from deployment.router, %v (want the same: replicas publish metrics to all routers at "+
				"once)", second,
			first)
	case given:
		return first, nil
	case also:
		return second, nil
	}
	return max(first, second), nil
}

// bySession warns of batching policies that use sessions where there are none.
func (l pools) bySession(sessions bool) (found findings) {
	for i := range l {
		p := &l[i].policy
		if o, ok := p.options.(sched.IdleOptions); ok && !sessions {
			key := o.BySession()
			found.unused(key != "", "engine."+p.rule.Section+"."+key, "no request has a session")
		}
	}
	return found
}

// resolveRouter checks that a router has the signals that it needs, and fills in how often it learns them.
func resolveRouter(s *Scenario, key string, r Router, offers route.Offers, t *Traffic) (_ Router, found findings) {
	made, _ := newRouter(s, &r, route.Identity{})
	if v, ok := made.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return r, s.refuse(key, "%s: %v", r.Policy, err)
		}
	}
	known := t.Recording != nil || len(t.Spec.Arrivals) > 0
	if err := route.Check(made, offers); err != nil && known {
		return r, s.refuse(key, "%s: %v", r.Policy, err)
	}
	bound := route.Bind(made)
	if needs := bound.Requirements(); needs.Metrics {
		optional.Default(&r.Scrape, yamldoc.Duration(needs.Scrape))
	} else {
		found.unused(r.Scrape != nil, yamldoc.Join(key, "scrape"), r.Policy+" does not read metrics of replicas")
	}
	return r, found
}

// offers lists the data that routers can use: from all replicas of some pools, and from some requests.
func (l pools) offers(t *Traffic, sessions bool) route.Offers {
	o := route.Offers{KVUsage: true, PrefixCaching: true, Users: t.Closed, Sessions: sessions}
	for i := range l {
		c := &l[i].Config
		o.KVUsage = o.KVUsage && c.NumGPUBlocks > 0
		o.PrefixCaching = o.PrefixCaching && c.PrefixCaching
	}
	return o
}

// isFleet reports whether there is a router: a deployment of one engine that is always there has none.
func isFleet(s *Scenario, l pools) bool {
	return len(s.Pools) > 0 || l.engines() > 1 || s.Lifecycle != nil
}
