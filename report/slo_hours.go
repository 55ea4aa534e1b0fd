package report

import (
	"fmt"

	"clifftop/report/layout"
)

// SLOHours counts the hours, or other lengths of time, in which a service-level objective was met.
type SLOHours struct {
	Met int `json:"met"`
	Of  int `json:"of"`
	// ShareLow is the one-sided lower bound of the share of all such hours that meet it, at 95 % by Clopper and
	// Pearson; nil in the hours of one run, which are not independent of each other.
	ShareLow *float64 `json:"share_low"`
	// HorizonS is the length of each in seconds.
	HorizonS float64 `json:"horizon_s"`
}

// poolSLOHours adds up the hours of runs; nil if they are of different lengths, or some run has none.
func poolSLOHours(runs []*Summary) *SLOHours {
	var all *SLOHours
	for _, r := range runs {
		switch h := r.SLOHours; {
		case h == nil || all != nil && all.HorizonS != h.HorizonS:
			return nil
		case all == nil:
			all = &SLOHours{Met: h.Met, Of: h.Of, HorizonS: h.HorizonS}
		default:
			all.Met += h.Met
			all.Of += h.Of
		}
	}
	return all
}

// String is the count in words, such as "27 of 29 hours".
func (h *SLOHours) String() string {
	name := "parts of " + layout.Seconds(h.HorizonS)
	switch h.HorizonS {
	case 60:
		name = "minutes"
	case 3600:
		name = "hours"
	case 86400:
		name = "days"
	}
	return fmt.Sprintf("%d of %d %s", h.Met, h.Of, name)
}
