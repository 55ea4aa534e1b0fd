package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
)

// Disaggregation says how KV is sent from pools with the role prefill to pools with the role decode, and for which
// requests. The router of the deployment chooses the replica for the prompt.
type Disaggregation struct {
	// Mode is when KV is sent: with pull the decode replica requests all of it once it has room; with push each
	// layer is sent while the next one is computed.
	Mode string `json:"mode" one:"pull push"`
	// LinkGBPerS is the bandwidth of the link of each replica, in GB/s; null is 25 for each of its GPUs.
	LinkGBPerS *float64 `json:"link_gb_per_s" range:"[0.001,1000000]"`
	// Latency is added to each transfer.
	Latency yamldoc.Duration `json:"latency" range:"[0,60]"`
	// Hop is the delay of a request from the prefill replica through the router to the decode replica.
	Hop yamldoc.Duration `json:"hop" range:"[0,60]"`
	// Lease is how long the KV of a prompt is kept for a decode replica that has not read it; null is until the
	// request ends.
	Lease *yamldoc.Duration `json:"lease" range:"(0,)"`
	// KVLoadFailurePolicy is the treatment of a request whose KV is lost before the transfer: its prompt is
	// recomputed on the decode replica, or the request fails and its client may retry. vLLM's default is fail.
	KVLoadFailurePolicy string `json:"kv_load_failure_policy" one:"recompute fail"`
	// MinTokens is the prompt length below which prompts are computed on the decode replica.
	MinTokens int `json:"min_tokens" range:"[0,1000000000]"`
	// MaxBacklogTokens is the number of queued prompt tokens on every prefill replica at which a prompt is computed
	// on the decode replica; null is no limit.
	MaxBacklogTokens *int `json:"max_backlog_tokens" range:"[1,1000000000000]"`
	// PullPercent delays transfers while requests that do not run yet hold this percentage of the KV cache of the
	// decode replica; 0 is no limit.
	PullPercent int `json:"pull_percent" range:"[0,100]"`
	// Outages are outages of the links that carry KV.
	Outages []Outage `json:"outages,omitempty"`
	// Router chooses the decode replica after the prompt has been computed.
	Router Router `json:"router"`
}

// Outage is a time for which nothing goes over the links of a pool, or over one of them: transfers stand still, and
// leases go on.
type Outage struct {
	// At is when it begins.
	At yamldoc.Duration `json:"at" range:"[0,)"`
	// For is how long it lasts.
	For yamldoc.Duration `json:"for" range:"(0,)"`
	// Pool is the name of the pool.
	Pool string `json:"pool"`
	// Replica is the number of its member, from 0 on; null is all of them.
	Replica *int `json:"replica,omitempty" range:"[0,4095]"`
}

func (o *Outage) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "want {at: 60s, for: 5s, pool: NAME}", "at", "for", "pool")
}

// linkPerGPU is the default bandwidth: a 200 Gbit/s port for each GPU, as in published deployments.
const linkPerGPU = 25

func (d *Disaggregation) SetDefaults() {
	*d = Disaggregation{Mode: "pull", KVLoadFailurePolicy: "recompute", Hop: yamldoc.Duration(clock.Millisecond),
		Router: defaultRouter()}
}

// disaggregated reports whether pools compute prompts for others.
func (u *Setup) disaggregated() bool {
	return len(u.Pools) > 0 && u.Pools[0].role == "prefill"
}

