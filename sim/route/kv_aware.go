package route

import "clifftop/workload"

var kvAwareRule = Rule{
	Name:   "kv-aware",
	Does:   "where the caches hold the longest part of the prompt, else by session",
	Source: "vLLM production-stack with LMCache's controller",
	New:    func() Options { return newKVAware() },
}

// KVAware looks up which endpoint holds the longest prefix of the prompt, and sends the request there: the KV-aware
// router of production-stack, with the controller of LMCache. If more than Threshold tokens of the prompt are missing
// even there, it uses the session or, without one, the endpoint with the fewest outstanding requests of this router.
type KVAware struct {
	ID        Identity
	Threshold int32 `json:"missing_tokens" range:"[0,1e9]" doc:"most prompt tokens that may be missing from the cache"`

	session Session
	draws   draws
	least   least
}

var (
	_ Router   = (*KVAware)(nil)
	_ Requirer = (*KVAware)(nil)
)

// newKVAware has the threshold of production-stack, 2000 tokens.
func newKVAware() *KVAware { return &KVAware{Threshold: 2000} }

// Make implements [Options].
func (p *KVAware) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Requirements implements [Requirer].
func (p *KVAware) Requirements() Requirements { return Requirements{PrefixCaching: true, Events: true} }

// Route implements [Router].
func (p *KVAware) Route(v View, r *workload.Request) int {
	p.least.begin()
	for k := range v.Len() {
		p.least.offer(k, -float64(v.Cached(k, r)))
	}
	if held := int32(-p.least.load); held > 0 && held >= r.InputTokens-p.Threshold {
		return p.least.any(&p.draws, &p.ID)
	}
	return p.session.Route(v, r)
}
