package workload

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"clifftop/internal/packed"
)

// Preset is a description of real traffic.
type Preset struct {
	// Name is the name in scenarios; Title is a short description.
	Name, Title string
	// Provenance says how the figures were obtained: fitted, fitted-partial, digitised, reconstructed,
	// published-aggregates or judgement. Source names the data and its licence.
	Provenance, Source string
	// Spec is the traffic without limits. Keys that the data cannot fill are zero and listed in Spec.Needs.
	Spec Spec
	// Sessions are the conversations behind the requests, if the data show them; Spec has single requests.
	Sessions *SessionSpec
	// Input and Output describe the lengths in the data; a zero value means that they are not published.
	Input, Output Sampled
	// Independent is the distribution of outputs regardless of the prompt if Spec.Output depends on it.
	Independent LengthsSpec
	// Spearman is the rank correlation of prompt and output in the data if Spec.Output depends on the prompt.
	Spearman float64
}

// Sampled describes the lengths in a data set.
type Sampled struct {
	Mean float64 // tokens
	Rows int64   // number of lengths; 0 means unknown
	KS   float64 // Kolmogorov–Smirnov distance between the preset's distribution and the data; 0 means unknown
}

// Needs returns the keys that the user must set to use the preset.
func (p Preset) Needs() []string {
	var keys []string
	if len(p.Spec.Classes) > 0 {
		return nil // their classes set them
	}
	for _, n := range p.Spec.Needs {
		keys = append(keys, n.Key)
	}
	return keys
}

// Judgement reports whether the preset is not based on public data.
func (p Preset) Judgement() bool { return p.Provenance == "judgement" }

// presetTable has the presets by the names of their files without ".yaml", which begin with numbers.
//
//go:generate go test -run ^TestPresetTable$ . -update
//go:embed presets.bin
var presetTable packed.Table

// gridKey names the record with the probabilities that the others share. Its file documents their keys.
const gridKey = "00-grid"

// gridDoc is the layout of the file of shared probabilities.
type gridDoc struct{ Grid []float64 }

// presetCache has the presets that were asked for, by key. They are never changed.
var presetCache sync.Map

func presetKeys() (keys, names []string) {
	for _, key := range presetTable.Names("") {
		if key != gridKey {
			keys, names = append(keys, key), append(names, key[strings.IndexByte(key, '-')+1:])
		}
	}
	return keys, names
}

// Presets returns all presets in the order of their files.
func Presets() ([]Preset, error) {
	var list []Preset
	keys, _ := presetKeys()
	for _, key := range keys {
		p, err := readPreset(key)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// FindPreset returns the preset with the given name, in any case. For an unknown name the [*FieldError] lists the
// nearest names.
func FindPreset(name string) (Preset, error) {
	keys, names := presetKeys()
	for i, own := range names {
		if strings.EqualFold(own, name) {
			return readPreset(keys[i])
		}
	}
	want := "one of " + strings.Join(names, ", ")
	if near := nearest(name, names, 3); len(near) > 0 {
		want = orList(near)
	}
	return Preset{}, &FieldError{Key: "workload.preset", Problem: fmt.Sprintf("%q is not known (want %s)", name, want)}
}

// presetDoc is the layout of a preset file.
type presetDoc struct {
	Name, Title, Provenance, Source string
	Arrivals                        *Phase
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

// classDoc is a class of a mix. It may refer to another preset, whose conversations it uses if there are any.
type classDoc struct {
	ClassSpec `yaml:",inline"`
	Preset    string
}

// class resolves the reference to another preset.
func (d *classDoc) class(grid []float64) (ClassSpec, error) {
	c := d.ClassSpec
	if d.Preset != "" {
		p, err := FindPreset(d.Preset)
		if err != nil {
			return c, err
		}
		c.Input, c.Output, c.Sessions = p.Spec.Input, p.Spec.Output, p.Sessions
	}
	c.Sessions.onGrid(grid)
	return c, nil
}

// onGrid sets the probabilities of quantile tables that have none.
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

// lawDoc is a quantile table or a clipped lognormal distribution.
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

// readPreset decodes a preset and caches the result.
func readPreset(key string) (Preset, error) {
	if p, ok := presetCache.Load(key); ok {
		return p.(Preset), nil
	}
	var shared gridDoc
	var d presetDoc
	presetTable.Read(gridKey, &shared)
	presetTable.Read(key, &d)
	grid := shared.Grid
	p := Preset{Name: d.Name, Title: d.Title, Provenance: d.Provenance, Source: d.Source}
	if d.Arrivals != nil {
		p.Spec.Arrivals = []Phase{*d.Arrivals}
	}
	p.Spec.Input, p.Input = d.Input.spec(grid)
	p.Spec.Output, p.Output = d.Output.spec(grid)
	p.Spec.Needs, p.Sessions = d.Needs, d.Sessions
	p.Sessions.onGrid(grid)
	for i := range d.Classes {
		c, err := d.Classes[i].class(grid)
		if err != nil {
			return Preset{}, err
		}
		p.Spec.Classes = append(p.Spec.Classes, c)
	}
	p.Independent = p.Spec.Output
	if j := d.Joint; j != nil {
		p.Spec.Output = LengthsSpec{Distribution: "given-input", Edges: j.Edges, P: j.P, Rows: j.Rows}
		p.Spearman = j.Spearman
	}
	presetCache.Store(key, p)
	return p, nil
}
