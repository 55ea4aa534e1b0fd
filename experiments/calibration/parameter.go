package calibration

import (
	"fmt"
	"math"
	"strings"

	"clifftop/experiments"
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

	set func(*catalog.CalibratedRecord, *float64)
}

// Parameters returns the constants that can be fitted.
func Parameters() []Parameter {
	const factor = 0.2
	return []Parameter{
		{Name: "gemm_compute", Unit: "×", scale: factor, set: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.GEMMCompute = v }},
		{Name: "gemm_memory", Unit: "×", scale: factor, set: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.GEMMMemory = v }},
		{Name: "attention_compute", Unit: "×", scale: factor, set: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.AttentionCompute = v }},
		{Name: "attention_memory", Unit: "×", scale: factor, set: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.AttentionMemory = v }},
		{Name: "moe_compute", Unit: "×", scale: factor, moeOnly: true, set: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.MoECompute = v }},
		{Name: "step_ms", Unit: "ms", host: true, scale: 0.5, set: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.StepMilliseconds = v }},
		{Name: "per_sequence_us", Unit: "µs", host: true, scale: 10, set: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.SequenceMicroseconds = v }},
		{Name: "frontend_ms", Unit: "ms", host: true, scale: 5, runsOnly: true, set: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.FrontendMilliseconds = v }},
	}
}

// Choose returns parameters by name, or without names all that the measurements can determine. The flag moe says that
// the model is a mixture of experts, and runs that whole runs were measured.
func Choose(names []string, moe, runs bool) ([]Parameter, error) {
	var chosen []Parameter
	all := Parameters()
	for _, p := range all {
		if len(names) == 0 && (moe || !p.moeOnly) && (runs || !p.runsOnly) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		found := false
		for _, p := range all {
			if p.Name != name {
				continue
			}
			found = true
			if p.moeOnly && !moe || p.runsOnly && !runs {
				return nil, fmt.Errorf("--fit: %s cannot be determined from these measurements", name)
			}
			chosen = append(chosen, p)
		}
		if !found {
			var known []string
			for _, p := range all {
				known = append(known, p.Name)
			}
			hint := experiments.DidYouMean(name, known)
			if hint != "" {
				hint = "\nhint: " + hint
			}
			return nil, fmt.Errorf("--fit: %q is not known (want some of %s)%s", name, strings.Join(known, ", "), hint)
		}
	}
	return chosen, nil
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

// record returns the GPU's record at x.
func record(base string, parameters []Parameter, x []float64, frontend float64) *catalog.CalibratedRecord {
	r := &catalog.CalibratedRecord{Name: base + "-calibrated", Base: base}
	for i, p := range parameters {
		v := p.value(x[i], frontend)
		p.set(r, &v)
	}
	return r
}
