package calibration

import (
	"fmt"
	"math"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model/catalog"
)

// Parameter is a constant that can be fitted.
type Parameter struct {
	// Name is its key in the record, and Unit the unit of its value; "×" marks a factor.
	Name, Unit string
	// scale is the spread of the prior, in the units of the fit: the logarithm of a factor, or the value.
	scale float64
	// host says that the constant belongs to the host and not to the GPU.
	host bool
	// runsOnly says that single iterations tell nothing of it, moeOnly that it needs a mixture of experts.
	runsOnly, moeOnly bool

	set func(*catalog.CalibratedRecord, *float64)
}

// Parameters are the constants that can be fitted.
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

// Choose picks parameters by name; none picks all that the measurements can tell of. moe says that the model is a mixture
// of experts, runs that whole runs were measured.
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
				return nil, fmt.Errorf("--fit: %s cannot be told from these measurements", name)
			}
			chosen = append(chosen, p)
		}
		if !found {
			var known []string
			for _, p := range all {
				known = append(known, p.Name)
			}
			hint := yamldoc.DidYouMean(name, known)
			if hint != "" {
				hint = "\nhint: " + hint
			}
			return nil, fmt.Errorf("--fit: %q is not known (want some of %s)%s", name, strings.Join(known, ", "), hint)
		}
	}
	return chosen, nil
}

// isFactor says that the fit moves the logarithm.
func (p Parameter) isFactor() bool { return p.Unit == "×" }

// value is the parameter at a place of the fit. frontend_ms, which is a length of time and no correction, counts from
// what the release has.
func (p Parameter) value(x, frontend float64) float64 {
	switch {
	case p.isFactor():
		return math.Exp(x)
	case p.Name == "frontend_ms":
		return max(0, frontend+x)
	}
	return x
}

// record is the GPU's record at a place of the fit.
func record(base string, parameters []Parameter, x []float64, frontend float64) *catalog.CalibratedRecord {
	r := &catalog.CalibratedRecord{Name: base + "-calibrated", Base: base}
	for i, p := range parameters {
		v := p.value(x[i], frontend)
		p.set(r, &v)
	}
	return r
}
