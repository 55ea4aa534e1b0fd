package route

import "clifftop/workload"

var prefixRule = Rule{
	Name:   "prefix",
	Does:   "where the longest part of the prompt was sent before; remembers all",
	Source: "vLLM production-stack, prefix-aware",
	New:    func() Options { return NewPrefix() },
}

// Prefix sends a request to the endpoint that got the longest prefix of its prompt before, a random one of equals, as
// the prefix-aware router of production-stack does. That one remembers all prompts without limit ("no eviction"), in
// chunks of 128 characters. With MaxBlocks it forgets the least recently used blocks of an endpoint.
//
// It ignores loads: a prefix that all requests share, such as a system prompt, attracts all of them to the endpoint
// that had it first, unless MinTokens ignores so short a match.
type Prefix struct {
	ID          Identity
	BlockTokens int32 `json:"block_tokens" range:"[1,1e6]" doc:"granularity of prefixes, in tokens"`
	// MinTokens is the shortest match that counts. Below it the endpoint with the fewest outstanding requests of this
	// router is taken, a random one of equals. With 0 every match counts, and without a match a random endpoint is
	// taken.
	MinTokens int32 `json:"min_tokens" range:"[0,1e9]" doc:"shortest match that counts"`
	MaxBlocks int64 `json:"max_blocks" range:"[0,1e12]" doc:"most blocks remembered of a replica; 0 is no limit"`

	draws draws
	least least
	known prefixes
}

var (
	_ Requirer      = (*Prefix)(nil)
	_ CacheResetter = (*Prefix)(nil)
)

// NewPrefix has no limit, and chunks of 32 tokens, which are about 128 characters.
func NewPrefix() *Prefix { return &Prefix{BlockTokens: 32} }

// Make implements [Options].
func (p *Prefix) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Requirements implements [Requirer].
func (p *Prefix) Requirements() Requirements { return Requirements{PrefixCaching: true} }

// Route implements [Router].
func (p *Prefix) Route(v View, r *workload.Request) int {
	p.known.tokens, p.known.bound = p.BlockTokens, p.MaxBlocks
	p.known.match(v.Now(), r, 0)
	p.least.begin()
	for k := range v.Len() {
		p.least.offer(k, -float64(p.known.of(v.Replica(k))))
	}
	if p.MinTokens > 0 && -p.least.load*float64(p.BlockTokens) < float64(p.MinTokens) {
		fewest(v, &p.least)
	}
	k := p.least.any(&p.draws, &p.ID)
	p.known.add(v.Now(), v.Replica(k))
	return k
}

// CacheReset implements [CacheResetter].
func (p *Prefix) CacheReset(replica int) { p.known.removeReplica(replica) }
