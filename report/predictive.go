package report

import (
	"fmt"
	"math"
	"strings"

	"clifftop/report/layout"
)

// ErrorBars are the bounds that hold half and 90 % of measured runs: measured over simulated, less 1.
type ErrorBars struct {
	Half [2]float64 `json:"half"`
	P90  [2]float64 `json:"p90"`
}

// Predictive says how far measured runs of this kind are from simulated ones.
type Predictive struct {
	TTFTMean   *ErrorBars `json:"ttft_mean"`
	TTFTP99    *ErrorBars `json:"ttft_p99"`
	TPOTMean   *ErrorBars `json:"tpot_mean"`
	TPOTP99    *ErrorBars `json:"tpot_p99"`
	E2EMean    *ErrorBars `json:"e2e_mean"`
	E2EP99     *ErrorBars `json:"e2e_p99"`
	Throughput *ErrorBars `json:"throughput"`
	// Kind says which measured runs the bars are from, Cells of how many models on a GPU, with a parallelism, a format
	// and a release. No constant was fitted to UnseenCells of them.
	Kind        string `json:"kind"`
	Cells       int    `json:"cells"`
	UnseenCells int    `json:"unseen_cells"`
	// OwnRuns is the number of the user's own runs of this kind.
	OwnRuns int `json:"own_runs"`
	// Fitted are the user's own runs that the GPU's constants were fitted to; nil if there are none.
	Fitted *FittedRuns `json:"fitted_runs,omitempty"`
	// Widened names what no measured run has: each makes the bars wider.
	Widened []string `json:"widened"`
}

// FittedRuns are the user's own runs that constants were fitted to. TTFT and TPOT are the median sizes of the errors,
// as fractions, of runs that a fit to the others predicts; nil where unknown.
type FittedRuns struct {
	Runs int `json:"runs"`
	// Models are the models of the measured runs. OtherModels says that the simulated model is none of them: the runs
	// then say nothing about its errors.
	Models      []string `json:"models"`
	OtherModels bool     `json:"other_models"`
	TTFT        *float64 `json:"left_out_ttft"`
	TPOT        *float64 `json:"left_out_tpot"`
}

// String says it in words: GPU validated by 5 runs of yours, leave-one-out TTFT 3.1 %, TPOT 1.2 %.
func (f *FittedRuns) String() string {
	if f.OtherModels {
		return fmt.Sprintf("GPU fitted to %s of yours, all of other models (%s)", runsText(f.Runs),
			strings.Join(f.Models, ", "))
	}
	var parts []string
	if f.TTFT != nil {
		parts = append(parts, "TTFT "+layout.Percent(*f.TTFT))
	}
	if f.TPOT != nil {
		parts = append(parts, "TPOT "+layout.Percent(*f.TPOT))
	}
	text := fmt.Sprintf("GPU validated by %s of yours", runsText(f.Runs))
	if len(parts) > 0 {
		text += ", leave-one-out " + strings.Join(parts, ", ")
	}
	return text
}

// String says it in words: TTFT half within −5…+2 %, 90 % within −23…+186 %; … (vllm, open loop, dense: 12 cells).
func (p *Predictive) String() string {
	var parts []string
	for _, m := range []struct {
		name string
		bars *ErrorBars
	}{{"TTFT", p.TTFTMean}, {"TPOT", p.TPOTMean}, {"E2E", p.E2EMean}, {"throughput", p.Throughput}} {
		if m.bars != nil {
			parts = append(parts, fmt.Sprintf("%s half within %s, 90 %% within %s", m.name, barText(m.bars.Half),
				barText(m.bars.P90)))
		}
	}
	scope := fmt.Sprintf("%s: %d measured cells, %d of them unseen", p.Kind, p.Cells, p.UnseenCells)
	if len(p.Widened) > 0 {
		scope += "; wider because these were not measured: " + strings.Join(p.Widened, "; ")
	}
	if p.TTFTMean == nil {
		scope += "; none of TTFT and E2E, because the system is overloaded"
	}
	if p.OwnRuns > 0 {
		scope += fmt.Sprintf("; validated by %s of yours", runsText(p.OwnRuns))
	}
	if p.Fitted != nil {
		scope += "; " + p.Fitted.String()
	}
	if len(parts) == 0 {
		return "no measured run is like this one"
	}
	return fmt.Sprintf("%s (%s)", strings.Join(parts, "; "), scope)
}

func runsText(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// barText writes a bar in whole percent: 3 %, or −8…+11 %.
func barText(bar [2]float64) string {
	lo, hi := max(math.Round(100*bar[0]), -99), math.Round(100*bar[1])
	if lo == -hi {
		return fmt.Sprintf("%.0f %%", hi)
	}
	return signed(lo) + "…" + signed(hi) + " %"
}

func signed(v float64) string {
	switch {
	case v < 0:
		return fmt.Sprintf("−%.0f", -v)
	case v > 0:
		return fmt.Sprintf("+%.0f", v)
	}
	return "0"
}

// Overloaded removes the bars of metrics that grow without limit if the system did not keep up: the bars come from runs
// of systems that did.
func (p *Predictive) Overloaded(stationary *bool) {
	if p == nil || stationary == nil || *stationary {
		return
	}
	p.TTFTMean, p.TTFTP99, p.E2EMean, p.E2EP99 = nil, nil, nil, nil
}

// ErrorText says how far results can be trusted: the error bars, or why there are none.
func ErrorText(p *Predictive, a *Accuracy) string {
	if p != nil {
		return p.String()
	}
	return a.Scope
}
