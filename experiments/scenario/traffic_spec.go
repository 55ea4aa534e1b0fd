package scenario

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// Spec is the process as the workload package takes it.
func (s Stage) Spec() workload.Phase {
	w := workload.Phase{
		Name: s.Name, Duration: optional.Value(s.Duration).Clock(), Process: s.Process,
		Rate: optional.Value(s.Rate), CV: optional.Value(s.CV), Shape: optional.Value(s.Shape),
		Sigma: optional.Value(s.Sigma), Rho: optional.Value(s.Rho), Step: optional.Value(s.Step).Clock(),
		OnMean: optional.Value(s.OnMean).Clock(), OffMean: optional.Value(s.OffMean).Clock(),
		Users: int32(optional.Value(s.Users)), Ramp: optional.Value(s.Ramp).Clock(),
		Begin: optional.Value(s.Begin).Clock(), MeanOver: s.MeanOver,
		Sources: int32(optional.Value(s.Sources)), TopShare: optional.Value(s.TopShare),
		Top10Share: optional.Value(s.Top10Share), SourceCV: s.SourceCV,
	}
	if s.Hourly != nil {
		w.Hourly = s.Hourly.Values
	}
	if s.Process == "on-off" && s.CV == nil {
		w.CV = 1
	}
	w.ThinkTime = s.ThinkTime.delay()
	return w
}

// newStage is a process of the workload package as a scenario writes it.
func newStage(w workload.Phase) Stage {
	s := Stage{
		Name: w.Name, Duration: optional.Of(yamldoc.Duration(w.Duration)), Process: w.Process,
		Rate: optional.Of(w.Rate), CV: optional.Of(w.CV), Shape: optional.Of(w.Shape),
		Sigma: optional.Of(w.Sigma), Rho: optional.Of(w.Rho), Step: optional.Of(yamldoc.Duration(w.Step)),
		OnMean: optional.Of(yamldoc.Duration(w.OnMean)), OffMean: optional.Of(yamldoc.Duration(w.OffMean)),
		Users: optional.Of(int(w.Users)), Ramp: optional.Of(yamldoc.Duration(w.Ramp)),
		Begin:   optional.Of(yamldoc.Duration(w.Begin)),
		Sources: optional.Of(int(w.Sources)), TopShare: optional.Of(w.TopShare), Top10Share: optional.Of(w.Top10Share),
		SourceCV: w.SourceCV, MeanOver: w.MeanOver,
	}
	if w.Hourly != nil {
		s.Hourly = newHourly(w.Hourly)
	}
	if w.ThinkTime != (workload.Delay{}) {
		s.ThinkTime = &ThinkTime{Law: w.ThinkTime.Distribution, Mean: yamldoc.Duration(w.ThinkTime.Mean),
			CV: optional.Of(w.ThinkTime.CV)}
		if s.ThinkTime.Law == "" {
			s.ThinkTime.Law = "fixed"
		}
	}
	return s
}

// lengths is the law as the workload package takes it.
func (l Distribution) lengths() workload.LengthsSpec {
	w := workload.LengthsSpec{
		Distribution: l.Law, Value: int32(optional.Value(l.Value)), Min: int32(optional.Value(l.Min)),
		Max:  int32(optional.Value(l.Max)),
		Mean: optional.Value(l.Mean), CV: optional.Value(l.CV), Mu: optional.Value(l.Mu),
		Sigma: optional.Value(l.Sigma), Shape: optional.Value(l.Shape),
		P: l.P, Q: l.Q,
	}
	for _, part := range l.Parts {
		w.Parts = append(w.Parts, workload.PartSpec{Weight: optional.Value(part.Weight), LengthsSpec: part.lengths()})
	}
	return w
}

// limitInt32 is n, at most the largest int32.
func limitInt32(n int) int32 { return int32(min(n, math.MaxInt32)) }

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
			d.Fault(n.At, key, fmt.Sprintf("%d values are not allowed (want 24 relative rates for the hours of a day, or 168 "+
				"for a week)", k), "")
		}
		return
	}
	for _, p := range workload.HourlyProfiles() {
		if n.Kind == yamldoc.Text && n.Text == p.Name {
			h.name, h.Values = p.Name, p.Hourly
			return
		}
	}
	if n.Kind == yamldoc.Text {
		d.Unknown(n, key, hourlyNames(), "")
		return
	}
	d.Wrong(n, key, "24 or 168 relative rates, or a name such as office-hours")
}
