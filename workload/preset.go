package workload

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"clifftop/sim/clock"
	"github.com/goccy/go-yaml"
)

// Preset is a ready description of a kind of real traffic.
type Preset struct {
	// Name is what scenarios call it; Title says what it is.
	Name, Title string
	// Provenance says how the figures came about: fitted, fitted-partial, digitised, reconstructed,
	// published-aggregates or judgement. Source names the data, with its licence.
	Provenance, Source string
	// Spec is the traffic, without limits. Keys that cannot be filled are zero and named in Spec.Needs.
	Spec Spec
	// Sessions are the conversations that the requests come from, where the data tell of them; Spec has single requests.
	Sessions *SessionSpec
	// Input and Output describe the lengths in the data; a zero value is not published.
	Input, Output Sampled
	// Independent is the law of answers regardless of the prompt, where Spec.Output depends on it.
	Independent LengthsSpec
	// Spearman is the rank correlation of prompt and answer in the data, where Spec.Output depends
	// on the prompt.
	Spearman float64
}

// Sampled describes lengths in a data set.
type Sampled struct {
	Mean float64 // tokens
	Rows int64   // number of lengths; 0 is unknown
	KS   float64 // Kolmogorov–Smirnov distance of the preset's law from them; 0 is unknown
}

// Needs says in words what one has to set oneself to use the preset, or nothing.
func (p Preset) Needs() []string {
	var keys []string
	if len(p.Spec.Classes) > 0 {
		return nil // they have what it takes
	}
	for _, n := range p.Spec.Needs {
		keys = append(keys, n.Key)
	}
	return keys
}

// Judgement says that no public data stand behind the preset.
func (p Preset) Judgement() bool { return p.Provenance == "judgement" }

//go:embed presets.yaml
var presetFile []byte

// loadPresets reads the file once; the result is not changed.
var loadPresets = sync.OnceValues(readPresets)

// Presets are all presets, in the order of their file.
func Presets() ([]Preset, error) {
	list, err := loadPresets()
	return slices.Clone(list), err
}

// FindPreset looks a preset up by its name, in any case. An unknown name is answered with the nearest.
func FindPreset(name string) (Preset, error) {
	list, err := loadPresets()
	if err != nil {
		return Preset{}, err
	}
	var names []string
	for _, p := range list {
		if strings.EqualFold(p.Name, name) {
			return p, nil
		}
		names = append(names, p.Name)
	}
	want := "one of " + strings.Join(names, ", ")
	if near := Nearest(name, names, 3); len(near) > 0 {
		want = orList(near)
	}
	return Preset{}, &FieldError{Key: "workload.preset", Problem: fmt.Sprintf("%q is not known (want %s)", name, want)}
}

// presetDoc is the layout of the file.
type presetDoc struct {
	Grid    []float64
	Presets []struct {
		Name, Title, Provenance, Source string
		Arrivals                        *Stage
		Input, Output                   *lawDoc
		Joint                           *struct {
			Spearman float64
			Edges    []int32
			P        []float64
			Rows     [][]float64
		}
		Sessions *SessionSpec
		Classes  []classDoc
		Needs    []Need
	}
}

// classDoc is a class of a mixture, which may be another preset's traffic, as conversations where it has them.
type classDoc struct {
	ClassSpec `yaml:",inline"`
	Preset    string
}

// class resolves the reference to one of the presets before.
func (d *classDoc) class(before []Preset, grid []float64) ClassSpec {
	c := d.ClassSpec
	for _, p := range before {
		if p.Name == d.Preset {
			c.Input, c.Output, c.Sessions = p.Spec.Input, p.Spec.Output, p.Sessions
		}
	}
	c.Sessions.onGrid(grid)
	return c
}

// onGrid gives tables of quantiles that have no probabilities those of the file.
func (s *SessionSpec) onGrid(grid []float64) {
	if s == nil {
		return
	}
	for _, l := range []*LengthsSpec{&s.Turns, &s.FirstPrompt, &s.LaterUserTokens} {
		if l.Distribution == "quantiles" && l.P == nil {
			l.P = grid
		}
	}
}

// lawDoc is a quantile table, or a clipped lognormal law.
type lawDoc struct {
	Mean      float64
	N         int64
	KS        float64
	P, Q      []float64
	Mu, Sigma float64
	Min, Max  int32
}

func (l *lawDoc) spec(grid []float64) (LengthsSpec, Sampled) {
	if l == nil {
		return LengthsSpec{}, Sampled{}
	}
	s := LengthsSpec{Distribution: "lognormal", Mu: l.Mu, Sigma: l.Sigma, Min: l.Min, Max: l.Max}
	if l.Q != nil {
		s = LengthsSpec{Distribution: "quantiles", P: l.P, Q: l.Q}
		if l.P == nil {
			s.P = grid
		}
	}
	return s, Sampled{Mean: l.Mean, Rows: l.N, KS: l.KS}
}

func readPresets() ([]Preset, error) {
	var doc presetDoc
	unit := yaml.CustomUnmarshaler(func(d *clock.Duration, b []byte) error {
		v, err := time.ParseDuration(strings.TrimSpace(string(b)))
		*d = clock.Duration(v) * clock.Nanosecond
		return err
	})
	if err := yaml.UnmarshalWithOptions(presetFile, &doc, yaml.Strict(), unit); err != nil {
		return nil, fmt.Errorf("presets.yaml: %w", err)
	}
	var list []Preset
	for _, d := range doc.Presets {
		p := Preset{Name: d.Name, Title: d.Title, Provenance: d.Provenance, Source: d.Source}
		if d.Arrivals != nil {
			p.Spec.Arrivals = []Stage{*d.Arrivals}
		}
		p.Spec.Input, p.Input = d.Input.spec(doc.Grid)
		p.Spec.Output, p.Output = d.Output.spec(doc.Grid)
		p.Spec.Needs, p.Sessions = d.Needs, d.Sessions
		p.Sessions.onGrid(doc.Grid)
		for i := range d.Classes {
			p.Spec.Classes = append(p.Spec.Classes, d.Classes[i].class(list, doc.Grid))
		}
		p.Independent = p.Spec.Output
		if j := d.Joint; j != nil {
			p.Spec.Output = LengthsSpec{Distribution: "given-input", Edges: j.Edges, P: j.P, Rows: j.Rows}
			p.Spearman = j.Spearman
		}
		list = append(list, p)
	}
	return list, nil
}
