package validation

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Spread sums errors up. All but N are nil when there are none.
type Spread struct {
	Metric string `json:"metric"`
	N      int    `json:"n"`
	// Median and Mean are of the errors' sizes, Bias is the mean of the errors with their signs.
	Median *float64 `json:"median"`
	Mean   *float64 `json:"mean"`
	Bias   *float64 `json:"bias"`
}

// NewSpread sums errors up.
func NewSpread(metric string, errors []float64) Spread {
	s := Spread{Metric: metric, N: len(errors)}
	if s.N == 0 {
		return s
	}
	sizes, bias, mean := make([]float64, s.N), 0.0, 0.0
	for i, e := range errors {
		sizes[i] = math.Abs(e)
		bias += e / float64(s.N)
		mean += sizes[i] / float64(s.N)
	}
	mid := median(sizes)
	s.Median, s.Mean, s.Bias = &mid, &mean, &bias
	return s
}

// median returns the median of a sample, and sorts the sample.
func median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// Group is the errors of rows that have something in common.
type Group struct {
	By     string   `json:"by"` // gpu, model, kind, load, tier or engine
	Value  string   `json:"value"`
	Rows   int      `json:"rows"`
	Errors []Spread `json:"errors"`
}

func of(list []Spread, metric string) *Spread {
	for i := range list {
		if list[i].Metric == metric {
			return &list[i]
		}
	}
	return nil
}

// groups summarises the scored rows by GPU, model and load.
func groups(rows []Result) []Group {
	var all []Group
	for _, by := range []struct {
		name string
		of   func(*Result) string
	}{
		{"gpu", func(r *Result) string { return r.GPU }},
		{"model", func(r *Result) string { return r.Model }},
		{"kind", func(r *Result) string {
			if r.MoE {
				return "mixture of experts"
			}
			return "dense"
		}},
		{"load", func(r *Result) string {
			if r.Overload {
				return r.Load + ", overload"
			}
			return r.Load
		}},
		{"tier", func(r *Result) string { return r.Tier }},
		{"engine", func(r *Result) string { return r.Engine }},
	} {
		parts := map[string][]*Result{}
		for i := range rows {
			if r := &rows[i]; r.Status == Scored {
				parts[by.of(r)] = append(parts[by.of(r)], r)
			}
		}
		for _, value := range sorted(parts) {
			all = append(all, Group{By: by.name, Value: value, Rows: len(parts[value]), Errors: spreads(parts[value])})
		}
	}
	return all
}

func sorted[T any](parts map[string]T) []string {
	keys := make([]string, 0, len(parts))
	for k := range parts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// spreads sums rows up by metric; metrics that no row has are left out.
func spreads(rows []*Result) []Spread { return summedUp(rows, false) }

// summedUp is [spreads], where repeats count once if wanted.
func summedUp(rows []*Result, once bool) []Spread {
	list := []Spread{}
	for _, m := range metrics() {
		var errors []float64
		for _, r := range rows {
			if e := r.Error(m.Name); e != nil {
				errors = append(errors, *e)
			}
		}
		if once {
			errors = points(rows, func(r *Result) *float64 { return r.Error(m.Name) })
		}
		if len(errors) > 0 {
			list = append(list, NewSpread(m.Name, errors))
		}
	}
	return list
}

// Class is a kind of load, summed up over cells, so that a configuration that was measured often counts once.
type Class struct {
	Name  string `json:"name"`
	Rows  int    `json:"rows"`
	Cells []Cell `json:"cells"`
	// Errors are over the cells: of each metric the median and the mean of the cells' medians, and the mean bias.
	Errors []Spread `json:"errors"`
}

// Cell is a model on a number of GPUs.
type Cell struct {
	Model  string   `json:"model"`
	GPU    string   `json:"gpu"`
	TP     int      `json:"tp"`
	Rows   int      `json:"rows"`
	Errors []Spread `json:"errors"`
}

// class is the kind of load that a row belongs to. gpt-oss has a class of its own, because most measured runs in the
// closed loop use it.
func (r *Result) class() string {
	name := r.Load + " loop"
	switch {
	case r.Kind != "":
		name = r.Kind
	case r.Overload:
		name += ", overload"
	case r.Load == "open":
	case r.Family() == "gpt-oss":
		name += ", gpt-oss"
	case r.MoE:
		name += ", mixture of experts"
	default:
		name += ", dense"
	}
	if r.Engine != "vllm" {
		name += ", " + r.Engine
	}
	if r.Kind != "" && r.Doubt != "" {
		name += ", " + r.Doubt
	}
	return name
}

// classOrder is the order of the summary; other classes follow.
var classOrder = []string{"open loop", "closed loop, dense", "closed loop, mixture of experts", "closed loop, gpt-oss",
	"open loop, overload", "closed loop, overload"}

// classes sums the scored rows up by kind of load.
func classes(rows []Result) []Class {
	parts := map[string][]*Result{}
	for i := range rows {
		if r := &rows[i]; r.Status == Scored {
			parts[r.class()] = append(parts[r.class()], r)
		}
	}
	names := sorted(parts)
	place := func(name string) int {
		if i := slices.Index(classOrder, name); i >= 0 {
			return i
		}
		return len(classOrder)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	list := []Class{}
	for _, name := range names {
		c := Class{Name: name, Rows: len(parts[name]), Cells: cells(parts[name])}
		c.Errors = overCells(c.Cells)
		list = append(list, c)
	}
	return list
}

func cells(rows []*Result) []Cell {
	parts := map[string][]*Result{}
	for _, r := range rows {
		key := r.Model + "\x00" + r.GPU + "\x00" + strconv.Itoa(1e6+r.TP) + "\x00" + r.Layout
		parts[key] = append(parts[key], r)
	}
	var list []Cell
	for _, key := range sorted(parts) {
		p := parts[key]
		list = append(list, Cell{Model: p[0].Model, GPU: p[0].GPU, TP: p[0].TP, Rows: len(p),
			Errors: summedUp(p, true)})
	}
	return list
}

// overCells is the median and the mean of the cells' medians, by metric.
func overCells(cells []Cell) []Spread {
	list := []Spread{}
	for _, m := range metrics() {
		var medians, biases []float64
		for i := range cells {
			if s := of(cells[i].Errors, m.Name); s != nil {
				medians, biases = append(medians, *s.Median), append(biases, *s.Bias)
			}
		}
		if len(medians) == 0 {
			continue
		}
		s := NewSpread(m.Name, medians)
		s.Bias = NewSpread(m.Name, biases).Bias
		list = append(list, s)
	}
	return list
}
