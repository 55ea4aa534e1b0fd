package route

import (
	"errors"
	"math"
	"slices"

	"clifftop/sim/clock"
	"clifftop/workload"
)

var llmDRule = Rule{
	Name:   "llm-d",
	Does:   "filters, the weighted sum of scores, a picker",
	Source: "llm-d (inference scheduler), Gateway API Inference Extension",
	New:    func() Options { return NewLLMD() },
}

// LLMD is the endpoint picker of llm-d and of the Gateway API Inference Extension: filters drop endpoints, scorers give
// each remaining one a score between 0 and 1, and a picker decides by the weighted sums.
type LLMD struct {
	ID          Identity
	BlockTokens int32 `json:"block_tokens" range:"[1,1e6]" doc:"granularity of prefixes, in tokens"`
	Capacity    int64 `json:"max_blocks" range:"[0,1e12]" doc:"most blocks remembered of a replica; 0 is no limit"`

	Scorers Weights `json:"scorers" range:"[0,1e9]" doc:"weights by the names of llm-d's scorers"`

	Picker   Picker   `json:"picker" one:"max-score random weighted-random" doc:"how a replica is chosen by the scores"`
	Precise  bool     `json:"precise" doc:"takes prefixes from KV events instead of own decisions"`
	Affinity Affinity `json:"affinity" doc:"filter that keeps prompts where most of them is cached"`

	MaxMatchTokens int32 `json:"max_match_tokens" range:"[0,1e9]" doc:"part of a prompt that is looked at; 0 is all"`

	// StaleAfter applies to the scorers queue, running and kv-usage.
	StaleAfter clock.Duration `json:"stale_after" range:"[0,)" doc:"age at which metrics mean full; 0 is never"`

	IdleThreshold int `json:"idle_threshold" range:"[0,1e9]" doc:"own requests of an idle replica, for active-requests"`

	MaxBusyScore float64 `json:"max_busy_score" range:"[0,1]" doc:"most that another one gets, for active-requests"`
	TokenLimit   int64   `json:"token_limit" range:"[1,1e12]" doc:"tokens in flight at which token-load is 0"`
	QueueLimit   int     `json:"queue_limit" range:"[1,1e9]" doc:"waiting requests at which load-aware is 0"`

	draws       draws
	known       prefixes
	prefillLoad prefillLoad
	cold        coldOrder
	sessions    map[int32]int32 // replica of the last request of each

	left    []int32   // positions that passed the filters
	sums    []float64 // by position
	gauges  []Metrics // by position
	stale   []bool    // by position: the metrics are too old
	counts  []int     // of the remaining endpoints; scratch
	matches []float64 // by position: part of the prompt
	total   least
}

var (
	_ RequestObserver = (*LLMD)(nil)
	_ Requirer        = (*LLMD)(nil)
	_ CacheResetter   = (*LLMD)(nil)
)

// Affinity is the filter that keeps a prompt at endpoints that have most of it. The zero Affinity is off.
type Affinity struct {
	Threshold float64 `json:"threshold" range:"(0,1]" doc:"part of the prompt at which a replica is sticky"`
	Explore   float64 `json:"explore" range:"[0,1]" doc:"probability that the filter is skipped"`
	// MaxPenalty is by how much the expected TTFT of the best sticky endpoint may exceed that of the best other one.
	// The expected TTFT is the tokens in flight divided by PrefillRate.
	MaxPenalty  clock.Duration `json:"max_penalty" range:"[0,)" doc:"TTFT that a sticky replica may lose; 0 is any"`
	PrefillRate float64        `json:"prefill_rate" range:"(0,1e9]" doc:"expected speed of prefill in tokens/s"`
}

// SetDefaults sets llm-d-router's defaults.
func (a *Affinity) SetDefaults() { *a = defaultAffinity() }

// Picker is the rule that chooses an endpoint by its score.
type Picker uint8

// The pickers.
const (
	MaxScore       Picker = iota // the highest, one at random of equals
	RandomPick                   // any that passed the filters
	WeightedRandom               // with probabilities proportional to the scores
)

// NewLLMD has the scorers and weights of the default configuration, queue 2, kv-cache-utilization 2, prefix-cache 3,
// and the default parameters of llm-d-router's plugins. Metrics older than 200 ms are stale.
func NewLLMD() *LLMD {
	return &LLMD{
		Scorers:     []Weighted{{QueueScore, 2}, {KVScore, 2}, {PrefixScore, 3}},
		BlockTokens: 16, MaxMatchTokens: 131072, Capacity: 31250,
		StaleAfter: 200 * clock.Millisecond, MaxBusyScore: 1, TokenLimit: 4 << 20, QueueLimit: 128,
	}
}

// Make implements [Options].
func (p *LLMD) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// defaultAffinity is the filter with llm-d-router's defaults.
func defaultAffinity() Affinity {
	return Affinity{Threshold: 0.8, MaxPenalty: 18 * clock.Second, PrefillRate: 15928}
}

// Validate reports scorers that all have no weight.
func (p *LLMD) Validate() error {
	if p.Picker == RandomPick || slices.ContainsFunc(p.Scorers, func(s Weighted) bool { return s.Weight > 0 }) {
		return nil
	}
	return errors.New("scorers: there are none")
}

// scores reports whether a scorer has a weight.
func (p *LLMD) scores(by Score) bool {
	for _, s := range p.Scorers {
		if s.By == by && s.Weight > 0 {
			return true
		}
	}
	return false
}

