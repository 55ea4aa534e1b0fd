package route

import "clifftop/workload"

var leastTokensRule = Rule{
	Name:   "least-tokens",
	Does:   "the fewest outstanding tokens of this router, of prompts and expected outputs",
	Source: "least outstanding work, with lengths known or guessed",
	New:    func() Options { return new(LeastTokens) },
}

// LeastTokens sends a request to the endpoint with the fewest outstanding tokens of this router: prompts and expected
// outputs of requests that have not ended.
type LeastTokens struct {
	ID    Identity
	First bool `json:"ties" one:"random first" doc:"which of equally good replicas is taken"`
	// AssumedOutput is the expected length of every output; 0 uses the true lengths, which no real router knows.
	AssumedOutput int32 `json:"assumed_output" was:"answer" range:"[1,1e9]" doc:"assumed output length; null is exact"`
	// Uncached counts only the prompt tokens that the prefix cache of the endpoint lacked when the request was sent. To
	// compare endpoints it adds the new request's tokens for each.
	Uncached bool `json:"uncached" doc:"counts only prompt tokens that are not cached, by KV events"`

	draws   draws
	least   least
	tokens  []int64         // by replica
	charged map[int64]int32 // by request
}

var (
	_ RequestObserver = (*LeastTokens)(nil)
	_ Requirer        = (*LeastTokens)(nil)
)

// Make implements [Options].
func (p *LeastTokens) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Requirements implements [Requirer].
func (p *LeastTokens) Requirements() Requirements {
	return Requirements{PrefixCaching: p.Uncached, Events: p.Uncached}
}

// Route implements [Router].
func (p *LeastTokens) Route(v View, r *workload.Request) int {
	p.least.begin()
	for k := range v.Len() {
		p.least.offer(k, float64(p.outstanding(v, k)+p.saved(v, k, r)))
	}
	k := p.least.first()
	if !p.First {
		k = p.least.any(&p.draws, &p.ID)
	}
	if p.own() {
		p.charge(v, k, r)
	}
	return k
}

// own reports whether the router keeps its own counts.
func (p *LeastTokens) own() bool { return p.AssumedOutput > 0 || p.Uncached }

// outstanding are the tokens at the endpoint at a position.
func (p *LeastTokens) outstanding(v View, k int) int64 {
	if !p.own() {
		return v.Sent(k).OutstandingTokens
	}
	if i := v.Replica(k); i < len(p.tokens) {
		return p.tokens[i]
	}
	return 0
}

// saved is minus the number of prompt tokens of r that the prefix cache at a position holds.
func (p *LeastTokens) saved(v View, k int, r *workload.Request) int64 {
	if !p.Uncached {
		return 0
	}
	return -int64(v.Cached(k, r))
}

// charge counts r at the endpoint at a position.
func (p *LeastTokens) charge(v View, k int, r *workload.Request) {
	i, answer := v.Replica(k), p.AssumedOutput
	if answer == 0 {
		answer = r.OutputTokens
	}
	for i >= len(p.tokens) {
		p.tokens = append(p.tokens, 0)
	}
	if p.charged == nil {
		p.charged = make(map[int64]int32)
	}
	tokens := r.InputTokens + int32(p.saved(v, k, r)) + answer
	p.charged[r.ID] = tokens
	p.tokens[i] += int64(tokens)
}

// Began implements [RequestObserver].
func (p *LeastTokens) Began(View, int, *workload.Request) {}

// Ended implements [RequestObserver].
func (p *LeastTokens) Ended(_ View, replica int, r *workload.Request) {
	if p.own() {
		p.tokens[replica] -= int64(p.charged[r.ID])
		delete(p.charged, r.ID)
	}
}
