package report

import (
	"fmt"

	"clifftop/report/layout"
)

// Saturation is the load that a system can carry in the long run, with patient clients, without admission limits and
// with all replicas ready. It does not depend on the load of the run.
type Saturation struct {
	// LowRequestsPerS is the rate below which a system with a backlog recovers, HighRequestsPerS that up to which a
	// system that starts empty keeps up. They are equal unless the system is metastable.
	LowRequestsPerS  float64 `json:"low_requests_per_s"`
	HighRequestsPerS float64 `json:"high_requests_per_s"`
	// LowCI95 and HighCI95 are the ends of their 95 % confidence intervals.
	LowCI95  [2]float64 `json:"low_ci95"`
	HighCI95 [2]float64 `json:"high_ci95"`
	// Metastable means that the rates differ: between them, a system that starts empty keeps up, but does not recover
	// from a backlog.
	Metastable bool `json:"metastable"`
}

// Backlog is the rate at which a run completes requests while some wait all the time.
type Backlog struct {
	// RequestsPerS is the number of completed requests per second, and CI95 its confidence interval.
	RequestsPerS float64    `json:"requests_per_s"`
	CI95         [2]float64 `json:"ci95"`
}

// Traffic says how much the arrivals of an open loop vary; see docs/statistics.md. It follows from the arrival process,
// or is counted in the run where there is none, as with recorded requests.
type Traffic struct {
	// Dispersion60S is the index of dispersion of counts over 60 s, variance by mean; 1 for a Poisson process.
	Dispersion60S *float64 `json:"dispersion_60s"`
	// DispersionAsymptotic is that over long windows; nil if it is unknown.
	DispersionAsymptotic *float64 `json:"dispersion_asymptotic"`
	// MinuteRate has percentiles of the rate of a minute, in requests per second.
	MinuteRate MinuteRate `json:"minute_rate"`
}

// MinuteRate has percentiles of the rate of a minute, in requests per second.
type MinuteRate struct {
	P05 *float64 `json:"p05"`
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
}

// String says how much the arrivals vary; it is empty if that is unknown.
func (t *Traffic) String() string {
	if t == nil || t.MinuteRate.P05 == nil || t.MinuteRate.P95 == nil {
		return ""
	}
	text := fmt.Sprintf("minutes range from %s to %s requests/s (p05 to p95); index of dispersion %s over 60 s",
		layout.Digits(*t.MinuteRate.P05), layout.Digits(*t.MinuteRate.P95), layout.Cell(t.Dispersion60S))
	if t.DispersionAsymptotic != nil {
		text += fmt.Sprintf(", %s in the long run", layout.Cell(t.DispersionAsymptotic))
	}
	return text
}
