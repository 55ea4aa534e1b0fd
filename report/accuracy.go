package report

import (
	"fmt"
	"strings"

	"clifftop/report/layout"
)

// Accuracy says how far a result can be trusted: the errors of simulated runs of its kind against measured ones.
type Accuracy struct {
	// Runs is the number of measured runs; 0 where there are none of this kind.
	Runs int `json:"runs"`
	// Scope says which runs they are, or that there are none.
	Scope string `json:"scope"`
	// Exact says that they ran on the same GPU under the same kind of load.
	Exact bool `json:"exact"`
	// SameGPU says that they ran on the same GPU at least.
	SameGPU bool `json:"-"`
	// The medians of the errors' sizes, as fractions; nil where unknown.
	TTFT       *float64 `json:"ttft"`
	TPOT       *float64 `json:"tpot"`
	E2E        *float64 `json:"e2e"`
	Throughput *float64 `json:"throughput"`
}

// String says it in words: in sample: TTFT ±3.1 %, TPOT ±1.7 % (median of 46 measured runs …). Constants of the catalog
// were fitted to many of these runs, so that errors of other runs are larger.
func (a *Accuracy) String() string {
	var parts []string
	for _, m := range []struct {
		name string
		v    *float64
	}{{"TTFT", a.TTFT}, {"TPOT", a.TPOT}, {"E2E", a.E2E}, {"throughput", a.Throughput}} {
		if m.v != nil {
			parts = append(parts, m.name+" ±"+layout.Percent(*m.v))
		}
	}
	if len(parts) == 0 {
		return a.Scope
	}
	return fmt.Sprintf("in sample: %s (%s)", strings.Join(parts, ", "), a.Scope)
}

// Unsteady notes that the system did not keep up, where it did not: runs of that kind are not among those that the
// errors are of, and a queue adds the error of every iteration up.
func (a *Accuracy) Unsteady(stationary *bool) {
	if a == nil || stationary == nil || *stationary || a.Runs == 0 {
		return
	}
	a.Exact = false
	a.Scope += "; not of overloaded ones, whose waiting times are off by much more"
}
