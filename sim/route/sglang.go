package route

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

var sglangRule = Rule{
	Name:   "sglang",
	Does:   "the same while loads are balanced, else the fewest outstanding requests",
	Source: "SGLang (sgl-model-gateway, cache_aware)",
	New:    func() Options { return NewSGLang() },
}

// SGLang is the cache-aware router of SGLang (sgl-router, then sgl-model-gateway). It keeps a tree of the prompts that
// were sent to each worker. If loads, which are the outstanding requests of this router, are balanced, and a large
// enough part of the prompt matches, the request goes to the worker with the longest match; otherwise to the least
// loaded one. The least recently used leaves of the trees are removed from time to time.
//
// The original's trees hold characters, about four for a token; these hold blocks of tokens. Of workers with equally
// long matches a random one is taken; the original takes any.
type SGLang struct {
	ID          Identity
	BlockTokens int32 `json:"block_tokens" range:"[1,1e6]" doc:"granularity of prefixes, in tokens"`

	CacheThreshold float64 `json:"cache_threshold" range:"[0,1]" doc:"part of the prompt that a match must exceed"`
	// Loads are unbalanced if the largest exceeds the least by more than BalanceAbs requests, and by more than
	// BalanceRel times.
	BalanceAbs int     `json:"balance_abs_threshold" range:"[0,1e9]" doc:"unbalanced loads differ by more requests"`
	BalanceRel float64 `json:"balance_rel_threshold" range:"[0,1e9]" doc:"unbalanced loads differ by a larger factor"`

	SmallestTree bool `json:"smallest_tree" doc:"sends new prompts to the smallest tree, as older versions did"`

	MaxTreeTokens int64 `json:"max_tree_tokens" range:"[0,1e12]" doc:"size of trimmed trees, in tokens; 0 is never"`

	EvictionInterval clock.Duration `json:"eviction_interval" range:"[0,)" doc:"period of trimming; 0 is never"`

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

// Make implements [Options].
func (p *SGLang) Make(id Identity) Router { made := *p; made.ID = id; return &made }

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
