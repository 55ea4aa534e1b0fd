package verdict

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clifftop/report"
)

// Of p 0.01, 0.04, 0.03 and 0.2 the first passes 0.05/4, and then 0.03 does not pass 0.05/3: no other is a find, though
// 0.04 would pass 0.05 alone.
func TestHolm(t *testing.T) {
	for _, c := range []struct {
		ps   []float64
		want []bool
	}{
		{nil, []bool{}}, {[]float64{.04}, []bool{true}}, {[]float64{.06}, []bool{false}},
		{[]float64{.2, .01, .04, .03}, []bool{false, true, false, false}},
		{[]float64{.01, .02, .03}, []bool{true, true, true}},
	} {
		if got := holm(c.ps); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.ps, got, c.want)
		}
	}
}

// trial has what the criteria look at.
func trial(tokens, errors, gap, waits float64, retries int64) *report.Summary {
	s := &report.Summary{}
	s.Throughput.OutputTokensPerS, s.System.ErrorRate, s.System.GapFraction = &tokens, &errors, &gap
	s.System.GapByCause.Seats = &waits
	s.Requests.Offered, s.Requests.Retries = 1000, retries
	return s
}

// trials vary a little from run to run, so that there are intervals.
func trials(tokens, errors, gap, waits float64, retries int64) []*report.Summary {
	var runs []*report.Summary
	for i := range 5 {
		e := float64(i) * .001
		runs = append(runs, trial(tokens*(1+e), errors*(1+e), gap*(1+e*e), waits,
			retries+int64(i*min(int(retries), 1))))
	}
	return runs
}

// served has what users feel; e is the part by which runs differ.
func served(tokens, errors, ttft, cost float64) []*report.Summary {
	runs := trials(tokens, errors, .1, .1, 0)
	for i, s := range runs {
		e := 1 + float64(i)*.001
		x, y, z, t := ttft*e, 2*ttft*e, cost/e, tokens*e
		s.Latency.TTFT = report.Distribution{N: 5000, Mean: &x, P95: &y}
		s.Cost = &report.Cost{USDPerHour: &cost, USDPerMillionOutputAtLoad: &z}
		s.Throughput.SuccessfulOutputTokensPerS = &t
	}
	return runs
}

// The criteria are the user's or the defaults, and nothing passes that users feel to be worse.
func TestCriteria(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5}
	base := served(100, .1, 50, 3)
	for _, c := range []struct {
		name     string
		criteria []string
		variant  []*report.Summary
		margin   float64
		criterio []string
		verdict  string
		words    string
	}{
		{"better", nil, served(110, .1, 40, 3), 0, []string{Pass, Pass}, Pass, "nothing that users feel"},
		{"slower", nil, served(90, .1, 50, 3), 0, []string{Fail, Pass}, Fail, "10.0 % lower"},
		{"dearer", nil, served(100, .1, 50, 6), 0, []string{Pass, Fail}, Fail, "2 times as high"},
		{"as fast, with 41 times the TTFT", nil, served(100, .1, 50*41.27, 3), 0, []string{Pass, Pass}, Fail,
			"41 times as long"},
		{"more errors", nil, served(110, .2, 50, 3), 0, []string{Pass, Pass}, Fail, "error rate is 2 times as high"},
		{"a little slower", nil, served(99.5, .1, 50, 3), 0, []string{Pass, Pass}, Pass, ""},
		{"a TTFT beyond 1 %", nil, served(100, .1, 51, 3), 0, []string{Pass, Pass}, Fail, "2.00 % longer"},
		{"a TTFT within the margin", nil, served(100, .1, 51, 3), .05, []string{Pass, Pass}, Pass, ""},
		{"a criterion of one's own holds", []string{"ttft_p95<=+5%"}, served(90, .1, 50.2, 3), 0, []string{Pass}, Pass, ""},
		{"and fails", []string{"ttft_p95<=+5%", "throughput>=-20%"}, served(90, .1, 60, 3), .5, []string{Fail, Pass}, Fail,
			"TTFT p95 is 20.0 % longer"},
		{"in the metric's unit", []string{"ttft_mean<=+5"}, served(90, .1, 54, 3), .5, []string{Pass}, Pass, ""},
	} {
		o := Options{Margin: c.margin}
		for _, text := range c.criteria {
			condition, err := ParseCondition(text)
			if err != nil {
				t.Fatal(err)
			}
			o.Criteria = append(o.Criteria, condition)
		}
		x := CompareBy(o, []string{"a", "b"}, seeds, [][]*report.Summary{base, c.variant}).Variants[0]
		var got []string
		for _, k := range x.Criteria {
			got = append(got, k.Verdict)
		}
		if !slices.Equal(got, c.criterio) || x.Verdict != c.verdict || !strings.Contains(x.Because(), c.words) {
			t.Errorf("%s: %v, %s, %s; want %v, %s, %s", c.name, got, x.Verdict, x.Because(), c.criterio, c.verdict, c.words)
		}
	}
	noisy := served(100, .1, 50, 3)
	for i, f := range []float64{.8, 1.3, .7, 1.2, 1} {
		x := 100 * f
		noisy[i].Throughput.SuccessfulOutputTokensPerS = &x
	}
	x := CompareBy(Options{}, []string{"a", "b"}, seeds, [][]*report.Summary{base, noisy}).Variants[0]
	if x.Verdict != NotDistinguishable || !x.Pass {
		t.Errorf("chance: %s", x.Verdict)
	}
}

