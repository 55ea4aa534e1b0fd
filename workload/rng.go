package workload

import "math/rand/v2"

// Purposes of the random streams of a synthetic source. Draws for one purpose never disturb
// those for another, so that a change of the answer's law leaves arrivals and prompts as they were.
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
)

// golden is 2⁶⁴ divided by the golden ratio: multiples of it, mixed, make SplitMix64.
const golden = 0x9e3779b97f4a7c15

// RNG is a family of random number streams for one purpose: a PCG generator that can be put at
// the draws of any entity (a user, a stage) and item (its k-th request). Draws depend on seed,
// purpose, entity and item alone, never on the order of calls, and an item may take any number of
// draws: rejection samplers do not push later items out of step. Two policies, or two laws of
// lengths, thus meet the same k-th request.
//
// A Stream is a [rand.Source]. It is not safe for concurrent use.
type RNG struct {
	pcg    rand.PCG
	key    uint64
	entity uint64 // whose draws were asked for last,
	seed   uint64 // and the hash of its key
}

// NewRNG makes the stream of a purpose, at item 0 of entity 0.
func NewRNG(seed uint64, purpose string) *RNG {
	s := &RNG{key: mix(mix(seed+golden) ^ SegmentID(purpose))}
	s.seed = mix(s.key)
	s.Seek(0, 0)
	return s
}

// Seek puts the stream at the first draw of an item.
func (s *RNG) Seek(entity, item uint64) {
	if entity != s.entity {
		s.entity, s.seed = entity, mix(s.key+entity*golden)
	}
	hi := mix(s.seed + item*golden)
	s.pcg.Seed(hi, mix(hi^s.seed))
}

// Uint64 is the next draw.
func (s *RNG) Uint64() uint64 { return s.pcg.Uint64() }

// uniform is a float64 in [0, 1) with 53 random bits.
func uniform(src rand.Source) float64 { return float64(src.Uint64()>>11) / (1 << 53) }

// Hash spreads a pair of numbers over 64 bits: for decisions that depend on an identity alone, such
// as whether a session is kept, and for identities in a domain of their own.
func Hash(domain, x uint64) uint64 { return mix(mix(domain+golden) ^ mix(x)) }
