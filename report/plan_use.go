package report

import (
	"fmt"
	"math"

	"clifftop/report/layout"
)

// judged is a limit that a run is held to, of a class of the traffic or of all of it.
type judged struct {
	class string
	*LimitResult
}

// judged are the limits that a run is held to: where the traffic has classes, those of each class, and else those of
// the run.
func (s *Summary) judged() []judged {
	var list []judged
	for i := range s.Classes {
		k := &s.Classes[i]
		for j := range k.Goodput.Limits {
			list = append(list, judged{k.Name, &k.Goodput.Limits[j]})
		}
	}
	if list != nil {
		return list
	}
	for i := range s.Goodput.Limits {
		list = append(list, judged{"", &s.Goodput.Limits[i]})
	}
	return list
}

// HeldTo are the limits that a run is held to; those of a class bear its name.
func (s *Summary) HeldTo() []LimitResult {
	list := []LimitResult{}
	for _, l := range s.judged() {
		r := *l.LimitResult
		if l.class != "" {
			r.Key = l.class + ": " + r.Key
		}
		list = append(list, r)
	}
	return list
}

// SLOUse says how much of the SLO a run takes up: the greatest ratio of a statistic to its limit, and of a missed share
// to what may be missed, over all classes of the traffic. It is 1 or less exactly where the SLO is met, and +Inf where
// that is out of reach, as for a system that does not keep up with its load.
func (s *Summary) SLOUse() float64 {
	all := s.judged()
	if len(all) == 0 || s.Window.Unsettled() {
		return math.Inf(1)
	}
	use, met := 0.0, true
	for _, l := range all {
		if l.Met == nil {
			return math.Inf(1)
		}
		use, met = max(use, l.use()), met && *l.Met
	}
	if met {
		return min(use, 1) // but for rounding
	}
	return max(use, math.Nextafter(1, 2))
}

// LatencyUse is the same for the limits on latency alone: the factor by which they could be multiplied and still hold.
func (s *Summary) LatencyUse() float64 {
	if s.Window.Unsettled() {
		return math.Inf(1)
	}
	use := 0.0
	for _, l := range s.judged() {
		if l.LimitMs != nil {
			use = max(use, l.use())
		}
	}
	return use
}

// use is how much of the limit is taken up.
func (l *LimitResult) use() float64 {
	switch {
	case l.N == 0:
		return 0
	case l.LimitMs != nil && l.ValueMs == nil, l.LimitMs == nil && l.Fraction == nil:
		return math.Inf(1)
	case l.LimitMs != nil:
		return partOf(*l.ValueMs, *l.LimitMs)
	case l.Lower():
		return partOf(*l.Fraction, *l.Target)
	}
	return partOf(1-*l.Fraction, 1-*l.Target)
}

// partOf is a over b, where nothing of nothing is nothing.
func partOf(a, b float64) float64 {
	if a <= 0 {
		return 0
	}
	return a / b
}

// resourceNames say what requests wait for.
var resourceNames = map[string]string{
	"kv": "KV blocks", "seats": "seats (max_num_seqs)", "token_budget": "the token budget (max_num_batched_tokens)", "policy": "the policy", "clients": "clients",
}

// Breaks says which limit of the SLO a run breaks, the worst first, and what its requests wait for; empty if it breaks
// none.
func Breaks(s *Summary) string {
	if s.SLOUse() <= 1 {
		return ""
	}
	worst, text := s.worst(), "it is not known to meet the SLO"
	switch {
	case s.Window.Unsettled():
		text = "it no longer keeps up: the queue grows"
	case worst == nil:
	case s.Requests.RejectedLong > 0 && math.IsInf(worst.use(), 1):
		text = fmt.Sprintf("%d of %d requests are too long for the model's context or the KV pool", s.Requests.RejectedLong, s.Requests.Offered)
	case math.IsInf(worst.use(), 1):
		text = LimitName(worst.Key) + " has no end: requests do not complete"
	case worst.LimitMs != nil:
		text = fmt.Sprintf("%s is %s, the limit is %s", LimitName(worst.Key), layout.Milliseconds(*worst.ValueMs), layout.Milliseconds(*worst.LimitMs))
	case worst.Lower():
		text = fmt.Sprintf("%s of the requests wait, the limit is %s", layout.Percent(*worst.Fraction), layout.Percent(*worst.Target))
	default:
		text = fmt.Sprintf("%s of the requests are good, the least is %s", layout.Percent(*worst.Fraction), layout.Percent(*worst.Target))
	}
	if worst != nil && worst.class != "" && !s.Window.Unsettled() {
		text = worst.class + ": " + text
	}
	return text + cause(s)
}

// worst is the limit that is missed most, or the one nearest to that.
func (s *Summary) worst() *judged {
	var worst *judged
	for _, l := range s.judged() {
		if worst == nil || l.use() > worst.use() {
			worst = &l
		}
	}
	return worst
}

// cause says what requests wait for, or that the GPU itself is what is short.
func cause(s *Summary) string {
	a := &analysis{Thresholds: DefaultThresholds()}
	m := measuresOf(s)
	if resource, evidence := a.binds(&m); resource != "" {
		return fmt.Sprintf("; %s: %s", resourceNames[resource], evidence)
	}
	y := &s.System
	if y.BusyFraction == nil || *y.BusyFraction < a.Saturated || y.MFU == nil || y.MBU == nil {
		return ""
	}
	switch {
	case *y.MBU >= a.HighMBU && *y.MBU >= *y.MFU:
		return fmt.Sprintf("; memory bandwidth: MBU %s", layout.Percent(*y.MBU))
	case *y.MFU >= a.HighMFU:
		return fmt.Sprintf("; compute: MFU %s", layout.Percent(*y.MFU))
	}
	return fmt.Sprintf("; the iterations' length: MFU %s, MBU %s", layout.Percent(*y.MFU), layout.Percent(*y.MBU))
}
