package route

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// SGLang is the cache-aware router of SGLang (sgl-router, then sgl-model-gateway). It keeps a tree of the prompts that
// were sent to each worker. If loads, which are the outstanding requests of this router, are balanced, and a large
// enough part of the prompt matches, the request goes to the worker with the longest match; otherwise to the least
// loaded one. The least recently used leaves of the trees are removed from time to time.
//
// The original's trees hold characters, about four for a token; these hold blocks of tokens. Of workers with equally
// long matches a random one is taken; the original takes any.
type SGLang struct {
	ID Identity
	// CacheThreshold is the fraction of the prompt, 0 to 1, that a match must exceed.
	CacheThreshold float64
	// BalanceAbs and BalanceRel: loads are unbalanced if the largest exceeds the least by more than BalanceAbs
	// requests, and by more than BalanceRel times.
	BalanceAbs int
	BalanceRel float64
	// SmallestTree sends a prompt without a match to the worker with the smallest tree, as older versions did, and not
	// to the least loaded one.
	SmallestTree bool
	// BlockTokens is the granularity of the trees, in tokens.
	BlockTokens int32
	// MaxTreeTokens is the size to which a tree is trimmed at every EvictionInterval; an interval of 0 is never.
	MaxTreeTokens    int64
	EvictionInterval clock.Duration

	draws   draws
	least   least
	known   prefixes
	trimmed int64 // intervals that had passed when trees were last trimmed
}

var (
	_ Requirer      = (*SGLang)(nil)
	_ CacheResetter = (*SGLang)(nil)
)

// NewSGLang has the defaults of sgl-model-gateway's command line (router_args.py): threshold 0.3, 64 and 1.5, trees of
// 2²⁶ characters, 120 s. Those of sglang-router up to 0.1 were 0.5, 32 and 1.0001, 2²⁴ and 60 s, with the smallest
// tree.
func NewSGLang() *SGLang {
	return &SGLang{
		CacheThreshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5,
		BlockTokens: 16, MaxTreeTokens: 1 << 24, EvictionInterval: 120 * clock.Second,
	}
}

// Validate reports what is wrong with the parameters.
func (p *SGLang) Validate() error {
	switch {
	case !(p.CacheThreshold >= 0 && p.CacheThreshold <= 1):
		return fmt.Errorf("cache_threshold: %v is not allowed (want 0 to 1)", p.CacheThreshold)
	case p.BalanceAbs < 0:
		return fmt.Errorf("balance_abs_threshold: %d is negative", p.BalanceAbs)
	case !(p.BalanceRel >= 0):
		return fmt.Errorf("balance_rel_threshold: %v is not allowed (want 0 or more)", p.BalanceRel)
	case p.BlockTokens < 1:
		return fmt.Errorf("block_tokens: %d is not allowed (want 1 or more)", p.BlockTokens)
	case p.MaxTreeTokens < 0 || p.EvictionInterval < 0:
		return fmt.Errorf("max_tree_tokens and eviction_interval: %d and %v are not allowed (want 0 or more)",
			p.MaxTreeTokens, p.EvictionInterval)
	}
	return nil
}

// Requirements implements [Requirer].
func (p *SGLang) Requirements() Requirements { return Requirements{PrefixCaching: true} }

// Route implements [Router].
func (p *SGLang) Route(v View, r *workload.Request) int {
	p.known.tokens, p.known.counts = p.BlockTokens, true
	p.trim(v.Now())
	p.known.match(v.Now(), r, 0)
	k := p.choose(v, r)
	p.known.add(v.Now(), v.Replica(k))
	return k
}

func (p *SGLang) choose(v View, r *workload.Request) int {
	fewest(v, &p.least)
	idle, low, high := p.least.first(), int(p.least.load), 0
	for k := range v.Len() {
		high = max(high, v.Sent(k).Outstanding)
	}
	if high-low > p.BalanceAbs && float64(high) > p.BalanceRel*float64(low) {
		return idle
	}
	p.least.begin()
	for k := range v.Len() {
		p.least.offer(k, -float64(p.known.of(v.Replica(k))))
	}
	if -p.least.load*float64(p.BlockTokens) > p.CacheThreshold*float64(r.InputTokens) {
		return p.least.any(&p.draws, &p.ID)
	}
	if !p.SmallestTree {
		return idle
	}
	p.least.begin()
	for k := range v.Len() {
		p.least.offer(k, float64(p.known.size(v.Replica(k))))
	}
	return p.least.first()
}

// trim trims the trees if that was due since the last decision.
func (p *SGLang) trim(now clock.Time) {
	if p.EvictionInterval == 0 || p.MaxTreeTokens == 0 {
		return
	}
	if passed := int64(now) / int64(p.EvictionInterval); passed != p.trimmed {
		p.trimmed = passed
		for i := range p.known.caches {
			p.known.trim(i, p.MaxTreeTokens/int64(p.BlockTokens))
		}
	}
}

// CacheReset implements [CacheResetter].
func (p *SGLang) CacheReset(replica int) { p.known.removeReplica(replica) }
