package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
)

// State says whether the runs of the baseline or of a variant show a steady state; see [report.Window].
type State struct {
	Name string `json:"name"`
	// State is the common state of the runs; empty if it was not judged.
	State string `json:"state"`
	// LengthS is how long the window of each run lasts, and NeedsS how long the windows must last together to show a
	// steady state, both in seconds; NeedsS is nil if there is none or it is unknown.
	LengthS float64  `json:"length_s"`
	NeedsS  *float64 `json:"needs_s"`
	// Saturation is the load that the system can carry; nil in closed loops and if it was not looked for.
	Saturation *report.Saturation `json:"saturation"`
	// ByMedian says that latencies are compared by their median over the runs, because the runs do not settle and each
	// lasts an hour or longer: a few bad hours make most of a mean.
	ByMedian bool `json:"by_median"`

	runs int
}

func newState(name string, pooled *report.Summary) State {
	w := &pooled.Window
	s := State{Name: name, State: w.State, LengthS: w.EndS - w.StartS, NeedsS: w.NeedsS, Saturation: pooled.Saturation,
		runs: 1}
	if r := pooled.Replications; r != nil {
		s.runs = r.Runs
		s.ByMedian = w.State == report.Finite && w.NeedsS != nil && s.LengthS >= report.LeastHour
	}
	return s
}

// Overloaded reports whether latencies grow with the length of the runs, so that there is nothing to compare.
func (s *State) Overloaded() bool { return s.State == report.Overloaded }

// typical is a summary with latencies like those that are compared: that of all runs, or of the run with the median
// mean TTFT. It is nil if none are compared.
func (s *State) typical(pooled *report.Summary, runs []*report.Summary) *report.Summary {
	switch {
	case s.Overloaded():
		return nil
	case !s.ByMedian:
		return pooled
	}
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b *report.Summary) int {
		return cmp.Compare(ttft(a), ttft(b))
	})
	return sorted[(len(sorted)-1)/2]
}

// ttft is the mean TTFT of a run; 0 if it has none.
func ttft(s *report.Summary) float64 {
	if x := s.Latency.TTFT.Mean; x != nil {
		return *x
	}
	return 0
}

func (s *State) text() string {
	switch s.State {
	case report.Settled:
		return "steady"
	case report.Overloaded:
		return "OVERLOADED"
	case report.Finite:
		return "not settled"
	case report.Undetermined:
		return "not determined"
	}
	return "–"
}

func (s *State) overload(name string) string {
	text := name + " is overloaded"
	if r := s.Saturation; r != nil {
		text += fmt.Sprintf(": its saturation is %s requests/s (%s to %s)", layout.Digits(r.HighRequestsPerS),
			layout.Digits(r.HighCI95[0]), layout.Digits(r.HighCI95[1]))
	}
	return text
}

// states has a row for the baseline and for each variant. Runs that are finite by design have none to show.
func (v *Result) states(t *layout.Text) {
	rows, judged := [][]string{{"", "state", "saturation, req/s", "window", "needs"}}, false
	for i := range v.States {
		s := &v.States[i]
		row := []string{s.Name, s.text(), "–", "–", "–"}
		if r := s.Saturation; r != nil {
			row[2] = fmt.Sprintf("%s (%s–%s)", layout.Digits(r.HighRequestsPerS), layout.Digits(r.HighCI95[0]),
				layout.Digits(r.HighCI95[1]))
		}
		row[3] = layout.Seconds(s.LengthS)
		if s.runs > 1 {
			row[3] = fmt.Sprintf("%d × %s", s.runs, row[3])
		}
		if s.NeedsS != nil {
			row[4] = layout.Seconds(*s.NeedsS)
		}
		judged = judged || s.Saturation != nil || s.NeedsS != nil
		rows = append(rows, row)
	}
	if judged {
		t.Blank()
		t.Table(rows, 2, 2)
	}
}

// warnOfStates says what the states mean for the comparison.
func (v *Result) warnOfStates() {
	var overloaded, median []string
	few := false
	for i := range v.States {
		switch s := &v.States[i]; {
		case s.Overloaded():
			overloaded = append(overloaded, s.Name)
		case s.ByMedian:
			median = append(median, s.Name)
			few = few || s.runs < leastForMedian
		}
	}
	if overloaded != nil {
		v.warn("overloaded", "overloaded: "+strings.Join(overloaded, ", ")+". Latencies there grow with the length "+
			"of the run, so they are not compared; attainment and goodput fall with it")
	}
	if median != nil {
		text := "not settled: " + strings.Join(median, ", ") + ". Latencies are of the median run, and " +
			"differences the median of the pairs, because a few bad hours make most of a mean"
		if few {
			text += fmt.Sprintf(". They have intervals from %d runs on (want --replications 10)", leastForMedian)
		}
		v.warn("hours_differ", text)
	}
}

func (v *Result) warn(code, text string) {
	v.Warnings = append(v.Warnings, report.Warning{Code: code, Text: text})
}
