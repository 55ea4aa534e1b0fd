package experiments

import (
	"math"

	"clifftop/workload"
)

// stage is the process as the workload package takes it.
func (s Stage) stage() workload.Phase {
	w := workload.Phase{
		Name: s.Name, Duration: value(s.Duration).Clock(), Process: s.Process,
		Rate: value(s.Rate), CV: value(s.CV), Shape: value(s.Shape),
		Sigma: value(s.Sigma), Rho: value(s.Rho), Step: value(s.Step).Clock(),
		OnMean: value(s.OnMean).Clock(), OffMean: value(s.OffMean).Clock(),
		Users: int32(value(s.Users)), Ramp: value(s.Ramp).Clock(), Begin: value(s.Begin).Clock(),
		Sources: int32(value(s.Sources)), TopShare: value(s.TopShare), Top10Share: value(s.Top10Share), SourceCV: s.SourceCV,
	}
	if s.Hourly != nil {
		w.Hourly = s.Hourly.values
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
		Name: w.Name, Duration: given(Duration(w.Duration)), Process: w.Process,
		Rate: given(w.Rate), CV: given(w.CV), Shape: given(w.Shape),
		Sigma: given(w.Sigma), Rho: given(w.Rho), Step: given(Duration(w.Step)),
		OnMean: given(Duration(w.OnMean)), OffMean: given(Duration(w.OffMean)),
		Users: given(int(w.Users)), Ramp: given(Duration(w.Ramp)), Begin: given(Duration(w.Begin)),
		Sources: given(int(w.Sources)), TopShare: given(w.TopShare), Top10Share: given(w.Top10Share), SourceCV: w.SourceCV,
	}
	if w.Hourly != nil {
		s.Hourly = newHourly(w.Hourly)
	}
	if w.ThinkTime != (workload.Delay{}) {
		s.ThinkTime = &ThinkTime{Law: w.ThinkTime.Distribution, Mean: Duration(w.ThinkTime.Mean), CV: given(w.ThinkTime.CV)}
		if s.ThinkTime.Law == "" {
			s.ThinkTime.Law = "fixed"
		}
	}
	return s
}

// lengths is the law as the workload package takes it.
func (l Distribution) lengths() workload.LengthsSpec {
	w := workload.LengthsSpec{
		Distribution: l.Law, Value: int32(value(l.Value)), Min: int32(value(l.Min)), Max: int32(value(l.Max)),
		Mean: value(l.Mean), CV: value(l.CV), Mu: value(l.Mu), Sigma: value(l.Sigma), Shape: value(l.Shape),
		P: l.P, Q: l.Q,
	}
	for _, part := range l.Parts {
		w.Parts = append(w.Parts, workload.PartSpec{Weight: value(part.Weight), LengthsSpec: part.lengths()})
	}
	return w
}

// value is what p points to, or zero.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// given points to v, or is nil where v is zero.
func given[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// or gives *p the value v where it is nil.
func or[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// limitInt32 is n, at most the largest int32.
func limitInt32(n int) int32 { return int32(min(n, math.MaxInt32)) }
