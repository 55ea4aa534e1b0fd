package catalog

import (
	"fmt"
	"io"

	"clifftop/internal/faults"

	"github.com/goccy/go-yaml"

	"clifftop/model"
)

// CalibratedRecord is a GPU of the catalogue as measurements of one's own correct it. Factors are of the fraction of
// peak or bandwidth that is reached; what is left out stays as it is.
type CalibratedRecord struct {
	Name string `yaml:"name"`
	// Base is the catalogue's name of the GPU.
	Base        string `yaml:"base"`
	Calibration struct {
		// Source says what was measured.
		Source           string   `yaml:"source,omitempty"`
		GEMMCompute      *float64 `yaml:"gemm_compute,omitempty"`
		GEMMMemory       *float64 `yaml:"gemm_memory,omitempty"`
		AttentionCompute *float64 `yaml:"attention_compute,omitempty"`
		AttentionMemory  *float64 `yaml:"attention_memory,omitempty"`
		MoECompute       *float64 `yaml:"moe_compute,omitempty"`
		// StepMilliseconds is added to the overhead of a step, SequenceMicroseconds to that of each sequence in it.
		StepMilliseconds     *float64 `yaml:"step_ms,omitempty"`
		SequenceMicroseconds *float64 `yaml:"per_sequence_us,omitempty"`
		// FrontendMilliseconds is how long the front end holds every request up.
		FrontendMilliseconds *float64 `yaml:"frontend_ms,omitempty"`
	} `yaml:"calibration"`
}

// Write writes the record as a file that a scenario can name at gpu.
func (r *CalibratedRecord) Write(w io.Writer) error {
	text, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Correct changes the constants of a GPU as the record says.
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
	g.Name, g.Aliases = canonical(r.Name), nil
	if r.Calibration.Source != "" {
		g.Source += "; calibrated: " + r.Calibration.Source
	}
	return g, g.Validate()
}

// validate refuses corrections that no measurement gives.
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
	return f.Err()
}
