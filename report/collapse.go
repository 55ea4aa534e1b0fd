package report

import (
	"fmt"
	"math"

	"clifftop/report/layout"
)

func (a *analysis) collapse() *Collapse {
	top := a.summit()
	if top < 0 || top == len(a.at)-1 {
		return nil
	}
	peak := a.at[top]
	if !a.fallen(peak, a.at[len(a.at)-1]) {
		return nil // a dip
	}
	var c *Collapse
	worst := peak
	for _, l := range a.at[top+1:] {
		if c == nil && a.fallen(peak, l) {
			c = &Collapse{Value: l.value, OutputTokensPerS: l.throughput}
		}
		if l.throughput < worst.throughput {
			worst = l
		}
	}
	c.FallFraction = 1 - worst.throughput/peak.throughput
	c.Evidence = fmt.Sprintf(a.what+" falls from %s tokens/s at %.4g to %s at %.4g", layout.Digits(peak.throughput), peak.value, layout.Digits(worst.throughput), worst.value) +
		a.waste(peak.s, worst.s)
	return c
}

// usefulCollapse is the collapse of the tokens that are of use. Where all output is, there is none beside that of output.
func (a *analysis) usefulCollapse() *Collapse {
	u := &analysis{Thresholds: a.Thresholds, closed: a.closed, what: "output of completed requests"}
	differs := false
	for _, l := range a.at {
		if l.s.Goodput.SLO != nil {
			u.what = "output within the objective"
		}
		useful := l.useful()
		if math.IsNaN(useful) {
			return nil
		}
		differs = differs || math.Abs(useful-l.throughput) > a.Plateau*l.throughput
		l.throughput, l.error = useful, math.NaN()
		u.at = append(u.at, l)
	}
	if !differs {
		return nil
	}
	return u.collapse()
}

// useful is the mean over the runs of the output within the objective, or of completed requests where there is none; NaN
// if a run does not tell.
func (l *load) useful() float64 {
	var x []float64
	for _, s := range l.runs {
		v := s.Throughput.SuccessfulOutputTokensPerS
		if s.Goodput.SLO != nil {
			v = s.Goodput.OutputTokensPerS
		}
		if v == nil {
			return math.NaN()
		}
		x = append(x, *v)
	}
	return mean(x)
}

// fallen reports whether throughput at l is below that at the peak by more than chance.
func (a *analysis) fallen(peak, l load) bool {
	by, explained := peak.throughput-l.throughput, a.waste(peak.s, l.s) != ""
	if both := intervals(peak, l); !math.IsNaN(both) {
		if explained {
			both = math.Hypot(peak.error, l.error)
		}
		return by > both
	}
	if explained {
		return by > max(a.ExplainedFall*peak.throughput, deviation(peak, l))
	}
	return by > max(a.PlainFall*peak.throughput, a.UnlikelyDeviations*deviation(peak, l))
}

// waste says what work without a result has grown from one load to another; nothing if none has.
func (a *analysis) waste(from, to *Summary) string {
	text := ""
	if before, after := recomputedShare(from), recomputedShare(to); after > before+a.WastedWork {
		text += fmt.Sprintf("; recomputed tokens rise from %s to %s", layout.Percent(before), layout.Percent(after))
	}
	if before, after := from.System.PrefixHitRate, to.System.PrefixHitRate; before != nil && after != nil && *before > *after+a.HitLoss {
		text += fmt.Sprintf("; the prefix hit rate falls from %s to %s", layout.Percent(*before), layout.Percent(*after))
	}
	if before, after := from.System.ErrorRate, to.System.ErrorRate; before != nil && after != nil && *after > *before+a.GivenUp {
		text += fmt.Sprintf("; requests that end without completing rise from %s to %s", layout.Percent(*before), layout.Percent(*after))
	}
	return text
}
