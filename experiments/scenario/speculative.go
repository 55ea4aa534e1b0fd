package scenario

import (
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/sim/engine"
)

// Speculative is speculative decoding: each iteration verifies drafts of the tokens to come. As in vLLM,
// async_scheduling auto is on with eagle, mtp and ngram_gpu, and off with draft; ngram does not go with it. The
// drafter's weights and KV take memory from the KV pool: with eagle and mtp those of one more layer of the model.
// Policy vllm draws which drafts are accepted. Other policies, and pools that compute prompts or outputs apart, decode
// with the mean yield of an iteration.
type Speculative struct {
	// Method proposes the drafts: an n-gram lookup on the CPU or, with ngram_gpu, on the GPU, which costs nothing; eagle
	// or mtp, a layer of the model and its output layer; or draft, a model of its own.
	Method string `json:"method" one:"ngram ngram_gpu eagle mtp draft"`
	// NumSpeculativeTokens is the number of drafts of a sequence in an iteration.
	NumSpeculativeTokens int `json:"num_speculative_tokens" range:"[1,64]"`
	// Acceptance is the probability that a draft is accepted if those before it were: one for all
	// drafts, or a list of one for each place, the last of which stands for the places beyond.
	Acceptance Acceptance `json:"acceptance"`
	// Model is the model that drafts, for method draft: a name from the catalog.
	Model *string `json:"model,omitempty"`
	// Match is the probability that an n-gram lookup finds drafts, for methods ngram and ngram_gpu; the default is 1.
	Match *float64 `json:"match,omitempty" range:"[0,1]"`
}

func (*Speculative) Variants() (string, map[string]yamldoc.VariantKeys) {
	required := []string{"method", "num_speculative_tokens", "acceptance"}
	return "method", map[string]yamldoc.VariantKeys{
		"":          {Required: required, Optional: []string{"model", "match"}},
		"ngram":     {Required: required, Optional: []string{"match"}},
		"ngram_gpu": {Required: required, Optional: []string{"match"}},
		"eagle":     {Required: required},
		"mtp":       {Required: required},
		"draft":     {Required: append([]string{"model"}, required...)},
	}
}

// Acceptance is a probability, or a list of them.
type Acceptance []float64

func (a *Acceptance) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*a = oneOrMore[float64](d, n, key, "a probability", `range:"[0,1]"`)
}

// MarshalJSON writes the probability, or the list.
func (a Acceptance) MarshalJSON() ([]byte, error) { return marshalOneOrMore(a) }

// speculative fills in speculative decoding, and what it does not go with.
func (u engineResolver) speculative() error {
	s := u.Scenario
	e := &s.Engine
	p := e.Speculative
	if p == nil {
		return nil
	}
	switch {
	case p.Method == "ngram" && e.AsyncScheduling == On:
		return s.Fault("engine.async_scheduling", "true is not possible with method ngram, which looks up drafts on the "+
			"CPU (want auto, false or method ngram_gpu)")
	case p.Method == "ngram", (p.Method == "draft" || e.Policy == "sglang") && e.AsyncScheduling == Auto:
		e.AsyncScheduling = Off
	}
	if u.meanDrafts() {
		u.Warn("mean_drafts", "speculative decoding: policy %s decodes with the mean yield of an iteration, so that "+
			"chunks of accepted tokens are not seen", e.Policy)
	}
	u.Warn("speculative", "speculative decoding: acceptance is an assumption of the scenario")
	if u.meanDrafts() {
		return nil
	}
	match := 1.0
	if p.Match != nil {
		match = *p.Match
	}
	u.Config.Speculative = engine.Speculative{
		Tokens: limitInt32(p.NumSpeculativeTokens), Acceptance: p.Acceptance, Match: match, Seed: s.Run.Seed,
		LookaheadAtAdmission: u.Profile.LookaheadAtAdmission,
	}
	switch p.Method {
	case "eagle":
		u.Config.Speculative.Method = engine.EAGLE
	case "mtp":
		u.Config.Speculative.Method = engine.MTP
	case "draft":
		u.Config.Speculative.Method, u.Config.Speculative.Slots = engine.DraftModel, 1
	}
	return nil
}

