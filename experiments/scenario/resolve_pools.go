package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
)

// pools are the replicas of a fleet, those that compute prompts for others first.
type pools []PoolSetup

func (l pools) engines() int {
	n := 0
	for i := range l {
		n += l[i].Engines()
	}
	return n
}

// longest is the longest sequence that some replica takes, in tokens.
func (l pools) longest() int32 {
	length := int32(0)
	for i := range l {
		length = max(length, l[i].Config.MaxModelLen)
	}
	return length
}

// disaggregated reports whether pools compute prompts for others.
func (l pools) disaggregated() bool { return l[0].Scenario.role == "prefill" }

// limited reports whether a limit of the queue may refuse requests.
func (l pools) limited() bool {
	return slices.ContainsFunc(l, func(p PoolSetup) bool {
		e := &p.Scenario.Engine
		return e.MaxNumQueuedReqs != nil || e.MaxNumQueuedTokens != nil
	})
}

// firsts are the numbers of the first ranks of all replicas.
func (l pools) firsts() (list []int) {
	next := 0
	for _, p := range l {
		for range p.replicas {
			list = append(list, next)
			next += p.Ranks
		}
	}
	return list
}

func (l pools) with(engine int) *PoolSetup {
	k := 0
	for engine >= l[k].Engines() {
		engine -= l[k].Engines()
		k++
	}
	return &l[k]
}

// members are the numbers of the first and the last engine of a pool, or of the whole fleet where none is named. why
// says why there are none.
func (l pools) members(name *string) (first, last int, why string) {
	if name == nil {
		return 0, l.engines() - 1, ""
	}
	var names []string
	for _, p := range l {
		switch p.Name {
		case "":
			return 0, 0, "there are no pools"
		case *name:
			return first, first + p.Engines() - 1, ""
		}
		first += p.Engines()
		names = append(names, p.Name)
	}
	return 0, 0, fmt.Sprintf("%q is not the name of a pool (want %s)", yamldoc.Short(*name), yamldoc.OneOf(names))
}

// resolvePools resolves the replicas: one of each pool, or of the deployment. ok is false if nothing further can be
// said.
func resolvePools(s *Scenario, oneRank bool) (l pools, found findings, ok bool) {
	if len(s.Pools) == 0 {
		if s.Disaggregation != nil {
			found.fault(s.Fault("disaggregation",
				"disaggregation needs pools: define at least one with role prefill and one with role decode"))
			return nil, found, false
		}
		p, found := resolveReplica(s, oneRank)
		p.replicas = s.Deployment.Replicas
		return pools{p}, found, p.Deployment != nil
	}
	for i := range s.Pools {
		given := &s.Pools[i]
		p, more := resolveReplica(s.ofPool(given), oneRank)
		p.Name, p.number, p.replicas = given.Name, i, given.Replicas
		for _, w := range more.warnings {
			if len(s.Pools) > 1 {
				w.Text = fmt.Sprintf("pool %s: %s", p.Name, w.Text)
			}
			found.warnings = append(found.warnings, w)
		}
		found.faults = found.faults.Join(more.faults)
		l = append(l, p)
	}
	return l, found, found.faults == nil
}

// alike refuses what clients would see of a pool: the front ends are the same for all.
func (l pools) alike(s *Scenario) *yamldoc.Fault {
	if len(s.Pools) == 0 {
		return nil
	}
	first := &l[0].Config
	for _, p := range l {
		c, one := &p.Config, p.Scenario
		if c.NetworkIn != first.NetworkIn || c.NetworkOut != first.NetworkOut {
			return one.Fault(one.FirstGiven("overheads.network_in", "overheads.network_out"),
				"the network latency to clients differs from pool %s (want the same for all)", l[0].Name)
		}
		if optional.Value(one.Engine.RetryAfter) != optional.Value(s.Engine.RetryAfter) {
			return one.Fault("engine.retry_after", "retry_after must be the same in all pools (set it at the top "+
				"level)")
		}
	}
	return nil
}

// receipts refuses a delayed receipt of requests by ranks in lock step, as SGLang does.
func (l pools) receipts(s *Scenario) *yamldoc.Fault {
	for _, p := range l {
		if p.Config.RecvInterval > 1 && p.Ranks > 1 && p.Deployment.LLM.Experts > 0 {
			return s.Fault("engine.sglang.scheduler_recv_interval",
				"%d is not supported with data-parallel attention (want 1)", p.Config.RecvInterval)
		}
	}
	return nil
}

