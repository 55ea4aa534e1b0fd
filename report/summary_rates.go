package report

import "clifftop/report/stats"

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
