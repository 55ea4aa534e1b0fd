package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/compare"
	"clifftop/experiments/grid"
	"clifftop/experiments/sweep"
	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/verdict"
)

// Merged is the joined result of a grid.
type Merged struct {
	Curve   *curve.Curve      // of a sweep
	Caption string            // for its pictures
	Peak    *experiments.Peak // of the machine, for the same; nil where none is known
	Verdict *verdict.Result   // of a comparison
}

// MissingError names the missing results.
type MissingError struct {
	Labels []string // of the runs
	Of     int      // Runs in all

	search bool // for the capacity
}

// Error names the first of them.
func (m *MissingError) Error() string {
	const most = 8
	if m.search {
		return fmt.Sprintf("all %d runs are there, but those of the search for the capacity are missing", m.Of)
	}
	text := fmt.Sprintf("%d of %d runs are missing: %s", len(m.Labels), m.Of,
		strings.Join(m.Labels[:min(most, len(m.Labels))], ", "))
	if n := len(m.Labels) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Results joins the results of a grid's parts. partial takes what is there and marks it so; otherwise nothing may
// be missing, or else the error is a [MissingError].
func Results(ctx context.Context, runs *grid.Joined, partial bool) (*Merged, error) {
	if missing := runs.Missing(); len(missing) > 0 && !partial {
		return nil, &MissingError{Labels: missing, Of: len(runs.Manifest.Runs)}
	}
	switch c := runs.Manifest.Command; c {
	case sweep.GridCommand:
		return mergeSweep(ctx, runs, partial)
	case compare.GridCommand:
		return mergeCompare(runs)
	default:
		return nil, fmt.Errorf("results of command %q cannot be joined (want those of %s or %s)", c, sweep.GridCommand,
			compare.GridCommand)
	}
}

func mergeSweep(ctx context.Context, runs *grid.Joined, partial bool) (*Merged, error) {
	var request sweep.GridRequest
	if err := json.Unmarshal(runs.Manifest.Request, &request); err != nil ||
		len(request.Values) != len(runs.Manifest.Runs) {
		return nil, fmt.Errorf("the manifest's request is not that of a sweep")
	}
	there, values := runs.There(), []float64{}
	if len(there) == 0 {
		return nil, fmt.Errorf("none of the %d runs is there", len(runs.Manifest.Runs))
	}
	for _, i := range there {
		values = append(values, request.Values[i])
	}
	curve, err := curve.Read(request.Over, values, func(i int) (*report.Summary, error) {
		return readRun(runs, there[i])
	})
	if err != nil {
		return nil, err
	}
	if err := sweep.Describe(curve, len(there) < len(runs.Manifest.Runs)); err != nil {
		return nil, err
	}
	curve.Effort.SearchRequests += request.Searched
	m := &Merged{Curve: curve, Caption: request.Caption, Peak: request.Peak}
	if request.Capacity == nil {
		return m, nil
	}
	found, err := request.Capacity.Find(ctx, request.Over, experiments.ReadResultCache(runs), 1, false)
	switch {
	case errors.Is(err, experiments.ErrMissing) && partial:
	case errors.Is(err, experiments.ErrMissing):
		return nil, &MissingError{Of: len(there), search: true}
	case err != nil:
		return nil, err
	}
	m.Curve.SetCapacity(found)
	return m, nil
}

// mergeCompare judges the variants by the seeds whose runs are complete.
func mergeCompare(runs *grid.Joined) (*Merged, error) {
	var request compare.GridRequest
	err := json.Unmarshal(runs.Manifest.Request, &request)
	n := len(request.Seeds)
	if err != nil || n*len(request.Names) != len(runs.Manifest.Runs) || len(request.Cases) != len(request.Names) {
		return nil, fmt.Errorf("the manifest's request is not that of a comparison")
	}
	all := make([][]*report.Summary, len(request.Names))
	var seeds []uint64
	for k, seed := range request.Seeds {
		of := func(i int) int { return i*n + k }
		whole := true
		for i := range request.Names {
			whole = whole && runs.Has(of(i))
		}
		if !whole {
			continue
		}
		seeds = append(seeds, seed)
		for i := range request.Names {
			s, err := readRun(runs, of(i))
			if err != nil {
				return nil, err
			}
			if len(all[i]) > 0 {
				s.Scenario = nil // but for the seed, that of the first
			}
			all[i] = append(all[i], s)
		}
	}
	if len(seeds) == 0 {
		return nil, fmt.Errorf("there is no seed of which all %d variants have been run", len(request.Names))
	}
	request.By.Judge = func(variant int, pooled *report.Summary) { request.Cases[variant].Judge(pooled) }
	v := verdict.CompareBy(request.By, request.Names, seeds, all)
	v.Clifftop = experiments.Version
	v.Effort.SearchRequests += request.Searched
	if request.Traffic != nil {
		v.Traffic = request.Traffic
	}
	if len(seeds) < n {
		compare.MarkPartial(v, n)
	}
	v.Warnings = append(v.Warnings, request.Warnings...)
	return &Merged{Verdict: v}, nil
}

func readRun(runs *grid.Joined, i int) (*report.Summary, error) {
	r := runs.Manifest.Runs[i]
	data, ok, err := runs.Get(i)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s (%s) is gone", r.Key, r.Label)
	}
	s, err := report.ReadSummary(data)
	if err != nil {
		return nil, fmt.Errorf("%s (%s) is not the result of a run: %w", r.Key, r.Label, err)
	}
	return s, nil
}
