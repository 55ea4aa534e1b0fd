package experiments

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"clifftop/report"
)

// Variant is a scenario under a name.
type Variant struct {
	Name     string
	Scenario *Scenario
}

// CompareOptions says how to compare. The zero value takes the defaults.
type CompareOptions struct {
	// Replications is the number of runs of each variant; 0 is 5.
	Replications int
	// Jobs is the number of runs at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Progress is told, from one goroutine at a time, how many of the runs are done.
	Progress func(done, total int)
}

const defaultReplications = 5

// Vary makes a variant for each value of a key, the first being the baseline. spec is KEY=V1,V2,…
func Vary(s *Scenario, spec string) ([]Variant, error) {
	key, values, err := ParseOver(spec)
	var fs Faults
	if errors.As(err, &fs) {
		fs[0].Where = "--vary"
		return nil, fs
	}
	if len(values) < 2 {
		return nil, Faults{{Where: "--vary", Problem: fmt.Sprintf("%q has no values to compare (want KEY=V1,V2 or more)", short(spec))}}
	}
	var variants []Variant
	for _, v := range values {
		at, err := s.With(Setting{Key: key, Value: v, Flag: "--vary " + key})
		if err != nil {
			return nil, err
		}
		variants = append(variants, Variant{Name: key[strings.LastIndexByte(key, '.')+1:] + "=" + v, Scenario: at})
	}
	return variants, nil
}

// Compare runs every variant with the same seeds, the scenario's of the first and those after it, and holds the
// others against the first.
func Compare(ctx context.Context, variants []Variant, o CompareOptions) (*report.Verdict, error) {
	n := o.Replications
	if n == 0 {
		n = defaultReplications
	}
	if n < 1 || n > maxReplications {
		return nil, Faults{{Where: "--replications", Problem: fmt.Sprintf("%d is not allowed (want 1 to %d)", n, maxReplications)}}
	}
	if len(variants) < 2 {
		return nil, Faults{{Problem: fmt.Sprintf("found %d scenarios to compare (want two or more, or one and --vary KEY=V1,V2)", len(variants))}}
	}
	var names []string
	var seeds []uint64
	var setups []*Setup
	for k := range n {
		seeds = append(seeds, variants[0].Scenario.Run.Seed+uint64(k))
	}
	for _, v := range variants {
		names = append(names, v.Name)
		for _, seed := range seeds {
			s := *v.Scenario
			s.Run.Seed = seed
			u, err := s.Resolve()
			if err != nil {
				return nil, err
			}
			setups = append(setups, u)
		}
	}
	results, err := runAll(ctx, setups, SweepOptions{Jobs: o.Jobs, Check: o.Check, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	var runs [][]*report.Summary
	for i := range variants {
		runs = append(runs, results[i*n:(i+1)*n])
	}
	verdict := report.Compare(names, seeds, runs)
	verdict.Clifftop = Version
	verdict.Warnings = append(verdict.Warnings, setups[0].Warnings...)
	return verdict, nil
}
