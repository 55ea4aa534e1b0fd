package sim

import (
	"fmt"

	"clifftop/sim/engine"
)

// validateLockstep reports what is wrong with the lockstep groups.
func (f *Fleet) validateLockstep() (faults []error) {
	i := 0
	for _, n := range f.Lockstep {
		for k := i; n > 1 && k < min(i+n, len(f.Replicas)); k++ {
			if f.Replicas[k].RecvInterval > 1 {
				faults = append(faults, fmt.Errorf("lock step: replica %d has a scheduler_recv_interval, "+
					"which lockstep groups do not support", k))
			}
			if f.Replicas[k].Connector != nil {
				faults = append(faults, fmt.Errorf("lock step: replica %d has a KV connector, "+
					"which lockstep groups do not support", k))
			}
		}
		if n < 1 || i+n > len(f.Replicas) {
			return append(faults, fmt.Errorf("lock step: groups of %v are not the %d replicas", f.Lockstep,
				len(f.Replicas)))
		}
		for j := i + 1; j < i+n; j++ {
			a, b := &f.Replicas[i], &f.Replicas[j]
			if a.AsyncScheduling != b.AsyncScheduling || a.CPUStep != b.CPUStep ||
				a.CPUPerSequence != b.CPUPerSequence {
				faults = append(faults, fmt.Errorf("lock step: replicas %d and %d do not schedule alike", i, j))
			}
		}
		i += n
	}
	if f.Lockstep != nil && i != len(f.Replicas) {
		return append(faults, fmt.Errorf("lock step: groups of %v are not the %d replicas", f.Lockstep,
			len(f.Replicas)))
	}
	return faults
}

// lock joins consecutive replicas into groups of the given sizes.
func (e *Simulation) lock(groups []int) {
	rest := e.replicas
	for _, n := range groups {
		if n > 1 {
			e.locked = true
			engine.NewGroup(engines(rest[:n]))
		}
		rest = rest[n:]
	}
}

// validatePipelines reports lockstep groups with pipeline stages.
func (f *Fleet) validatePipelines() (faults []error) {
	i := 0
	for _, n := range f.Lockstep {
		for k := i; n > 1 && k < min(i+n, len(f.Replicas)); k++ {
			if f.Replicas[k].Stages > 1 {
				faults = append(faults, fmt.Errorf("lock step: replica %d has pipeline stages, "+
					"which lockstep groups do not support", k))
			}
		}
		i += max(n, 0)
	}
	return faults
}

// engines returns the engines of replicas.
func engines(replicas []*Replica) (all []*engine.Engine) {
	for _, r := range replicas {
		all = append(all, r.Engine)
	}
	return all
}
