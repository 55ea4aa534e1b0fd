package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/collect"
)

// Pool is a group of like replicas of a fleet. What it does not say is that of the scenario, key by key.
type Pool struct {
	// Name is the name in results; the default is the number of the pool, from 1.
	Name string `json:"name"`
	// Role is the work of the pool: both, prefill to compute prompts, or decode to generate output.
	Role string `json:"role" one:"both prefill decode"`
	// Replicas is the number of its members.
	Replicas int `json:"replicas" range:"[1,4096]"`
	// Model is the model that the replicas serve.
	Model *string `json:"model"`
	// GPU is the GPU that they use.
	GPU *string `json:"gpu"`
	// Deployment places the model on the GPUs of one replica; replicas and router are not allowed here.
	Deployment *Deployment `json:"deployment"`
	// Engine holds the parameters that differ.
	Engine *Engine `json:"engine"`
	// Overheads are the delays that differ; those of the network cannot.
	Overheads *Overheads `json:"overheads"`
	// StepTime is the model of an iteration's length.
	StepTime *StepTime `json:"step_time"`
	// Cost holds the prices that differ.
	Cost *Cost `json:"cost"`

	origin *origin // where the keys of its scenario stand
}

// maxReplicas is the most that a pool, or all of them, have.
const maxReplicas = 4096

// poolKeys is Pool without a syntax of its own.
type poolKeys Pool

func (p *Pool) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*p = Pool{Role: "both", Replicas: 1}
	d.Value(n, key, (*poolKeys)(p), "")
	if own := n.Get("deployment"); own != nil {
		for _, f := range own.Fields {
			if f.Name == "replicas" || f.Name == "router" {
				want := yamldoc.Join(key, "replicas")
				if f.Name == "router" {
					want = "deployment.router: one routes to all pools"
				}
				d.Fault(f.At, yamldoc.Join(yamldoc.Join(key, "deployment"), f.Name),
					fmt.Sprintf("this key is not allowed in a pool (want %s)", want), "")
			}
		}
	}
}

// MarshalJSON leaves out of the deployment what belongs to the whole fleet.
func (p Pool) MarshalJSON() ([]byte, error) {
	type layout struct {
		*Deployment
		Replicas any `json:"replicas,omitempty"`
		Router   any `json:"router,omitempty"`
	}
	keys := poolKeys(p)
	keys.Deployment = nil
	return json.Marshal(struct {
		poolKeys
		Deployment *layout `json:"deployment"`
	}{keys, &layout{Deployment: p.Deployment}})
}

// inherit decodes the scenarios of the pools: the tree, and over it what each pool says.
func (s *Scenario) inherit(d *yamldoc.Decoder) {
	root := s.origin.root
	pools := root.Lookup("pools")
	if len(d.Faults) > 0 || pools == nil {
		return
	}
	if len(s.Pools) == 0 {
		d.Fault(pools.At, "pools", "pools is empty: list at least one pool or remove the key", "")
		return
	}
	if n := root.Lookup("deployment", "replicas"); n != nil && s.Deployment.Replicas != 1 {
		d.Fault(n.At, "deployment.replicas",
			fmt.Sprintf("%d cannot be combined with pools (set replicas in each pool)", s.Deployment.Replicas), "")
	}
	names := map[string]bool{}
	for i := range s.Pools {
		p := &s.Pools[i]
		key := yamldoc.Join("pools", strconv.Itoa(i))
		if p.Name == "" {
			p.Name = strconv.Itoa(i + 1)
		}
		if names[p.Name] {
			d.Fault(d.Places[key], key, fmt.Sprintf("the name %q is given twice (want another one)",
				yamldoc.Short(p.Name)), "")
		}
		names[p.Name] = true
		own := s.rules().decoder(d.File, d.Source)
		tree := withPool(root, pools.Items[i])
		one := Default()
		own.Value(tree, "", one, "")
		for _, f := range own.Faults {
			if _, ok := d.Places[yamldoc.Join(key, f.Key)]; ok {
				f.Key = yamldoc.Join(key, f.Key)
			}
			d.Faults = append(d.Faults, f)
		}
		for _, r := range own.Renamed { // those of the whole file are known
			if !slices.ContainsFunc(d.Renamed, func(x yamldoc.Renaming) bool { return x.At == r.At }) {
				d.Renamed = append(d.Renamed, r)
			}
		}
		p.Model, p.GPU, p.Deployment, p.Engine, p.Overheads, p.StepTime, p.Cost = &one.Model, &one.GPU, &one.Deployment,
			&one.Engine, &one.Overheads, &one.StepTime, &one.Cost
		p.origin = &origin{root: tree, file: d.File, lines: d.Source, places: own.Places, shared: s.origin.shared,
			pool: key, fleet: d.Places}
	}
}

