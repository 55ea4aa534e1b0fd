package router

import (
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/route"
)

var llmDRule = Rule{
	Name:    "llm-d",
	Does:    "filters, the weighted sum of scores, a picker",
	Source:  "llm-d (inference scheduler), Gateway API Inference Extension",
	Options: func() Options { return new(llmD) },
}

type llmD struct {
	// Granularity of prefixes, in tokens.
	BlockTokens *int `json:"block_tokens,omitempty" range:"[1,1000000]"`
	// Most blocks remembered of a replica; 0 is no limit.
	MaxBlocks *int `json:"max_blocks,omitempty" range:"[0,1000000000000]"`
	// Weights by the names of llm-d's scorers.
	Scorers *Scorers `json:"scorers,omitempty"`
	// How a replica is chosen by the scores.
	Picker *string `json:"picker,omitempty" one:"max-score random weighted-random"`
	// Takes prefixes from KV events instead of own decisions.
	Precise *bool `json:"precise,omitempty"`
	// Filter that keeps prompts where most of them is cached.
	Affinity *Affinity `json:"affinity,omitempty"`
	// Part of a prompt that is looked at; 0 is all.
	MaxMatchTokens *int `json:"max_match_tokens,omitempty" range:"[0,1000000000]"`
	// Age at which metrics mean full; 0 is never.
	StaleAfter *yamldoc.Duration `json:"stale_after,omitempty" range:"[0,)"`
	// Own requests of an idle replica, for active-requests.
	IdleThreshold *int `json:"idle_threshold,omitempty" range:"[0,1000000000]"`
	// Most that another one gets, for active-requests.
	MaxBusyScore *float64 `json:"max_busy_score,omitempty" range:"[0,1]"`
	// Tokens in flight at which token-load is 0.
	TokenLimit *int `json:"token_limit,omitempty" range:"[1,1000000000000]"`
	// Waiting requests at which load-aware is 0.
	QueueLimit *int `json:"queue_limit,omitempty" range:"[1,1000000000]"`
}

func (o *llmD) Router(id route.Identity) route.Router {
	p := route.NewLLMD()
	p.ID = id
	if o.Scorers != nil {
		p.Scorers = o.Scorers.weighted()
	}
	switch optional.Value(o.Picker) {
	case "random":
		p.Picker = route.RandomPick
	case "weighted-random":
		p.Picker = route.WeightedRandom
	}
	if a := o.Affinity; a != nil {
		p.Affinity = route.Affinity{Threshold: a.Threshold, Explore: a.Explore, MaxPenalty: a.MaxPenalty.Clock(),
			PrefillRate: a.PrefillRate}
	}
	optional.Set(&p.Precise, o.Precise)
	set32(&p.BlockTokens, o.BlockTokens)
	set32(&p.MaxMatchTokens, o.MaxMatchTokens)
	set64(&p.Capacity, o.MaxBlocks)
	setDuration(&p.StaleAfter, o.StaleAfter)
	optional.Set(&p.IdleThreshold, o.IdleThreshold)
	optional.Set(&p.MaxBusyScore, o.MaxBusyScore)
	set64(&p.TokenLimit, o.TokenLimit)
	optional.Set(&p.QueueLimit, o.QueueLimit)
	return p
}

func (*llmD) Scrapes() bool { return true }

// Scorers are weights by the names of llm-d's scorers.
type Scorers map[string]float64

func (s *Scorers) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*s = Scorers{}
	if n.Kind != yamldoc.Map || len(n.Fields) == 0 {
		d.Wrong(n, key, "a map of scorers to weights such as {queue: 2, prefix: 3}")
		return
	}
	for _, f := range n.Fields {
		full := yamldoc.Join(key, f.Name)
		if names := route.ScoreNames(); !slices.Contains(names, f.Name) {
			d.Fault(f.At, full, "unknown key (want "+yamldoc.OneOf(names)+")", yamldoc.DidYouMean(f.Name, names))
			continue
		}
		weight := 0.0
		d.Value(f.Value, full, &weight, `range:"[0,1000000000]"`)
		(*s)[f.Name] = weight
	}
}

// weighted are the scorers for the router.
func (s Scorers) weighted() []route.Weighted {
	var all []route.Weighted
	for _, name := range route.ScoreNames() {
		if by, _ := route.ScoreNamed(name); s[name] > 0 {
			all = append(all, route.Weighted{By: by, Weight: s[name]})
		}
	}
	return all
}

// Affinity is llm-d's filter by prefix caches.
type Affinity struct {
	// Part of the prompt at which a replica is sticky.
	Threshold float64 `json:"threshold" range:"(0,1]"`
	// Probability that the filter is skipped.
	Explore float64 `json:"explore" range:"[0,1]"`
	// TTFT that a sticky replica may lose; 0 is any.
	MaxPenalty yamldoc.Duration `json:"max_penalty" range:"[0,)"`
	// Expected speed of prefill in tokens/s.
	PrefillRate float64 `json:"prefill_rate" range:"(0,1000000000]"`
}

func (a *Affinity) SetDefaults() {
	d := route.DefaultAffinity()
	*a = Affinity{d.Threshold, d.Explore, yamldoc.Duration(d.MaxPenalty), d.PrefillRate}
}