// meanDrafts reports whether drafts are in the step time only, because the engine gives each sequence one token in an
// iteration.
func (u engineResolver) meanDrafts() bool {
	_, builtIn := BuiltIn().Policies.Find(u.policy.name)
	return builtIn && u.policy.name != "vllm" || u.apart()
}

// draftModel returns the deployment of the draft model of method draft.
func (u engineResolver) draftModel() (*model.Deployment, error) {
	name := optional.Value(u.Scenario.Engine.Speculative.Model)
	llm, err := catalog.LLM(name)
	if err != nil {
		return nil, u.Scenario.named("engine.speculative.model", name, err, llmNames())
	}
	d, err := model.NewDeployment(llm, u.Deployment.GPU, model.Options{TensorParallel: u.Deployment.TensorParallel})
	if err != nil {
		return nil, u.Scenario.Fault("engine.speculative.model", "%v", err)
	}
	return d, nil
}

// drafterMemory returns the memory that the drafter takes.
func (u engineResolver) drafterMemory() (model.DrafterMemory, error) {
	p := u.Scenario.Engine.Speculative
	switch {
	case p == nil:
	case p.Method == "draft":
		d, err := u.draftModel()
		if err != nil {
			return model.DrafterMemory{}, err
		}
		return d.AsDrafter(), nil
	case p.Method == "eagle", p.Method == "mtp":
		return u.Deployment.LayerAsDrafter(), nil
	}
	return model.DrafterMemory{}, nil
}

// drafting adds the passes of the drafter to the length of iterations.
func (u engineResolver) drafting(timer model.StepTimer) (model.StepTimer, error) {
	p := u.Scenario.Engine.Speculative
	if p == nil || p.costless(u.Scenario) && !u.meanDrafts() {
		return timer, nil
	}
	draft, err := u.draftTimer()
	if err != nil {
		return nil, err
	}
	draft = u.spread(draft)
	if u.meanDrafts() {
		return model.NewMeanDrafting(timer, draft, p.NumSpeculativeTokens, p.matched())
	}
	return model.NewDrafting(timer, draft, p.NumSpeculativeTokens)
}

// costless reports whether drafts take no time: those of a lookup, and any beside a linear step time.
func (p *Speculative) costless(s *Scenario) bool {
	return p.Method == "ngram" || p.Method == "ngram_gpu" || s.StepTime.Kind == "linear"
}

// matched is the acceptance in the mean: a lookup that finds nothing has no first draft.
func (p *Speculative) matched() []float64 {
	list := slices.Clone(p.Acceptance)
	if len(list) == 1 && p.Match != nil {
		list = append(list, list[0])
	}
	if p.Match != nil {
		list[0] *= *p.Match
	}
	return list
}

// draftTimer is the step timer of the drafter.
func (u engineResolver) draftTimer() (model.StepTimer, error) {
	p := u.Scenario.Engine.Speculative
	if p.costless(u.Scenario) {
		return model.NewLinear(0, 0), nil
	}
	d := u.Deployment.OneLayer()
	if p.Method == "draft" {
		var err error
		if d, err = u.draftModel(); err != nil {
			return nil, err
		}
	}
	if s := u.Scenario.StepTime; s.Kind == "roofline" {
		return model.NewRoofline(d, model.RooflineOptions{
			PeakFraction: s.Roofline.PeakFraction, BandwidthFraction: s.Roofline.BandwidthFraction,
			LayerTime: s.Roofline.LayerTime.Clock(),
		})
	}
	options := u.KernelOptions()
	options.Overheads = &model.Overheads{} // the host's part is that of the iteration
	options.Drafts = 0                     // a sequence has one token in each of its passes
	return model.NewKernels(d, options)
}