// What is no condition is refused in one line that says what to write.
func TestParseCondition(t *testing.T) {
	for text, want := range map[string]string{
		"speed<=+2%":             `"speed" is not a metric (want such as e2e_p95`,
		"e2e_p95<=2%":            "the change 2% has no sign",
		"e2e_p95+2%":             "is not a criterion (want METRIC<=+2%",
		"e2e_p95<=+x%":           "is not a criterion",
		"e2e_p95>=+2%":           "E2E p95 is better when lower (want <=)",
		"goodput<=+2%":           "better when higher (want >=)",
		"window.start_s<=+2%":    "neither better when higher nor when lower",
		strings.Repeat("x", 500): "…",
		"":                       "is not a criterion",
	} {
		_, err := ParseCondition(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") ||
			len(err.Error()) > 300 {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	c, err := ParseCondition("chat: ttft_p95 ≤ +2.5 %")
	if err != nil || c.Class != "chat" || c.Path != "latency_ms.ttft.p95" || math.Abs(c.Change-.025) > 1e-12 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A class can be harmed though the run as a whole is not.
func TestHarmToAClass(t *testing.T) {
	classed := func(ttft float64) []*report.Summary {
		runs := served(100, .1, 50, 3)
		for i, s := range runs {
			x := ttft * (1 + float64(i)*.001)
			k := report.Class{Name: "chat"}
			k.Latency.TTFT = report.Distribution{N: 5000, P95: &x}
			s.Classes = []report.Class{k}
		}
		return runs
	}
	condition, err := ParseCondition("chat:e2e_p95<=+2%")
	if err != nil {
		t.Fatal(err)
	}
	v := CompareBy(Options{}, []string{"a", "b"}, []uint64{1, 2, 3, 4, 5}, [][]*report.Summary{classed(50), classed(160)})
	if x := v.Variants[0]; x.Verdict != Fail || !strings.Contains(x.Because(), "chat: TTFT p95 is 3.2 times as long") {
		t.Errorf("%s: %s", x.Verdict, x.Because())
	}
	o := Options{Criteria: []Condition{condition}}
	v = CompareBy(o, []string{"a", "b"}, []uint64{1, 2, 3, 4, 5}, [][]*report.Summary{classed(50), classed(50)})
	if text := v.Missing(o); !strings.Contains(text, "the runs of a do not give chat: E2E p95") {
		t.Errorf("a criterion without samples: %q", text)
	}
}

// Runs that vary together by 10 differ by 1: their differences have variance 1 where independent ones would have 2·100
// or so.
func TestVarianceReduction(t *testing.T) {
	base := []*report.Summary{summaryOf(90, 1), summaryOf(100, 1), summaryOf(110, 1)}
	variant := []*report.Summary{summaryOf(91, 1), summaryOf(102, 1), summaryOf(113, 1)}
	d := diff(t, Compare([]string{"a", "b"}, []uint64{1, 2, 3}, [][]*report.Summary{base, variant}).Variants[0],
		"throughput.requests_per_s")
	if d.VarianceReduction == nil || math.Abs(*d.VarianceReduction-(100+121)) > 1e-9 {
		t.Errorf("variance reduction %v, want 221", d.VarianceReduction)
	}
	variant[1].Window.StartS = 7
	d = diff(t, Compare([]string{"a", "b"}, []uint64{1, 2, 3}, [][]*report.Summary{base, variant}).Variants[0],
		"throughput.requests_per_s")
	if d.VarianceReduction != nil {
		t.Errorf("variance reduction %v of runs with different windows", *d.VarianceReduction)
	}
}

// a and b cannot be told apart, nor b and c, but a and c can; d is far off.
func TestGroups(t *testing.T) {
	order := []int{3, 0, 1, 2}
	differ := [][]bool{{}, {true}, {true, false}, {true, true, false}}
	for i := range differ {
		differ[i] = append(differ[i], make([]bool, 4-len(differ[i]))...)
	}
	got := runsOfAlike(order, differ, []string{"a", "b", "c", "d"})
	if want := [][]string{{"d"}, {"a", "b"}, {"b", "c"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var runs [][]*report.Summary
	for _, x := range []float64{100, 100.05, 50} {
		var of []*report.Summary
		for k := range 6 {
			of = append(of, summaryOf(x+float64(k*k%5)*x/500, 1))
		}
		runs = append(runs, of)
	}
	*runs[1][2].Throughput.RequestsPerS--
	v := Compare([]string{"a", "b", "c"}, []uint64{1, 2, 3, 4, 5, 6}, runs)
	if want := [][]string{{"a", "b"}, {"c"}}; !reflect.DeepEqual(v.Groups[0].Groups, want) &&
		!reflect.DeepEqual(v.Groups[0].Groups, [][]string{{"b", "a"}, {"c"}}) {
		t.Errorf("%+v, want %v", v.Groups[0], want)
	}
}

// Harm is tested on one side: a mean TTFT that is longer by 2.4 standard errors more than the tolerance is harm, since
// P(t₄ > 2.4) = 3.7 %, though P(|t₄| > 2.4) = 7.4 %. One that is longer by 2.0 is not (5.8 %).
func TestHarmIsOneSided(t *testing.T) {
	runs := func(by float64) []*report.Summary {
		var list []*report.Summary
		for i, z := range []float64{-1.2649, -.6325, 0, .6325, 1.2649} { // standard deviation 1
			x := 100 + float64(i)
			if by > 0 {
				x += 1.02 + by + z*math.Sqrt(5) // the tolerance is 1 % of 102
			}
			s := &report.Summary{}
			s.Latency.TTFT = report.Distribution{N: 5000, Mean: &x}
			list = append(list, s)
		}
		return list
	}
	for by, harm := range map[float64]bool{2.4: true, 2.0: false} {
		v := CompareBy(Options{}, []string{"a", "b"}, []uint64{1, 2, 3, 4, 5}, [][]*report.Summary{runs(0), runs(by)})
		if got := len(v.Variants[0].Harms) == 1; got != harm {
			t.Errorf("%v standard errors beyond the tolerance: harms %+v", by, v.Variants[0].Harms)
		}
	}
}
