package validation

import (
	"context"
	"testing"

	"clifftop/internal/testenv"
)

// scored scores the rows of a file of the reference that keep lets through.
func scored(t *testing.T, file string, keep func(*Row) bool) *Report {
	t.Helper()
	ref, err := open(testenv.Reference(t, file))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), ref, Choose(Plan(ref), keep), keep, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestKindsAccuracy holds drafts, pools and sessions to what the simulator is known to reach, in % over cells.
func TestKindsAccuracy(t *testing.T) {
	testenv.NeedsLong(t, "it simulates large pools")
	some := func(r *Row) bool { return r.Quality == "ok" }
	fewer := func(r *Row) bool { return some(r) && or(r.Concurrency, 0) <= 512 && or(r.OutputNominal, 0) < 3000 }
	for _, want := range []struct {
		file, class, metric string
		keep                func(*Row) bool
		median              float64
	}{
		{"inferencex-dsr1-mtp.csv", kindDrafts + ", sglang", "tpot_p50_ms", some, 12},
		{"inferencex-dsr1-mtp.csv", kindDrafts + ", " + trtllmEngine, "tpot_p50_ms", some, 12},
		{"inferencex-dsr1-mtp.csv", kindDrafts + ", atom", "tpot_p50_ms", some, 12},
		{"inferencex-dsr1-disagg.csv", kindPools + ", " + trtllmEngine, "tpot_p50_ms", fewer, 15},
		{"multiturn/runs.csv", kindSessions, "gpu_hit_rate", some, 5},
		{"multiturn/runs.csv", kindSessions, "ttft_p50_ms", some, 40},
	} {
		s := summaryOf(scored(t, want.file, want.keep), want.class, want.metric)
		if s == nil {
			t.Errorf("%s, %s: no %s", want.file, want.class, want.metric)
			continue
		}
		t.Logf("%s, %s, %s: median %.1f %% of %d cells", want.file, want.class, want.metric, 100**s.Median, s.N)
		if 100**s.Median > want.median {
			t.Errorf("%s, %s, %s: median %.1f %% (want at most %g)", want.file, want.class, want.metric, 100**s.Median,
				want.median)
		}
	}
}
