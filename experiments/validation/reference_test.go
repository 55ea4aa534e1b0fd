package validation

import (
	"context"
	"slices"
	"sync"
	"testing"

	"clifftop/internal/testenv"
)

// scoring scores the measured runs once: the whole file in the long tier, open loops in the short one.
var scoring struct {
	sync.Once
	ref    *Reference
	report *Report
	err    error
}

func tested(r *Row) bool { return testenv.Long() || OpenLoop(r) }

func measuredRuns(t *testing.T) (*Reference, *Report) {
	t.Helper()
	path := testenv.Reference(t, "measured.csv")
	scoring.Do(func() {
		if scoring.ref, scoring.err = open(path); scoring.err == nil {
			cases := slices.DeleteFunc(Plan(scoring.ref), func(c *Case) bool { return !tested(c.Rows[0]) })
			scoring.report, scoring.err = Run(context.Background(), scoring.ref, cases, nil, Options{})
		}
	})
	if scoring.err != nil {
		t.Fatal(scoring.err)
	}
	return scoring.ref, scoring.report
}

// TestMeasuredAccuracy holds the errors over cells to what the simulator is known to reach: of each
// metric the median over cells, and where one is given the mean.
func TestMeasuredAccuracy(t *testing.T) {
	_, r := measuredRuns(t)
	for _, want := range []struct {
		class, metric string
		median, mean  float64 // in %; a mean of 0 is not held
	}{
		{"open loop", "ttft_mean_ms", 4, 6},
		{"open loop", "tpot_mean_ms", 3, 4},
		{"open loop", "e2e_mean_ms", 3, 4},
		{"open loop", "ttft_p90_ms", 5, 0},
		{"open loop", "ttft_p99_ms", 15, 0},
		{"closed loop, dense", "ttft_mean_ms", 8, 0},
		{"closed loop, dense", "tpot_mean_ms", 4, 0},
		{"closed loop, dense", "e2e_mean_ms", 4, 0},
		{"closed loop, gpt-oss", "ttft_mean_ms", 15, 0},
		{"closed loop, gpt-oss", "tpot_mean_ms", 4, 0},
		{"closed loop, gpt-oss", "e2e_mean_ms", 4, 0},
	} {
		s := summaryOf(r, want.class, want.metric)
		if s == nil && !testenv.Long() && want.class != "open loop" {
			continue
		}
		if s == nil {
			t.Errorf("%s: no %s", want.class, want.metric)
			continue
		}
		median, mean := 100**s.Median, 100**s.Mean
		t.Logf("%-22s %-13s median %4.1f %%, mean %4.1f %% of %d cells", want.class, want.metric, median, mean, s.N)
		if median > want.median || want.mean > 0 && mean > want.mean {
			t.Errorf("%s, %s: median %.1f %%, mean %.1f %% (want at most %g and %g)", want.class, want.metric, median,
				mean, want.median, want.mean)
		}
	}
}

func summaryOf(r *Report, class, metric string) *Spread {
	for _, c := range r.Summary {
		for i := range c.Errors {
			if c.Name == class && c.Errors[i].Metric == metric {
				return &c.Errors[i]
			}
		}
	}
	return nil
}

// TestMeasuredRowsAreAllAccounted wants every row of the file in the report, and none of them bad.
func TestMeasuredRowsAreAllAccounted(t *testing.T) {
	ref, r := measuredRuns(t)
	want := 0
	for _, row := range ref.Rows {
		if tested(row) {
			want++
		}
	}
	if len(r.Rows) != want {
		t.Errorf("%d rows of %d", len(r.Rows), want)
	}
	scored := 0
	for _, row := range r.Rows {
		switch row.Status {
		case Scored:
			scored++
		case Bad:
			t.Errorf("%s: %s", row.RunID, row.Reason)
		default:
			if row.Reason == "" {
				t.Errorf("%s is refused without a reason", row.RunID)
			}
		}
	}
	if least := testenv.Choose(50, 260); scored < least {
		t.Errorf("%d rows are scored (want %d or more)", scored, least)
	}
}