// matching reports whether prefixes are needed. token-load counts uncached tokens.
func (p *LLMD) matching() bool {
	return p.Affinity.Threshold > 0 || p.scores(PrefixScore) || p.scores(NoHitScore) || p.scores(TokenScore)
}

// loading reports whether tokens in flight are needed.
func (p *LLMD) loading() bool { return p.Affinity.MaxPenalty > 0 || p.scores(TokenScore) }

// Requirements implements [Requirer].
func (p *LLMD) Requirements() Requirements {
	n := Requirements{
		Sessions: p.scores(SessionScore), KVUsage: p.scores(KVScore),
		PrefixCaching: p.Affinity.Threshold > 0 || p.scores(PrefixScore) || p.scores(NoHitScore),
		Metrics:       true, Scrape: 50 * clock.Millisecond,
	}
	n.Events = p.Precise && p.matching()
	return n
}

// Route implements [Router].
func (p *LLMD) Route(v View, r *workload.Request) int {
	if p.matching() {
		p.match(v, r)
	}
	p.filter(v)
	p.sum(v, r)
	k := p.pick()
	p.note(v, k, r)
	return k
}

// match finds the fraction of the prompt that each endpoint has.
func (p *LLMD) match(v View, r *workload.Request) {
	p.matches = p.matches[:0]
	x := &p.known
	if !p.Precise {
		x.tokens, x.bound, x.counts, x.roots = p.BlockTokens, p.Capacity, true, true
		x.match(v.Now(), r, p.MaxMatchTokens/p.BlockTokens)
	}
	for k := range v.Len() {
		part := 0.0
		switch {
		case p.Precise:
			part = float64(v.Cached(k, r)) / float64(r.InputTokens)
		case x.blocks() > 0:
			part = float64(x.of(v.Replica(k))) / float64(x.blocks())
		}
		p.matches = append(p.matches, part)
	}
}

// filter finds the endpoints that are scored.
func (p *LLMD) filter(v View) {
	p.left = p.left[:0]
	a := &p.Affinity
	if a.Threshold > 0 && !(a.Explore > 0 && p.draws.uniform(&p.ID) < a.Explore) {
		for k, part := range p.matches {
			if part >= a.Threshold {
				p.left = append(p.left, int32(k))
			}
		}
		if len(p.left) > 0 && len(p.left) < v.Len() && p.overloaded(v) {
			p.left = p.left[:0]
		}
	}
	if len(p.left) == 0 {
		for k := range v.Len() {
			p.left = append(p.left, int32(k))
		}
	}
}

// overloaded reports whether the sticky endpoints are too much slower than the others.
func (p *LLMD) overloaded(v View) bool {
	a := &p.Affinity
	if a.MaxPenalty == 0 {
		return false
	}
	sticky, other := int64(math.MaxInt64), int64(math.MaxInt64)
	for k, part := range p.matches {
		tokens := p.prefillLoad.of(v.Replica(k))
		if part >= a.Threshold {
			sticky = min(sticky, tokens)
		} else {
			other = min(other, tokens)
		}
	}
	return float64(sticky-other)/a.PrefillRate > a.MaxPenalty.Seconds()
}

// pick chooses one of the remaining endpoints.
func (p *LLMD) pick() int {
	switch p.Picker {
	case RandomPick:
		return int(p.left[p.draws.below(&p.ID, len(p.left))])
	case WeightedRandom:
		return p.weighted()
	}
	p.total.begin()
	for _, k := range p.left {
		p.total.offer(int(k), -p.sums[k])
	}
	return p.total.any(&p.draws, &p.ID)
}

// weighted draws an endpoint with a probability proportional to its score, or any if all scores are 0.
func (p *LLMD) weighted() int {
	sum := 0.0
	for _, k := range p.left {
		sum += p.sums[k]
	}
	if sum == 0 {
		return int(p.left[p.draws.below(&p.ID, len(p.left))])
	}
	at := float64(p.draws.uniform(&p.ID) * sum)
	for _, k := range p.left {
		if at -= p.sums[k]; at < 0 {
			return int(k)
		}
	}
	return int(p.left[len(p.left)-1])
}

// note records the decision.
func (p *LLMD) note(v View, k int, r *workload.Request) {
	replica := v.Replica(k)
	if p.loading() {
		p.prefillLoad.add(replica, r, r.InputTokens-p.had(k, r))
	}
	if p.matching() && !p.Precise {
		p.known.add(v.Now(), replica)
	}
	if p.isCold() {
		p.cold.use(replica)
	}
	if r.Session != 0 && p.scores(SessionScore) {
		if p.sessions == nil {
			p.sessions = make(map[int32]int32)
		}
		p.sessions[r.Session] = int32(replica)
	}
}

// had is the number of prompt tokens that the endpoint at a position is assumed to have.
func (p *LLMD) had(k int, r *workload.Request) int32 {
	return int32(float64(p.matches[k] * float64(r.InputTokens)))
}

// Began implements [RequestObserver].
func (p *LLMD) Began(_ View, replica int, r *workload.Request) { p.prefillLoad.done(replica, r) }

// Ended implements [RequestObserver].
func (p *LLMD) Ended(_ View, replica int, r *workload.Request) { p.prefillLoad.done(replica, r) }

// CacheReset implements [CacheResetter].
func (p *LLMD) CacheReset(replica int) { p.known.removeReplica(replica) }
