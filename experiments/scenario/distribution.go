package scenario

import (
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
	"clifftop/workload"
)

// Distribution is a law of lengths in tokens. Draws are clipped to Min and Max and rounded to at
// least 1. A number alone is a fixed length.
type Distribution struct {
	// Weight is the share of this law in a mixture.
	Weight *float64 `json:"weight,omitempty" range:"(0,)"`
	// Law names the distribution.
	Law string `json:"distribution" one:"fixed uniform lognormal gamma weibull geometric log-series mixture quantiles"`
	// Value is the one length of the fixed law.
	Value *int `json:"value,omitempty" range:"[1,536870912]"`
	// Mean is the mean before clipping.
	Mean *float64 `json:"mean,omitempty" range:"(0,536870912]"`
	// CV is the coefficient of variation before clipping.
	CV *float64 `json:"cv,omitempty" range:"(0,100]"`
	// Mu and Sigma are the mean and standard deviation of the logarithm.
	Mu    *float64 `json:"mu,omitempty" range:"[-20,20]"`
	Sigma *float64 `json:"sigma,omitempty" range:"(0,10]"`
	// Shape is the shape of the Weibull law.
	Shape *float64 `json:"shape,omitempty" range:"[0.1,100]"`
	// Parts are the laws of a mixture, each with its weight.
	Parts []Distribution `json:"parts,omitempty"`
	// P and Q are probabilities from 0 to 1 and the quantiles at them.
	P []float64 `json:"p,omitempty" range:"[0,1]"`
	Q []float64 `json:"q,omitempty" range:"[0,536870912]"`
	// Min and Max clip the draws.
	Min *int `json:"min,omitempty" range:"[1,536870912]"`
	Max *int `json:"max,omitempty" range:"[1,536870912]"`
}

// Decode takes a number for a fixed length.
func (l *Distribution) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if n.Kind == yamldoc.Number {
		*l = Distribution{Law: "fixed"}
		d.Value(n, key, &l.Value, `range:"[1,536870912]"`)
		return
	}
	d.Fields(n, key, l)
}

func (l *Distribution) Variants() (string, map[string]yamldoc.VariantKeys) {
	return "distribution", map[string]yamldoc.VariantKeys{
		"":           {Optional: []string{"distribution"}},
		"fixed":      {Required: []string{"value"}},
		"uniform":    {Required: []string{"min", "max"}},
		"lognormal":  {Optional: []string{"mean", "cv", "mu", "sigma"}},
		"gamma":      {Required: []string{"mean", "cv"}},
		"weibull":    {Required: []string{"mean", "shape"}},
		"geometric":  {Required: []string{"mean"}},
		"log-series": {Required: []string{"mean"}},
		"mixture":    {Required: []string{"parts"}},
		"quantiles":  {Required: []string{"p", "q"}},
		"*":          {Optional: []string{"min", "max", "weight"}},
	}
}

// partOfMixture matches the key of a part of a mixture.
var partOfMixture = pattern.New(`\.parts\.\d+$`)

func (l *Distribution) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if l.Law == "" {
		if n.Get("distribution") == nil {
			d.Fault(n.At, key, "distribution is missing (want fixed, uniform, lognormal, gamma, weibull, geometric, "+
				"log-series, mixture or quantiles)", "")
		}
		return
	}
	if w := n.Get("weight"); w != nil && w.Kind != yamldoc.Null && !partOfMixture.Get().MatchString(key) {
		d.Fault(w.At, yamldoc.Join(key, "weight"), "weight is for the parts of a mixture (want none here)", "")
	}
	if l.Min != nil && l.Max != nil && *l.Min > *l.Max {
		d.Refuse(n.Get("max"), yamldoc.Join(key, "max"), fmt.Sprintf("min, %d, or more", *l.Min))
	}
	byMean, byLog := l.Mean != nil && l.CV != nil, l.Mu != nil && l.Sigma != nil
	switch {
	case l.Law == "lognormal" && (byMean == byLog || (l.Mean != nil || l.CV != nil) && (l.Mu != nil || l.Sigma != nil)):
		d.Fault(n.At, key, "lognormal needs mean and cv, or mu and sigma", "")
	case l.Law == "quantiles" && l.P != nil && l.Q != nil:
		l.checkQuantiles(d, n, key)
	case l.Law == "mixture" && l.Parts != nil:
		for i, part := range n.Get("parts").Items {
			if part.Kind == yamldoc.Number || part.Kind == yamldoc.Map && part.Get("weight") == nil {
				d.Fault(part.At, yamldoc.Join(key, fmt.Sprintf("parts.%d", i)), "weight is missing", "")
			}
		}
		if len(l.Parts) == 0 {
			d.Fault(n.Get("parts").At, yamldoc.Join(key, "parts"), "the list is empty (want one part or more)", "")
		}
	}
}

func (l *Distribution) checkQuantiles(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	p, q := n.Get("p"), n.Get("q")
	switch {
	case len(l.P) != len(l.Q):
		d.Fault(q.At, yamldoc.Join(key, "q"),
			fmt.Sprintf("%d values for %d probabilities (want as many)", len(l.Q), len(l.P)), "")
	case len(l.P) < 2 || l.P[0] != 0 || l.P[len(l.P)-1] != 1 || !slices.IsSorted(l.P):
		d.Fault(p.At, yamldoc.Join(key, "p"), "the probabilities do not rise from 0 to 1", "")
	case !slices.IsSorted(l.Q):
		d.Fault(q.At, yamldoc.Join(key, "q"), "the quantiles do not rise", "")
	}
}

// lengths is the law as the workload package takes it.
func (l Distribution) lengths() workload.LengthsSpec {
	w := workload.LengthsSpec{
		Distribution: l.Law, Value: int32(optional.Value(l.Value)), Min: int32(optional.Value(l.Min)),
		Max:  int32(optional.Value(l.Max)),
		Mean: optional.Value(l.Mean), CV: optional.Value(l.CV), Mu: optional.Value(l.Mu),
		Sigma: optional.Value(l.Sigma), Shape: optional.Value(l.Shape),
		P: l.P, Q: l.Q,
	}
	for _, part := range l.Parts {
		w.Parts = append(w.Parts, workload.PartSpec{Weight: optional.Value(part.Weight), LengthsSpec: part.lengths()})
	}
	return w
}

// Prefix makes prompts share their first tokens. By groups, prompt i of the run has identity i modulo
// Groups × PromptsPerGroup, and the prompts of a group lead with the same SharedTokens. By user, all prompts of
// a closed loop's user lead with the same SharedTokens, and go on with something new.
type Prefix struct {
	// By says which prompts share a prefix: the prompts of a group, or of each user of a closed loop.
	By string `json:"by,omitempty" one:"group user"`
	// Groups is the number of shared prefixes.
	Groups *int `json:"groups,omitempty" range:"[1,4194304]"`
	// PromptsPerGroup is the number of distinct prompts that share a prefix.
	PromptsPerGroup *int `json:"prompts_per_group,omitempty" range:"[1,4194304]"`
	// SharedTokens is the length of the prefix; it is a part of the prompt's length.
	SharedTokens int `json:"shared_tokens" range:"[0,536870912]"`
}

func (p *Prefix) Variants() (string, map[string]yamldoc.VariantKeys) {
	groups := []string{"groups", "prompts_per_group", "shared_tokens"}
	return "by", map[string]yamldoc.VariantKeys{
		"":      {Required: groups},
		"group": {Required: groups},
		"user":  {Required: []string{"shared_tokens"}},
	}
}