// withPool is a copy of a scenario's tree in which a pool's keys take the place of the scenario's. In maps that is
// key by key.
func withPool(root, pool *yamldoc.Node) *yamldoc.Node {
	tree := root.Clone()
	tree.Put("pools", yamldoc.Place{}, nil)
	tree.Put("disaggregation", yamldoc.Place{}, nil)
	if d := tree.Get("deployment"); d != nil {
		d.Put("replicas", yamldoc.Place{}, nil)
		d.Put("router", yamldoc.Place{}, nil)
	}
	for _, f := range pool.Clone().Fields {
		switch base := tree.Get(f.Name); {
		case f.Name == "name", f.Name == "role", f.Name == "replicas", f.Value.Kind == yamldoc.Null:
		case f.Name != "step_time" && base != nil && base.Kind == yamldoc.Map && f.Value.Kind == yamldoc.Map:
			for _, g := range f.Value.Fields {
				base.Put(g.Name, g.At, g.Value)
			}
			base.At = f.Value.At
		default:
			tree.Put(f.Name, f.At, f.Value)
		}
	}
	return tree
}

// SimulateShare simulates one of n equal parts of each replica of the pools with a role, prefill or decode, whose
// data-parallel ranks the others of the replica have in equal number and load. n divides the number of ranks. The
// traffic has to be that of the part.
func (s *Scenario) SimulateShare(role string, n int) {
	shares := map[string]int{}
	maps.Copy(shares, s.shares)
	shares[role] = n
	s.shares = shares
}

// ofPool is the scenario of one of a pool's replicas.
func (s *Scenario) ofPool(p *Pool) *Scenario {
	one := *s
	one.Pools = nil
	one.Deployment.Replicas, one.Deployment.Router = 1, defaultRouter()
	if p.Model != nil {
		one.Model = *p.Model
	}
	if p.GPU != nil {
		one.GPU = *p.GPU
	}
	if p.Deployment != nil {
		one.Deployment = *p.Deployment
	}
	if p.Engine != nil {
		one.Engine = *p.Engine
	}
	if p.Overheads != nil {
		one.Overheads = *p.Overheads
	}
	if p.StepTime != nil {
		one.StepTime = *p.StepTime
	}
	if p.Cost != nil {
		one.Cost = *p.Cost
	}
	if p.origin != nil {
		one.origin = p.origin
	}
	return &one
}

// PoolSetup is a group of like replicas that are ready to run.
type PoolSetup struct {
	Name     string
	role     string
	replicas int
	Setup    *Setup // of one of them
	Ranks    int    // that each of them has, which serve requests side by side
}

// Engines is the number of engines of a pool: the data-parallel ranks of all its replicas.
func (p *PoolSetup) Engines() int { return p.replicas * p.Ranks }

// Ranks is the number of data-parallel ranks that a run has of a replica.
func (u *Setup) ranks() int {
	if u.oneRank || u.together {
		return 1
	}
	return u.Scenario.Deployment.DataParallelSize
}

// Serving says what serves: the deployment and, of a fleet, how many replicas there are. over is what a sweep varies,
// if anything does.
func (u *Setup) Serving(over string) string {
	first := u.Deployment.String()
	if len(u.Scenario.Pools) == 0 {
		n := u.replicasInWords(&u.Pools[0])
		if n == "1" || over == "deployment.replicas" {
			return first
		}
		return first + ", " + n + " replicas"
	}
	alike := true
	var counts, all []string
	for i := range u.Pools {
		p := &u.Pools[i]
		n, d := u.replicasInWords(p), p.Setup.Deployment.String()
		alike = alike && d == first
		counts, all = append(counts, p.Name+" "+n), append(all, fmt.Sprintf("%s: %s × (%s)", p.Name, n, d))
	}
	if alike {
		return first + ", replicas: " + strings.Join(counts, ", ")
	}
	return strings.Join(all, ", ")
}

// replicasInWords is how many replicas a pool has, or may have.
func (u *Setup) replicasInWords(p *PoolSetup) string {
	if l := u.Scenario.Lifecycle; l != nil && l.Autoscale != nil {
		for _, a := range l.Autoscale.Scalers {
			if len(u.Scenario.Pools) == 0 || a.Pool != nil && *a.Pool == p.Name {
				return fmt.Sprintf("%d to %d", *a.Min, *a.Max)
			}
		}
	}
	return strconv.Itoa(p.replicas)
}

// isFleet reports whether there is a router: a deployment of one engine that is always there has none.
func (u *Setup) isFleet() bool {
	return len(u.Scenario.Pools) > 0 || u.replicas() > 1 || u.Scenario.Lifecycle != nil
}

// replicas is the number of all engines.
func (u *Setup) replicas() int {
	n := 0
	for _, p := range u.Pools {
		n += p.Engines()
	}
	return n
}

