package scenario

import (
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/sim/engine"
)

// resolveDrafts returns the speculative decoding of the engine, and the engine's keys with what does not go with it.
func resolveDrafts(s *Scenario, e Engine, p *policy) (drafts engine.Speculative, _ Engine, found findings) {
	x := e.Speculative
	if x == nil {
		return drafts, e, found
	}
	switch {
	case x.Method == "ngram" && e.AsyncScheduling == On:
		return drafts, e, s.refuse("engine.async_scheduling",
			"true is not possible with method ngram, which looks up drafts on the CPU (want auto, false or method "+
				"ngram_gpu)")
	case x.Method == "ngram", x.Method == "draft", e.Policy == "sglang":
		e.AsyncScheduling = e.AsyncScheduling.or(false)
	}
	if p.meanDrafts(s) {
		found.warn("mean_drafts", "speculative decoding: policy %s decodes with the mean yield of an iteration, so "+
			"that chunks of accepted tokens are not seen", e.Policy)
	}
	found.warn("speculative", "speculative decoding: acceptance is an assumption of the scenario")
	if p.meanDrafts(s) {
		return drafts, e, found
	}
	drafts = engine.Speculative{
		Tokens: limitInt32(x.NumSpeculativeTokens), Acceptance: x.Acceptance, Match: 1, Seed: s.Run.Seed,
		LookaheadAtAdmission: p.release.LookaheadAtAdmission,
	}
	optional.Set(&drafts.Match, x.Match)
	switch x.Method {
	case "eagle":
		drafts.Method = engine.EAGLE
	case "mtp":
		drafts.Method = engine.MTP
	case "draft":
		drafts.Method, drafts.Slots = engine.DraftModel, 1
	}
	return drafts, e, found
}

func draftModel(s *Scenario, d *model.Deployment) (*model.Deployment, *yamldoc.Fault) {
	name := optional.Value(s.Engine.Speculative.Model)
	llm, err := catalog.LLM(name)
	if err != nil {
		return nil, s.named("engine.speculative.model", name, err, llmNames())
	}
	draft, err := model.NewDeployment(llm, d.GPU, model.Options{TensorParallel: d.TensorParallel})
	if err != nil {
		return nil, s.Fault("engine.speculative.model", "%v", err)
	}
	return draft, nil
}

func drafterMemory(s *Scenario, d *model.Deployment) (m model.DrafterMemory, fault *yamldoc.Fault) {
	p := s.Engine.Speculative
	switch {
	case p == nil:
	case p.Method == "draft":
		draft, fault := draftModel(s, d)
		if fault != nil {
			return m, fault
		}
		return draft.AsDrafter(), nil
	case p.Method == "eagle", p.Method == "mtp":
		return d.LayerAsDrafter(), nil
	}
	return m, nil
}

func draftTimer(s *Scenario, d *model.Deployment, options model.KernelOptions) (model.StepTimer, error) {
	p := s.Engine.Speculative
	if p.costless(&s.StepTime) {
		return model.NewLinear(0, 0), nil
	}
	drafter := d.OneLayer()
	if p.Method == "draft" {
		var fault *yamldoc.Fault
		if drafter, fault = draftModel(s, d); fault != nil {
			return nil, fault
		}
	}
	if s.StepTime.Kind == "roofline" {
		r := s.StepTime.Roofline.options()
		r.StepTime = 0
		return model.NewRoofline(drafter, r)
	}
	options.Overheads = &model.Overheads{} // the iteration has the host's part
	options.Drafts = 0                     // a sequence has one token in each of its passes
	return model.NewKernels(drafter, options)
}

// withDrafts adds the passes of the drafter to the length of iterations.
func withDrafts(s *Scenario, e *Engine, p *policy, d *model.Deployment, options model.KernelOptions,
	timer model.StepTimer) (model.StepTimer, error) {
	x := e.Speculative
	if x == nil || x.costless(&s.StepTime) && !p.meanDrafts(s) {
		return timer, nil
	}
	draft, err := draftTimer(s, d, options)
	if err != nil {
		return nil, err
	}
	draft = spread(s, e, d, draft)
	if p.meanDrafts(s) {
		return model.NewMeanDrafting(timer, draft, x.NumSpeculativeTokens, x.matched())
	}
	return model.NewDrafting(timer, draft, x.NumSpeculativeTokens)
}
