package workload

import (
	"fmt"
	"math"
)

// LengthsSpec describes a length distribution as in a scenario file, for example {distribution: lognormal, mean:
// 512, cv: 0.8, max: 8192}. Zero fields are unset.
type LengthsSpec struct {
	// Distribution is one of lengthDistributions; given-input is for outputs only.
	Distribution string `yaml:"distribution" json:"distribution"`
	// Value is the length of fixed, in tokens.
	Value int32 `yaml:"value,omitempty" json:"value,omitempty"`
	// Min and Max clip every distribution, in tokens; for uniform they are the bounds.
	Min int32 `yaml:"min,omitempty" json:"min,omitempty"`
	Max int32 `yaml:"max,omitempty" json:"max,omitempty"`
	// Mean (tokens) and CV (standard deviation over mean) are before rounding and clipping. They apply to
	// lognormal, gamma and, Mean only, to weibull, geometric and log-series.
	Mean float64 `yaml:"mean,omitempty" json:"mean,omitempty"`
	CV   float64 `yaml:"cv,omitempty" json:"cv,omitempty"`
	// Mu and Sigma, of the logarithm of the length, are the alternative parameters of lognormal.
	Mu    float64 `yaml:"mu,omitempty" json:"mu,omitempty"`
	Sigma float64 `yaml:"sigma,omitempty" json:"sigma,omitempty"`
	// Shape is Weibull's k.
	Shape float64 `yaml:"shape,omitempty" json:"shape,omitempty"`
	// Parts are the components of a mixture.
	Parts []PartSpec `yaml:"parts,omitempty" json:"parts,omitempty"`
	// P and Q are the points of quantiles: P increases from 0 to 1, Q (tokens) does not decrease.
	P []float64 `yaml:"p,omitempty,flow" json:"p,omitempty"`
	Q []float64 `yaml:"q,omitempty,flow" json:"q,omitempty"`
	// Edges and Rows belong to given-input. Row i holds the quantiles, at the probabilities P, of the outputs of
	// prompts with Edges[i] ≤ tokens < Edges[i+1].
	Edges []int32     `yaml:"edges,omitempty,flow" json:"edges,omitempty"`
	Rows  [][]float64 `yaml:"rows,omitempty,flow" json:"rows,omitempty"`
}

// PartSpec is one component of a mixture and its weight; weights need not sum to 1.
type PartSpec struct {
	Weight      float64 `yaml:"weight" json:"weight"`
	LengthsSpec `yaml:",inline"`
}

// lengthKeys returns the fields of each distribution besides min and max.
func lengthKeys(distribution string) (keys string, ok bool) {
	switch distribution {
	case "fixed":
		return "value", true
	case "uniform":
		return "", true
	case "lognormal":
		return "mean cv mu sigma", true
	case "gamma":
		return "mean cv", true
	case "weibull":
		return "mean shape", true
	case "geometric", "log-series":
		return "mean", true
	case "mixture":
		return "parts", true
	case "quantiles":
		return "p q", true
	case "given-input":
		return "edges p rows", true
	}
	return "", false
}

func lengthDistributions() []string {
	return []string{"fixed", "uniform", "lognormal", "gamma", "weibull", "geometric", "log-series", "mixture",
		"quantiles", "given-input"}
}

// Lengths builds the distribution. key, such as workload.input, begins the error messages.
func (s LengthsSpec) Lengths(key string) (Lengths, error) {
	var f fieldFaults
	l := s.build(key, &f)
	return l, f.Err()
}

func (s LengthsSpec) build(key string, f *fieldFaults) Lengths {
	known, ok := lengthKeys(s.Distribution)
	if !ok || s.Distribution == "given-input" {
		f.unknownDistribution(key, s.Distribution, lengthDistributions()[:9])
		return nil
	}
	f.unused(key, s.Distribution, []field{
		{"value", s.Value != 0}, {"mean", s.Mean != 0}, {"cv", s.CV != 0}, {"mu", s.Mu != 0}, {"sigma", s.Sigma != 0},
		{"shape", s.Shape != 0}, {"parts", s.Parts != nil}, {"p", s.P != nil}, {"q", s.Q != nil},
		{"edges", s.Edges != nil}, {"rows", s.Rows != nil},
	}, known)
	before := f.Len()
	law := s.law(key, f)
	s.checkClip(key, f)
	if f.Len() > before {
		return nil
	}
	return s.clip(law)
}

// law builds the distribution without clipping. The result has no meaning if f gets a fault.
func (s LengthsSpec) law(key string, f *fieldFaults) Lengths {
	switch s.Distribution {
	case "fixed":
		f.length(key+".value", s.Value)
		return fixedLength{s.Value}
	case "uniform":
		f.length(key+".min", s.Min)
		f.length(key+".max", s.Max)
		return uniformLengths{s.Min, s.Max}
	case "lognormal":
		return s.lognormal(key, f)
	case "gamma":
		f.positive(key+".mean", s.Mean)
		f.positive(key+".cv", s.CV)
		return gamma{Mean: s.Mean, CV: s.CV}
	case "weibull":
		f.positive(key+".mean", s.Mean)
		f.number(key+".shape", s.Shape, s.Shape >= 0.1, "0.1 or more")
		return weibullOf(s.Mean, s.Shape)
	case "geometric":
		f.number(key+".mean", s.Mean, s.Mean >= 1 && s.Mean <= MaxTokens, "1 or more")
		return geometric{Mean: s.Mean}
	case "log-series":
		f.number(key+".mean", s.Mean, s.Mean > 1 && s.Mean <= 1e6, "more than 1, at most 1e6")
		return logSeriesOf(s.Mean)
	case "mixture":
		return s.mixture(key, f)
	}
	f.quantiles(key+".p", s.P, key+".q", s.Q)
	return quantiles{P: s.P, Q: s.Q}
}

