package scenario

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"

	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/collect"
	"clifftop/report/layout"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/workload"
)

// ProbeLoad is one load for a probe: a rate of Poisson arrivals, or a number of users.
type ProbeLoad struct {
	Rate     float64
	Users    int
	Requests int64   // 0 for no limit
	Seconds  float64 // 0 for no limit
	// Surge begins with so many seconds at five times the rate, of synthetic traffic; 0 is none.
	Surge float64
}

// surge is the rate of a [ProbeLoad.Surge] as a multiple of the rate that follows.
const surge = 5

// SourceAt is the scenario's traffic at another load, and without bursts where it is synthetic.
func (u *Setup) SourceAt(l ProbeLoad) (workload.Source, error) {
	if t := u.Traffic.Recording; t != nil {
		return t.probe(l)
	}
	spec := u.Traffic.Spec
	stage := workload.Phase{Process: "poisson", Rate: l.Rate}
	if l.Users > 0 {
		stage = workload.Phase{Process: "closed", Users: int32(l.Users), Ramp: clock.FromSeconds(l.Seconds / 20)}
		if spec.Closed() {
			stage.ThinkTime = spec.Arrivals[0].ThinkTime
		}
	}
	spec.Arrivals = []workload.Phase{stage}
	if l.Surge > 0 {
		first := workload.Phase{Process: "poisson", Rate: surge * l.Rate, Duration: clock.FromSeconds(l.Surge)}
		spec.Arrivals = []workload.Phase{first, stage}
	}
	spec.Requests, spec.Duration = l.Requests, clock.FromSeconds(l.Seconds)
	return workload.New(spec, u.Scenario.Run.Seed)
}

// LeastReplications is the number of runs after which sequential stopping first looks at the intervals.
const LeastReplications = 5

// MostReplications is the maximum number of runs with a precision where none is set.
const MostReplications = 100

// Replicated reports whether the scenario asks for more than one run of each kind.
func (s *Scenario) Replicated() bool { return s.Run.Replications > 1 || s.Run.Precision != nil }

func (r *RunSpec) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	given := n.Get("replications")
	switch {
	case r.Precision == nil:
	case given == nil || given.Kind == yamldoc.Null:
		r.Replications = MostReplications
	case r.Replications >= 1 && r.Replications < LeastReplications:
		d.Refuse(given, yamldoc.Join(key, "replications"),
			fmt.Sprintf("%d or more with a precision: the maximum number of runs", LeastReplications))
	}
}

// Reseeded is the setup with other random numbers, those of a later seed. Changes of Config are kept.
func (u *Setup) Reseeded(k int) (*Setup, error) {
	if k == 0 {
		return u, nil
	}
	s := *u.from
	s.Run.Seed += uint64(k)
	return u.again(&s)
}

// Lasting is the setup with a run of this many requests. Changes of Config are kept.
func (u *Setup) Lasting(requests int) (*Setup, error) {
	s := *u.from
	s.Run.Requests = &requests
	return u.again(&s)
}

// again resolves a scenario that differs in its run.
func (u *Setup) again(s *Scenario) (*Setup, error) {
	v, err := s.resolve(Setup{oneRank: u.oneRank, served: u.served})
	if err != nil {
		return nil, err
	}
	v.keepChanges(u)
	for i := range v.Pools {
		v.Pools[i].Setup.keepChanges(u.Pools[i].Setup)
	}
	return v, nil
}

// keepChanges takes those fields of the configuration of u that were changed since it was resolved. The others may
// depend on the seed.
func (v *Setup) keepChanges(u *Setup) {
	for i, now := range u.changes() {
		reflect.ValueOf(&v.Config).Elem().Field(i).Set(now)
	}
}

// Changed are the fields of the configuration, or of those of pools, that a program changed after the scenario was
// resolved. What the scenario says does not name such a run.
func (u *Setup) Changed() (fields []string) {
	for i := range u.changes() {
		fields = append(fields, reflect.TypeFor[engine.Config]().Field(i).Name)
	}
	for _, p := range u.Pools {
		if p.Setup != u {
			fields = append(fields, p.Setup.Changed()...)
		}
	}
	return fields
}

// changes are the fields of the configuration that were changed since it was resolved, by their number.
func (u *Setup) changes() iter.Seq2[int, reflect.Value] {
	from, now := reflect.ValueOf(&u.resolved).Elem(), reflect.ValueOf(&u.Config).Elem()
	return func(yield func(int, reflect.Value) bool) {
		for i := range now.NumField() {
			if !reflect.DeepEqual(now.Field(i).Interface(), from.Field(i).Interface()) && !yield(i, now.Field(i)) {
				return
			}
		}
	}
}

