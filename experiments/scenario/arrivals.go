package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// Arrivals is a sequence of stages. A map in the scenario is one stage without an end.
type Arrivals struct {
	Stages []Stage
	Listed bool
}

func (a Arrivals) MarshalJSON() ([]byte, error) {
	if !a.Listed && len(a.Stages) == 1 {
		return json.Marshal(a.Stages[0])
	}
	return json.Marshal(a.Stages)
}

func (a *Arrivals) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*a = Arrivals{}
	if n.Kind != yamldoc.List {
		if n.Kind != yamldoc.Map {
			d.Wrong(n, key, "a map such as {process: poisson, rate: 8}, or a list of stages")
			return
		}
		a.Stages = make([]Stage, 1)
		d.Value(n, key, &a.Stages[0], "")
		for _, only := range []string{"name", "duration"} {
			if m := n.Get(only); m != nil {
				d.Fault(m.At, yamldoc.Join(key, only), "this key is allowed in a list of phases only", "")
			}
		}
		return
	}
	a.Listed = true
	d.Value(n, key, &a.Stages, "")
	if len(n.Items) == 0 {
		d.Fault(n.At, key, "the list is empty (want one phase or more)", "")
	}
	for i, item := range n.Items {
		last := i == len(n.Items)-1
		if item.Kind == yamldoc.Map && item.Get("duration") == nil && !last {
			d.Fault(item.At, yamldoc.Join(key, fmt.Sprint(i)),
				"duration is missing (only the last phase may have no end)", "")
		}
		if p := a.Stages[i].Process; len(n.Items) > 1 && (p == "closed" || p == "all-at-once") {
			d.Fault(item.At, yamldoc.Join(key, fmt.Sprint(i)),
				p+" cannot be one of several phases (want a process with a rate)", "")
		}
	}
}

// Stage is an arrival process and how long it lasts.
type Stage struct {
	// Name labels the phase in results.
	Name string `json:"name,omitempty"`
	// Duration is the length of the phase.
	Duration *yamldoc.Duration `json:"duration,omitempty" range:"(0,)"`
	// Process is the arrival process. The default is closed if users are given, otherwise the preset's, or poisson
	// if the preset has no rate.
	Process string `json:"process,omitempty" one:"constant poisson gamma weibull all-at-once closed on-off cox profile superposed"`
	// Rate is the mean, in requests per second.
	Rate *float64 `json:"rate,omitempty" range:"(0,10000000]"`
	// CV is the coefficient of variation of the gaps between arrivals: of gamma, and within the bursts of on-off,
	// where it is 1 when left out.
	CV *float64 `json:"cv,omitempty" range:"[0.01,100]"`
	// Shape is the shape of the Weibull law of gaps.
	Shape *float64 `json:"shape,omitempty" range:"[0.1,100]"`
	// Users is the number of clients in a closed loop; each sends its next request after the response to the last
	// one.
	Users *int `json:"users,omitempty" range:"[1,10000000]"`
	// ThinkTime is how long a user waits before the next request.
	ThinkTime *ThinkTime `json:"think_time,omitempty"`
	// Ramp spreads the users' first requests over this time.
	Ramp *yamldoc.Duration `json:"ramp,omitempty"`
	// OnMean and OffMean are the mean lengths of bursts and of the pauses between them.
	OnMean  *yamldoc.Duration `json:"on_mean,omitempty" range:"(0,)"`
	OffMean *yamldoc.Duration `json:"off_mean,omitempty" range:"(0,)"`
	// Sigma is the standard deviation of the logarithm of the rate.
	Sigma *float64 `json:"sigma,omitempty" range:"(0,5]"`
	// Rho is the correlation of the logarithm of the rate from one step to the next.
	Rho *float64 `json:"rho,omitempty" range:"[0,1)"`
	// Step is how long the rate stays the same.
	Step *yamldoc.Duration `json:"step,omitempty" range:"(0,)"`
	// MeanOver is the time over which the rate of cox is the mean: each run, each hour, or the long run (process).
	MeanOver string `json:"mean_over,omitempty" one:"run hour process"`
	// Hourly is the rate over a day or a week relative to its mean: the name of a profile, or 24 or 168 relative
	// rates, starting at midnight or on Monday.
	Hourly *Hourly `json:"hourly,omitempty"`
	// Begin is the time of that day or week at which the traffic starts.
	Begin *yamldoc.Duration `json:"begin,omitempty" range:"[0,)"`
	// Sources is the number of clients of superposed, each with its own rate and burstiness.
	Sources *int `json:"sources,omitempty" range:"[11,100000]"`
	// TopShare and Top10Share are the parts of the requests that come from the first client, and from the first ten.
	TopShare   *float64 `json:"top_share,omitempty" range:"(0,1)"`
	Top10Share *float64 `json:"top10_share,omitempty" range:"(0,1)"`
	// SourceCV are quantiles of the coefficient of variation of the clients' gaps, weighted by requests: at 0.05, 0.25,
	// 0.5, 0.75 and 0.95.
	SourceCV []float64 `json:"source_cv,omitempty" range:"[0.05,100]"`
}

func (s *Stage) Variants() (string, map[string]yamldoc.VariantKeys) {
	rate := []string{"rate"}
	return "process", map[string]yamldoc.VariantKeys{
		"":            {Optional: []string{"process", "rate", "mean_over", "users", "think_time", "ramp"}},
		"constant":    {Required: rate},
		"poisson":     {Required: rate},
		"gamma":       {Required: []string{"rate", "cv"}},
		"weibull":     {Required: []string{"rate", "shape"}},
		"all-at-once": {},
		"closed":      {Required: []string{"users"}, Optional: []string{"think_time", "ramp"}},
		"on-off":      {Required: []string{"rate", "on_mean", "off_mean"}, Optional: []string{"cv"}},
		"cox":         {Required: []string{"rate", "sigma", "rho", "step"}, Optional: []string{"mean_over"}},
		"profile":     {Required: []string{"rate", "hourly"}, Optional: []string{"begin"}},
		"superposed":  {Required: []string{"rate", "sources", "top_share", "top10_share", "source_cv"}},
		"*":           {Optional: []string{"name", "duration"}},
	}
}

func (s *Stage) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if s.Users != nil && s.Rate != nil && n.Get("process") == nil {
		d.Fault(n.Get("users").At, yamldoc.Join(key, "users"),
			"users and rate are given together (want one: users make a closed loop, a rate an open one)", "")
	}
	if s.Process == "" && s.Users != nil {
		s.Process = "closed"
	}
	if s.Process == "" && s.Users == nil && (s.ThinkTime != nil || s.Ramp != nil) {
		d.Fault(n.At, key, "users is missing (a closed loop needs it)", "")
	}
}

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
			d.Fault(n.At, key, fmt.Sprintf("%d values are not allowed (want 24 relative rates for the hours of a "+
				"day, or 168 for a week)", k), "")
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
