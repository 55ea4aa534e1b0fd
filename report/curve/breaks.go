package curve

import (
	"fmt"
	"math"

	"clifftop/report"
	"clifftop/report/layout"
)

// resourceNames say what requests wait for.
var resourceNames = map[string]string{
	"kv": "KV blocks", "seats": "seats (max_num_seqs)", "token_budget": "the token budget (max_num_batched_tokens)",
	"policy": "the policy", "clients": "clients",
}

// Breaks says which limit of the SLO a run breaks, the worst first, and what its requests wait for; empty if it breaks
// none.
func Breaks(s *report.Summary) string {
	if s.SLOUse() <= 1 {
		return ""
	}
	worst, text := s.WorstLimit(), "it is not known to meet the SLO"
	switch {
	case s.Window.Unsettled():
		text = "it no longer keeps up: the queue grows"
	case worst == nil:
	case s.Requests.RejectedLong > 0 && math.IsInf(worst.Use(), 1):
		text = fmt.Sprintf("%d of %d requests are too long for the model's context or the KV pool",
			s.Requests.RejectedLong, s.Requests.Offered)
	case math.IsInf(worst.Use(), 1):
		text = report.LimitName(worst.Key) + " has no end: requests do not complete"
	case worst.LimitMs != nil:
		text = fmt.Sprintf("%s is %s, the limit is %s", report.LimitName(worst.Key),
			layout.Milliseconds(*worst.ValueMs), layout.Milliseconds(*worst.LimitMs))
	case worst.Lower():
		text = fmt.Sprintf("%s of the requests wait, the limit is %s", layout.Percent(*worst.Fraction),
			layout.Percent(*worst.Target))
	default:
		text = fmt.Sprintf("%s of the requests are good, the least is %s", layout.Percent(*worst.Fraction),
			layout.Percent(*worst.Target))
	}
	if worst != nil && worst.Class != "" && !s.Window.Unsettled() {
		text = worst.Class + ": " + text
	}
	return text + cause(s)
}

// cause names the resource that requests wait for, or the GPU if they wait for no other.
func cause(s *report.Summary) string {
	a := &analysis{Thresholds: defaultThresholds()}
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
