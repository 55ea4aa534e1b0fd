package calibration

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/validation"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/report/layout"
)

// Schema identifies the JSON form of a [Result].
const Schema = "clifftop.calibration/1"

// Options control a fit.
type Options struct {
	// Fit names the parameters. Empty means all that the measurements can determine.
	Fit []string
	// ByGPU allows runs of several GPUs. Then only constants of the host are fitted, and the runs of one GPU are left
	// out together, to measure how well the others predict them.
	ByGPU bool
	// Jobs is the number of parallel simulations; 0 means one per processor. It changes no result.
	Jobs int
	// Check makes the simulator check its invariants.
	Check bool
	// Progress is called with the number of passes over the measurements that are done; it may be nil.
	Progress func(done, total int)
}

// Result is the result of a fit.
type Result struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"`
	GPU      string `json:"gpu"`
	Source   string `json:"source"` // the measurements
	// Runs is the number of measured runs; 0 for iterations. Calibrated reports that they are at least 3.
	Runs       int  `json:"runs"`
	Calibrated bool `json:"calibrated"`
	// Skipped are the measured runs that were not used.
	Skipped []Skipped `json:"skipped"`

	Parameters []Fitted `json:"parameters"`
	Errors     []Error  `json:"errors"`
	// Numbers has the error of each measured number, in the order of the measurements.
	Numbers []Number `json:"numbers"`

	record *catalog.CalibratedRecord
}

// Skipped is a measured run that was not used, and why.
type Skipped struct {
	Run    string `json:"run"`
	Reason string `json:"reason"`
}

