package verdict

import (
	"math"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/layout"
)

// summaryOf has only what the test compares.
func summaryOf(requestsPerS, ttft float64) *report.Summary {
	s := &report.Summary{}
	s.Throughput.RequestsPerS = &requestsPerS
	s.Latency.TTFT = report.Distribution{N: 1, Mean: &ttft}
	return s
}

func diff(t *testing.T, v Variant, path string) Difference {
	t.Helper()
	for _, m := range v.Metrics {
		if m.Path == path {
			return m
		}
	}
	t.Fatalf("%s: no %s", v.Name, path)
	return Difference{}
}

// TestCompare holds the interval against one by hand: differences 1, 2, 3 have mean 2 and standard deviation 1,
// and t is 4.3027 at two degrees of freedom.
func TestCompare(t *testing.T) {
	base := []*report.Summary{summaryOf(10, 100), summaryOf(20, 90), summaryOf(30, 110)}
	variant := []*report.Summary{summaryOf(11, 50), summaryOf(22, 40), summaryOf(33, 59)}
	v := Compare([]string{"a", "b"}, []uint64{1, 2, 3}, [][]*report.Summary{base, variant})

	x := diff(t, v.Variants[0], "throughput.requests_per_s")
	half := 4.302652729911275 / math.Sqrt(3)
	if *x.Baseline != 20 || *x.Variant != 22 || *x.Difference != 2 {
		t.Errorf("means %v, %v and difference %v, want 20, 22 and 2", *x.Baseline, *x.Variant, *x.Difference)
	}
	if x.CI95 == nil || math.Abs(x.CI95[0]-(2-half)) > 1e-9 || math.Abs(x.CI95[1]-(2+half)) > 1e-9 ||
		x.Verdict != NotDistinguishable {
		t.Errorf("interval %v, %q, want 2 ± %v, not distinguishable", x.CI95, x.Verdict, half)
	}
	if y := diff(t, v.Variants[0], "latency_ms.ttft.mean"); y.Verdict != Pass { // −50, −50, −51
		t.Errorf("a TTFT that is halved is judged %q", y.Verdict)
	}
	if z := diff(t, v.Variants[0], "latency_ms.e2e.mean"); z.Verdict != Unknown || z.Difference != nil {
		t.Errorf("a number that no run gave is judged %+v", z)
	}
	back := Compare([]string{"b", "a"}, []uint64{1, 2, 3}, [][]*report.Summary{variant, base})
	if y := diff(t, back.Variants[0], "latency_ms.ttft.mean"); y.Verdict != Fail {
		t.Errorf("a TTFT that is doubled is judged %q", y.Verdict)
	}
}

// TestCompareWithoutChance gives no interval where there is nothing to estimate it from.
func TestCompareWithoutChance(t *testing.T) {
	one := Compare([]string{"a", "b"}, []uint64{1}, [][]*report.Summary{{summaryOf(1, 2)}, {summaryOf(2, 2)}})
	same := Compare([]string{"a", "b"}, []uint64{1, 2},
		[][]*report.Summary{{summaryOf(1, 2), summaryOf(1, 2)}, {summaryOf(2, 2), summaryOf(2, 2)}})
	for _, v := range []*Result{one, same} {
		x := diff(t, v.Variants[0], "throughput.requests_per_s")
		if x.CI95 != nil || x.Verdict != Unknown || *x.Difference != 1 || len(v.Warnings) != 1 {
			t.Errorf("%+v with warnings %v", x, v.Warnings)
		}
	}
}

// TestFairness is 1 for equal speeds, and 1/n when one of n has all.
func TestFairness(t *testing.T) {
	for _, c := range []struct{ mean, sd, want float64 }{{5, 0, 1}, {1, math.Sqrt(3), .25}} { // 4 0 0 0: Mean 1, sd √3
		s := &report.Summary{E2ETPSUser: report.Distribution{N: 4, Mean: &c.mean, SD: &c.sd}}
		if got := *s.Fairness(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("mean %v, sd %v: %v, want %v", c.mean, c.sd, got, c.want)
		}
	}
	if (&report.Summary{}).Fairness() != nil {
		t.Error("an index without requests")
	}
}

// TestVerdictTable fits a terminal.
func TestVerdictTable(t *testing.T) {
	runs := [][]*report.Summary{{summaryOf(10, 100), summaryOf(20, 90)}, {summaryOf(11, 50), summaryOf(22, 40)}}
	var b strings.Builder
	if err := Compare([]string{"vllm", "orca"}, []uint64{1, 2}, runs).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if len([]rune(line)) > layout.Width {
			t.Errorf("%d columns: %q", len([]rune(line)), line)
		}
	}
	if !strings.Contains(b.String(), "orca against vllm, 2 runs each, paired") {
		t.Error(b.String())
	}
}

// Prices are compared where the hour of one costs more than that of another: else throughput says it all.
func TestComparePrices(t *testing.T) {
	priced := func(hour, million float64) []*report.Summary {
		s := summaryOf(10, 100)
		s.Cost = &report.Cost{USDPerHour: &hour, USDPerMillionOutputAtLoad: &million}
		return []*report.Summary{s, s}
	}
	for _, c := range []struct {
		variant []*report.Summary
		want    bool
	}{{priced(3, .2), false}, {priced(6, .2), true},
		{[]*report.Summary{summaryOf(10, 100), summaryOf(10, 100)}, true}} {
		v := Compare([]string{"a", "b"}, []uint64{1, 2}, [][]*report.Summary{priced(3, .3), c.variant})
		if d := v.Variants[0].metric(pathCost); (d.Baseline != nil) != c.want {
			t.Errorf("$%v/h: %+v", c.variant[0].Cost, d)
		}
	}
}

// Differences are shown to a thousandth of a per cent.
func TestPercentOfDifferences(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 2.6e-5: "+0.000", -8.8e-5: "−0.000", .0006: "+0.001",
		-12.34: "−12.3", 104: "+104"} {
		if got := percent(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

// A table without a p99 says why, and what stands in its last column.
func TestVerdictNotes(t *testing.T) {
	few := summaryOf(10, 100)
	p99 := 300.0
	few.Latency.TTFT = report.Distribution{N: 500, P99: &p99}
	v := Compare([]string{"a", "b"}, []uint64{1, 2},
		[][]*report.Summary{{few, few}, {summaryOf(11, 90), summaryOf(12, 90)}})
	var b strings.Builder
	if err := v.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n–            no p99 from fewer than 1000 samples in a run\n",
		"\nVR           how many times more"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}
