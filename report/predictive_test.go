package report

import (
	"strings"
	"testing"
)

// TestPredictiveText wants bars in words, symmetric ones as one number, with the kind and the number of cells.
func TestPredictiveText(t *testing.T) {
	p := &Predictive{Kind: "vllm, open loop, dense", Cells: 12, UnseenCells: 2,
		TTFTMean: &ErrorBars{Half: [2]float64{-0.03, 0.03}, P90: [2]float64{-0.08, 0.11}},
		TPOTMean: &ErrorBars{Half: [2]float64{0, 0.02}, P90: [2]float64{-0.05, 0.04}}}
	want := "TTFT half within 3 %, 90 % within −8…+11 %; TPOT half within 0…+2 %, 90 % within −5…+4 % " +
		"(vllm, open loop, dense: 12 measured cells, 2 of them unseen)"
	if got := p.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.OwnRuns, p.Widened = 3, []string{"drafts"}
	if got := p.String(); !strings.Contains(got, "wider because these were not measured: drafts; validated by 3 runs of yours") {
		t.Errorf("%q", got)
	}
	steady, not := true, false
	p.Overloaded(&steady)
	p.Overloaded(nil)
	if p.TTFTMean == nil {
		t.Error("a steady run loses its bars")
	}
	if p.Overloaded(&not); p.TTFTMean != nil || p.TPOTMean == nil {
		t.Error("an overloaded run has a bar of TTFT, or none of TPOT")
	}
	if got := p.String(); strings.Contains(got, "TTFT half") || !strings.Contains(got, "none of TTFT and E2E") {
		t.Errorf("overloaded: %q", got)
	}
	(*Predictive)(nil).Overloaded(&not)
}
