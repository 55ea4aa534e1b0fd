package scenario

import (
	"clifftop/experiments/scenario/yamldoc"
)

// Headcount makes the traffic of a company out of its people: what counts for a deployment is not their number, but the
// requests in the busiest hour.
//
//	requests per second = people · adoption · active_at_peak · Σ share · requests_per_hour / 3600
type Headcount struct {
	// People is the number of those who could use the service.
	People int `json:"people" range:"[1,1000000000]"`
	// Adoption is the part of them who do.
	Adoption float64 `json:"adoption" range:"(0,1]"`
	// ActiveAtPeak is the part of these who use it in the busiest hour.
	ActiveAtPeak float64 `json:"active_at_peak" range:"(0,1]"`
	// Classes are the kinds of work. The default, which is judgement, is technical look-up, contract analysis,
	// reasoning for research and development, and customer support.
	Classes []HeadcountClass `json:"classes"`
}

// HeadcountClass is a kind of work.
type HeadcountClass struct {
	// Preset is its traffic, of conversations where the preset has them.
	Preset string `json:"preset"`
	// Share is the part of the active people who do this work, relative to the other classes.
	Share float64 `json:"share" range:"[0,1000000000]"`
	// RequestsPerHour is how many requests each of them sends in the busiest hour.
	RequestsPerHour float64 `json:"requests_per_hour" range:"[0,1000000]"`
	// SLO is the objective of the class; without one it is held to that of the scenario.
	SLO SLO `json:"slo"`
	// Priority is that of the requests under a priority policy; lower goes first.
	Priority int `json:"priority" range:"[-32768,32767]"`
}

func (c *HeadcountClass) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "", "preset", "share", "requests_per_hour")
}

func (h *Headcount) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "", "people", "adoption", "active_at_peak")
}
