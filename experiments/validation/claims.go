package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clifftop/report/layout"
)

// Kind sums up the errors of a kind of runs: an engine on a generation of GPUs, or a way of serving. Overloaded runs
// and suspect ones are in no kind.
type Kind struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
	// Cells are a model on GPUs with a parallelism. Constants of the catalog were fitted to runs of InSample of them.
	Cells    int `json:"cells"`
	InSample int `json:"in_sample"`
	// Errors are, by measure, the medians over the cells of each cell's median size.
	Errors []KindError `json:"errors"`
}

// KindError is the error of a measure: TTFT, TPOT, E2E, throughput, energy or a hit rate.
type KindError struct {
	Measure string  `json:"measure"`
	Cells   int     `json:"cells"` // that have the measure
	Median  float64 `json:"median"`
	Bias    float64 `json:"bias"` // median over the cells of the median errors with their signs
	// Unseen is the median over the cells that no constant was fitted to; nil where there is none.
	Unseen *float64 `json:"unseen"`
	// Goal is the error to stay below; 0 if there is none.
	Goal float64 `json:"goal,omitempty"`
}

// kinds are the kinds of runs in the order of their names here, with the goals for their medians.
var kinds = []struct {
	name  string
	of    func(*Result) bool
	goals map[string]float64
}{
	{kindSessions, func(r *Result) bool { return r.Serving == kindSessions },
		map[string]float64{"TTFT": 0.25, "hit rate": 0.03}},
	{kindPools, func(r *Result) bool { return r.Serving == kindPools },
		map[string]float64{"TTFT": 0.25, "TPOT": 0.06}},
	{kindDrafts, func(r *Result) bool { return r.Serving == kindDrafts }, map[string]float64{"TPOT": 0.12}},
	{kindRanks, func(r *Result) bool { return r.Serving == kindRanks },
		map[string]float64{"TTFT": 0.30, "TPOT": 0.12}},
	{"AMD", func(r *Result) bool { return strings.HasPrefix(r.Generation, "cdna") }, map[string]float64{"TPOT": 0.10}},
	{"linear attention", func(r *Result) bool { return r.Linear }, map[string]float64{"TPOT": 0.06}},
	{"SGLang", func(r *Result) bool { return r.Engine == "sglang" }, map[string]float64{"TTFT": 0.20, "TPOT": 0.06}},
	{"TensorRT-LLM", func(r *Result) bool { return strings.HasPrefix(r.Engine, "trtllm") },
		map[string]float64{"TTFT": 0.20, "TPOT": 0.06}},
	{"vLLM, Hopper and A100, open loop", func(r *Result) bool { return r.hopperOrA100() && r.Load != "closed" },
		map[string]float64{"TTFT": 0.03, "TPOT": 0.02, "E2E": 0.02}},
	{"vLLM, Hopper and A100, closed loop", func(r *Result) bool { return r.hopperOrA100() },
		map[string]float64{"TTFT": 0.06, "TPOT": 0.02, "E2E": 0.02}},
	{"vLLM, Blackwell", func(r *Result) bool {
		return r.Engine == "vllm" &&
			strings.HasPrefix(r.Generation, "blackwell")
	}, map[string]float64{"TPOT": 0.04}},
	{"other", func(*Result) bool { return true }, nil},
}

func (r *Result) hopperOrA100() bool {
	return r.Engine == "vllm" && (r.Generation == "hopper" || strings.HasPrefix(r.GPU, "a100"))
}

// kindRanks is of engines with data-parallel attention.
const kindRanks = "data-parallel attention"

// serving is the row's kind, or that its attention is data-parallel; empty for one engine by itself.
func serving(r *Row) string {
	kind := r.kind()
	if kind == "" && or(r.DP, 1) > 1 && !r.replicated() && !r.queueClock() {
		return kindRanks
	}
	return kind
}

// measures are the metrics by which kinds are judged. The error of a row is the error of the first of the metrics that
// it has.
var measures = []struct {
	name    string
	metrics []string
}{
	{"TTFT", []string{"ttft_mean_ms", "ttft_p50_ms"}},
	{"TPOT", []string{"tpot_mean_ms", "tpot_p50_ms"}},
	{"E2E", []string{"e2e_mean_ms", "e2e_p50_ms"}},
	{"tok/s", []string{"output_tokens_per_s"}},
	{"energy", []string{"energy_per_output_token_j", "joules_per_output_token", "power_per_gpu_w", "gpu_power_w"}},
	{"hit rate", []string{"gpu_hit_rate"}},
}

// measure is the row's error of a measure; nil where it has none.
func (r *Result) measure(metrics []string) *float64 {
	for _, m := range metrics {
		if e := r.Error(m); e != nil {
			return e
		}
	}
	return nil
}

// sumKinds sums up the scored rows by kind.
func sumKinds(rows []Result) []Kind {
	parts := make([][]*Result, len(kinds))
	for i := range rows {
		r := &rows[i]
		if r.Status != Scored || r.Overload || r.Doubt != "" {
			continue
		}
		for k := range kinds {
			if kinds[k].of(r) {
				parts[k] = append(parts[k], r)
				break
			}
		}
	}
	list := []Kind{}
	for k, part := range parts {
		if len(part) > 0 {
			list = append(list, newKind(kinds[k].name, part, kinds[k].goals))
		}
	}
	return list
}

