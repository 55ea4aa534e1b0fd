package validation

import (
	"fmt"
	"strings"

	"clifftop/report/plot"
)

// Picture is the parity of measured and simulated means: TTFT, TPOT, end-to-end latency and throughput.
func (r *Report) Picture() *plot.Figure {
	panels := []plot.ParityPanel{
		{Title: "Time to first token, mean", Unit: "ms"},
		{Title: "Time per output token, mean", Unit: "ms"},
		{Title: "End-to-end latency, mean", Unit: "ms"},
		{Title: "Output throughput", Unit: "tokens/s"},
	}
	overload := false
	for i, metric := range []string{"ttft_mean_ms", "tpot_mean_ms", "e2e_mean_ms", "output_tokens_per_s"} {
		for k := range r.Rows {
			row := &r.Rows[k]
			c := row.comparison(metric)
			if c == nil || c.Measured == nil || c.Simulated == nil {
				continue
			}
			overload = overload || row.Overload
			panels[i].Points = append(panels[i].Points, plot.ParityPoint{
				Measured: *c.Measured, Simulated: *c.Simulated, Family: row.Family(), Hollow: row.Overload,
				Name: row.RunID,
			})
		}
	}
	notes := []string{"Each dot is a measured run. Dashed: 10 % above and below."}
	if overload {
		notes = append(notes, "Hollow: more was asked for than the system gave, which amplifies errors of waiting "+
			"times.")
	}
	f := plot.Parity(r.finding(), panels, notes...)
	f.Caption = r.Reference
	return f
}

// finding is the first kind of load's errors in a sentence.
func (r *Report) finding() string {
	if len(r.Summary) == 0 {
		return "No measured run could be simulated"
	}
	c := r.Summary[0]
	var parts []string
	for _, m := range []struct{ name, metric string }{{"TTFT", "ttft_mean_ms"}, {"TPOT", "tpot_mean_ms"},
		{"E2E", "e2e_mean_ms"}} {
		if s := of(c.Errors, m.metric); s != nil {
			parts = append(parts, fmt.Sprintf("%s %s %%", m.name, size(s.Median)))
		}
	}
	if len(parts) == 0 {
		return "Measured and simulated"
	}
	of := "1 configuration"
	if n := len(c.Cells); n != 1 {
		of = fmt.Sprintf("%d configurations", n)
	}
	return fmt.Sprintf("Median error, %s: %s; over %s", c.Name, strings.Join(parts, ", "), of)
}
