package validation

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments"
	"clifftop/internal/pattern"
	"clifftop/model/catalog"
)

// CoverageSchema identifies the JSON form of a [Coverage].
const CoverageSchema = "clifftop.coverage/1"

// releaseNumber is the number in the name of a release.
var releaseNumber = pattern.New(`\d+\.\d+(\.\d+)?((\.?post|rc)\d+)*`)

// halfCells is the smallest number of cells that gives a kind 50 % bars of its own, and a family any bars.
const halfCells = 9

// fewCells is the factor that widens the 90 % bars of a family with fewer than ownCells cells.
const fewCells = 1.5

// ownCells is the smallest number of cells that gives a kind of runs 90 % bars of its own: with n exchangeable cells,
// the smallest and the largest error hold a further one with probability (n-1)/(n+1).
const ownCells = 19

// Coverage says how often bars of the error hold measured runs that took no part in the bars, nor in any constant of
// the catalog.
type Coverage struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"`
	// Rows is the number of measured runs that are judged. InSample is the number that is not judged because constants
	// of the catalog were fitted to runs of their model on their GPU.
	Rows     int `json:"rows"`
	InSample int `json:"in_sample"`
	// Metrics have the coverage of each metric, over all kinds.
	Metrics []MetricCoverage `json:"metrics"`
	// Kinds have the same by kind of runs.
	Kinds []KindCoverage `json:"kinds"`

	files []string                         // with the runs
	cells map[string]map[string]*errorCell // by metric and name of the cell
}

// KindCoverage is the coverage of one kind of runs: engine, kind of load and kind of model.
type KindCoverage struct {
	Kind    string           `json:"kind"`
	Metrics []MetricCoverage `json:"metrics"`
}

// MetricCoverage is the coverage of one metric. A cell is a model on a GPU, with a parallelism, a format of the weights
// and a release of the engine. Shares are of cells: a cell counts with the share of its runs that lie inside.
type MetricCoverage struct {
	Metric string `json:"metric"`
	Cells  int    `json:"cells"`
	Rows   int    `json:"rows"`
	// HalfShare and P90Share are the shares inside the bars that were made without the cell.
	HalfShare float64 `json:"half_share"`
	P90Share  float64 `json:"p90_share"`
	// Half and P90 are the bars from all cells: bounds of simulated over measured, less 1. Basis says whose cells they
	// are: those of the kind, of its family (the engine), or all.
	Half  [2]float64 `json:"half"`
	P90   [2]float64 `json:"p90"`
	Basis string     `json:"basis"`
}

var coverageMetrics = []string{"ttft_mean_ms", "ttft_p99_ms", "tpot_mean_ms", "tpot_p99_ms", "e2e_mean_ms",
	"e2e_p99_ms", "output_tokens_per_s"}

// errorCell is a cell with the errors of its runs, for one metric.
type errorCell struct {
	kind, family string
	fitted       bool      // constants of the catalog were fitted to runs of the model on the GPU
	logs         []float64 // ln(simulated/measured)
	of           *Result   // one of its runs
}

// fittedModels are the models, and their GPUs, to whose runs constants of the catalog were fitted (docs/step-time.md).
// An empty list means all GPUs. All releases, formats and parallelisms of such a model on the GPU are left out.
var fittedModels = map[string][]string{
	"codellama-34b":         {"a100-80gb-sxm", "h100-sxm"},
	"deepseek-r1":           {"h200-sxm", "mi300x", "mi325x", "mi355x"},
	"gpt-oss-120b":          {"h200-sxm", "b200-sxm"},
	"kimi-k2":               {"b200-sxm", "b300-sxm"},
	"kimi-k2.5":             {"b200-sxm", "b300-sxm"},
	"llama-2-7b":            {"h100-sxm"},
	"llama-3.1-70b":         {"h100-sxm", "h200-sxm", "b200-sxm"},
	"llama-3.1-8b":          {"a100-80gb-sxm", "h100-sxm", "l40s", "rtx-pro-6000-ws"},
	"llama-4-scout-17b-16e": {"h100-sxm"},
	"minimax-m2.5":          {},
	"mistral-nemo-12b":      {"h100-sxm"},
	"mixtral-8x7b":          {"h100-sxm"},
	"qwen3-14b":             {"h100-sxm"},
	"qwen3-30b-a3b":         {"rtx-pro-6000-ws"},
	"qwen3-32b":             {"b300-sxm"},
	"qwen3.5-397b-a17b":     {"b200-sxm"},
	"qwen3.6-35b-a3b":       {"b300-sxm"},
}

