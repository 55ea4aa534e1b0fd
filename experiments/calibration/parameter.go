package calibration

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model/catalog"
)

// Parameter is a constant that can be fitted.
type Parameter struct {
	// Name is the key in the record. Unit is the unit of the value; "×" marks a factor.
	Name, Unit string
	// scale is the standard deviation of the prior in the units of the fit: the logarithm of a factor, or the value.
	scale float64
	// host reports that the constant belongs to the host, not to the GPU.
	host bool
	// runsOnly reports that single iterations cannot determine it, moeOnly that it needs a mixture of experts.
	runsOnly, moeOnly bool
}

func (p Parameter) field(r *catalog.CalibratedRecord) **float64 {
	c := &r.Calibration
	switch p.Name {
	case "gemm_compute":
		return &c.GEMMCompute
	case "gemm_memory":
		return &c.GEMMMemory
	case "attention_compute":
		return &c.AttentionCompute
	case "attention_memory":
		return &c.AttentionMemory
	case "moe_compute":
		return &c.MoECompute
	case "step_ms":
		return &c.StepMilliseconds
	case "per_sequence_us":
		return &c.SequenceMicroseconds
	}
	return &c.FrontendMilliseconds
}

// Parameters returns the constants that can be fitted. A new one also needs a case in [Parameter.field].
func Parameters() []Parameter {
	const factor = 0.2
	return []Parameter{
		{Name: "gemm_compute", Unit: "×", scale: factor},
		{Name: "gemm_memory", Unit: "×", scale: factor},
		{Name: "attention_compute", Unit: "×", scale: factor},
		{Name: "attention_memory", Unit: "×", scale: factor},
		{Name: "moe_compute", Unit: "×", scale: factor, moeOnly: true},
		{Name: "step_ms", Unit: "ms", host: true, scale: 0.5},
		{Name: "per_sequence_us", Unit: "µs", host: true, scale: 10},
		{Name: "frontend_ms", Unit: "ms", host: true, scale: 5, runsOnly: true},
	}
}

// choose returns parameters by name, or without names all that the measurements can determine. The flag moe says that
// the model is a mixture of experts, and runs that whole runs were measured.
func choose(names []string, moe, runs bool) ([]Parameter, error) {
	all := Parameters()
	var known []string
	var chosen []Parameter
	for _, p := range all {
		known = append(known, p.Name)
		if len(names) == 0 && p.determined(moe, runs) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			hint := yamldoc.DidYouMean(name, known)
			if hint != "" {
				hint = "\nhint: " + hint
			}
			return nil, fmt.Errorf("--fit: %q is not known (want some of %s)%s", name, strings.Join(known, ", "), hint)
		}
		if !all[i].determined(moe, runs) {
			return nil, fmt.Errorf("--fit: %s cannot be determined from these measurements", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// determined reports whether measurements can determine the parameter.
func (p Parameter) determined(moe, runs bool) bool {
	return (moe || !p.moeOnly) && (runs || !p.runsOnly)
}

// isFactor reports whether the fit works on the logarithm.
func (p Parameter) isFactor() bool { return p.Unit == "×" }

// value returns the parameter's value at x. The value of frontend_ms is a duration, not a correction, and x is added to
// the duration of the engine version.
func (p Parameter) value(x, frontend float64) float64 {
	switch {
	case p.isFactor():
		return math.Exp(x)
	case p.Name == "frontend_ms":
		return max(0, frontend+x)
	}
	return x
}

func record(base string, parameters []Parameter, x []float64, frontend float64) *catalog.CalibratedRecord {
	r := &catalog.CalibratedRecord{Name: base + "-calibrated", Base: base}
	for i, p := range parameters {
		v := p.value(x[i], frontend)
		*p.field(r) = &v
	}
	return r
}
