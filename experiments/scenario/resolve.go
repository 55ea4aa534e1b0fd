package scenario

import (
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model/catalog"
	"clifftop/report"
	"clifftop/report/collect"
	"clifftop/sim"
	"clifftop/sim/engine"
)

// Setup is a scenario made ready to run. It can be run any number of times, and nothing changes it.
type Setup struct {
	// Scenario is the scenario with every default filled in that a file could have given.
	Scenario *Scenario
	// Pools are the replicas: one pool or more, those that compute prompts for others first.
	Pools pools
	// Traffic makes the requests.
	Traffic Traffic
	// Failures are the failures of a run.
	Failures []sim.Failure
	// Report says what is measured.
	Report collect.Options
	// Warnings are reasons to read results with care.
	Warnings []report.Warning

	accuracy *catalog.OwnAccuracy // of own measured runs; nil without
	given    given
}

// given has the sources of a setup.
type given struct {
	scenario *Scenario
	oneRank  bool                 // of several that share the attention's data
	served   bool                 // requests come from outside
	change   func(*engine.Config) // of the engines, by a program; nil for none
}

// Resolve looks names up, sizes the KV pool and builds the engine's configuration. The error is
// [yamldoc.Faults].
func (s *Scenario) Resolve() (*Setup, error) { return given{scenario: s}.setup() }

// ResolveServed is [Scenario.Resolve] for requests that come from programs outside, in place of the scenario's traffic.
// They have sessions.
func (s *Scenario) ResolveServed() (*Setup, error) { return given{scenario: s, served: true}.setup() }

// ResolveRank is [Scenario.Resolve] for one of the data_parallel_size attention ranks, which iterate
// in lock step and are taken to be loaded alike: the traffic is that of the one rank, and so is what is
// measured.
func (s *Scenario) ResolveRank() (*Setup, error) { return given{scenario: s, oneRank: true}.setup() }

// setup resolves the scenario. The error is [yamldoc.Faults] if the scenario is wrong.
func (in given) setup() (*Setup, error) {
	u, faults, err := in.resolve()
	switch {
	case err != nil:
		return nil, err
	case faults != nil:
		return nil, faults
	}
	return u, nil
}

// resolve goes on after faults, so that all of them show. The setup then has the pools, as far as they are known.
func (in given) resolve() (*Setup, yamldoc.Faults, error) {
	var found findings
	if in.scenario.origin != nil {
		for _, r := range in.scenario.origin.renamed {
			found.warn("renamed", "%v", r)
		}
	}
	s, fault := withMost(in.scenario)
	if fault != nil {
		return nil, yamldoc.Faults{fault}, nil
	}
	l, more, ok := resolvePools(s, in.oneRank)
	if found.add(more); !ok {
		return &Setup{Pools: l}, found.faults, nil
	}
	l, division, more := resolveRoles(s, l, in.served)
	if !found.add(more) {
		return nil, found.faults, nil
	}
	found.fault(l.alike(s), l.receipts(s))
	found.add(l.judgePipelines())
	lifecycle, failures, more := resolveLifecycle(s, l, in.oneRank)
	found.add(more)
	traffic, w, run, more := resolveTraffic(s, &l[0].Deployment.LLM, l.longest())
	found.add(more)
	l, more = resolveAdapters(l, &traffic)
	found.add(more)
	router, division, more := resolveRouting(s, l, division, &traffic, in.served)
	found.add(more)
	clients, reading, more := resolveClients(s, l, division, w.Classes, in.served)
	found.add(more)
	traffic.clients = clients
	own, fault := s.ownAccuracy()
	found.fault(fault)
	report, more := resolveReport(s, &w, &traffic)
	found.add(more)
	if found.faults != nil {
		return &Setup{Pools: l}, found.faults, nil
	}
	if fault, err := l.answerable(s, &traffic); err != nil || fault != nil {
		found.fault(fault)
		return nil, found.faults, err
	}
	whole := l.scenario(s)
	whole.Disaggregation, whole.Lifecycle, whole.Workload, whole.Run = division, lifecycle, w, run
	whole.Deployment.Router = router
	report.Reading = reading
	if len(whole.Pools) == 0 {
		l[0].Scenario = whole
	}
	for i := range l {
		if in.change != nil {
			in.change(&l[i].Config)
		}
	}
	return &Setup{Scenario: whole, Pools: l, Traffic: traffic, Failures: failures, Report: measured(report, whole, l),
		Warnings: found.warnings, accuracy: own, given: in}, nil, nil
}

// scenario is the whole scenario with the keys of the pools, or of the one replica, filled in.
func (l pools) scenario(s *Scenario) *Scenario {
	if len(s.Pools) == 0 {
		whole := *l[0].Scenario
		return &whole
	}
	whole := *s
	whole.Pools = slices.Clone(s.Pools)
	for i := range l {
		p, one := &whole.Pools[l[i].number], l[i].Scenario
		p.Model, p.GPU, p.Deployment, p.Engine, p.Overheads, p.StepTime, p.Cost = &one.Model, &one.GPU, &one.Deployment,
			&one.Engine, &one.Overheads, &one.StepTime, &one.Cost
	}
	return &whole
}

// resolveAdapters limits the adapters of an iteration: without max_loras to one where the traffic has adapters, as vLLM
// does.
func resolveAdapters(l pools, t *Traffic) (_ pools, found findings) {
	l = slices.Clone(l)
	for i := range l {
		one := *l[i].Scenario
		e := &one.Engine
		switch {
		case e.MaxLoRAs != nil && e.Policy != "vllm" && e.Policy != "preemptive":
			found.warn("unused", "engine.max_loras has no effect on policy %s", e.Policy)
		case e.MaxLoRAs == nil && e.Policy == "vllm" && t.UsesAdapters():
			e.MaxLoRAs = optional.Of(1)
			l[i].Scenario = &one
			found.warn("max_loras", "max_loras is 1, vLLM's default: the requests of an iteration use one adapter")
		}
	}
	return l, found
}