func (s LengthsSpec) lognormal(key string, f *fieldFaults) Lengths {
	if s.Mean != 0 || s.CV != 0 {
		if s.Mu != 0 || s.Sigma != 0 {
			f.add(key, "mean or cv is combined with mu or sigma (want one of the pairs)")
		}
		f.positive(key+".mean", s.Mean)
		f.number(key+".cv", s.CV, s.CV >= 0 && s.CV <= 100, "0 to 100")
		return LognormalOf(s.Mean, s.CV)
	}
	f.number(key+".mu", s.Mu, math.Abs(s.Mu) <= 50, "-50 to 50")
	f.number(key+".sigma", s.Sigma, s.Sigma >= 0 && s.Sigma <= 10, "0 to 10")
	if s.Mu == 0 && s.Sigma == 0 {
		f.add(key, "lognormal has no parameters (want mean and cv, or mu and sigma)")
	}
	return Lognormal{Mu: s.Mu, Sigma: s.Sigma}
}

func (s LengthsSpec) mixture(key string, f *fieldFaults) Lengths {
	if len(s.Parts) == 0 {
		f.add(key+".parts", "is missing (want at least one part with a weight)")
	}
	var m mixture
	for i, p := range s.Parts {
		k := fmt.Sprintf("%s.parts.%d", key, i)
		f.positive(k+".weight", p.Weight)
		m = append(m, mixturePart{Weight: p.Weight, Law: p.build(k, f)})
	}
	return m
}

// givenInput builds the distribution of outputs given the prompt.
func (s LengthsSpec) givenInput(key string, f *fieldFaults) *givenInput {
	f.unused(key, s.Distribution, []field{
		{"value", s.Value != 0}, {"mean", s.Mean != 0}, {"cv", s.CV != 0}, {"mu", s.Mu != 0}, {"sigma", s.Sigma != 0},
		{"shape", s.Shape != 0}, {"parts", s.Parts != nil}, {"q", s.Q != nil},
	}, "edges p rows")
	if len(s.Rows) == 0 || len(s.Edges) != len(s.Rows)+1 {
		f.add(key+".edges", "%d edges for %d rows (want one more edge than rows)", len(s.Edges), len(s.Rows))
		return nil
	}
	for i := 1; i < len(s.Edges); i++ {
		if s.Edges[i] <= s.Edges[i-1] {
			f.add(key+".edges", "%d follows %d (want increasing edges)", s.Edges[i], s.Edges[i-1])
		}
	}
	s.checkClip(key, f)
	g := &givenInput{Edges: s.Edges}
	for i, q := range s.Rows {
		f.quantiles(key+".p", s.P, fmt.Sprintf("%s.rows.%d", key, i), q)
		g.Rows = append(g.Rows, s.clip(quantiles{P: s.P, Q: q}))
	}
	return g
}

func (s LengthsSpec) checkClip(key string, f *fieldFaults) {
	if s.Min < 0 || s.Min > MaxTokens {
		f.add(key+".min", "%d is not allowed (want 1 to %d)", s.Min, MaxTokens)
	}
	if s.Max < 0 || s.Max > MaxTokens {
		f.add(key+".max", "%d is not allowed (want 1 to %d)", s.Max, MaxTokens)
	}
	if s.Max > 0 && s.Max < s.Min {
		f.add(key+".max", "%d is less than min (want %d or more)", s.Max, s.Min)
	}
}

func (s LengthsSpec) clip(l Lengths) Lengths {
	if s.Distribution == "uniform" || s.Min == 0 && s.Max == 0 {
		return l
	}
	c := Clipped{Law: l, Min: max(s.Min, 1), Max: s.Max}
	if c.Max == 0 {
		c.Max = MaxTokens
	}
	return c
}

func (f *fieldFaults) length(key string, v int32) {
	if v < 1 || v > MaxTokens {
		f.add(key, "%d is not allowed (want 1 to %d tokens)", v, MaxTokens)
	}
}

func (f *fieldFaults) unknownDistribution(key, found string, names []string) {
	if found == "" {
		f.add(key+".distribution", "is missing (want %s)", orList(names))
		return
	}
	f.add(key+".distribution", "%q is not known (want %s)", found, orList(names))
}

func (f *fieldFaults) quantiles(keyP string, p []float64, keyQ string, q []float64) {
	if len(p) < 2 || len(p) != len(q) {
		f.add(keyQ, "%d values for %d probabilities (want equal numbers, 2 or more)", len(q), len(p))
		return
	}
	if p[0] != 0 || p[len(p)-1] != 1 {
		f.add(keyP, "runs from %v to %v (want 0 to 1)", p[0], p[len(p)-1])
	}
	for i := range p {
		if i > 0 && !(p[i] > p[i-1]) {
			f.add(keyP, "%v follows %v (want increasing probabilities)", p[i], p[i-1])
		}
		if !(q[i] >= 0 && q[i] <= MaxTokens) || i > 0 && q[i] < q[i-1] {
			f.add(keyQ, "%v at position %d is not allowed (want lengths that do not decrease)", q[i], i)
		}
	}
}

// orList joins names as "a, b or c".
func orList(names []string) string {
	s := ""
	for i, n := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			s += " or "
		default:
			s += ", "
		}
		s += n
	}
	return s
}
