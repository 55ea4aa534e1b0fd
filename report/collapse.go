package report

import (
	"fmt"
	"math"
)

// A fall of throughput that wasted work explains need only be more than chance. One without a cause in
// sight must be plain.
const (
	plainFall = .05 // of the peak's throughput
	smallFall = .02 // of the same
	unlikely  = 3   // standard deviations
	givenUp   = .10 // of the requests, more than at the peak: what was done for them is lost
)

func (a analysis) collapse() *Collapse {
	top := a.summit()
	if top < 0 || top == len(a)-1 {
		return nil
	}
	peak := a[top]
	if !fallen(peak, a[len(a)-1]) {
		return nil // a dip
	}
	var c *Collapse
	worst := peak
	for _, l := range a[top+1:] {
		if c == nil && fallen(peak, l) {
			c = &Collapse{Value: l.value, OutputTokensPerS: l.throughput}
		}
		if l.throughput < worst.throughput {
			worst = l
		}
	}
	c.FallFraction = 1 - worst.throughput/peak.throughput
	c.Evidence = fmt.Sprintf("output falls from %s tokens/s at %.4g to %s at %.4g", digits(peak.throughput), peak.value, digits(worst.throughput), worst.value) +
		waste(peak.s, worst.s)
	return c
}

// fallen reports whether throughput at l is below that at the peak by more than chance.
func fallen(peak, l load) bool {
	by, explained := peak.throughput-l.throughput, waste(peak.s, l.s) != ""
	if both := intervals(peak, l); !math.IsNaN(both) {
		if explained {
			both = math.Hypot(peak.error, l.error)
		}
		return by > both
	}
	if explained {
		return by > max(smallFall*peak.throughput, deviation(peak, l))
	}
	return by > max(plainFall*peak.throughput, unlikely*deviation(peak, l))
}

// waste says what work without a result has grown from one load to another; nothing if none has.
func waste(from, to *Summary) string {
	text := ""
	if before, after := recomputedShare(from), recomputedShare(to); after > before+wasteful {
		text += fmt.Sprintf("; recomputed tokens rise from %s to %s", percent(before), percent(after))
	}
	if before, after := from.System.PrefixHitRate, to.System.PrefixHitRate; before != nil && after != nil && *before > *after+hitLoss {
		text += fmt.Sprintf("; the prefix hit rate falls from %s to %s", percent(*before), percent(*after))
	}
	if before, after := from.System.ErrorRate, to.System.ErrorRate; before != nil && after != nil && *after > *before+givenUp {
		text += fmt.Sprintf("; requests that end without completing rise from %s to %s", percent(*before), percent(*after))
	}
	return text
}
