package scenario

import (
	"slices"

	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/report"
)

// Release is the version of the program.
const Release = "0.1.0"

// unmeasured is the factor by which a property that no measured run has widens the bars. It is what leaving the runs
// of a GPU out of the fit does to the errors of 51 runs: medians from 2.8 to 4.2 % (TTFT) and 1.7 to 2.6 % (TPOT).
const unmeasured = 1.5

// ownAccuracy reads the record of own runs.
func (s *Scenario) ownAccuracy() (*catalog.OwnAccuracy, error) {
	if s.Accuracy == "" {
		return nil, nil
	}
	path := s.path("accuracy", s.Accuracy)
	data, err := readFile(path)
	if err != nil {
		return nil, s.Fault("accuracy", "%s cannot be read: %s", path, PlainFileError(err))
	}
	o, err := catalog.ReadOwnAccuracy(path, data, Release)
	if err != nil {
		return nil, s.Fault("accuracy", "%s", err)
	}
	return o, nil
}

// Predictive returns the error bars of this kind of runs; nil if step times are not those of a machine, or if nothing
// like it was measured.
func (u *Setup) Predictive() *report.Predictive {
	s := u.Scenario
	if s.StepTime.Kind != "kernels" || len(u.Pools) > 1 {
		return nil
	}
	moe, load, engine := u.Deployment.LLM.Experts > 0, "open", u.policy.name
	if u.Traffic.Closed {
		load = "closed"
	}
	k, ok := catalog.PredictiveOf(engine, load, moe)
	if !ok {
		return nil
	}
	own, _ := u.own.Of(engine, load, moe)
	p := &report.Predictive{Kind: k.Name(), Cells: k.Cells, UnseenCells: k.Unseen, OwnRuns: own.Runs,
		Widened: u.unmeasured(k, own, catalog.KindName(engine, load, moe))}
	p.Fitted = fitted(u.Deployment)
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
	s, d := u.Scenario, u.Deployment
	add(k.Load == "" && own.Runs == 0, kind)
	add(!k.Measured(d.GPU.Name) && !d.GPU.Own.Validates() && !slices.Contains(own.GPUs, d.GPU.Name), d.GPU.Name)
	add(s.Engine.Speculative != nil, "drafts")
	add(d.PipelineParallel > 1, "pipeline stages")
	add(s.Offload != nil, "offload")
	add(u.replicas() > 1 || s.Lifecycle != nil, "several replicas")
	return list
}
