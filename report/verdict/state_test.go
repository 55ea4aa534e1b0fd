package verdict

import (
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/report"
)

// hourly are runs of an hour, with these mean TTFT and this p95.
func hourly(ttft ...float64) []*report.Summary {
	runs := served(100, .1, 50, 3)
	for len(runs) < len(ttft) {
		runs = append(runs, runs...)
	}
	runs = runs[:len(ttft)]
	for i, x := range ttft {
		s := *runs[i]
		y := 2 * x
		s.Latency.TTFT = report.Distribution{N: 5000, Mean: &x, P95: &y}
		s.Window.EndS = 3600
		runs[i] = &s
	}
	return runs
}

// judged gives the baseline and the variants these states.
func judged(states ...string) func(int, *report.Summary) {
	return func(i int, s *report.Summary) {
		needs := 1e6
		s.Window.State, s.Window.NeedsS = states[i], &needs
		s.Saturation = &report.Saturation{HighRequestsPerS: 22.8, HighCI95: [2]float64{22.2, 23.4}}
	}
}

func byStates(t *testing.T, criteria []string, runs [][]*report.Summary, states ...string) *Result {
	t.Helper()
	o := Options{Judge: judged(states...)}
	for _, text := range criteria {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Criteria = append(o.Criteria, c)
	}
	seeds := make([]uint64, len(runs[0]))
	return CompareBy(o, []string{"a", "b"}, seeds, runs)
}

// Latencies under overload depend on the length of the run, so they are not compared. A variant that is overloaded
// fails where the baseline is not.
func TestOverloadIsNotCompared(t *testing.T) {
	for _, c := range []struct {
		base, variant string
		verdict       string
		ttft          string // verdict on the criterion ttft_p95<=+5%
		words         string
	}{
		{report.Settled, report.Settled, Pass, Pass, "all criteria hold"},
		{report.Settled, report.Overloaded, Fail, Fail, "it is overloaded: its saturation is 22.8 requests/s (22.2 to 23.4)"},
		{report.Overloaded, report.Settled, Pass, Pass, "all criteria hold"},
		{report.Overloaded, report.Overloaded, Unknown, Unknown, "both are overloaded"},
	} {
		runs := [][]*report.Summary{served(100, .1, 50, 3), served(100, .1, 40, 3)}
		v := byStates(t, []string{"ttft_p95<=+5%"}, runs, c.base, c.variant)
		x := v.Variants[0]
		if x.Verdict != c.verdict || x.Criteria[0].Verdict != c.ttft || !strings.Contains(x.Because(), c.words) {
			t.Errorf("%s against %s: %s, criterion %s, %s", c.variant, c.base, x.Verdict, x.Criteria[0].Verdict, x.Because())
		}
		d := diff(t, x, "latency_ms.ttft.mean")
		if (d.Baseline == nil) != (c.base == report.Overloaded) || (d.Variant == nil) != (c.variant == report.Overloaded) ||
			(d.Difference == nil) != (d.Baseline == nil || d.Variant == nil) {
			t.Errorf("%s against %s: %+v", c.variant, c.base, d)
		}
		if (v.Typical[0] == nil) != (c.base == report.Overloaded) ||
			(v.Typical[1] == nil) != (c.variant == report.Overloaded) {
			t.Errorf("%s against %s: %v", c.variant, c.base, v.Typical)
		}
		named := slices.ContainsFunc(v.Warnings, func(w report.Warning) bool { return w.Code == "overloaded" })
		if named != (c.base == report.Overloaded || c.variant == report.Overloaded) {
			t.Errorf("%s against %s: %v", c.variant, c.base, v.Warnings)
		}
	}
}

// Of runs that do not settle, the median pair counts. By hand: the shares of the differences are −50, −40, −30, −20,
// −10 and −1 %, their median is −25 % of the median baseline of 205, and the interval of six is from the least to the
// greatest. All six are below 0: twice 1/64.
func TestHoursAreComparedByTheirMedian(t *testing.T) {
	runs := [][]*report.Summary{hourly(100, 200, 210, 300, 100, 10_000), hourly(50, 120, 147, 240, 90, 9900)}
	v := byStates(t, nil, runs, report.Finite, report.Finite)
	d := diff(t, v.Variants[0], "latency_ms.ttft.mean")
	near := func(x *float64, want float64) bool { return x != nil && math.Abs(*x-want) < 1e-9 }
	if d.Statistic != Median || !near(d.Baseline, 205) || !near(d.Variant, 133.5) || !near(d.Difference, -.25*205) ||
		!near(&d.CI95[0], -.5*205) || !near(&d.CI95[1], -.01*205) || !near(d.P, 2./64) {
		t.Errorf("%+v: %g, %g, difference %g in %v, p %g", d, *d.Baseline, *d.Variant, *d.Difference, *d.CI95, *d.P)
	}
	if d.Verdict != Pass {
		t.Errorf("six hours of six are better: %s", d.Verdict)
	}
	if d := diff(t, v.Variants[0], "throughput.output_tokens_per_s"); d.Statistic != Mean {
		t.Errorf("throughput is compared by its %s", d.Statistic)
	}
	if v.Typical[0] != runs[0][1] || v.Typical[1] != runs[1][1] {
		t.Error("pictures do not show the median run: with a TTFT of 200 of the baseline and of 120 of the variant")
	}
	few := byStates(t, nil, [][]*report.Summary{runs[0][:5], runs[1][:5]}, report.Finite, report.Finite)
	if d := diff(t, few.Variants[0], "latency_ms.ttft.mean"); d.CI95 != nil || d.Verdict != Unknown {
		t.Errorf("five hours have an interval: %+v", d)
	}
	if w := few.Warnings[len(few.Warnings)-1]; !strings.Contains(w.Text, "from 6 runs on (want --replications 10)") {
		t.Errorf("five hours: %v", few.Warnings)
	}
	settled := byStates(t, nil, runs, report.Settled, report.Settled)
	if d := diff(t, settled.Variants[0], "latency_ms.ttft.mean"); d.Statistic != Mean || !near(d.Baseline, 10910./6) {
		t.Errorf("settled runs: %+v", d)
	}
}
