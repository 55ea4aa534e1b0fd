package iterations

import (
	"fmt"
	"io"
	"strconv"

	"clifftop/model"
	"clifftop/report/layout"
	"clifftop/report/plot"
)

// Schema identifies the JSON form of a [Report].
const Schema = "clifftop.iterations/1"

// Report compares computed with measured iterations.
type Report struct {
	Schema   string        `json:"schema"`
	Clifftop string        `json:"clifftop"` // version of the program
	Files    []*ScoredFile `json:"files"`
	// Kinds have the errors over all files.
	Kinds []KindSpread `json:"kinds"`
	// Groups have the errors over all files by kind and size.
	Groups []Group `json:"groups"`
}

// ScoredFile is a file and its errors.
type ScoredFile struct {
	Name  string `json:"name"`
	Model string `json:"model"`
	GPU   string `json:"gpu"`
	TP    int    `json:"tp"`
	DP    int    `json:"dp"`
	EP    int    `json:"ep"`
	// Refused is the reason why the file is not scored; empty if it is.
	Refused string   `json:"refused,omitempty"`
	Notes   []string `json:"notes"`
	// Iterations is the number of iterations in the file, Shapes that of different shapes. Dropped iterations take more
	// or less than the median of their shape by a factor of 1.5. Joined ones are compared by the sum of a chain, in
	// which the clock counts parts of an iteration in the one before.
	Iterations int `json:"iterations"`
	Shapes     int `json:"shapes"`
	Dropped    int `json:"dropped"`
	Joined     int `json:"joined"`
	// InstrumentationMs is the time of the measurement itself that was added to each simulated iteration.
	InstrumentationMs float64      `json:"instrumentation_ms"`
	Kinds             []KindSpread `json:"kinds"`

	points []*point
}

// kept returns the iterations that are not dropped.
func (f *ScoredFile) kept() (list []*point) {
	for _, p := range f.points {
		if !p.dropped {
			list = append(list, p)
		}
	}
	return list
}

// Scored returns the number of files with errors.
func (r *Report) Scored() (n int) {
	for _, f := range r.Files {
		if f.Refused == "" {
			n++
		}
	}
	return n
}

// WriteTable writes the report as text.
func (r *Report) WriteTable(w io.Writer) error { return r.write(w, &layout.Text{Columns: 120}) }

// WriteMarkdown writes the same tables as Markdown.
func (r *Report) WriteMarkdown(w io.Writer) error {
	return r.write(w, &layout.Text{Markdown: true, Columns: 120})
}

func (r *Report) write(w io.Writer, t *layout.Text) error {
	t.Heading("Errors of iterations (simulated over measured, minus 1): median and 90th percentile of sizes, mean, " +
		"in %%")
	grid := [][]string{{"file", "kind", "n", "median", "p90", "bias"}}
	for _, f := range r.Files {
		for _, k := range f.Kinds {
			grid = append(grid, append([]string{f.Name, string(k.Kind)}, k.cells()...))
		}
	}
	for _, k := range r.Kinds {
		grid = append(grid, append([]string{"all files", string(k.Kind)}, k.cells()...))
	}
	t.Table(grid, 2, 1)
	r.fileNotes(t)
	t.Heading("All files by size of the iteration")
	grid = [][]string{{"kind", "by", "range", "n", "median", "p90", "bias"}}
	for _, g := range r.Groups {
		grid = append(grid, append([]string{string(g.Kind), g.By, g.Value}, g.cells()...))
	}
	t.Table(grid, 3, 1)
	_, err := t.WriteTo(w)
	return err
}

// cells returns the columns of a table.
func (s *Spread) cells() []string {
	return []string{strconv.Itoa(s.N), fmt.Sprintf("%.1f", 100*s.Median), fmt.Sprintf("%.1f", 100*s.P90),
		fmt.Sprintf("%+.1f", 100*s.Bias)}
}

