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

func TestCriteria(t *testing.T) {
	base := trials(100, .1, .5, .3, 0)
	noisy := trials(100, .1, .5, .3, 0)
	*noisy[0].Throughput.OutputTokensPerS, *noisy[1].System.GapFraction = 120, .9
	for _, c := range []struct {
		name    string
		variant []*report.Summary
		margin  float64
		want    []string
		pass    bool
	}{
		{"better", trials(110, .1, .4, .3, 0), 0, []string{Pass, Pass, Pass}, true},
		{"faster, with more errors", trials(110, .2, .4, .3, 0), 0, []string{Fail, Pass, Pass}, false},
		{"slower", trials(90, .1, .5, .3, 0), 0, []string{Fail, NotDistinguishable, Pass}, false},
		{"longer gaps, and retries", trials(110, .1, .6, .3, 20), 0, []string{Pass, Fail, Fail}, false},
		{"no backlog any more, and longer gaps", trials(110, .1, .6, .01, 0), 0, []string{Pass, Pass, Pass}, true},
		{"chance", noisy, 0, []string{NotDistinguishable, NotDistinguishable, Pass}, true},
		{"too little to matter", trials(100.1, .1, .5, .3, 0), .01,
			[]string{NotDistinguishable, NotDistinguishable, Pass}, true},
		{"little, without a margin", trials(100.1, .1, .5, .3, 0), 0, []string{Pass, NotDistinguishable, Pass}, true},
	} {
		v := CompareBy(c.margin, []string{"a", "b"}, []uint64{1, 2, 3, 4, 5}, [][]*report.Summary{base, c.variant})
		var got []string
		for _, x := range v.Variants[0].Criteria {
			got = append(got, x.Verdict)
		}
		if !slices.Equal(got, c.want) || v.Pass != c.pass || v.Variants[0].Pass != c.pass {
			t.Errorf("%s: %v, pass %v, want %v, %v", c.name, got, v.Pass, c.want, c.pass)
		}
	}
	idle := CompareBy(0, []string{"a", "b"}, []uint64{1, 2, 3, 4, 5},
		[][]*report.Summary{trials(100, 0, 0, 0, 0), trials(100, 0, 0, 0, 0)})
	if c := idle.Variants[0].Criteria[1]; c.Verdict != NotDistinguishable || !strings.Contains(c.Reason, "no backlog") {
		t.Errorf("without a backlog: %+v", c)
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
