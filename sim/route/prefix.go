package route

import (
	"fmt"

	"clifftop/workload"
)

// Prefix sends a request to the endpoint that got the longest prefix of its prompt before, a random one of equals, as
// the prefix-aware router of production-stack does. That one remembers all prompts without limit ("no eviction"), in
// chunks of 128 characters. With MaxBlocks it forgets the least recently used blocks of an endpoint.
//
// It ignores loads: a prefix that all requests share, such as a system prompt, attracts all of them to the endpoint
// that had it first, unless MinTokens ignores so short a match.
type Prefix struct {
	ID Identity
	// BlockTokens is the granularity of matches, in tokens.
	BlockTokens int32
	// MinTokens is the shortest match that counts. Below it the endpoint with the fewest outstanding requests of this
	// router is taken, a random one of equals. With 0 every match counts, and without a match a random endpoint is
	// taken.
	MinTokens int32
	// MaxBlocks is the number of blocks that are remembered of an endpoint; 0 is no limit.
	MaxBlocks int64

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

// Validate reports what is wrong with the parameters.
func (p *Prefix) Validate() error {
	switch {
	case p.BlockTokens < 1:
		return fmt.Errorf("block_tokens: %d is not allowed (want 1 or more)", p.BlockTokens)
	case p.MinTokens < 0:
		return fmt.Errorf("min_tokens: %d is negative", p.MinTokens)
	case p.MaxBlocks < 0:
		return fmt.Errorf("max_blocks: %d is negative", p.MaxBlocks)
	}
	return nil
}

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
