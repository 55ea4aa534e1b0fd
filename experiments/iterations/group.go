package iterations

import (
	"fmt"
	"math"
	"slices"

	"clifftop/model"
)

// Spread summarizes errors: simulated over measured, minus 1.
type Spread struct {
	N      int     `json:"n"`      // iterations
	Median float64 `json:"median"` // of absolute errors
	P90    float64 `json:"p90"`    // of absolute errors
	Bias   float64 `json:"bias"`   // mean of signed errors
}

// KindSpread has the errors of one kind of iterations.
type KindSpread struct {
	Kind model.IterationKind `json:"kind"`
	Spread
}

// Group has the errors of iterations of one kind and size.
type Group struct {
	Kind  model.IterationKind `json:"kind"`
	By    string              `json:"by"`    // what is compared, such as decode_seqs
	Value string              `json:"value"` // the range, such as 17-32
	Spread
}

func spreadOf(points []*point) Spread {
	s := Spread{N: len(points)}
	if s.N == 0 {
		return s
	}
	sizes := make([]float64, s.N)
	for i, p := range points {
		sizes[i] = math.Abs(p.error)
		s.Bias += p.error / float64(s.N)
	}
	slices.Sort(sizes)
	s.Median = (sizes[(s.N-1)/2] + sizes[s.N/2]) / 2
	s.P90 = sizes[min(s.N-1, int(math.Ceil(0.9*float64(s.N)))-1)]
	return s
}

var kinds = []model.IterationKind{model.PrefillIteration, model.DecodeIteration, model.MixedIteration}

func ofKind(points []*point, kind model.IterationKind) (list []*point) {
	for _, p := range points {
		if p.it.Kind() == kind {
			list = append(list, p)
		}
	}
	return list
}

// byKind summarizes points by kind; kinds without points are left out.
func byKind(points []*point) []KindSpread {
	list := []KindSpread{}
	for _, kind := range kinds {
		if of := ofKind(points, kind); len(of) > 0 {
			list = append(list, KindSpread{kind, spreadOf(of)})
		}
	}
	return list
}

// measure is a size by which iterations are compared.
type measure struct {
	name  string
	short string // in titles
	title string // with the unit
	of    func(*model.Iteration) float64
	kinds []model.IterationKind
}

var measures = []measure{
	{"decode_seqs", "batch size", "decoding sequences",
		func(it *model.Iteration) float64 { return float64(it.Batch.Decodes) },
		[]model.IterationKind{model.DecodeIteration, model.MixedIteration}},
	{"mean_context", "context", "mean context, tokens", meanContext, []model.IterationKind{model.DecodeIteration}},
	{"context_sd", "spread of contexts", "standard deviation of contexts, tokens",
		func(it *model.Iteration) float64 { return float64(it.Batch.ContextDeviation) },
		[]model.IterationKind{model.DecodeIteration}},
	{"prefill_tokens", "prompt tokens", "prompt tokens",
		func(it *model.Iteration) float64 { return float64(it.PrefillTokens()) },
		[]model.IterationKind{model.PrefillIteration, model.MixedIteration}},
}

func meanContext(it *model.Iteration) float64 {
	return float64(it.Batch.Context) / float64(max(1, it.Batch.Decodes))
}

// rangeOf returns the number of the range of x between powers of two: 0 for 0, 1 for 1, 2 for 2, 3 for 3 and 4.
func rangeOf(x float64) int {
	if x < 1 {
		return 0
	}
	return 1 + int(math.Ceil(math.Log2(x)-1e-9))
}

func rangeName(k int) string {
	switch k {
	case 0, 1, 2:
		return fmt.Sprint(k)
	}
	return fmt.Sprintf("%d-%d", 1<<(k-2)+1, 1<<(k-1))
}

// groups summarizes points by kind and size.
func groups(points []*point) []Group {
	list := []Group{}
	for _, m := range measures {
		for _, kind := range m.kinds {
			parts := map[int][]*point{}
			top := 0
			for _, p := range ofKind(points, kind) {
				k := rangeOf(m.of(p.it))
				parts[k], top = append(parts[k], p), max(top, k)
			}
			for k := range top + 1 {
				if len(parts[k]) > 0 {
					list = append(list, Group{kind, m.name, rangeName(k), spreadOf(parts[k])})
				}
			}
		}
	}
	return list
}
