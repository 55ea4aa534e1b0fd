package scenario

import (
	"math/rand/v2"
	"slices"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/collect"
	"clifftop/report/layout"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/workload"
)

// SourceAt is the scenario's traffic at another load, and without bursts where it is synthetic.
func (u *Setup) SourceAt(l ProbeLoad) (workload.Source, error) {
	return u.Traffic.at(l, u.Scenario.Run.Seed)
}

// Reseeded returns the setup with the random numbers of a later seed.
func (u *Setup) Reseeded(k int) (*Setup, error) {
	if k == 0 {
		return u, nil
	}
	in, s := u.given, *u.given.scenario
	s.Run.Seed += uint64(k)
	in.scenario = &s
	return in.setup()
}

// Lasting is the setup with a run of this many requests.
func (u *Setup) Lasting(requests int) (*Setup, error) {
	in, s := u.given, *u.given.scenario
	s.Run.Requests = &requests
	in.scenario = &s
	return in.setup()
}

// Configured is the setup with engines that a program configures otherwise. [Setup.Reseeded] and [Setup.Lasting] keep
// the change.
func (u *Setup) Configured(change func(*engine.Config)) *Setup {
	v := *u
	v.Pools = slices.Clone(u.Pools)
	for i := range v.Pools {
		change(&v.Pools[i].Config)
	}
	v.given.change = change
	if before := u.given.change; before != nil {
		v.given.change = func(c *engine.Config) { before(c); change(c) }
	}
	return &v
}

// Staged is the setup that measures other parts of the run apart.
func (u *Setup) Staged(stages []collect.StageSpan) *Setup {
	v := *u
	v.Report.Stages = stages
	return &v
}

// Changed reports whether a program configured the engines otherwise than the scenario says.
func (u *Setup) Changed() bool { return u.given.change != nil }

// Hour is the setup with a run of one hour, or another length, after a lead-in of the same traffic that is not
// measured. The rate is the mean of the hour. Nothing ends the run, so that all requests end. Planned failures are as
// long after the start of the hour as the scenario says after that of a run.
//
// Of recorded traffic the seed draws a block that is as long as the lead-in and the hour. Traffic of several phases has
// a length of its own: a run of all phases takes the place of the hour, without a lead-in. The error is
// [yamldoc.Faults] if a trace is too short.
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

// block is a part of the trace with a random start, for a moving-block bootstrap (H. R. Künsch, Annals of Statistics
// 17, 1989).
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
			"the trace lasts %s, shorter than the lead-in and an hour together, %s (want a shorter horizon, such as "+
				"slo.horizon: 5m, or a longer trace)",
			layout.Seconds((end - load.From).Seconds()), layout.Seconds(length.Seconds()))}
	}
	const purpose = 0x626c6f636b // of the random number
	rng := rand.New(rand.NewPCG(u.Scenario.Run.Seed, purpose))
	load.From += clock.Duration(rng.Int64N(int64(spare) + 1))
	load.To, load.Duration, load.Limit = load.From+length, 0, 0
	return &Recording{Opener: from.Opener, Load: load, classes: from.classes, adapters: from.adapters}, nil
}

// Source makes the source of a run, whose clients are patient.
func (u *Setup) Source() (workload.Source, error) {
	return u.Traffic.source(u.Scenario.Run.Seed)
}

// WithClients gives the requests of a source the scenario's clients.
func (u *Setup) WithClients(src workload.Source) (workload.Source, error) {
	return workload.NewClients(src, u.Scenario.Run.Seed, u.Traffic.clients...)
}
