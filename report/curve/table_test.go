package curve

import (
	"bytes"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/report/table"
)

// TestHalfWidths: of loads that were run several times tables say what chance leaves open, and of others nothing.
func TestHalfWidths(t *testing.T) {
	point := func(rate float64, method string) Point {
		s := &report.Summary{CI95Method: method,
			CI95: map[string][2]float64{"throughput.output_tokens_per_s": {980, 1020}, "latency_ms.ttft.p99": {50, 70}}}
		s.Throughput.OutputTokensPerS = stats.Finite(1000)
		s.Latency.TTFT = report.Distribution{N: 10, P50: stats.Finite(40), P99: stats.Finite(60)}
		return Point{Value: rate, Summary: s}
	}
	text := func(points ...Point) string {
		var b bytes.Buffer
		if err := New("workload.arrivals.rate", points).WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := text(point(1, report.ByReplications), point(2, report.ByReplications))
	if n := strings.Count(got, "\n  ±                      20.0\n"); n != 2 ||
		!strings.Contains(got, "half of a 95 % interval") {
		t.Errorf("two runs at each load:\n%s", got)
	}
	if got := text(point(1, report.ByBatchMeans), point(2, "")); strings.Contains(got, "±") {
		t.Errorf("one run at each load:\n%s", got)
	}
}

// The note on ± explains what stands in the table, or why there is none.
func TestIntervalNote(t *testing.T) {
	for path, want := range map[string]string{
		"latency_ms.e2e.mean":       "by the means of batches",
		"throughput.requests_per_s": "by the means of batches",
		"system.busy_fraction":      "use --replications 5", // which the table does not show
	} {
		s := point(8, 1671, 2081).Summary
		s.CI95, s.CI95Method = map[string][2]float64{path: {1, 2}}, report.ByBatchMeans
		var b strings.Builder
		if err := table.Write(s, &b, report.DefaultProfile()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("with an interval of %s alone: no %q in\n%s", path, want, &b)
		}
	}
}
