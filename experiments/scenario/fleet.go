package scenario

import (
	"fmt"
	"strings"

	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
)

// fleetResolver resolves what the replicas have in common: pools, routing, lifecycle, and how prompts and outputs are
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

// StandingFleet is the fleet when all of its replicas are always ready.
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
				f.Replicas = append(f.Replicas, build.engineOf(&p, len(f.Replicas), check))
			}
		}
	}
	if u.isFleet() {
		f.Routers, f.Scrape = u.Scenario.routers(&u.Scenario.Deployment.Router, 0)
	}
	build.divide(&f)
	return f
}

// engineOf is the configuration of an engine of a pool, by its number among all, with a scheduler of its own.
func (u fleetBuilder) engineOf(p *PoolSetup, number int, check bool) engine.Config {
	of := u.one(*p)
	c := fleetBuilder{of}.config(check)
	c.Scheduler = of.scheduler(u.Scenario.Run.Seed, number)
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

// config is the configuration of an engine that does all the work on requests, with a scheduler for checks.
func (u fleetBuilder) config(check bool) engine.Config {
	c := u.Config
	c.Scheduler, c.Check = u.anyScheduler(), check
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

// receipts refuses a delayed receipt of requests by ranks in lock step, as SGLang does.
func (u fleetResolver) receipts() error {
	for _, p := range u.Pools {
		if p.Setup.Config.RecvInterval > 1 && p.Ranks > 1 && p.Setup.Deployment.LLM.Experts > 0 {
			return u.Scenario.Fault("engine.sglang.scheduler_recv_interval",
				"%d is not supported with data-parallel attention (want 1)", p.Setup.Config.RecvInterval)
		}
	}
	return nil
}

// pipelines lets the stages of pipelines work on batches of their own, as far as all that the scenario asks for goes
// with that.
func (u fleetResolver) pipelines() error {
	if len(u.Pools) == 0 {
		return nil // reported before
	}
	for _, p := range u.Pools {
		of := p.Setup
		if of.Deployment.PipelineParallel == 1 {
			continue
		}
		of.Config.Stages = of.Deployment.PipelineParallel
		if why := u.unpipelined(p); why != "" {
			of.Config.Stages = 0
			pool := ""
			if len(u.Pools) > 1 {
				pool = fmt.Sprintf("pool %s: ", p.Name)
			}
			u.Warn("pipeline", "%sthe pipeline stages work on one batch at a time (%s): throughput is a lower bound, without "+
				"overlap of batches", pool, why)
		}
	}
	u.Config.Stages = u.Pools[0].Setup.Config.Stages
	return nil
}

// unpipelined is what does not go with several batches in flight on a replica of the pool; empty if nothing is there.
func (u fleetResolver) unpipelined(p PoolSetup) string {
	of := p.Setup
	switch {
	case u.disaggregated():
		return "replicas that divide prompts and answers among them have no more in flight"
	case of.Deployment.LLM.Experts > 0 && p.Ranks > 1:
		return "ranks in lock step have no more in flight"
	}
	check := of.Config
	check.Scheduler = of.anyScheduler()
	if _, ok := check.Scheduler.(sched.Pipelined); !ok {
		return fmt.Sprintf("policy %s has no more in flight", of.Scenario.Engine.Policy)
	}
	if err := check.Validate(); err != nil {
		return strings.NewReplacer("pipeline stages: ", "", "\n", "; ").Replace(err.Error())
	}
	return ""
}

// measurePipelines says how many stages work on batches of their own, if that is the same for all replicas.
func (u reportResolver) measurePipelines() {
	r := &u.Report
	r.PipelineStages = u.Pools[0].Setup.Config.Stages
	for _, p := range u.Pools {
		if p.Setup.Config.Stages != r.PipelineStages {
			r.PipelineStages = 0
		}
	}
}