// Hour is the setup with a run of one hour, or another length, after a lead-in of the same traffic that is not measured.
// The rate is the mean of the hour. Nothing ends the run, so that all requests end. Planned failures are as long after the
// start of the hour as the scenario says after that of a run.
//
// Of recorded traffic the seed draws a block that is as long as the lead-in and the hour. Traffic of several phases has a
// length of its own: a run of all phases takes the place of the hour, without a lead-in. The error is [yamldoc.Faults]
// if a trace is too short.
func (u *Setup) Hour(lead, length clock.Duration) (*Setup, error) {
	h := *u
	h.Report.End = 0
	if u.Traffic.Recording == nil && len(u.Traffic.Spec.Arrivals) != 1 {
		h.Report.Warmup = collect.Warmup{}
		return &h, nil
	}
	h.Report.Warmup = collect.Warmup{Duration: lead}
	h.Failures = slices.Clone(u.Failures)
	for i := range h.Failures {
		h.Failures[i].At = h.Failures[i].At.Add(lead)
	}
	slices.SortStableFunc(h.Failures, func(a, b sim.Failure) int { return int(a.At - b.At) })
	if u.Traffic.Recording != nil {
		var err error
		h.Traffic.Recording, err = u.block(lead + length)
		return &h, err
	}
	spec := u.Traffic.Spec
	spec.Requests, spec.Duration, spec.LeadIn = 0, lead+length, lead
	spec.HourLength = length
	spec.Arrivals = slices.Clone(spec.Arrivals)
	if a := &spec.Arrivals[0]; a.Process == "cox" {
		a.MeanOver = workload.MeanOverHour
	}
	h.Traffic.Spec, h.Traffic.Requests = spec, int64(spec.Rate()*spec.Duration.Seconds())
	return &h, nil
}

// block is a part of the trace with a random start, for a moving-block bootstrap (H. R. Künsch, Annals of Statistics 17,
// 1989).
func (u *Setup) block(length clock.Duration) (*Recording, error) {
	from := u.Traffic.Recording
	load := from.Load
	end := load.To
	if end == 0 {
		end = load.From + clock.FromSeconds(u.Scenario.Workload.Trace.Statistics.SpanS)
	}
	spare := end - load.From - length
	if spare < 0 || from.Timeless {
		return nil, yamldoc.Faults{u.Scenario.Fault("slo.horizon",
			"the trace lasts %s, shorter than the lead-in and an hour together, %s (want a shorter horizon, such as slo.horizon: "+
				"5m, or a longer trace)", layout.Seconds((end - load.From).Seconds()), layout.Seconds(length.Seconds()))}
	}
	const purpose = 0x626c6f636b // of the random number
	rng := rand.New(rand.NewPCG(u.Scenario.Run.Seed, purpose))
	load.From += clock.Duration(rng.Int64N(int64(spare) + 1))
	load.To, load.Duration, load.Limit = load.From+length, 0, 0
	return &Recording{Opener: from.Opener, Load: load, classes: from.classes, adapters: from.adapters}, nil
}

// RunSpec says how long to simulate and what to measure.
type RunSpec struct {
	// Requests ends the arrivals after this many; null is 10,000, or all rows of a trace, or no limit if a duration
	// or phases end them.
	Requests *int `json:"requests" range:"[1,1000000000]"`
	// Duration ends the run.
	Duration *yamldoc.Duration `json:"duration" range:"(0,)"`
	// Warmup is excluded from the measurement: auto, none, or a duration.
	Warmup Warmup `json:"warmup"`
	// Seed initializes the random numbers.
	Seed uint64 `json:"seed" range:"[0,9007199254740991]"`
	// Replications is the number of runs, with the seeds seed, seed+1 and so on. With a precision it is the maximum
	// number, by default 100.
	Replications int `json:"replications" range:"[1,1000]"`
	// Precision is the wanted half width of confidence intervals, as a fraction of the value or in percent: runs are
	// added until throughput and the means of TTFT, TPOT and E2E are known that well. Null sets no precision.
	Precision *unit.Share `json:"precision"`
}

// Endless reports whether nothing in the scenario says when the run ends.
func (s *Scenario) Endless() bool {
	a := s.Workload.Arrivals
	return s.Run.Requests == nil && s.Run.Duration == nil && s.Workload.Trace == nil && (a == nil || !a.Listed)
}

// DefaultRequests ends a run that nothing else ends.
const DefaultRequests = 10_000
