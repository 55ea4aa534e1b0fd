package scenario

import (
	"fmt"
	"slices"

	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/report"
)

// unmeasured is the factor by which a property that no measured run has widens the bars. It is the growth of the
// errors of 51 runs when the runs of their GPU are left out of the fit: medians
// from 2.8 to 4.2 % (TTFT) and 1.7 to 2.6 % (TPOT).
const unmeasured = 1.5

// Predictive returns the error bars of this kind of runs; nil if step times do not describe a machine, or if nothing
// like it was measured.
func (u *Setup) Predictive() *report.Predictive {
	s := u.Scenario
	if s.StepTime.Kind != "kernels" || len(u.Pools) > 1 {
		return nil
	}
	moe, load, engine := u.Pools[0].Deployment.LLM.Experts > 0, "open", u.Pools[0].policy.name
	if u.Traffic.Closed {
		load = "closed"
	}
	k, ok := catalog.PredictiveOf(engine, load, moe)
	if !ok {
		return nil
	}
	own, _ := u.accuracy.Of(engine, load, moe)
	p := &report.Predictive{Kind: k.Name(), Cells: k.Cells, UnseenCells: k.Unseen, OwnRuns: own.Runs,
		Widened: u.unmeasured(k, own, catalog.KindName(engine, load, moe))}
	p.Fitted = fitted(u.Pools[0].Deployment)
	if own.Runs > 0 {
		p.Kind = catalog.KindName(engine, load, moe)
	}
	factor := 1.0
	for range p.Widened {
		factor *= unmeasured
	}
	for i, to := range []**report.ErrorBars{&p.TTFTMean, &p.TTFTP99, &p.TPOTMean, &p.TPOTP99, &p.E2EMean, &p.E2EP99,
		&p.Throughput} {
		metric := catalog.PredictiveMetrics[i]
		if bars, ok := k.Bars[metric]; ok && (metric != "throughput" || load == "closed") {
			b := report.ErrorBars(bars.Widened(factor).Updated(own.Errors[metric]))
			*to = &b
		}
	}
	return p
}

// fitted returns the own runs that the GPU's constants were fitted to; nil if they are too few or there are none.
func fitted(d *model.Deployment) *report.FittedRuns {
	o := d.GPU.Own
	if !o.Validates() {
		return nil
	}
	return &report.FittedRuns{Runs: o.Runs, Models: o.Models, OtherModels: !slices.Contains(o.Models, d.LLM.Name),
		TTFT: o.TTFT, TPOT: o.TPOT}
}

// unmeasured lists what the scenario has and no measured run of the kind.
func (u *Setup) unmeasured(k *catalog.Predictive, own catalog.OwnErrors, kind string) []string {
	list := []string{}
	add := func(has bool, what string) {
		if has {
			list = append(list, what)
		}
	}
	s, d := u.Scenario, u.Pools[0].Deployment
	add(k.Load == "" && own.Runs == 0, kind)
	add(!k.Measured(d.GPU.Name) && !d.GPU.Own.Validates() && !slices.Contains(own.GPUs, d.GPU.Name), d.GPU.Name)
	add(s.Engine.Speculative != nil, "drafts")
	add(d.PipelineParallel > 1, "pipeline stages")
	add(s.Offload != nil, "offload")
	add(u.Pools.engines() > 1 || s.Lifecycle != nil, "several replicas")
	return list
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
	d := u.Pools[0].Deployment
	moe, kind := d.LLM.Experts > 0, "dense models"
	if moe {
		kind = "mixtures of experts"
	}
	engine := u.Pools[0].policy.name
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
		if u.Pools.engines() > 1 || s.Lifecycle != nil {
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
