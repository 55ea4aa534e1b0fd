package experiments_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/internal/testenv"
	"clifftop/report"
)

// meanLatencies are the numbers whose intervals are counted.
var meanLatencies = []string{"latency_ms.ttft.mean", "latency_ms.tpot.mean", "latency_ms.e2e.mean"}

// TestHourCoverage counts how often the interval of the median of ten hours of the default traffic, at half of the
// saturation rate, holds the median of all hours that the test simulates. Intervals of the mean do not: of 500, 49 %
// held the mean TTFT. docs/statistics.md has the shares.
func TestHourCoverage(t *testing.T) {
	testenv.NeedsLong(t, "many hours")
	n, whole := repetitions(t)
	const hours = 10
	for _, rate := range []string{"12"} {
		at := scenario.Setting{Key: scenario.RateKey, Value: rate, Flag: "--rate"}
		var all []*report.Hours
		values := make([][]float64, 3)
		for k := range n {
			s := mustParse(t, fmt.Sprintf("run: {duration: 1h, warmup: none, seed: %d}\n", 1+hours*k), at)
			u, err := s.Resolve()
			if err != nil {
				t.Fatal(err)
			}
			runs := make([]*report.Summary, hours)
			if err := experiments.Parallel(context.Background(), hours, 0, nil, func(ctx context.Context, i int) error {
				seeded, err := u.Reseeded(i)
				if err != nil {
					return err
				}
				r, err := experiments.RunSetup(ctx, seeded, experiments.RunOptions{})
				if err == nil {
					runs[i] = r.Summary
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for i, path := range meanLatencies {
				for _, r := range runs {
					values[i] = append(values[i], *report.MetricAt(path).Of(r))
				}
			}
			all = append(all, report.Pool(runs).Hours)
		}
		for i, path := range meanLatencies {
			slices.Sort(values[i])
			median := values[i][len(values[i])/2]
			held, width := 0, 0.0
			for _, h := range all {
				ci := []report.HourSpread{h.TTFT, h.TPOT, h.E2E}[i].MedianCI95
				if ci == nil {
					t.Fatal("no interval")
				}
				width += (ci[1] - ci[0]) / 2 / median / float64(n)
				if ci[0] <= median && median <= ci[1] {
					held++
				}
			}
			share := float64(held) / float64(n)
			t.Logf("rate %s, %s: %d of %d intervals hold the median hour's %.5g (%.1f %%), ±%.2f %% on average", rate, path,
				held, n, median, 100*share, 100*width)
			if share < .93 && whole {
				t.Errorf("%s: %.1f %% of the intervals hold the median, want 93 %% or more", path, 100*share)
			}
		}
	}
}

// countHeld counts the intervals that hold a value, and returns their mean half width as a part of it.
func countHeld(t *testing.T, all []*report.Summary, path string, value float64) (held int, width float64) {
	t.Helper()
	for _, s := range all {
		ci, ok := s.CI95[path]
		if !ok {
			t.Fatalf("no interval of %s", path)
		}
		width += (ci[1] - ci[0]) / 2 / value / float64(len(all))
		if ci[0] <= value && value <= ci[1] {
			held++
		}
	}
	return held, width
}

// TestSettledAgreesWithALongerRun counts how often the intervals of settled runs of the default traffic, at the loads
// of a sweep up to 0.6, hold what a run of 100 times the length gives. docs/statistics.md has the shares of 100 runs.
func TestSettledAgreesWithALongerRun(t *testing.T) {
	testenv.NeedsLong(t, "runs of millions of requests")
	n, whole := repetitions(t)
	longer := 100
	if !whole {
		longer = 10
	}
	total, held := 0, 0
	for _, rate := range []string{"1.16", "3.11", "5.87", "8.81", "11.7", "13.8"} {
		at := scenario.Setting{Key: scenario.RateKey, Value: rate, Flag: "--rate"}
		var settled []*report.Summary
		for k := range n {
			r, err := experiments.Settled(context.Background(), mustParse(t, fmt.Sprintf("run: {seed: %d}\n", 1+k), at),
				experiments.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Summary.Window.State == report.Settled {
				settled = append(settled, r.Summary)
			}
		}
		if len(settled) < n/2 {
			t.Logf("rate %s: only %d of %d runs are settled", rate, len(settled), n)
			continue
		}
		most := 0.0
		for _, s := range settled {
			most = max(most, float64(s.Requests.Offered))
		}
		r, err := experiments.Run(context.Background(), mustParse(t, fmt.Sprintf("run: {requests: %.0f, seed: 777}\n",
			float64(longer)*most), at), experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range meanLatencies {
			value := *report.MetricAt(path).Of(r.Summary)
			h, width := countHeld(t, settled, path, value)
			t.Logf("rate %s, %s: %d of %d intervals hold %.5g, ±%.2f %% on average; longest run %.0f requests", rate, path, h,
				len(settled), value, 100*width, most)
			total, held = total+len(settled), held+h
		}
	}
	share := float64(held) / math.Max(1, float64(total))
	t.Logf("%d of %d intervals (%.1f %%) hold the value of a run %d times as long", held, total, 100*share, longer)
	if whole && share < .93 || total == 0 {
		t.Errorf("%.1f %% of the intervals hold it, want 95 %%", 100*share)
	}
}
