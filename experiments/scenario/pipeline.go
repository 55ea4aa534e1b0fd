package scenario

import (
	"fmt"
	"strings"

	"clifftop/sim/sched"
)

// pipelines lets the stages of pipelines work on batches of their own, as far as all that the scenario asks for goes with
// that.
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
			u.Warn("pipeline", "%sthe pipeline stages work on one batch at a time (%s): throughput is a lower bound, without overlap of batches", pool, why)
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
	check.Scheduler = of.policy.New(&of.Scenario.Engine)
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
