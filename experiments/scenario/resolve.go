package scenario

import (
	"errors"
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/report"
	"clifftop/report/collect"
	"clifftop/sim"
	"clifftop/sim/engine"
)

// Setup is a scenario made ready to run. It can be run any number of times.
type Setup struct {
	// Scenario is the scenario with every default filled in that a file could have given.
	Scenario *Scenario
	// Profile is the release of the engine that is imitated.
	Profile Profile
	// Deployment is the model on its GPUs.
	Deployment *model.Deployment
	// Memory says where a GPU's memory goes; nil where the KV pool is unlimited.
	Memory *model.KVBudget
	// Config is the engine's configuration, but for its scheduler, of which every run has its own. Of unlike replicas
	// this, and what stands above, are those of the first pool.
	Config engine.Config
	// Report says what is measured.
	Report collect.Options
	// Warnings are reasons to read results with care.
	Warnings []report.Warning

	from     *Scenario // what was resolved
	resolved engine.Config
	policy   policy
	Pools    []PoolSetup // one or more
	Traffic  Traffic
	misfit   *model.FitError // why there is no Memory
	oneRank  bool            // of several that share the attention's data
	served   bool            // requests come from outside
	role     string          // of the pool that the replica belongs to
	together bool            // its data-parallel ranks are simulated as one engine
	table    tableFile       // the file that step times come from, if they do

	Failures []sim.Failure // of a run

	own *catalog.OwnAccuracy // of own measured runs; nil without

	ruled         []string // defaults that follow from the engine's rules for the GPU
	ruledSeats    bool     // max_num_seqs follows from the pool
	whole         bool     // prompts are not divided
	assumedLength int      // of the longest sequence, because of that; 0 if given
}

// Warn adds a warning with a code for programs and a text for people.
func (u *Setup) Warn(code, format string, args ...any) {
	u.Warnings = append(u.Warnings, report.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
}

// Resolve looks names up, sizes the KV pool and builds the engine's configuration. The error is
// [yamldoc.Faults].
func (s *Scenario) Resolve() (*Setup, error) { return s.resolve(Setup{}) }

// ResolveServed is [Scenario.Resolve] for requests that come from programs outside, in place of the scenario's traffic.
// They have sessions.
func (s *Scenario) ResolveServed() (*Setup, error) { return s.resolve(Setup{served: true}) }

// ResolveRank is [Scenario.Resolve] for one of the data_parallel_size attention ranks, which iterate
// in lock step and are taken to be loaded alike: the traffic is that of the one rank, and so is what is
// measured.
func (s *Scenario) ResolveRank() (*Setup, error) { return s.resolve(Setup{oneRank: true}) }

// resolve resolves the scenario for a setup that has what does not follow from it.
func (s *Scenario) resolve(as Setup) (*Setup, error) {
	u, faults, err := s.resolveAll(as)
	switch {
	case err != nil:
		return nil, err
	case faults != nil:
		return nil, faults
	}
	u.resolved = u.Config
	for _, p := range u.Pools {
		p.Setup.resolved = p.Setup.Config
	}
	return u, nil
}

// resolveAll goes on after faults, so that all of them show.
func (s *Scenario) resolveAll(as Setup) (*Setup, yamldoc.Faults, error) {
	resolved := *s
	as.Scenario, as.from = &resolved, s
	u := &as
	if s.origin != nil {
		for _, r := range s.origin.renamed {
			u.Warn("renamed", "%v", r)
		}
	}
	fleet, traffic := fleetResolver{u}, trafficResolver{u}
	faults, err := u.take(fleet.atMost, fleet.resolvePools, fleet.receipts, fleet.pipelines, fleet.lifecycle,
		traffic.trafficSource, fleet.adapters, fleet.routing, traffic.clients, reportResolver{u}.measures)
	if err == nil && faults == nil {
		faults, err = u.take(fleet.answerable) // which draws from the traffic
	}
	if err != nil {
		return nil, nil, err
	}
	return u, faults, nil
}

// take takes steps, and collects their faults.
func (u *Setup) take(steps ...func() error) (faults yamldoc.Faults, err error) {
	for _, step := range steps {
		err := step()
		var f *yamldoc.Fault
		var fs yamldoc.Faults
		switch {
		case errors.As(err, &fs):
			faults = append(faults, fs...)
		case errors.As(err, &f):
			faults = append(faults, f)
		case err != nil:
			return nil, err
		}
		if err != nil && u.Deployment == nil {
			break // nothing further can be said without it
		}
	}
	return faults, nil
}

// Given reports whether a key was given by the file or a flag.
func (s *Scenario) Given(key string) bool {
	if s.origin == nil {
		return false
	}
	_, ok := s.origin.places[key]
	return ok
}

// FirstGiven is the first of the keys that was given, or the first of all.
func (s *Scenario) FirstGiven(keys ...string) string {
	for _, key := range keys {
		if s.Given(key) {
			return key
		}
	}
	return keys[0]
}