// newKind sums up the rows of a kind.
func newKind(name string, rows []*Result, goals map[string]float64) Kind {
	k := Kind{Name: name, Rows: len(rows), Errors: []KindError{}}
	byCell := map[string][]*Result{}
	for _, r := range rows {
		byCell[r.cell()] = append(byCell[r.cell()], r)
	}
	k.Cells = len(byCell)
	for _, cell := range sorted(byCell) {
		if byCell[cell][0].InSample {
			k.InSample++
		}
	}
	for _, m := range measures {
		var sizes, biases, unseen []float64
		for _, cell := range sorted(byCell) {
			errors := points(byCell[cell], func(r *Result) *float64 { return r.measure(m.metrics) })
			if len(errors) == 0 {
				continue
			}
			s := NewSpread(m.name, errors)
			sizes, biases = append(sizes, *s.Median), append(biases, median(errors))
			if !byCell[cell][0].fitted(m.metrics[0]) {
				unseen = append(unseen, *s.Median)
			}
		}
		if len(sizes) == 0 {
			continue
		}
		e := KindError{Measure: m.name, Cells: len(sizes), Median: median(sizes), Bias: median(biases),
			Goal: goals[m.name]}
		if len(unseen) > 0 {
			x := median(unseen)
			e.Unseen = &x
		}
		k.Errors = append(k.Errors, e)
	}
	return k
}

// cell names the row's cell: its model, its GPUs and its parallelism.
func (r *Result) cell() string {
	return fmt.Sprintf("%s\x00%s\x00%d\x00%s", r.Model, r.GPU, 1e6+r.TP, r.Parallelism)
}

// points are the errors of rows, where repeats of one configuration with the same load count once, with the median of
// their errors.
func points(rows []*Result, of func(*Result) *float64) []float64 {
	byPoint := map[string][]float64{}
	for _, r := range rows {
		if e := of(r); e != nil {
			byPoint[r.Point] = append(byPoint[r.Point], *e)
		}
	}
	var list []float64
	for _, p := range sorted(byPoint) {
		list = append(list, median(byPoint[p]))
	}
	return list
}

// point names the configuration and the load of a row, which its repeats share. Rows without the name of an experiment
// are points of their own.
func point(r *Row) string {
	if r.Experiment == "" {
		return r.ID
	}
	load := strconv.Itoa(or(r.Concurrency, or(r.Users, 0)))
	if r.Rate != nil {
		load += "@" + strconv.FormatFloat(*r.Rate, 'g', -1, 64)
	}
	return strings.Join([]string{r.Experiment, r.Stage, load}, "\x00")
}

// cellParallelism names what distinguishes cells of equal tensor-parallel size.
func cellParallelism(r *Row) string {
	s := fmt.Sprintf("pp%d dp%d ep%d", or(r.PP, 1), or(r.DP, 1), or(r.EP, 1))
	for _, p := range []*Pool{&r.Prefill, &r.Decode} {
		if *p != (Pool{}) {
			s += fmt.Sprintf(" %d×(tp%d dp%d ep%d)", or(p.Workers, 1), or(p.TP, 1), or(p.DP, 1), or(p.EP, 1))
		}
	}
	return s
}

// kindTable prints the errors by kind beside their goals.
func (r *Report) kindTable(t *layout.Text) {
	if len(r.Kinds) == 0 || r.scored() < 2 {
		return
	}
	t.Heading("Errors by kind over cells (model, GPUs, parallelism): median of the cells' medians in %%")
	grid := [][]string{{"kind", "rows", "cells", "unseen", "measure", "median", "bias", "of unseen", "goal", ""}}
	for _, k := range r.Kinds {
		first := []string{k.Name, strconv.Itoa(k.Rows), strconv.Itoa(k.Cells), strconv.Itoa(k.Cells - k.InSample)}
		for _, e := range k.Errors {
			goal, met := "–", ""
			if e.Goal > 0 {
				goal, met = fmt.Sprintf("%g", 100*e.Goal), "missed"
				if e.Median <= e.Goal {
					met = "met"
				}
			}
			bias := e.Bias
			grid = append(grid, append(slices.Clone(first), e.Measure, size(&e.Median), percent(&bias),
				size(e.Unseen), goal, met))
			if !t.Markdown {
				first = []string{"", "", "", ""}
			}
		}
	}
	t.Table(grid, 1, 1)
	inSample := 0
	for _, k := range r.Kinds {
		inSample += k.InSample
	}
	if inSample > 0 {
		t.Item("", fmt.Sprintf("Constants of the catalog were fitted to runs of %d cells: their errors are in "+
			"sample. The column of unseen cells leaves them out.", inSample))
	}
	t.Item("", "The front ends of SGLang and TensorRT-LLM were fitted to the TTFT of their closed loops, and drafts, "+
		"pools and sessions have constants of their own: these errors are in sample, too.")
	t.Item("", "Repeats of one configuration and load count once; overloaded and suspect runs are left out. TTFT, "+
		"TPOT and E2E are means where they were published, else medians.")
}
