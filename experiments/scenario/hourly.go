package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// Hourly is a course of the rate by the hour: the name of a profile, or a list of relative rates.
type Hourly struct {
	name   string
	Values []float64
}

// newHourly finds the name of a course, where it has one.
func newHourly(values []float64) *Hourly {
	h := &Hourly{Values: values}
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
	return json.Marshal(h.Values)
}

// hourlyNames are the names of the profiles.
func hourlyNames() []string {
	var names []string
	for _, p := range workload.HourlyProfiles() {
		names = append(names, p.Name)
	}
	return names
}

func (h *Hourly) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if n.Kind == yamldoc.List {
		d.Value(n, key, &h.Values, `range:"[0,1000000]"`)
		if k := len(n.Items); k != 24 && k != 168 {
			d.Fault(n.At, key, fmt.Sprintf("%d values are not allowed (want 24 relative rates for the hours of a day, or 168 for a week)", k), "")
		}
		return
	}
	for _, p := range workload.HourlyProfiles() {
		if n.Kind == yamldoc.Text && n.Text == p.Name {
			h.name, h.Values = p.Name, p.Hourly
			return
		}
	}
	d.Wrong(n, key, "24 or 168 relative rates, or "+yamldoc.OneOf(hourlyNames()))
}
