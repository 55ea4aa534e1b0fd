package validation

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"clifftop/experiments"
	"clifftop/model/catalog"
)

// Predictive returns the error bars that the catalog has of a coverage: by kind, by engine, and of all runs.
func (c *Coverage) Predictive() *catalog.PredictiveFile {
	f := &catalog.PredictiveFile{Source: fmt.Sprintf("%d measured runs of %s, %d of which took no part in the "+
		"constants",
		c.Rows+c.InSample, strings.Join(c.files, ", "), c.Rows)}
	kinds := map[string]*errorCell{}
	families := map[string]bool{}
	for _, metric := range coverageMetrics {
		for _, key := range sorted(c.cells[metric]) {
			e := c.cells[metric][key]
			if kinds[e.kind] == nil {
				kinds[e.kind] = e
			}
			families[e.family] = true
		}
	}
	for _, kind := range sorted(kinds) {
		e := kinds[kind]
		f.Kinds = append(f.Kinds, c.predictive(catalog.Predictive{Engine: e.family, Load: e.of.Load, MoE: e.of.MoE},
			kind))
	}
	for _, engine := range sorted(families) {
		f.Kinds = append(f.Kinds, c.predictive(catalog.Predictive{Engine: engine}, ""))
	}
	f.Kinds = append(f.Kinds, c.predictive(catalog.Predictive{}, ""))
	return f
}

// predictive fills in the bars of a kind, or of a family if the kind is empty.
func (c *Coverage) predictive(p catalog.Predictive, kind string) catalog.Predictive {
	of := func(e *errorCell) bool { return e.kind == kind }
	switch {
	case p.Engine == "":
		of = func(*errorCell) bool { return true }
	case kind == "":
		of = func(e *errorCell) bool { return e.family == p.Engine }
	}
	p.Bars = map[string]catalog.ErrorBars{}
	cells := map[string]*errorCell{} // each with the most runs that any metric has
	for i, metric := range coverageMetrics {
		var list []*errorCell
		for _, key := range sorted(c.cells[metric]) {
			e := c.cells[metric][key]
			list = append(list, e)
			if of(e) && (cells[key] == nil || len(e.logs) > len(cells[key].logs)) {
				cells[key] = e
			}
		}
		if len(list) < 2 || metric == "output_tokens_per_s" && p.Load == "open" {
			continue
		}
		half, p90, _ := barsFor(kind, p.Engine, list)
		p.Bars[catalog.PredictiveMetrics[i]] = catalog.ErrorBars{Half: inverse(half), P90: inverse(p90)}
	}
	for _, key := range sorted(cells) {
		e := cells[key]
		p.Cells++
		p.Runs += len(e.logs)
		if !e.fitted {
			p.Unseen++
		}
		if !slices.Contains(p.GPUs, e.of.GPU) {
			p.GPUs = append(p.GPUs, e.of.GPU)
		}
	}
	slices.Sort(p.GPUs)
	return p
}

// inverse turns bounds of simulated over measured, less 1, into bounds of measured over simulated, less 1. They are
// rounded to a thousandth.
func inverse(bar [2]float64) [2]float64 {
	of := func(e float64) float64 { return math.Round(1000*(1/(1+e)-1)) / 1000 }
	return [2]float64{max(of(bar[1]), -0.999), of(bar[0])}
}

// WritePredictive writes the error bars as the catalog's file.
func (c *Coverage) WritePredictive(w io.Writer) error {
	text, err := yaml.Marshal(c.Predictive())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "# Error bars: measured over simulated, less 1, of half and of 90 %% of measured runs.\n"+
		"# Written by clifftop validate --coverage --write; see experiments/validation.\n%s", text)
	return err
}

// Own returns the errors of the report's runs as a record of own runs, for the scenario key accuracy. Overloaded runs
// are left out.
func (r *Report) Own() (*catalog.OwnAccuracy, error) {
	o := &catalog.OwnAccuracy{Clifftop: experiments.Version, Source: filepath.Base(r.Reference)}
	kinds := map[string]*catalog.OwnErrors{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Status != Scored || row.Overload {
			continue
		}
		name := catalog.KindName(row.Engine, row.Load, row.MoE)
		k := kinds[name]
		if k == nil {
			k = &catalog.OwnErrors{Engine: row.Engine, Load: row.Load, MoE: row.MoE, Errors: map[string][]float64{}}
			kinds[name] = k
		}
		k.Runs++
		if !slices.Contains(k.GPUs, row.GPU) {
			k.GPUs = append(k.GPUs, row.GPU)
		}
		for j, metric := range coverageMetrics {
			if e := row.Error(metric); e != nil && *e > -1 &&
				(metric != "output_tokens_per_s" || row.Load == "closed") {
				key := catalog.PredictiveMetrics[j]
				k.Errors[key] = append(k.Errors[key], math.Round(1e5*(1/(1+*e)-1))/1e5)
			}
		}
	}
	for _, name := range sorted(kinds) {
		slices.Sort(kinds[name].GPUs)
		o.Kinds = append(o.Kinds, *kinds[name])
	}
	if len(o.Kinds) == 0 {
		return nil, fmt.Errorf("no run of %s can be scored: there are no errors to write", r.Reference)
	}
	return o, nil
}