// judgePipelines warns of pipeline stages that work on one batch at a time.
func (l pools) judgePipelines() (found findings) {
	for _, p := range l {
		if p.oneBatch == "" {
			continue
		}
		pool := ""
		if len(l) > 1 {
			pool = fmt.Sprintf("pool %s: ", p.Name)
		}
		found.warn("pipeline", "%sthe pipeline stages work on one batch at a time (%s): throughput is a lower "+
			"bound, without overlap of batches", pool, p.oneBatch)
	}
	return found
}

// resolveRoles checks that the roles of the pools go together, fills in how KV is sent, and brings the pools that
// compute prompts to the front.
func resolveRoles(s *Scenario, l pools, served bool) (_ pools, d *Disaggregation, found findings) {
	of := map[string]pools{}
	for _, p := range l {
		of[p.Scenario.role] = append(of[p.Scenario.role], p)
	}
	prefill, decode := of["prefill"], of["decode"]
	switch both := len(l) - len(prefill) - len(decode); {
	case both == len(l):
		if s.Disaggregation != nil {
			found.fault(s.Fault("disaggregation",
				"disaggregation needs at least one pool with role prefill and one with role decode"))
		}
		return l, nil, found
	case len(prefill) == 0 || len(decode) == 0 || both > 0:
		return l, nil, s.refuse("pools",
			"%d pools have role prefill, %d decode and %d both (want all both, or at least one prefill and one decode "+
				"and no other)", len(prefill), len(decode), both)
	}
	d = new(Disaggregation)
	if d.SetDefaults(); s.Disaggregation != nil {
		*d = *s.Disaggregation
	}
	l = slices.Concat(prefill, decode)
	for i := range l {
		if fault := l[i].unlike(&l[0]); fault != nil {
			return l, d, refuse(fault)
		}
	}
	if fault := l.outages(s, d.Outages); fault != nil {
		return l, d, refuse(fault)
	}
	safe := !d.losesKV(served, s.Lifecycle)
	found.unused(safe && d.KVLoadFailurePolicy == "fail", "disaggregation.kv_load_failure_policy",
		"KV is never lost without a lease or a lifecycle")
	return l, d, found
}

// unlike refuses a pool whose KV does not fit the KV of the first.
func (p *PoolSetup) unlike(first *PoolSetup) *yamldoc.Fault {
	d, s := p.Deployment, p.Scenario
	switch {
	case d.LLM.Name != first.Deployment.LLM.Name:
		return s.Fault("model", "%s differs from pool %s (want the same model in prefill and decode pools)",
			d.LLM.Name, first.Name)
	case d.KVDtype != first.Deployment.KVDtype:
		return s.Fault("deployment.kv_cache_dtype",
			"%v differs from pool %s, %v (want the same in prefill and decode pools)", d.KVDtype, first.Name,
			first.Deployment.KVDtype)
	case s.Engine.BlockSize != first.Scenario.Engine.BlockSize:
		return s.Fault(s.FirstGiven("engine.block_size", "engine.policy"),
			"block_size %d differs from pool %s (want the same in prefill and decode pools)", s.Engine.BlockSize,
			first.Name)
	case s.StepTime.Kind == "linear":
		return s.Fault("step_time", "linear has no model of the KV cache to transfer (want kernels or roofline)")
	}
	c := p.checkedConfig(false)
	c.Connector = p.connector()
	if err := c.Validate(); err != nil {
		return s.Fault(s.FirstGiven("engine.policy", "engine.speculative", "engine.kv_allocation"), "%s",
			strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// outages checks that outages of a link do not overlap, and that the links exist.
func (l pools) outages(s *Scenario, list []Outage) *yamldoc.Fault {
	for i := range list {
		o, key := &list[i], fmt.Sprint("disaggregation.outages.", i)
		first, last, why := l.members(&o.Pool)
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
					"a link of pool %s has overlapping outages, from %v and from %v on (outages of one link must "+
						"not overlap)",
					o.Pool, p.At, o.At)
			}
		}
	}
	return nil
}

// answerable refuses traffic of which no request fits the pools for prompts, or those for outputs.
func (l pools) answerable(s *Scenario, t *Traffic) (*yamldoc.Fault, error) {
	if !l.disaggregated() {
		return nil, nil
	}
	src, err := t.source(s.Run.Seed)
	if err != nil {
		return nil, err
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
		for _, p := range l {
			if n := p.Config.MaxModelLen; p.Scenario.role == role && n > longest {
				longest, name = n, p.Name
			}
		}
		if seen > 0 && shortest > longest {
			return s.Fault("pools",
				"pool %s has room for %d tokens, and the shortest of %d requests needs %d for its prompt and "+
					"the first output token", name, longest, seen, shortest), nil
		}
	}
	return nil, nil
}