// inSample reports whether constants of the catalog were fitted to runs of the model on the GPU.
func inSample(llm, gpu string) bool {
	gpus, ok := fittedModels[llm]
	return ok && (len(gpus) == 0 || slices.Contains(gpus, gpu))
}

// fitted reports whether constants were fitted to errors of a metric in runs of the row's kind. The front ends of
// SGLang and TensorRT-LLM were fitted to the TTFT of all their closed loops; hosts and hops to runs with drafts or
// pools.
func (r *Result) fitted(metric string) bool {
	frontEnd := r.Engine == "sglang" || strings.HasPrefix(r.Engine, "trtllm")
	return r.InSample || frontEnd && strings.HasPrefix(metric, "ttft")
}

// Cover simulates the cases of several files and judges the bars of their errors. Each cell is judged by bars from the
// other cells. Overloaded runs are left out, because there a small error of speed makes a large one of waiting.
func Cover(ctx context.Context, refs []*Reference, o Options) (*Coverage, error) {
	c := &Coverage{Schema: CoverageSchema, Clifftop: experiments.Version, Metrics: []MetricCoverage{},
		Kinds: []KindCoverage{}}
	byMetric := map[string]map[string]*errorCell{}
	c.cells = byMetric
	for _, ref := range refs {
		c.files = append(c.files, filepath.Base(ref.Name))
		cases := Plan(ref)
		rows := map[string]*Row{}
		for _, row := range ref.Rows {
			rows[row.ID] = row
		}
		r, err := Run(ctx, ref, cases, nil, o)
		if err != nil {
			return nil, err
		}
		for i := range r.Rows {
			row := &r.Rows[i]
			switch {
			case row.Status != Scored || row.Overload:
			case row.InSample:
				c.InSample++
				row.addErrors(rows[row.RunID], byMetric)
			default:
				c.Rows++
				row.addErrors(rows[row.RunID], byMetric)
			}
		}
	}
	if c.judge(byMetric); len(c.Metrics) == 0 {
		return nil, fmt.Errorf("no bars can be judged: %d runs took no part in the constants, and %d did "+
			"(want runs of two models, GPUs or releases that took no part; see docs/step-time.md)",
			c.Rows, c.InSample)
	}
	return c, nil
}

func (r *Result) addErrors(row *Row, byMetric map[string]map[string]*errorCell) {
	release, _ := row.version()
	if row.EngineVersion != "" {
		release = row.EngineVersion
	}
	if n := releaseNumber.Get().FindString(release); n != "" { // vllm-0.18, 0.18.0 and images of it are one release
		release = strings.TrimSuffix(n, ".0")
	}
	key := fmt.Sprintf("%s|%s|%s|%s|tp%d pp%d dp%d ep%d|%s|%s", r.Engine, r.Load, r.Model, r.GPU, r.TP, or(row.PP, 1),
		or(row.DP, 1), or(row.EP, 1), row.WeightDtype, release)
	kind := catalog.KindName(r.Engine, r.Load, r.MoE)
	for _, metric := range coverageMetrics {
		e := r.Error(metric)
		if e == nil || *e <= -1 || metric == "output_tokens_per_s" && r.Load == "open" {
			continue // an open loop that is not overloaded is served at its own rate
		}
		if byMetric[metric] == nil {
			byMetric[metric] = map[string]*errorCell{}
		}
		cell := byMetric[metric][key]
		if cell == nil {
			cell = &errorCell{kind: kind, family: r.Engine, fitted: r.fitted(metric), of: r}
			byMetric[metric][key] = cell
		}
		cell.logs = append(cell.logs, math.Log1p(*e))
	}
}

