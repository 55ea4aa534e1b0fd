package catalog

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"clifftop/internal/faults"
	"clifftop/model"

	"github.com/goccy/go-yaml"
)

// CalibratedRecord corrects a GPU of the catalog by the user's measurements. Factors multiply the achieved fraction
// of peak or bandwidth; missing values change nothing.
type CalibratedRecord struct {
	Name string `yaml:"name"`
	// Base is the name of the GPU in the catalog.
	Base        string `yaml:"base"`
	Calibration struct {
		// Source describes the measurement.
		Source           string   `yaml:"source,omitempty"`
		GEMMCompute      *float64 `yaml:"gemm_compute,omitempty"`
		GEMMMemory       *float64 `yaml:"gemm_memory,omitempty"`
		AttentionCompute *float64 `yaml:"attention_compute,omitempty"`
		AttentionMemory  *float64 `yaml:"attention_memory,omitempty"`
		MoECompute       *float64 `yaml:"moe_compute,omitempty"`
		// StepMilliseconds is added to the overhead of a step, SequenceMicroseconds to that of each sequence in it.
		StepMilliseconds     *float64 `yaml:"step_ms,omitempty"`
		SequenceMicroseconds *float64 `yaml:"per_sequence_us,omitempty"`
		// FrontendMilliseconds is the delay of each request in the engine's front end.
		FrontendMilliseconds *float64 `yaml:"frontend_ms,omitempty"`
	} `yaml:"calibration"`
	// Evidence describes the measured runs; nil if the record was written by hand or fitted to iterations.
	Evidence *CalibrationEvidence `yaml:"evidence,omitempty"`
}

// CalibrationEvidence describes the measured runs that a record was fitted to.
type CalibrationEvidence struct {
	// Clifftop is the version of the program that fitted the constants.
	Clifftop string `yaml:"clifftop"`
	// GPU is the one that the runs used: the base.
	GPU   string   `yaml:"gpu"`
	Runs  int      `yaml:"runs"`
	Names []string `yaml:"names"`
	// Models are those of the runs, by the catalog's names.
	Models []string `yaml:"models"`
	// LeftOut has the median size of the errors by metric, as fractions, of runs that a fit to the others predicts.
	LeftOut map[string]float64 `yaml:"left_out"`
	// NotIdentified names the constants that the runs do not determine. They have the catalog's value.
	NotIdentified []string `yaml:"not_identified,omitempty"`
}

// leftOut returns the error of a metric; nil if no run has it.
func (e *CalibrationEvidence) leftOut(metric string) *float64 {
	if v, ok := e.LeftOut[metric]; ok {
		return &v
	}
	return nil
}

// Write writes the record as a file for the scenario key gpu.
func (r *CalibratedRecord) Write(w io.Writer) error {
	text, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Correct applies the record to the constants of a GPU.
func (r *CalibratedRecord) Correct(g *model.GPU) {
	a := r.adjustment()
	g.Kernels = g.Kernels.Adjusted(a)
	if g.Tables != (model.KernelConstants{}) {
		g.Tables = g.Tables.Adjusted(a)
	}
}

func (r *CalibratedRecord) adjustment() model.Adjustment {
	c := &r.Calibration
	of := func(p *float64) float64 {
		if p == nil {
			return 0
		}
		return *p
	}
	return model.Adjustment{
		GEMMCompute: of(c.GEMMCompute), GEMMMemory: of(c.GEMMMemory),
		AttentionCompute: of(c.AttentionCompute), AttentionMemory: of(c.AttentionMemory), MoECompute: of(c.MoECompute),
		StepSeconds: of(c.StepMilliseconds) / 1e3, SequenceSeconds: of(c.SequenceMicroseconds) / 1e6,
	}
}

func readCalibrated(file string, data []byte) (model.GPU, error) {
	var r CalibratedRecord
	if err := decode(file, data, &r); err != nil {
		return model.GPU{}, err
	}
	g, err := GPU(r.Base)
	if err != nil {
		return g, fmt.Errorf("%s: base: %w", file, err)
	}
	if err := r.validate(); err != nil {
		return g, fmt.Errorf("%s: %s", file, oneLine(err))
	}
	r.Correct(&g)
	if f := r.Calibration.FrontendMilliseconds; f != nil {
		g.FrontendSeconds = *f / 1e3
	}
	if e := r.Evidence; e != nil {
		g.Own = &model.OwnRuns{Base: g.Name, Clifftop: e.Clifftop, Runs: e.Runs, Models: e.Models,
			TTFT: e.leftOut("ttft_mean_ms"), TPOT: e.leftOut("tpot_mean_ms")}
		if g.Own.Validates() {
			g.Calibrated = model.Calibrated
		}
	}
	g.Name, g.Aliases = canonical(r.Name), nil
	if r.Calibration.Source != "" {
		g.Source += "; calibrated: " + r.Calibration.Source
	}
	return g, g.Validate()
}

// validate rejects implausible corrections.
func (r *CalibratedRecord) validate() error {
	var f faults.List
	f.Check(r.Name != "", "name is missing")
	c := &r.Calibration
	for _, v := range []struct {
		key       string
		p         *float64
		low, high float64
	}{
		{"gemm_compute", c.GEMMCompute, 0.1, 10}, {"gemm_memory", c.GEMMMemory, 0.1, 10},
		{"attention_compute", c.AttentionCompute, 0.1, 10}, {"attention_memory", c.AttentionMemory, 0.1, 10},
		{"moe_compute", c.MoECompute, 0.1, 10}, {"step_ms", c.StepMilliseconds, -10, 1000},
		{"per_sequence_us", c.SequenceMicroseconds, -100, 1e5}, {"frontend_ms", c.FrontendMilliseconds, 0, 1e4},
	} {
		if v.p != nil {
			faults.Within(&f, "calibration."+v.key, *v.p, v.low, v.high)
		}
	}
	if e := r.Evidence; e != nil {
		f.Check(e.GPU == r.Base, "evidence.gpu is %s, but base is %s (want the runs of the base)", e.GPU, r.Base)
		f.Check(e.Runs >= 1, "evidence.runs is %d (want 1 or more)", e.Runs)
		f.Check(len(e.Names) == e.Runs, "evidence.names has %d names for %d runs (want one for each)",
			len(e.Names), e.Runs)
		f.Check(len(e.Models) > 0, "evidence.models is missing (want the models of the runs, such as [llama-3.1-8b])")
		for _, m := range slices.Sorted(maps.Keys(e.LeftOut)) {
			faults.Within(&f, "evidence.left_out."+m, e.LeftOut[m], 0, 1e3)
		}
	}
	return f.Err()
}
