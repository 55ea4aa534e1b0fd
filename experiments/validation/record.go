package validation

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/goccy/go-yaml"

	"clifftop/model/catalog"
)

// Records returns the part of a report for the catalog: the errors by engine, GPU, kind of model and kind of load, and
// the same over all GPUs of an architecture. Overloaded runs are left out, because a small error of the speed causes a
// large error of the wait. Errors are rounded to a thousandth.
func (r *Report) Records() []catalog.Accuracy {
	architectures := map[string]string{}
	for _, g := range catalog.GPUs() {
		architectures[g.Name] = g.Architecture
	}
	parts := map[string][]*Result{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Status != Scored || row.Overload {
			continue
		}
		kind := fmt.Sprintf("%s %s moe=%t %s ", row.Engine, architectures[row.GPU], row.MoE, row.Load)
		parts[kind] = append(parts[kind], row)
		parts[kind+row.GPU] = append(parts[kind+row.GPU], row)
	}
	records := []catalog.Accuracy{}
	for _, key := range sorted(parts) {
		rows := parts[key]
		a := catalog.Accuracy{
			Engine: rows[0].Engine, Architecture: architectures[rows[0].GPU],
			MoE: rows[0].MoE, Closed: rows[0].Load == "closed", Runs: len(rows),
		}
		if key[len(key)-1] != ' ' {
			a.GPU = rows[0].GPU
		}
		for _, row := range rows {
			if !slices.Contains(a.Models, row.Model) {
				a.Models = append(a.Models, row.Model)
			}
		}
		slices.Sort(a.Models)
		errors := spreads(rows)
		for _, m := range []struct {
			to     **float64
			metric string
		}{{&a.TTFT, "ttft_mean_ms"}, {&a.TPOT, "tpot_mean_ms"}, {&a.E2E, "e2e_mean_ms"},
			{&a.Throughput, "output_tokens_per_s"}} {
			if m.to == &a.Throughput && !a.Closed {
				continue // an open loop that is not overloaded is served at its own rate
			}
			if s := of(errors, m.metric); s != nil {
				x := math.Round(*s.Median*1000) / 1000
				*m.to = &x
			}
		}
		records = append(records, a)
	}
	return records
}

// WriteRecords writes the records as the catalog's file.
func (r *Report) WriteRecords(w io.Writer) error {
	text, err := yaml.Marshal(struct {
		Records []catalog.Accuracy `yaml:"records"`
	}{r.Records()})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "# Errors of simulated runs against measured ones: medians of their sizes, as fractions.\n"+
		"# Written by clifftop validate --out; see experiments/validation.\n%s", text)
	return err
}
