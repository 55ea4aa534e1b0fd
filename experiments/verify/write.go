package verify

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"clifftop/report/layout"
	"clifftop/report/plot"
)

// names are the metrics in words, with their unit.
var names = map[string][2]string{
	"output_tokens_per_s": {"output tokens/s", ""}, "gpu_watts": {"power of a GPU", "W"},
	"joules_per_output_token": {"energy per output token", "J"}, "running_requests": {"running requests", ""},
	"waiting_requests": {"waiting requests", ""}, "kv_usage": {"KV cache in use", "%"},
	"gpu_hit_rate": {"prefix hit rate", "%"}, "host_hit_rate": {"hit rate of host memory", "%"},
}

// title is a metric in words, and its unit.
func (m *Metric) title() (name, unit string) {
	if n, ok := names[m.Name]; ok {
		return n[0], n[1]
	}
	kind, rest, _ := strings.Cut(strings.TrimSuffix(m.Name, "_ms"), "_")
	return strings.ToUpper(kind) + " " + rest, "ms"
}

func (m *Metric) value(x *float64) string {
	if x == nil {
		return "–"
	}
	_, unit := m.title()
	if unit == "%" {
		return fmt.Sprintf("%.1f %%", 100**x)
	}
	text := layout.Digits(*x)
	if unit != "" {
		text += " " + unit
	}
	return text
}

// difference formats the difference: percent, or points of a share.
func (m *Metric) difference() string {
	switch {
	case m.Difference == nil:
		return "–"
	case isShare(m.Name):
		return fmt.Sprintf("%+.1f points", 100**m.Difference)
	}
	return fmt.Sprintf("%+.1f %%", 100**m.Difference)
}

func (m *Metric) bar() string {
	if m.P90 == nil {
		return "–"
	}
	return fmt.Sprintf("%s to %s %%", signed(m.P90[0]), signed(m.P90[1]))
}

func signed(x float64) string {
	text := fmt.Sprintf("%+.0f", 100*x)
	if text == "+0" || text == "-0" {
		return "0"
	}
	return strings.ReplaceAll(text, "-", "−")
}

// headline is the verdict of a run in a sentence.
func (r *Run) headline() string {
	judged, outside := 0, []string{}
	for i := range r.Metrics {
		if r.Metrics[i].P90 != nil {
			judged++
		}
		if r.Metrics[i].Verdict == Outside {
			name, _ := r.Metrics[i].title()
			outside = append(outside, name)
		}
	}
	switch r.Verdict {
	case Within:
		return fmt.Sprintf("WITHIN: all %d judged metrics are inside the bars for 90 %% of measured runs", judged)
	case Outside:
		return fmt.Sprintf("OUTSIDE: %d of %d judged metrics are outside their bars: %s", len(outside), judged,
			strings.Join(outside, ", "))
	}
	return "NOT COMPARABLE: no metric could be judged"
}

// rows are the table of the metrics.
func (r *Run) rows() [][]string {
	rows := [][]string{{"metric", "promised", "measured", "difference", "90 % bar", "verdict"}}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		name, _ := m.title()
		verdict := string(m.Verdict)
		if m.Verdict == NotComparable {
			verdict = "not judged"
		}
		rows = append(rows, []string{name, m.value(m.Simulated), m.value(m.Measured), m.difference(), m.bar(), verdict})
	}
	return rows
}

// remarks say why metrics were not judged, and from where the bars are.
func (r *Run) remarks() (list []string) {
	reasons := map[string][]string{}
	var order []string
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.Why != "" {
			name, _ := m.title()
			if reasons[m.Why] == nil {
				order = append(order, m.Why)
			}
			reasons[m.Why] = append(reasons[m.Why], name)
		}
	}
	for _, why := range order {
		list = append(list, "not judged: "+strings.Join(reasons[why], ", ")+": "+why)
	}
	if r.Bars != "" {
		list = append(list, "the bars are those of measured runs of this kind: "+r.Bars)
	}
	return append(list, r.Notes...)
}

func (r *Run) causeRows() [][]string {
	rows := [][]string{{"what would explain it", "from", "to", "explains", "all inside", "such a value is"}}
	for _, c := range r.Causes {
		inside := "no"
		if c.Inside {
			inside = "yes"
		}
		rows = append(rows, []string{c.Key, c.From, c.To, fmt.Sprintf("%.0f %%", 100*c.Explains), inside, c.Likely})
	}
	return rows
}

// WriteTable writes the result as text.
func (r *Result) WriteTable(w io.Writer) error { return r.write(&layout.Text{}, w) }

// WriteMarkdown writes the result as Markdown.
func (r *Result) WriteMarkdown(w io.Writer) error { return r.write(&layout.Text{Markdown: true}, w) }

func (r *Result) write(t *layout.Text, w io.Writer) error {
	for i := range r.Runs {
		run := &r.Runs[i]
		t.Heading("%s (%s): %s on %s, %s", run.Name, run.Tool, run.Model, run.GPU, run.Load)
		t.Paragraph(run.headline())
		t.Blank()
		t.Table(run.rows(), 1, 2)
		if run.OverTime != nil {
			t.Blank()
			t.Paragraph(run.OverTime.sentence())
		}
		switch {
		case len(run.Causes) > 0:
			t.Blank()
			t.Table(run.causeRows(), 1, 2)
			t.Blank()
			seen := map[string]bool{}
			for _, c := range run.Causes {
				if !seen[c.Key] {
					t.Paragraph(c.Key + ": " + c.Why)
				}
				seen[c.Key] = true
			}
		case run.Searched:
			t.Blank()
			t.Paragraph("No single knob or constant explains the difference: several may differ, or a part of the " +
				"model is wrong.")
		}
		t.Blank()
		for _, remark := range run.remarks() {
			t.Paragraph(remark)
		}
	}
	_, err := t.WriteTo(w)
	return err
}

// Picture shows the measured against the promised values of all runs: TTFT, TPOT, E2E latency and throughput. Below is
// the state over time of runs that have it.
func (r *Result) Picture() *plot.Figure {
	panels := []plot.ParityPanel{{Title: "TTFT, mean", Unit: "ms"}, {Title: "TPOT, mean", Unit: "ms"},
		{Title: "E2E latency, mean", Unit: "ms"}, {Title: "Throughput", Unit: "tokens/s"}}
	keys := []string{"ttft_mean_ms", "tpot_mean_ms", "e2e_mean_ms", "output_tokens_per_s"}
	for i := range r.Runs {
		run := &r.Runs[i]
		for k, key := range keys {
			for _, m := range run.Metrics {
				if m.Name == key && m.Simulated != nil {
					panels[k].Points = append(panels[k].Points, plot.ParityPoint{Measured: *m.Measured,
						Simulated: *m.Simulated,
						Family:    string(m.Verdict), Hollow: m.Verdict == NotComparable, Name: run.Name})
				}
			}
		}
	}
	title := "Measured and promised: " + string(r.Verdict)
	var figures []*plot.Figure
	if slices.ContainsFunc(panels, func(p plot.ParityPanel) bool { return len(p.Points) > 0 }) {
		figures = append(figures, plot.Parity(title, panels))
	}
	for i := range r.Runs {
		o := r.Runs[i].OverTime
		if o == nil {
			continue
		}
		if p := o.picture(r.Runs[i].Name); len(p.Panels) > 0 {
			figures = append(figures, plot.Draw(p))
		}
	}
	if len(figures) == 0 {
		return plot.Parity(title, panels)
	}
	return plot.Stack(title, figures...)
}
