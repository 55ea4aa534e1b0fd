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
