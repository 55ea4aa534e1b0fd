package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
)

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
		for _, r := range own.Renamed { // the names of the whole file are known
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
// traffic has to be the traffic of the part.
func (s *Scenario) SimulateShare(role string, n int) {
	shares := map[string]int{}
	maps.Copy(shares, s.shares)
	shares[role] = n
	s.shares = shares
}

func (s *Scenario) ofPool(p *Pool) *Scenario {
	one := *s
	one.Pools = nil
	one.Deployment.Replicas, one.Deployment.Router = 1, defaultRouter()
	one.role = p.Role
	optional.Set(&one.Model, p.Model)
	optional.Set(&one.GPU, p.GPU)
	optional.Set(&one.Deployment, p.Deployment)
	optional.Set(&one.Engine, p.Engine)
	optional.Set(&one.Overheads, p.Overheads)
	optional.Set(&one.StepTime, p.StepTime)
	optional.Set(&one.Cost, p.Cost)
	if p.origin != nil {
		one.origin = p.origin
	}
	return &one
}
