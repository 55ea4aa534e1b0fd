package scenario

import (
	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/engine"
)

// fleetResolver resolves what the replicas have in common: pools, routing, lifecycle, and how prompts and answers are
// divided.
type fleetResolver struct{ *Setup }

// fleetBuilder makes the fleet of one run.
type fleetBuilder struct{ *Setup }

// Fleet is the configuration of a run, with schedulers and routers of its own.
func (u *Setup) Fleet(check bool) sim.Fleet {
	f := u.StandingFleet(check)
	f.Lifecycle = fleetBuilder{u}.lives(check)
	return f
}

// StandingFleet is the fleet when all of its replicas are ready for ever.
func (u *Setup) StandingFleet(check bool) sim.Fleet {
	var f sim.Fleet
	build := fleetBuilder{u}
	for _, p := range u.Pools {
		of := build.one(p)
		group := 1 // of ranks that exchange with each other's experts
		if of.Deployment.LLM.Experts > 0 {
			group = p.Ranks
		}
		for range p.Engines() / group {
			f.Lockstep = append(f.Lockstep, group)
			for range group {
				f.Replicas = append(f.Replicas, build.engineOf(&p, check))
			}
		}
	}
	f.Routers, f.Scrape = build.routers()
	build.divide(&f)
	return f
}

// engineOf is the configuration of an engine of a pool, with a scheduler of its own.
func (u fleetBuilder) engineOf(p *PoolSetup, check bool) engine.Config {
	c := fleetBuilder{u.one(*p)}.config(check)
	if !u.disaggregated() {
		return c
	}
	c.Connector = p.connector()
	if d := u.Scenario.Disaggregation; p.role == "prefill" {
		c.MaxTokens = 0
	} else {
		c.Connector.PullPercent, c.Connector.FailLost = d.PullPercent, d.KVLoadFailurePolicy == "fail"
	}
	return c
}

// config is the configuration of an engine that does all the work on requests, with a scheduler of its own.
func (u fleetBuilder) config(check bool) engine.Config {
	c := u.Config
	c.Scheduler, c.Check = u.policy.New(&u.Scenario.Engine), check
	if w, ok := c.Timer.(interface{ Work() *model.Work }); ok && check {
		c.Floor = w.Work().Floor
	}
	return c
}

// one is the setup of a replica of a pool.
func (u fleetBuilder) one(p PoolSetup) *Setup {
	if len(u.Scenario.Pools) == 0 {
		return u.Setup // and not the one that it is a copy of
	}
	return p.Setup
}