func (c *Coverage) judge(byMetric map[string]map[string]*errorCell) {
	kinds := map[string]bool{}
	cellsOf := func(metric string) []*errorCell {
		var list []*errorCell
		for _, key := range sorted(byMetric[metric]) {
			list = append(list, byMetric[metric][key])
			kinds[byMetric[metric][key].kind] = true
		}
		return list
	}
	for _, metric := range coverageMetrics {
		cells := cellsOf(metric)
		if count(cells, unseen) > 1 {
			m := covered(metric, cells, unseen)
			m.Half, m.P90, m.Basis = barsFor("", "", cells)
			c.Metrics = append(c.Metrics, m)
		}
	}
	for _, kind := range sorted(kinds) {
		k := KindCoverage{Kind: kind, Metrics: []MetricCoverage{}}
		for _, metric := range coverageMetrics {
			cells := cellsOf(metric)
			of := func(e *errorCell) bool { return e.kind == kind && !e.fitted }
			if i := slices.IndexFunc(cells, of); i >= 0 && count(cells, unseen) > 1 {
				m := covered(metric, cells, of)
				m.Half, m.P90, m.Basis = barsFor(cells[i].kind, cells[i].family, cells)
				k.Metrics = append(k.Metrics, m)
			}
		}
		if len(k.Metrics) > 0 {
			c.Kinds = append(c.Kinds, k)
		}
	}
}

// unseen reports whether no constant was fitted to runs of the cell.
func unseen(e *errorCell) bool { return !e.fitted }

// covered judges each cell that keep selects by the bars of the other cells.
func covered(metric string, cells []*errorCell, keep func(*errorCell) bool) MetricCoverage {
	m := MetricCoverage{Metric: metric}
	for i, cell := range cells {
		if !keep(cell) {
			continue
		}
		others := slices.Concat(cells[:i], cells[i+1:])
		half, p90, _ := barsFor(cell.kind, cell.family, others)
		m.Cells++
		m.Rows += len(cell.logs)
		share := func(bar [2]float64) float64 {
			n := 0
			for _, x := range cell.logs {
				if e := math.Expm1(x); e >= bar[0] && e <= bar[1] {
					n++
				}
			}
			return float64(n) / float64(len(cell.logs))
		}
		m.HalfShare += share(half)
		m.P90Share += share(p90)
	}
	m.HalfShare /= float64(m.Cells)
	m.P90Share /= float64(m.Cells)
	return m
}

// barsFor returns the bars of a kind: its own where it has enough cells; else those of its family, widened to hold the
// errors of the kind's few cells; else those of all unseen cells, widened alike. With halfCells cells a kind has its
// own bars for half of the runs. An empty kind has none.
func barsFor(kind, family string, cells []*errorCell) (half, p90 [2]float64, basis string) {
	own := usable(cells, func(e *errorCell) bool { return e.kind == kind })
	near := usable(cells, func(e *errorCell) bool { return e.family == family })
	switch {
	case len(own) >= ownCells:
		half, p90 = bars(own)
		return half, p90, "kind"
	case len(near) >= halfCells:
		basis = "family"
		half, p90 = bars(near)
		if len(near) < ownCells {
			w := catalog.ErrorBars{Half: half, P90: p90}.Widened(fewCells)
			p90 = w.P90
		}
	default:
		basis = "all"
		half, p90 = bars(usable(cells, unseen))
	}
	for _, e := range own {
		p90[0] = min(p90[0], math.Expm1(slices.Min(e.logs)))
		p90[1] = max(p90[1], math.Expm1(slices.Max(e.logs)))
	}
	if len(own) >= halfCells {
		half, _ = bars(own)
	}
	return half, p90, basis
}

// usable returns the cells that keep selects: the unseen ones if there are ownCells of them; else all.
func usable(cells []*errorCell, keep func(*errorCell) bool) []*errorCell {
	var list, clean []*errorCell
	for _, e := range cells {
		if !keep(e) {
			continue
		}
		list = append(list, e)
		if !e.fitted {
			clean = append(clean, e)
		}
	}
	if len(clean) >= ownCells {
		return clean
	}
	return list
}

