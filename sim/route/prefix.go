package route

import (
	"fmt"

	"clifftop/workload"
)

// Prefix sends a request where the longest part of its prompt was sent before, to one at random of equals, as the
// prefix-aware router of production-stack does. That one remembers all prompts for ever ("no eviction"), in chunks of
// 128 characters; MaxBlocks makes it forget what an endpoint has used least recently.
//
// Nothing in it looks at loads: a prefix that everybody has, such as a system prompt, draws everybody to the endpoint
// that had it first, unless MinTokens makes so short a match count for nothing.
type Prefix struct {
	ID Identity
	// BlockTokens is the granularity of matches, in tokens.
	BlockTokens int32
	// MinTokens is the shortest match that decides; below it the endpoint with the fewest outstanding requests of this
	// router is taken, one at random of equals. 0 lets every match decide, and takes an endpoint at random where there
	// is none.
	MinTokens int32
	// MaxBlocks is the most blocks remembered of an endpoint; 0 forgets nothing.
	MaxBlocks int64

	draws draws
	least least
	known prefixes
}

var (
	_ Requirer      = (*Prefix)(nil)
	_ CacheResetter = (*Prefix)(nil)
)

// NewPrefix never forgets, in chunks of 32 tokens, which are about 128 characters.
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
