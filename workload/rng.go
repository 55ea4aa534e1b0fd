package workload

import "math/rand/v2"

// Purposes of the random number generators of a synthetic source. Draws for one purpose do not affect those for
// another: another output distribution leaves arrivals and prompts unchanged.
const (
	purposeArrivals   = "arrivals"
	purposeModulation = "modulation"
	purposeInput      = "input"
	purposeOutput     = "output"
	purposeThink      = "think"
	purposeTurns      = "turns"
	purposeGroup      = "group"
	purposeEdit       = "edit"
	purposeReasoning  = "reasoning"
	purposePause      = "pause"
	purposePast       = "past"
	purposeClass      = "class"
	purposeSources    = "sources"
	purposeAdapter    = "adapter"
	purposeImages     = "images"
)

// golden is 2⁶⁴ divided by the golden ratio: multiples of it, mixed, make SplitMix64.
const golden = 0x9e3779b97f4a7c15

// RNG is a family of random number sequences for one purpose: a PCG generator that can seek to the draws of any
// entity (such as a user or a phase) and item (such as its k-th request). Draws depend only on seed, purpose,
// entity and item, not on the order of calls, and an item may take any number of draws. Two policies, or two length
// distributions, therefore see the same request k.
//
// An RNG is a [rand.Source]. It is not safe for concurrent use.
type RNG struct {
	pcg    rand.PCG
	key    uint64
	entity uint64 // of the last Seek
	seed   uint64 // hash of its key
}

// NewRNG returns the generator for a purpose, positioned at item 0 of entity 0.
func NewRNG(seed uint64, purpose string) *RNG {
	s := &RNG{key: mix(mix(seed+golden) ^ SegmentID(purpose))}
	s.seed = mix(s.key)
	s.Seek(0, 0)
	return s
}

// Seek moves to the first draw of an item.
func (s *RNG) Seek(entity, item uint64) {
	if entity != s.entity {
		s.entity, s.seed = entity, mix(s.key+entity*golden)
	}
	hi := mix(s.seed + item*golden)
	s.pcg.Seed(hi, mix(hi^s.seed))
}

// Uint64 returns the next draw.
func (s *RNG) Uint64() uint64 { return s.pcg.Uint64() }

// uniform returns a float64 in [0, 1) with 53 random bits.
func uniform(src rand.Source) float64 { return float64(src.Uint64()>>11) / (1 << 53) }

// Hash maps a pair of numbers to 64 uniform bits. Use it for decisions that depend only on an identity, such as
// whether a session is kept, and to derive identities in a domain of their own.
func Hash(domain, x uint64) uint64 { return mix(mix(domain+golden) ^ mix(x)) }
