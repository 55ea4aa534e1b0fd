package route

import (
	"fmt"

	"clifftop/workload"
)

// KVAware looks up which endpoint holds the longest prefix of the prompt, and sends the request there: the KV-aware
// router of production-stack, with the controller of LMCache. If more than Threshold tokens of the prompt are missing
// even there, it uses the session or, without one, the endpoint with the fewest outstanding requests of this router.
type KVAware struct {
	ID Identity
	// Threshold is the largest part of the prompt that may be missing, in tokens.
	Threshold int32
	session   Session
	draws     draws
	least     least
}

var (
	_ Router   = (*KVAware)(nil)
	_ Requirer = (*KVAware)(nil)
)

// NewKVAware has the threshold of production-stack, 2000 tokens.
func NewKVAware() *KVAware { return &KVAware{Threshold: 2000} }

// Validate reports what is wrong with the parameters.
func (p *KVAware) Validate() error {
	if p.Threshold < 0 {
		return fmt.Errorf("threshold: %d is negative", p.Threshold)
	}
	return nil
}

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