// resolvePools resolves the replicas: one of each pool, or of the deployment.
func (u fleetResolver) resolvePools() error {
	s := u.Scenario
	if len(s.Pools) == 0 {
		if s.Disaggregation != nil {
			return s.Fault("disaggregation",
				"disaggregation needs pools: define at least one with role prefill and one with role decode")
		}
		u.Pools = []PoolSetup{{role: "both", replicas: s.Deployment.Replicas, Setup: u.Setup, Ranks: u.ranks()}}
		return asError(engineResolver(u).replica())
	}
	resolved := make([]Pool, len(s.Pools))
	var faults yamldoc.Faults
	for i := range s.Pools {
		p := s.Pools[i]
		one := *s.ofPool(&p)
		t := &Setup{Scenario: &one, from: &one, oneRank: u.oneRank, served: u.served,
			role: p.Role}
		more, err := engineResolver{t}.replica()
		if err != nil {
			return err
		}
		if faults = faults.Join(more); more != nil {
			continue
		}
		p.Model, p.GPU, p.Deployment, p.Engine, p.Overheads, p.StepTime, p.Cost = &one.Model, &one.GPU, &one.Deployment,
			&one.Engine, &one.Overheads, &one.StepTime, &one.Cost
		resolved[i] = p
		u.Pools = append(u.Pools, PoolSetup{p.Name, p.Role, p.Replicas, t, t.ranks()})
		for _, w := range t.Warnings {
			if len(resolved) > 1 {
				w.Text = fmt.Sprintf("pool %s: %s", p.Name, w.Text)
			}
			u.Warnings = append(u.Warnings, w)
		}
	}
	if faults != nil {
		return faults
	}
	s.Pools = resolved
	if err := u.roles(); err != nil {
		return err
	}
	first := u.Pools[0].Setup
	u.Profile, u.Deployment, u.Memory, u.Config, u.policy = first.Profile, first.Deployment, first.Memory, first.Config,
		first.policy
	return u.oneWay()
}

// measureReplicas adds up what the replicas are.
func (u reportResolver) measureReplicas() {
	r := &u.Report
	r.Replicas, r.Work, r.USDPerHour, r.Tiers = u.replicas(), u.work(), 0, u.Scenario.tierNames()
	r.Facility, r.Power = u.Scenario.Energy.facility(), u.stepPower()
	u.measurePipelines()
	priced := true
	for _, p := range u.Pools {
		of, n := p.Setup, p.Engines()
		gpus := p.replicas * of.Deployment.GPUs()
		r.GPUs += gpus
		r.MaxNumSeqs += n * *of.Scenario.Engine.MaxNumSeqs
		r.UsableBlocks += int64(n) * int64(of.Config.UsableBlocks())
		price := &of.Scenario.Cost.GPUHour
		if low, high := of.Deployment.GPU.USDPerHour[0], of.Deployment.GPU.USDPerHour[1]; *price == nil && high > 0 {
			*price = optional.Of((low + high) / 2)
		}
		if u.isFleet() {
			each := collect.ReplicaOptions{
				Pool: p.Name, GPUs: gpus / n, MaxNumSeqs: *of.Scenario.Engine.MaxNumSeqs,
				UsableBlocks: int64(of.Config.UsableBlocks()), Work: reportResolver{of}.work(),
				Power:          reportResolver{of}.stepPower(),
				PipelineStages: of.Config.Stages, USDPerHour: optional.Value(*price) * float64(gpus/n),
			}
			r.Fleet = append(r.Fleet, slices.Repeat([]collect.ReplicaOptions{each}, n)...)
		}
		r.USDPerHour += optional.Value(*price) * float64(gpus)
		priced = priced && *price != nil
	}
	if !priced {
		r.USDPerHour = 0
	}
}

// oneWay refuses what clients would see of a pool: the front ends are the same for all.
func (u fleetResolver) oneWay() error {
	for _, p := range u.Pools {
		c := &p.Setup.Config
		if c.NetworkIn != u.Config.NetworkIn || c.NetworkOut != u.Config.NetworkOut {
			s := p.Setup.Scenario
			return s.Fault(s.FirstGiven("overheads.network_in", "overheads.network_out"),
				"the network latency to clients differs from pool %s (want the same for all)", u.Pools[0].Name)
		}
		if s := p.Setup.Scenario; optional.Value(s.Engine.RetryAfter) != optional.Value(u.Scenario.Engine.RetryAfter) {
			return s.Fault("engine.retry_after", "retry_after must be the same in all pools (set it at the top level)")
		}
	}
	return nil
}

// LongestSequence is the longest sequence that some replica takes, in tokens.
func (u *Setup) LongestSequence() int32 {
	length := int32(0)
	for _, p := range u.Pools {
		length = max(length, p.Setup.Config.MaxModelLen)
	}
	return length
}

// asError is the error of a resolver; nil without faults.
func asError(faults yamldoc.Faults, err error) error {
	if err == nil && faults != nil {
		return faults
	}
	return err
}
