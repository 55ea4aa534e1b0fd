package scenario

import (
	"slices"

	"clifftop/experiments/scenario/yamldoc"
)

// Speculative is speculative decoding: each iteration verifies drafts of the tokens to come. As in vLLM,
// async_scheduling auto is on with eagle, mtp and ngram_gpu, and off with draft; ngram does not go with it. The
// drafter's weights and KV take memory from the KV pool: with eagle and mtp those of one more layer of the model.
// Policy vllm draws which drafts are accepted. Other policies, and pools that compute prompts or outputs apart, decode
// with the mean yield of an iteration.
type Speculative struct {
	// Method proposes the drafts: an n-gram lookup on the CPU or, with ngram_gpu, on the GPU, which costs nothing;
	// eagle or mtp, a layer of the model and its output layer; or draft, a model of its own.
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

// costless reports whether drafts take no time: those of a lookup, and any beside a linear step time.
func (p *Speculative) costless(t *StepTime) bool {
	return p.Method == "ngram" || p.Method == "ngram_gpu" || t.Kind == "linear"
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
