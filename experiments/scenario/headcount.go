package scenario

import (
	"fmt"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
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

// defaultWork is what people in a company do with a language model: judgement. With a fifth of them active in the
// busiest hour, which has a tenth of the day's requests, the requests per hour are those per day of the presets,
// halved.
func defaultWork() []HeadcountClass {
	return []HeadcountClass{
		{Preset: "ent-technical-lookup", Share: 0.6, RequestsPerHour: 3},
		{Preset: "ent-contract-analysis", Share: 0.1, RequestsPerHour: 4},
		{Preset: "ent-rnd-reasoning", Share: 0.1, RequestsPerHour: 13},
		{Preset: "ent-customer-support", Share: 0.2, RequestsPerHour: 1.5},
	}
}

// resolveHeadcount turns people into classes and a rate, which arrivals that are given replace, and shows the
// arithmetic.
func resolveHeadcount(s *Scenario) (w Workload, found findings) {
	w = s.Workload
	h := w.Headcount
	if h == nil {
		return w, found
	}
	work := h.Classes
	if work == nil {
		work = defaultWork()
	}
	active := float64(h.People) * h.Adoption * h.ActiveAtPeak
	shares, perPerson := 0.0, 0.0
	for _, c := range work {
		shares += c.Share
		perPerson += c.Share * c.RequestsPerHour
	}
	if !(perPerson > 0) {
		found.fault(s.Fault("workload.headcount",
			"no class sends requests (set share and requests_per_hour above 0 in at least one class)"))
		return w, found
	}
	perPerson /= shares
	rate := active * perPerson / 3600
	var parts []string
	for _, c := range work {
		p, err := workload.FindPreset(c.Preset)
		if err != nil {
			found.fault(s.fieldFaults(err)...)
			return w, found
		}
		k := Class{Name: strings.TrimPrefix(p.Name, "ent-"), Weight: c.Share * c.RequestsPerHour,
			Preset: optional.Of(p.Name), SLO: c.SLO, Priority: c.Priority}
		if p.Sessions != nil {
			k.Sessions = &Sessions{}
		}
		w.Classes = append(w.Classes, k)
		parts = append(parts, fmt.Sprintf("%s %.4g of %.4g people at %.4g an hour", k.Name, active*c.Share/shares,
			active, c.RequestsPerHour))
	}
	text := fmt.Sprintf("%d people, of whom %.4g %% take part and %.4g %% of these are active at the peak, are %.4g: "+
		"%s; together %.4g requests/s",
		h.People, 100*h.Adoption, 100*h.ActiveAtPeak, active, strings.Join(parts, ", "), rate)
	if w.Arrivals == nil {
		w.Arrivals = &Arrivals{Stages: []Stage{{Process: "poisson", Rate: &rate}}}
	} else {
		text += ", which the arrivals given replace"
	}
	found.warn("headcount", "%s", text)
	w.Headcount = nil // it is classes and arrivals now
	return w, found
}
