package scenario

import (
	"slices"

	"clifftop/report/collect"
	"clifftop/sim/clock"
)

// reportResolver says what is measured.
type reportResolver struct{ *Setup }

// stages are the parts of the run, where the arrivals are a list.
func (u reportResolver) stages() []collect.StageSpan {
	a := u.Scenario.Workload.Arrivals
	if a == nil || !a.Listed {
		return nil
	}
	var spans []collect.StageSpan
	for _, w := range u.Traffic.Spec.Windows() {
		spans = append(spans, collect.StageSpan{Name: w.Name, End: w.End})
	}
	return spans
}

// measures says what is measured.
func (u reportResolver) measures() error {
	s := u.Scenario
	r := &u.Report
	r.Warmup = collect.Warmup{Auto: s.Run.Warmup.Auto, Duration: s.Run.Warmup.Length.Clock()}
	r.Closed = u.Traffic.Closed && !slices.ContainsFunc(u.Traffic.clients, leavesWork)
	r.Lives = s.Lifecycle != nil
	slo, err := s.SLO.Objective()
	if err != nil {
		return s.Fault("slo", "%v", err)
	}
	r.SLO = slo
	if d := s.Run.Duration; d != nil {
		r.End = clock.Time(d.Clock())
	}
	r.Stages = u.stages()
	if r.Classes, err = u.classes(); err != nil {
		return err
	}
	if u.Deployment == nil {
		return nil
	}
	u.measureReplicas()
	return nil
}
