package experiments

import (
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/workload"
)

// Hourly is a course of the rate by the hour: the name of a profile, or a list of relative rates.
type Hourly struct {
	name   string
	values []float64
}

// newHourly finds the name of a course, where it has one.
func newHourly(values []float64) *Hourly {
	h := &Hourly{values: values}
	for _, p := range workload.HourlyProfiles() {
		if slices.Equal(p.Hourly, values) {
			h.name = p.Name
		}
	}
	return h
}

// MarshalJSON writes the name, or the list.
func (h Hourly) MarshalJSON() ([]byte, error) {
	if h.name != "" {
		return json.Marshal(h.name)
	}
	return json.Marshal(h.values)
}

// hourlyNames are the names of the profiles.
func hourlyNames() []string {
	var names []string
	for _, p := range workload.HourlyProfiles() {
		names = append(names, p.Name)
	}
	return names
}

func (h *Hourly) decode(d *decoder, n *node, key string) {
	if n.kind == isList {
		d.value(n, key, &h.values, `range:"[0,1000000]"`)
		if k := len(n.items); k != 24 && k != 168 {
			d.fault(n.at, key, fmt.Sprintf("%d values are not allowed (want 24 relative rates of a day's hours, or 168 of a week's)", k), "")
		}
		return
	}
	for _, p := range workload.HourlyProfiles() {
		if n.kind == isText && n.text == p.Name {
			h.name, h.values = p.Name, p.Hourly
			return
		}
	}
	d.wrong(n, key, "24 or 168 relative rates, or "+list(hourlyNames()))
}
