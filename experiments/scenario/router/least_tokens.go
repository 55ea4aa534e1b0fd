package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/sim/route"
)

var leastTokensRule = Rule{
	Name:    "least-tokens",
	Does:    "the fewest outstanding tokens of this router, of prompts and expected outputs",
	Source:  "least outstanding work, with lengths known or guessed",
	Options: func() Options { return new(leastTokens) },
}

type leastTokens struct {
	// Which of equally good replicas is taken.
	Ties *string `json:"ties,omitempty" one:"random first"`
	// Assumed output length; null is exact.
	AssumedOutput *int `json:"assumed_output,omitempty" range:"[1,1000000000]" was:"answer"`
	// Counts only prompt tokens that are not cached, by KV events.
	Uncached *bool `json:"uncached,omitempty"`
}

func (o *leastTokens) Router(id route.Identity) route.Router {
	p := &route.LeastTokens{ID: id, First: optional.Value(o.Ties) == "first"}
	set32(&p.AssumedOutput, o.AssumedOutput)
	optional.Set(&p.Uncached, o.Uncached)
	return p
}