func count(cells []*errorCell, keep func(*errorCell) bool) (n int) {
	for _, e := range cells {
		if keep(e) {
			n++
		}
	}
	return n
}

// bars returns the bars that hold half and 90 % of the errors of a further cell. Each cell has the weight 1, shared by
// its runs, and the further cell counts on both sides (conformal prediction), so that few cells give wide bars.
func bars(cells []*errorCell) (half, p90 [2]float64) {
	type weighted struct{ x, w float64 }
	var list []weighted
	n := 0.0
	for _, e := range cells {
		n++
		for _, x := range e.logs {
			list = append(list, weighted{x, 1 / float64(len(e.logs))})
		}
	}
	slices.SortFunc(list, func(a, b weighted) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	bar := func(inside float64) (b [2]float64) {
		outside := (n+1)*(1-inside)/2 - 1 // the further cell may lie outside too
		const rounding = 1e-9
		find := func(at func(int) weighted) float64 {
			mass := 0.0
			i := 0
			for i < len(list)-1 && mass+at(i).w <= outside+rounding {
				mass += at(i).w
				i++
			}
			return math.Expm1(at(i).x)
		}
		b[0] = find(func(i int) weighted { return list[i] })
		b[1] = find(func(i int) weighted { return list[len(list)-1-i] })
		return [2]float64{min(b[0], b[1]), max(b[0], b[1])}
	}
	return bar(0.5), bar(0.9)
}

// WriteTable writes the coverage for people.
func (c *Coverage) WriteTable(w io.Writer) error { return c.write(w, false) }

// WriteMarkdown writes the same table as Markdown.
func (c *Coverage) WriteMarkdown(w io.Writer) error { return c.write(w, true) }

func (c *Coverage) write(w io.Writer, markdown bool) error {
	t := newLayout(markdown)
	t.Heading("Share of cells inside bars from the other cells, of %d measured runs to which nothing was fitted",
		c.Rows)
	grid := [][]string{{"kind", "metric", "cells", "runs", "half: bar %", "inside %", "90 %: bar %", "inside %",
		"bars of"}}
	line := func(kind string, m *MetricCoverage) {
		bar := func(b [2]float64) string { return percent(&b[0]) + "…" + percent(&b[1]) }
		grid = append(grid, []string{kind, m.Metric, strconv.Itoa(m.Cells), strconv.Itoa(m.Rows), bar(m.Half),
			fmt.Sprintf("%.0f", 100*m.HalfShare), bar(m.P90), fmt.Sprintf("%.0f", 100*m.P90Share), m.Basis})
	}
	for i := range c.Metrics {
		line("all", &c.Metrics[i])
	}
	for _, k := range c.Kinds {
		for i := range k.Metrics {
			line(k.Kind, &k.Metrics[i])
		}
	}
	t.Table(grid, 2, 1)
	t.Item("", fmt.Sprintf("%d runs are not judged, because constants of the catalog were fitted to runs of their "+
		"model on their GPU. Bars of a kind or family with fewer than %d other cells use them too.", c.InSample,
		ownCells))
	_, err := t.WriteTo(w)
	return err
}

// WriteCSV writes a row for each kind and metric; the kind all has all cells.
func (c *Coverage) WriteCSV(w io.Writer) error {
	rows := [][]string{{"kind", "metric", "cells", "rows", "half_low", "half_high", "half_share", "p90_low", "p90_high",
		"p90_share", "basis"}}
	line := func(kind string, m *MetricCoverage) {
		rows = append(rows, []string{kind, m.Metric, strconv.Itoa(m.Cells), strconv.Itoa(m.Rows), exact(&m.Half[0]),
			exact(&m.Half[1]), exact(&m.HalfShare), exact(&m.P90[0]), exact(&m.P90[1]), exact(&m.P90Share), m.Basis})
	}
	for i := range c.Metrics {
		line("all", &c.Metrics[i])
	}
	for _, k := range c.Kinds {
		for i := range k.Metrics {
			line(k.Kind, &k.Metrics[i])
		}
	}
	return writeCSV(w, rows)
}