// roles checks that the roles of the pools go together, and brings those that compute prompts to the front.
func (u fleetResolver) roles() error {
	s := u.Scenario
	of := map[string][]PoolSetup{}
	for _, p := range u.Pools {
		of[p.role] = append(of[p.role], p)
	}
	prefill, decode := of["prefill"], of["decode"]
	switch {
	case len(prefill)+len(decode) == 0:
		if s.Disaggregation != nil {
			return s.Fault("disaggregation",
				"disaggregation needs at least one pool with role prefill and one with role decode")
		}
		return nil
	case len(prefill) == 0 || len(decode) == 0 || len(of["both"]) > 0:
		return s.Fault("pools", "%d pools have role prefill, %d decode and %d both (want all both, or at least one "+
			"prefill and one decode and no other)",
			len(prefill), len(decode), len(of["both"]))
	}
	if s.Disaggregation == nil {
		s.Disaggregation = new(Disaggregation)
		s.Disaggregation.SetDefaults()
	}
	u.Pools = slices.Concat(prefill, decode)
	first := prefill[0].Setup
	for _, p := range u.Pools {
		d, one := p.Setup.Deployment, p.Setup.Scenario
		switch {
		case d.LLM.Name != first.Deployment.LLM.Name:
			return one.Fault("model", "%s differs from pool %s (want the same model in prefill and decode pools)",
				d.LLM.Name, prefill[0].Name)
		case d.KVDtype != first.Deployment.KVDtype:
			return one.Fault("deployment.kv_cache_dtype",
				"%v differs from pool %s, %v (want the same in prefill and decode pools)", d.KVDtype, prefill[0].Name,
				first.Deployment.KVDtype)
		case one.Engine.BlockSize != first.Scenario.Engine.BlockSize:
			return one.Fault(one.FirstGiven("engine.block_size", "engine.policy"),
				"block_size %d differs from pool %s (want the same in prefill and decode pools)", one.Engine.BlockSize,
				prefill[0].Name)
		case one.StepTime.Kind == "linear":
			return one.Fault("step_time", "linear has no model of the KV cache to transfer (want kernels or roofline)")
		}
		c := fleetBuilder{p.Setup}.config(false)
		c.Connector = p.connector()
		if err := c.Validate(); err != nil {
			return one.Fault(one.FirstGiven("engine.policy", "engine.speculative", "engine.kv_allocation"), "%s",
				strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	if err := u.outages(); err != nil {
		return err
	}
	u.unused(s.Disaggregation.KVLoadFailurePolicy == "fail" && !u.losesKV(), "disaggregation.kv_load_failure_policy",
		"KV is never lost without a lease or a lifecycle")
	return nil
}

// outages checks that those of a link are one after the other, and of links that there are.
func (u fleetResolver) outages() error {
	s := u.Scenario
	list := s.Disaggregation.Outages
	for i := range list {
		o, key := &list[i], fmt.Sprint("disaggregation.outages.", i)
		first, last, why := u.members(&o.Pool)
		switch {
		case why != "":
			return s.Fault(key+".pool", "%s", why)
		case o.Replica != nil && *o.Replica > last-first:
			return s.Fault(key+".replica", "there is no replica %d of pool %s (want 0 to %d)", *o.Replica, o.Pool,
				last-first)
		}
		for j := range list[:i] {
			p := &list[j]
			same := o.Pool == p.Pool && (o.Replica == nil || p.Replica == nil || *o.Replica == *p.Replica)
			if same && o.At <= p.At+p.For && p.At <= o.At+o.For {
				return s.Fault(key+".at",
					"a link of pool %s has overlapping outages, from %v and from %v on (outages of one link must not overlap)",
					o.Pool, p.At, o.At)
			}
		}
	}
	return nil
}

// ofLinks are an outage's parts as the simulator takes them, one for each link.
func (u fleetBuilder) ofLinks(o *Outage) (list []sim.Outage) {
	first, last, _ := u.members(&o.Pool)
	if o.Replica != nil {
		first += *o.Replica
		last = first
	}
	for l := first; l <= last; l++ {
		list = append(list, sim.Outage{Replica: l, At: clock.Time(o.At), For: o.For.Clock()})
	}
	return list
}

// losesKV reports whether KV may have gone when a replica that answers asks for it.
func (u *Setup) losesKV() bool {
	return u.disaggregated() && (u.served || u.Scenario.Disaggregation.Lease != nil || u.Scenario.Lifecycle != nil)
}

// answerable refuses traffic of which no request fits the pools for prompts, or those that answer.
func (u fleetResolver) answerable() error {
	if !u.disaggregated() {
		return nil
	}
	src, err := u.Source()
	if err != nil {
		return err
	}
	const looks = 100
	shortest, seen := int32(math.MaxInt32), 0
	for ; seen < looks; seen++ {
		if _, ok := src.Peek(); !ok {
			break
		}
		r := src.Next()
		shortest = min(shortest, r.InputTokens+1)
	}
	for _, role := range []string{"prefill", "decode"} {
		longest, name := int32(0), ""
		for _, p := range u.Pools {
			if n := p.Setup.Config.MaxModelLen; p.role == role && n > longest {
				longest, name = n, p.Name
			}
		}
		if seen > 0 && shortest > longest {
			return u.Scenario.Fault("pools",
				"pool %s has room for %d tokens, and the shortest of %d requests needs %d for its prompt and "+
					"the first output token", name, longest, seen, shortest)
		}
	}
	return nil
}

// connector connects a replica of the pool with others, and with the tiers that it has.
func (p *PoolSetup) connector() *engine.Connector {
	var c engine.Connector
	of := p.Setup
	if of.Config.Connector != nil {
		c = *of.Config.Connector
	}
	gpus := of.Deployment.TensorParallel * of.Deployment.PipelineParallel // that hold a block
	c.BlockBytes = of.Deployment.KVBytesPerToken() * int64(gpus) * int64(of.Config.BlockSize)
	return &c
}

// divide gives the replicas of a fleet their parts.
func (u fleetBuilder) divide(f *sim.Fleet) {
	if !u.disaggregated() {
		return
	}
	d := u.Scenario.Disaggregation
	routers, scrape := u.Scenario.routers(&d.Router, u.Scenario.Deployment.Router.FrontEnds)
	f.Scrape = max(f.Scrape, scrape)
	division := &sim.Disaggregation{
		Decoders: routers,
		Latency:  d.Latency.Clock(), Hop: d.Hop.Clock(), Lease: optional.Value(d.Lease).Clock(),
		MinTokens: limitInt32(d.MinTokens), MaxBacklog: int64(optional.Value(d.MaxBacklogTokens)),
	}
	if d.Mode == "push" {
		division.Layers = int64(u.Deployment.LLM.Layers)
	}
	for i := range d.Outages {
		division.Outages = append(division.Outages, u.ofLinks(&d.Outages[i])...)
	}
	for _, p := range u.Pools {
		gpus := p.Setup.Deployment.TensorParallel * p.Setup.Deployment.PipelineParallel *
			engineResolver{p.Setup}.ranksTogether()
		link := int64(linkPerGPU*gpus) * 1e9
		if d.LinkGBPerS != nil {
			link = int64(math.Round(*d.LinkGBPerS * 1e9))
		}
		links := slices.Repeat([]int64{link}, p.Engines())
		if p.role == "prefill" {
			division.Prefills += len(links)
			division.Egress = append(division.Egress, links...)
		} else {
			division.Ingress = append(division.Ingress, links...)
		}
	}
	f.Disaggregation = division
}