// Fitted is a parameter's value before and after the fit. Low and High are the ends of its 95 % interval, from the
// curvature of the loss with the prior, while the constants that are not identified are free.
//
// A constant is not identified if the measurements leave its standard deviation above 0.8 of the prior's, or if there
// are fewer than two measured numbers for each constant. Its value is then the catalog's, and it has no interval.
type Fitted struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit"`
	From  float64  `json:"from"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	// Identified reports that the measurements determine the constant.
	Identified bool `json:"identified"`
}

// Error summarizes the absolute errors of a metric: before the fit, after it, and for runs that were left out of it.
type Error struct {
	Metric  string `json:"metric"`
	N       int    `json:"n"`
	Before  Size   `json:"before"`
	After   Size   `json:"after"`
	LeftOut Size   `json:"left_out"`
}

// Size is the median and the mean of absolute errors, as fractions.
type Size struct {
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
}

// Number has the errors of one measured number: simulated over measured, minus 1.
type Number struct {
	Run     string  `json:"run"`
	Metric  string  `json:"metric"`
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
	LeftOut float64 `json:"left_out"`
}

// result returns the result of a fit for a GPU. Names are the names of the measurements; runs is the number of measured
// runs among them.
func (p *problem) result(f *fit, gpu string, frontend float64, names []string, source string, runs int) *Result {
	r := &Result{
		Schema: Schema, Clifftop: experiments.Version, GPU: gpu, Source: source,
		Runs: runs, Calibrated: (&model.OwnRuns{Runs: runs}).Validates(),
		Skipped: []Skipped{},
		record:  record(gpu, p.parameters, f.x, frontend),
	}
	r.record.Calibration.Source = source
	for k, q := range p.parameters {
		low, high := q.value(f.x[k]-1.96*f.sd[k], frontend), q.value(f.x[k]+1.96*f.sd[k], frontend)
		r.Parameters = append(r.Parameters, Fitted{
			Name: q.Name, Unit: q.Unit, From: q.value(0, frontend), Value: q.value(f.x[k], frontend),
			Low: &low, High: &high, Identified: true,
		})
	}
	for _, q := range p.unidentified {
		from := q.value(0, frontend)
		r.Parameters = append(r.Parameters, Fitted{Name: q.Name, Unit: q.Unit, From: from, Value: from})
	}
	for i, o := range p.observations {
		r.Numbers = append(r.Numbers, Number{
			Run: names[o.run], Metric: o.metric,
			Before: math.Expm1(f.before[i]), After: math.Expm1(f.after[i]), LeftOut: math.Expm1(f.left[i]),
		})
	}
	var metrics []string
	for _, n := range r.Numbers {
		if !slices.Contains(metrics, n.Metric) {
			metrics = append(metrics, n.Metric)
		}
	}
	for _, m := range metrics {
		e := Error{Metric: m}
		var before, after, left []float64
		for _, n := range r.Numbers {
			if n.Metric == m {
				e.N++
				before, after, left = append(before, n.Before), append(after, n.After), append(left, n.LeftOut)
			}
		}
		e.Before, e.After, e.LeftOut = size(m, before), size(m, after), size(m, left)
		r.Errors = append(r.Errors, e)
	}
	r.record.Evidence = r.evidence(names)
	return r
}

// evidence returns what the record keeps of the measured runs; nil if there are none.
func (r *Result) evidence(names []string) *catalog.CalibrationEvidence {
	if r.Runs == 0 {
		return nil
	}
	e := &catalog.CalibrationEvidence{Clifftop: r.Clifftop, GPU: r.GPU, Runs: r.Runs, Names: names,
		LeftOut: map[string]float64{}}
	for _, m := range r.Errors {
		e.LeftOut[m.Metric] = math.Round(m.LeftOut.Median*1e4) / 1e4
	}
	for _, p := range r.Parameters {
		if !p.Identified {
			e.NotIdentified = append(e.NotIdentified, p.Name)
		}
	}
	return e
}

// size returns the size of errors. There must be at least one.
func size(metric string, errors []float64) Size {
	s := validation.NewSpread(metric, errors)
	return Size{Median: *s.Median, Mean: *s.Mean}
}

// WriteRecord writes the GPU's record with a name, for the key gpu of scenarios. Values are rounded to four decimals.
func (r *Result) WriteRecord(w io.Writer, name string) error {
	if strings.Contains(r.GPU, ",") {
		return errors.New("--record: a record is for one GPU, but the runs are of several")
	}
	rec := *r.record
	rec.Name = name
	for _, p := range Parameters() {
		if v := p.field(&rec); *v != nil {
			x := math.Round(**v*1e4) / 1e4
			*v = &x
		}
	}
	return rec.Write(w)
}

// WriteTable writes the constants and the errors as tables.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, fitted to %s\n\n", r.GPU, r.Source)
	fmt.Fprintf(&b, "%-18s %5s %9s %9s   %s\n", "constant", "", "before", "after", "95 % interval")
	for _, p := range r.Parameters {
		interval := "not identified"
		if p.Identified {
			interval = fmt.Sprintf("%.3f to %.3f", *p.Low, *p.High)
		}
		fmt.Fprintf(&b, "%-18s %5s %9.3f %9.3f   %s\n", p.Name, p.Unit, p.From, p.Value, interval)
	}
	fmt.Fprintf(&b, "\nAbsolute errors, median (mean) in %%\n%-18s %5s %14s %14s %14s\n", "", "n", "before", "after",
		"left out")
	cell := func(s Size) string { return fmt.Sprintf("%.1f (%.1f)", 100*s.Median, 100*s.Mean) }
	for _, e := range r.Errors {
		fmt.Fprintf(&b, "%-18s %5d %14s %14s %14s\n", e.Metric, e.N, cell(e.Before), cell(e.After), cell(e.LeftOut))
	}
	group := "run"
	if strings.Contains(r.GPU, ",") {
		group = "GPU"
	}
	fmt.Fprintf(&b, "left out: each %s predicted by a fit to the others\n", group)
	if r.Runs > 0 && !r.Calibrated {
		fmt.Fprintf(&b, "not called calibrated: %d runs are too few (want 3 or more)\n", r.Runs)
	}
	for _, line := range r.notUsed() {
		fmt.Fprintf(&b, "not used: %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// notUsed lists the runs that were not used, by reason, with the names of the first ones.
func (r *Result) notUsed() []string {
	const most = 8 // names
	var reasons, lines []string
	names := map[string][]string{}
	for _, s := range r.Skipped {
		if names[s.Reason] == nil {
			reasons = append(reasons, s.Reason)
		}
		names[s.Reason] = append(names[s.Reason], s.Run)
	}
	for _, reason := range reasons {
		list := names[reason]
		more := ""
		if n := len(list) - most; n > 0 {
			list, more = list[:most], fmt.Sprintf(" and %d more", n)
		}
		lines = append(lines, strings.Join(list, ", ")+more+": "+reason)
	}
	return lines
}

// WriteCSV writes three kinds of rows: the constants with their 95 % intervals, the error of each measured number, and
// the runs that were not used.
func (r *Result) WriteCSV(w io.Writer) error {
	digits := func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.6f", *v)
	}
	rows := [][]string{{"kind", "name", "metric", "unit", "before", "after", "low", "high", "left_out", "note"}}
	for i := range r.Parameters {
		p := &r.Parameters[i]
		note := "not identified"
		if p.Identified {
			note = "identified"
		}
		rows = append(rows, []string{"constant", p.Name, "", p.Unit, digits(&p.From), digits(&p.Value), digits(p.Low),
			digits(p.High), "", note})
	}
	for i := range r.Numbers {
		n := &r.Numbers[i]
		rows = append(rows, []string{"error", n.Run, n.Metric, "", digits(&n.Before), digits(&n.After), "", "",
			digits(&n.LeftOut), ""})
	}
	for _, s := range r.Skipped {
		rows = append(rows, []string{"not used", s.Run, "", "", "", "", "", "", "", s.Reason})
	}
	return layout.NewCSVWriter(w).WriteAll(rows)
}
