package scenario

import (
	"math"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
)

// Fleet is the configuration of a run, with schedulers and routers of its own.
func (u *Setup) Fleet(check bool) sim.Fleet {
	f := u.StandingFleet(check)
	f.Lifecycle = u.lives(check)
	return f
}

// StandingFleet is the fleet when all of its replicas are always ready.
func (u *Setup) StandingFleet(check bool) sim.Fleet {
	var f sim.Fleet
	for i := range u.Pools {
		p := &u.Pools[i]
		group := 1 // of ranks that exchange with each other's experts
		if p.Deployment.LLM.Experts > 0 {
			group = p.Ranks
		}
		for range p.Engines() / group {
			f.Lockstep = append(f.Lockstep, group)
			for range group {
				f.Replicas = append(f.Replicas, u.engineOf(p, len(f.Replicas), check))
			}
		}
	}
	if isFleet(u.Scenario, u.Pools) {
		f.Routers, f.Scrape = newRouters(u.Scenario, &u.Scenario.Deployment.Router, 0)
	}
	if u.Pools.disaggregated() {
		d := u.Scenario.Disaggregation
		routers, scrape := newRouters(u.Scenario, &d.Router, u.Scenario.Deployment.Router.FrontEnds)
		f.Scrape = max(f.Scrape, scrape)
		f.Disaggregation = u.Pools.division(d)
		f.Disaggregation.Decoders = routers
	}
	return f
}

// engineOf is the configuration of an engine of a pool, by its number among all, with a scheduler of its own.
func (u *Setup) engineOf(p *PoolSetup, number int, check bool) engine.Config {
	c := p.checkedConfig(check)
	c.Scheduler = p.scheduler(u.Scenario.Run.Seed, number)
	if !u.Pools.disaggregated() {
		return c
	}
	c.Connector = p.connector()
	if d := u.Scenario.Disaggregation; p.Scenario.role == "prefill" {
		c.MaxTokens = 0
	} else {
		c.Connector.PullPercent, c.Connector.FailLost = d.PullPercent, d.KVLoadFailurePolicy == "fail"
	}
	return c
}

// linkPerGPU is the default bandwidth: a 200 Gbit/s port for each GPU, as in published deployments.
const linkPerGPU = 25

// division gives the replicas of a fleet their parts.
func (l pools) division(d *Disaggregation) *sim.Disaggregation {
	division := &sim.Disaggregation{
		Latency: d.Latency.Clock(), Hop: d.Hop.Clock(), Lease: optional.Value(d.Lease).Clock(),
		MinTokens: limitInt32(d.MinTokens), MaxBacklog: int64(optional.Value(d.MaxBacklogTokens)),
	}
	if d.Mode == "push" {
		division.Layers = int64(l[0].Deployment.LLM.Layers)
	}
	for i := range d.Outages {
		division.Outages = append(division.Outages, l.links(&d.Outages[i])...)
	}
	for _, p := range l {
		gpus := p.Deployment.TensorParallel * p.Deployment.PipelineParallel * ranksTogether(p.Scenario, p.Deployment)
		link := int64(linkPerGPU*gpus) * 1e9
		if d.LinkGBPerS != nil {
			link = int64(math.Round(*d.LinkGBPerS * 1e9))
		}
		links := slices.Repeat([]int64{link}, p.Engines())
		if p.Scenario.role == "prefill" {
			division.Prefills += len(links)
			division.Egress = append(division.Egress, links...)
		} else {
			division.Ingress = append(division.Ingress, links...)
		}
	}
	return division
}

// links are an outage's parts as the simulator takes them, one for each link.
func (l pools) links(o *Outage) (list []sim.Outage) {
	first, last, _ := l.members(&o.Pool)
	if o.Replica != nil {
		first += *o.Replica
		last = first
	}
	for k := first; k <= last; k++ {
		list = append(list, sim.Outage{Replica: k, At: clock.Time(o.At), For: o.For.Clock()})
	}
	return list
}

// lives are the lives of the replicas of a run.
func (u *Setup) lives(check bool) *sim.Lifecycle {
	l := u.Scenario.Lifecycle
	if l == nil {
		return nil
	}
	hold := 0 // any number
	if l.Hold != nil {
		if hold = *l.Hold; hold == 0 {
			hold = -1
		}
	}
	return &sim.Lifecycle{
		Renew:     func(i int) engine.Config { return u.engineOf(u.Pools.with(i), i, check) },
		ColdStart: l.ColdStart.delay(), Seed: u.Scenario.Run.Seed,
		Grace: l.Grace.Clock(), Probe: l.Probe.Clock(), RouterQueue: hold,
		Failures: u.Failures, Scalers: u.scalers(), Groups: u.Pools.groups(),
	}
}

// groups are the numbers of ranks of all replicas, which start, fail and end together; nil if that is one each.
func (l pools) groups() (sizes []int) {
	several := false
	for _, p := range l {
		sizes = append(sizes, slices.Repeat([]int{p.Ranks}, p.replicas)...)
		several = several || p.Ranks > 1
	}
	if !several {
		return nil
	}
	return sizes
}

// FailuresFrom counts the failures that were planned for an instant or after it.
func (u *Setup) FailuresFrom(at clock.Time) int {
	n := 0
	for i := range u.Failures {
		if u.Failures[i].At >= at {
			n++
		}
	}
	return n
}

// scalers makes the autoscalers of a run.
func (u *Setup) scalers() (all []sim.Scaler) {
	a := u.Scenario.Lifecycle.Autoscale
	if a == nil {
		return nil
	}
	for k := range a.Scalers {
		x := &a.Scalers[k]
		first, last, _ := u.Pools.members(x.Pool)
		options, _ := x.Options(u.Scenario.rules().Autoscalers, x.Policy)
		all = append(all, sim.Scaler{
			Policy: options.Make(x.Target), First: first, Last: last, Least: *x.Min, Most: *x.Max,
			Initial: *x.Initial, Metric: *x.Metric, Scrape: x.Scrape.Clock(),
			Keep: options.Longest() + x.Scrape.Clock(),
		})
	}
	return all
}
