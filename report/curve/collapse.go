package curve

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
	peak := &a.at[top]
	if !a.fallen(peak, &a.at[len(a.at)-1]) {
		return nil // a dip
	}
	var c *Collapse
	worst := peak
	for i := range a.at[top+1:] {
		l := &a.at[top+1+i]
		if c == nil && a.fallen(peak, l) {
			c = &Collapse{Value: l.value, OutputTokensPerS: l.throughput}
		}
		if l.throughput < worst.throughput {
			worst = l
		}
	}
	c.FallFraction = 1 - worst.throughput/peak.throughput
	c.Evidence = fmt.Sprintf(a.what+" falls from %s tokens/s at %s to %s at %s", layout.Digits(peak.throughput),
		axisValue(peak.value), layout.Digits(worst.throughput), axisValue(worst.value)) +
		a.waste(&peak.measures, &worst.measures)
	return c
}

// usefulCollapse is the collapse of the tokens that are of use. Where all output is, there is none beside that of
// output.
func (a *analysis) usefulCollapse() *Collapse {
	what, differs := "output of completed requests", false
	for i := range a.at {
		l := &a.at[i]
		if l.hasSLO {
			what = "output within the objective"
		}
		if unknown(l.useful) {
			return nil
		}
		differs = differs || math.Abs(l.useful-l.throughput) > a.Plateau*l.throughput
	}
	if !differs {
		return nil
	}
	swap := func() {
		for i := range a.at {
			l := &a.at[i]
			l.throughput, l.useful = l.useful, l.throughput
		}
	}
	swap()
	defer swap()
	u := &analysis{Thresholds: a.Thresholds, closed: a.closed, what: what, at: a.at, noIntervals: true}
	return u.collapse()
}

// fallen reports whether throughput at l is below that at the peak by more than chance.
func (a *analysis) fallen(peak, l *load) bool {
	by, explained := peak.throughput-l.throughput, a.waste(&peak.measures, &l.measures) != ""
	if both := a.intervals(peak, l); !unknown(both) {
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
func (a *analysis) waste(from, to *measures) string {
	text := ""
	if before, after := from.recomputed, to.recomputed; after > before+a.WastedWork {
		text += fmt.Sprintf("; recomputed tokens rise from %s to %s", layout.Percent(before), layout.Percent(after))
	}
	if before, after := from.hits, to.hits; before > after+a.HitLoss {
		text += fmt.Sprintf("; the prefix hit rate falls from %s to %s", layout.Percent(before), layout.Percent(after))
	}
	if before, after := from.failed, to.failed; after > before+a.GivenUp {
		text += fmt.Sprintf("; requests that end without completing rise from %s to %s", layout.Percent(before),
			layout.Percent(after))
	}
	return text
}