// fileNotes lists what was refused, dropped and filled in.
func (r *Report) fileNotes(t *layout.Text) {
	t.Heading("Files")
	for _, f := range r.Files {
		if f.Refused != "" {
			t.Item("", fmt.Sprintf("%s: not scored: %s", f.Name, f.Refused))
			continue
		}
		t.Item("", fmt.Sprintf("%s: %s on %s, TP %d, DP %d, EP %d; %d iterations of %d shapes, %d dropped, %d joined",
			f.Name, f.Model, f.GPU, f.TP, f.DP, f.EP, f.Iterations, f.Shapes, f.Dropped, f.Joined))
		if f.InstrumentationMs > 0 {
			t.Item("", fmt.Sprintf("%s: the scheduler timed the iterations: %.2f ms are added for its instrumentation",
				f.Name, f.InstrumentationMs))
		}
		for _, note := range f.Notes {
			t.Item("", f.Name+": "+note)
		}
	}
	t.Paragraph(fmt.Sprintf("Iterations of one shape have the same tokens, and contexts within 4 %%; all count with "+
		"the median error of the shape. Dropped iterations differ from it by a factor of %g or more. Joined ones are "+
		"parts of chains of prefills that are compared by their sums, because the clock counts parts of one in the "+
		"one before: one of the chain is shorter than the GPU's datasheet allows, or a decode before it is far too "+
		"long.", outlier))
}

// WriteCSV writes a row for each iteration. The column error has the error of the shape of the iteration.
func (r *Report) WriteCSV(w io.Writer) error {
	rows := [][]string{{"file", "line", "kind", "segment", "decode_seqs", "sum_context", "context_sd", "prefill_tokens",
		"prefill_requests", "measured_s", "simulated_s", "error", "dropped"}}
	for _, f := range r.Files {
		for _, p := range f.points {
			b := &p.it.Batch
			rows = append(rows, []string{f.Name, strconv.Itoa(p.it.Line), string(p.it.Kind()), p.it.Segment,
				strconv.Itoa(b.Decodes), strconv.FormatInt(b.Context, 10), strconv.FormatInt(b.ContextDeviation, 10),
				strconv.Itoa(p.it.PrefillTokens()), strconv.Itoa(len(b.Chunks)),
				strconv.FormatFloat(p.measured, 'g', 7, 64), strconv.FormatFloat(p.simulated, 'g', 7, 64),
				strconv.FormatFloat(p.error, 'f', 5, 64), strconv.FormatBool(p.dropped)})
		}
	}
	return layout.NewCSVWriter(w).WriteAll(rows)
}

// Picture shows the errors against the sizes of the iterations.
func (r *Report) Picture() *plot.Figure {
	var panels []plot.ResidualPanel
	for _, m := range measures {
		for _, kind := range m.kinds {
			p := plot.ResidualPanel{Title: fmt.Sprintf("%s iterations, by %s", titles[kind], m.short), X: m.title}
			for _, f := range r.Files {
				for _, q := range ofKind(f.kept(), kind) {
					p.Points = append(p.Points, plot.ResidualPoint{X: m.of(q.it), Error: q.error, Family: f.Name})
				}
			}
			panels = append(panels, p)
		}
	}
	f := plot.Residuals(r.finding(), panels, "Errors are simulated over measured, minus 1. A dot is the median of "+
		"iterations of like size; its bar holds 80 % of them. Dashed: 10 % above and below.")
	return f
}

var titles = map[model.IterationKind]string{model.PrefillIteration: "Prefill", model.DecodeIteration: "Decode",
	model.MixedIteration: "Mixed"}

// finding returns the errors in a sentence.
func (r *Report) finding() string {
	text := "Median error of iterations:"
	for i, k := range r.Kinds {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %.1f %%", k.Kind, 100*k.Median)
	}
	if len(r.Kinds) == 0 {
		return "No file of iterations could be scored"
	}
	return text
}
