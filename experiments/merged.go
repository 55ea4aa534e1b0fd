package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"clifftop/experiments/grid"
	"clifftop/report"
)

// Merged is what the results of a grid come to.
type Merged struct {
	Curve   *report.Curve // of a sweep
	Caption string        // for its pictures
	// Scenario is that of the lowest load, as resolved.
	Scenario any
	Verdict  *report.Verdict // of a comparison

	runs *grid.Joined
	of   []int // run of each of the curve's points
}

// MissingError tells which results are missing.
type MissingError struct {
	Labels []string // of the runs
	Of     int      // runs in all

	search bool // for the capacity
}

// Error names the first of them.
func (m *MissingError) Error() string {
	const most = 8
	if m.search {
		return fmt.Sprintf("all %d runs are there, but those of the search for the capacity are missing", m.Of)
	}
	text := fmt.Sprintf("%d of %d runs are missing: %s", len(m.Labels), m.Of, strings.Join(m.Labels[:min(most, len(m.Labels))], ", "))
	if n := len(m.Labels) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Merge joins the results of a grid's parts. partial takes what is there and marks it so; otherwise nothing may
// be missing, or else the error is a [MissingError].
func Merge(ctx context.Context, runs *grid.Joined, partial bool) (*Merged, error) {
	if missing := runs.Missing(); len(missing) > 0 && !partial {
		return nil, &MissingError{Labels: missing, Of: len(runs.Manifest.Runs)}
	}
	switch c := runs.Manifest.Command; c {
	case gridSweep:
		return mergeSweep(ctx, runs, partial)
	case gridCompare:
		return mergeCompare(runs)
	default:
		return nil, fmt.Errorf("results of command %q cannot be joined (want those of %s or %s)", c, gridSweep, gridCompare)
	}
}

func mergeSweep(ctx context.Context, runs *grid.Joined, partial bool) (*Merged, error) {
	var request sweepGrid
	if err := json.Unmarshal(runs.Manifest.Request, &request); err != nil || len(request.Values) != len(runs.Manifest.Runs) {
		return nil, fmt.Errorf("the manifest's request is not that of a sweep")
	}
	m := &Merged{Caption: request.Caption, runs: runs}
	var points []report.CurvePoint
	lowest := 0.0
	of, texts := map[*report.Summary]int{}, interned{texts: map[string]string{}}
	for i := range runs.Manifest.Runs {
		s, err := readRun(runs, i)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		if value := request.Values[i]; m.Scenario == nil || value < lowest {
			m.Scenario, lowest = s.Scenario, value
		}
		texts.thin(s)
		of[s] = i
		points = append(points, report.CurvePoint{Value: request.Values[i], Summary: s})
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("none of the %d runs has been made", len(runs.Manifest.Runs))
	}
	m.Curve = newCurve(request.Over, points, len(points) < len(runs.Manifest.Runs))
	for _, p := range m.Curve.Points {
		m.of = append(m.of, of[p.Summary])
	}
	if request.Capacity == nil {
		return m, nil
	}
	found, err := request.Capacity.find(ctx, request.Over, ReadLedger(runs), 1, false)
	switch {
	case errors.Is(err, ErrMissing) && partial:
	case errors.Is(err, ErrMissing):
		return nil, &MissingError{Of: len(points), search: true}
	case err != nil:
		return nil, err
	}
	m.Curve.SetCapacity(found)
	return m, nil
}

// interned are texts that many results have in common, and the last of their accuracies.
type interned struct {
	texts    map[string]string
	accuracy *report.Accuracy
}

// thin leaves of a summary what curves, their tables and their pictures show. The rest is read again when it is written:
// of many thousands of runs only numbers stay in memory.
func (t *interned) thin(s *report.Summary) {
	share := func(text *string) {
		if same, ok := t.texts[*text]; ok {
			*text = same
			return
		}
		t.texts[*text] = *text
	}
	if !reflect.DeepEqual(s.Accuracy, t.accuracy) {
		t.accuracy = s.Accuracy
	}
	s.Accuracy = t.accuracy
	s.Scenario, s.Sessions, s.Stages = nil, nil, nil
	if s.CI95Method == report.ByBatchMeans { // which no curve shows
		s.CI95, s.TailSamples = nil, nil
	}
	share(&s.Schema)
	share(&s.Clifftop)
	share(&s.CI95Method)
	for i := range s.Warnings {
		share(&s.Warnings[i].Code)
		share(&s.Warnings[i].Text)
	}
}

// mergeCompare judges the variants by the seeds of which all runs are there.
func mergeCompare(runs *grid.Joined) (*Merged, error) {
	var request compareGrid
	err := json.Unmarshal(runs.Manifest.Request, &request)
	n := len(request.Seeds)
	if err != nil || n*len(request.Names) != len(runs.Manifest.Runs) {
		return nil, fmt.Errorf("the manifest's request is not that of a comparison")
	}
	all := make([][]*report.Summary, len(request.Names))
	var seeds []uint64
	for k, seed := range request.Seeds {
		var each []*report.Summary
		for i := range request.Names {
			s, err := readRun(runs, i*n+k)
			if err != nil {
				return nil, err
			}
			if s != nil {
				each = append(each, s)
			}
		}
		if len(each) < len(request.Names) {
			continue
		}
		seeds = append(seeds, seed)
		for i, s := range each {
			all[i] = append(all[i], s)
		}
	}
	if len(seeds) == 0 {
		return nil, fmt.Errorf("there is no seed of which all %d variants have been run", len(request.Names))
	}
	v := report.CompareBy(request.Margin, request.Names, seeds, all)
	v.Clifftop = Version
	if len(seeds) < n {
		v.Warnings = append(v.Warnings, report.Warning{Code: "partial", Text: fmt.Sprintf("partial: only %d of %d runs of each are there", len(seeds), n)})
	}
	v.Warnings = append(v.Warnings, request.Warnings...)
	return &Merged{Verdict: v}, nil
}

// readRun reads the result of run i; nil where there is none.
func readRun(runs *grid.Joined, i int) (*report.Summary, error) {
	data, ok, err := runs.Get(i)
	if err != nil || !ok {
		return nil, err
	}
	s, err := report.ReadSummary(data)
	if err != nil {
		r := runs.Manifest.Runs[i]
		return nil, fmt.Errorf("%s (%s) is not the result of a run: %w", r.Key, r.Label, err)
	}
	return s, nil
}

// WriteJSON writes the curve as it would be if one process had made all runs. Results are read one at a time, so that
// memory does not grow by what is in them.
func (m *Merged) WriteJSON(w io.Writer) error {
	frame := *m.Curve
	frame.Points = slices.Clone(frame.Points)
	for i := range frame.Points {
		frame.Points[i].Summary = nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	const indent = "  "
	e.SetIndent("", indent)
	if err := e.Encode(&frame); err != nil {
		return err
	}
	const gap = "\n" + indent + indent + indent + `"summary": null`
	rest := b.Bytes()
	for i := range m.of {
		before, after, found := bytes.Cut(rest, []byte(gap))
		if !found {
			return fmt.Errorf("point %d of the curve has no place for a summary", i)
		}
		rest = after
		data, err := m.summary(i)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		text.Write(before)
		text.WriteString(gap[:len(gap)-len("null")])
		if err := json.Indent(&text, bytes.TrimSpace(data), indent+indent+indent, indent); err != nil {
			return err
		}
		if _, err := w.Write(text.Bytes()); err != nil {
			return err
		}
	}
	_, err := w.Write(rest)
	return err
}

// summary is the JSON form of a point's summary: as it was kept, but for the price at the capacity that was found.
func (m *Merged) summary(i int) ([]byte, error) {
	data, ok, err := m.runs.Get(m.of[i])
	if err != nil || !ok {
		return nil, fmt.Errorf("the result of %s is gone: %w", m.runs.Manifest.Runs[m.of[i]].Label, err)
	}
	if c := m.Curve.Points[i].Summary.Cost; c == nil || c.USDPerMillionOutputAtCapacity == nil {
		return data, nil
	}
	s, err := readRun(m.runs, m.of[i])
	if err != nil {
		return nil, err
	}
	s.Cost = m.Curve.Points[i].Summary.Cost
	return marshal(s)
}
