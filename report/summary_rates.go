package report

import (
	"slices"

	"clifftop/report/layout"
	"clifftop/report/stats"
)

// Fairness is Jain's index over the speeds at which requests were served, output tokens over the time from
// sending to the last token: 1 when all are alike, 1/n when one of n has everything. It is nil without requests.
//
//	(Σ x)² / (n Σ x²) = 1 / (1 + (sd/mean)²)        R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984
func (s *Summary) Fairness() *float64 {
	d := &s.E2ETPSUser
	if d.Mean == nil || d.SD == nil || *d.Mean == 0 {
		return nil
	}
	cv := *d.SD / *d.Mean
	index := 1 / (1 + float64(cv*cv))
	return &index
}

// RetryRate is the number of retries for each request offered.
func (s *Summary) RetryRate() *float64 {
	return stats.Ratio(float64(s.Requests.Retries), float64(s.Requests.Offered))
}

// ComputedTokens returns the number of tokens that the run computed, without rejected drafts.
func ComputedTokens(s *Summary) float64 {
	t := &s.Tokens
	return float64(t.Recomputed + t.Input - t.CachedInput + t.Output)
}

// CostPerMillion is the price of a million tokens at a rate per second.
func CostPerMillion(usdPerHour float64, tokensPerS *float64) *float64 {
	if tokensPerS == nil {
		return nil
	}
	return stats.Ratio(usdPerHour*1e6, *tokensPerS*3600)
}

// AddWarning adds a warning with a code for programs and a text for people.
func (s *Summary) AddWarning(code, text string) {
	s.Warnings = append(s.Warnings, Warning{code, text})
}

// DropWarning removes the warnings with a code.
func (s *Summary) DropWarning(code string) {
	s.Warnings = slices.DeleteFunc(s.Warnings, func(w Warning) bool { return w.Code == code })
}

// HalfWidth formats the wider half of the interval of a number; empty without a number or an interval.
func (s *Summary) HalfWidth(path string, v *float64) string {
	ci, ok := s.CI95[path]
	if v == nil || !ok {
		return ""
	}
	return layout.Digits(max(ci[1]-*v, *v-ci[0]))
}
