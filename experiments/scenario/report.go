package scenario

import (
	"fmt"
	"slices"

	"clifftop/model/catalog"
	"clifftop/report"
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
	own, err := s.ownAccuracy()
	if err != nil {
		return err
	}
	u.own = own
	r := &u.Report
	r.Warmup = collect.Warmup{Auto: s.Run.Warmup.Auto, Duration: s.Run.Warmup.Length.Clock()}
	r.Closed = u.Traffic.Closed && !slices.ContainsFunc(u.Traffic.clients, leavesWork)
	r.Lifecycle = s.Lifecycle != nil
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

// Accuracy is how well runs of this kind were borne out by measured ones; nil beside a step time that is not meant
// to be any machine's.
func (u *Setup) Accuracy() *report.Accuracy {
	s := u.Scenario
	switch s.StepTime.Kind {
	case "linear":
		return nil
	case "kernels":
	default:
		return &report.Accuracy{Scope: "not validated: only step_time kernels was compared with measured runs"}
	}
	if len(u.Pools) > 1 {
		return &report.Accuracy{Scope: "not validated: there are no measured runs of fleets of unlike replicas"}
	}
	d := u.Deployment
	moe, kind := d.LLM.Experts > 0, "dense models"
	if moe {
		kind = "mixtures of experts"
	}
	engine := u.policy.name
	same := u.Traffic.Closed
	for _, from := range []struct{ here, closed bool }{{true, same}, {true, !same}, {false, same}, {false, !same}} {
		closed := from.closed
		a, ok := catalog.AccuracyOf(engine, d.GPU.Name, d.GPU.Architecture, moe, closed)
		if !ok || from.here != (a.GPU != "") {
			continue
		}
		load := "open-loop"
		if closed {
			load = "closed-loop"
		}
		r := &report.Accuracy{Runs: a.Runs, Exact: from.here && closed == same, SameGPU: from.here, TTFT: a.TTFT,
			TPOT: a.TPOT, E2E: a.E2E, Throughput: a.Throughput}
		if from.here {
			r.Scope = fmt.Sprintf("median of %d measured %s runs of %s on %s", a.Runs, load, kind, a.GPU)
		} else {
			r.Scope = fmt.Sprintf("not validated on %s; median of %d measured %s runs of %s on other %s GPUs",
				d.GPU.Name, a.Runs, load, kind, a.Architecture)
		}
		if s.Engine.Speculative != nil {
			r.Exact = false
			r.Scope += "; none of them with drafts"
		}
		if d.PipelineParallel > 1 {
			r.Exact = false
			r.Scope += "; none of them with pipeline stages"
		}
		if u.replicas() > 1 || s.Lifecycle != nil {
			r.Exact = false
			r.Scope += "; all of single engines"
		}
		return r
	}
	if f := fitted(d); f != nil && f.OtherModels {
		return &report.Accuracy{SameGPU: true, Scope: "not validated: " + f.String()}
	} else if f != nil {
		return &report.Accuracy{SameGPU: true, Scope: f.String()}
	}
	return &report.Accuracy{Scope: fmt.Sprintf("not validated: there are no measured runs of %s on %s under policy %s",
		kind, d.GPU.Name, engine)}
}
