package model

import (
	"math"

	"clifftop/internal/faults"
)

// KVKind is the kind of a KV cache group. It decides which tokens of a sequence the layers of the group keep.
type KVKind uint8

// Kinds of KV cache groups.
const (
	FullAttention         KVKind = iota // keys and values of all tokens
	LatentAttention                     // one compressed vector of every token: see [MLA]
	SlidingWindow                       // keys and values of the last tokens
	ChunkedLocalAttention               // keys and values of the chunk with fixed bounds that the last token is in
	RecurrentState                      // one state that each token changes
	CompressorState                     // inputs of tokens that are not in an entry yet: see [Compression]
)

// kvKinds has the name of each kind, and the largest number of blocks that a sequence keeps; nil means all blocks.
var kvKinds = [...]struct {
	name string
	most func(g *KVGroup, blockSize int) int
}{
	FullAttention:   {name: "full attention"},
	LatentAttention: {name: "multi-head latent attention"},
	SlidingWindow: {"sliding window", func(g *KVGroup, blockSize int) int {
		return (g.Window+blockSize-1)/blockSize + 1
	}},
	ChunkedLocalAttention: {name: "chunked local attention"},
	RecurrentState:        {"recurrent state", func(*KVGroup, int) int { return 1 }},
	CompressorState:       {"compressor state", func(*KVGroup, int) int { return 1 }},
}

func (k KVKind) String() string { return kvKinds[k].name }

// KVGroup is a set of layers that keep the KV of the same tokens of a sequence. vLLM calls it a KV cache group.
type KVGroup struct {
	Kind       KVKind
	Layers     int   // on one rank
	Window     int   // tokens of the window or chunk; 0 for kinds without one
	TokenBytes int64 // bytes of a token in one layer, on one rank; 0 for states
	StateBytes int64 // bytes of a state in one layer, on one rank
}

// most returns the largest number of blocks that a sequence keeps in the group, and whether there is such a bound.
func (g *KVGroup) most(blockSize int) (blocks int, bounded bool) {
	f := kvKinds[g.Kind].most
	if f == nil {
		return 0, false
	}
	return f(g, blockSize), true
}

// state reports whether the group keeps a state instead of tokens.
func (g *KVGroup) state() bool { return g.Kind == RecurrentState || g.Kind == CompressorState }

// bytes returns the bytes of a token, or of a state, in all layers of the group, on one rank.
func (g *KVGroup) bytes() int64 { return int64(g.Layers) * (g.TokenBytes + g.StateBytes) }

// KVGroups are the KV cache groups of a deployment. They share one pool. A block of the pool has room for BlockSize
// tokens in all groups that keep every token. The other groups are charged for each sequence, as a number of blocks:
// see [KVGroups.Charge]. At least one of several groups keeps every token; a single group may be of any kind.
type KVGroups []KVGroup

// PoolBytesPerToken returns the bytes of a token in the layers whose blocks the pool counts, on one rank.
func (gs KVGroups) PoolBytesPerToken() int64 {
	var sum int64
	for i := range gs {
		if _, bounded := gs[i].most(1); !bounded || len(gs) == 1 {
			sum += gs[i].bytes()
		}
	}
	return sum
}

// Validate reports every fault of the groups.
func (gs KVGroups) Validate() error {
	var f faults.List
	for i := range gs {
		g := &gs[i]
		f.Check(int(g.Kind) < len(kvKinds) && g.Layers >= 1 && g.Window >= 0 &&
			(g.state() && g.StateBytes >= 1 || !g.state() && g.TokenBytes >= 1) &&
			(g.Kind != SlidingWindow || g.Window >= 1),
			"KV cache group %d: %+v is not allowed (want layers, bytes and the window of its kind)", i, *g)
	}
	f.Check(len(gs) <= 1 || gs.PoolBytesPerToken() > 0, "KV cache groups: none of %d keeps every token", len(gs))
	return f.Err()
}

// Charge returns what a sequence that holds so many blocks of the pool takes from it besides, for groups that keep only
// some of its tokens: for each of them its share of a block, rounded up.
func (gs KVGroups) Charge(held, blockSize int) int {
	if len(gs) <= 1 {
		return 0 // the pool counts the blocks of one group
	}
	sum, pool := 0, gs.PoolBytesPerToken()
	for i := range gs {
		g := &gs[i]
		if most, bounded := g.most(blockSize); bounded {
			n, unit := int64(min(held, most)), pool
			if g.state() {
				unit *= int64(blockSize)
			}
			sum += int((n*g.bytes() + unit - 1) / unit)
		}
	}
	return sum
}

// MostCharged returns the number of blocks of a sequence from which on its charge stays the same; 0 means that there is
// no charge.
func (gs KVGroups) MostCharged(blockSize int) int {
	if len(gs) <= 1 {
		return 0
	}
	largest := 0
	for i := range gs {
		most, _ := gs[i].most(blockSize)
		largest = max(largest, most)
	}
	return largest
}

// KVGroups returns the KV cache groups of the longest pipeline stage, in order of first appearance of their layers.
// Layers that share the KV of others are in none.
func (d *Deployment) KVGroups() KVGroups {
	m := &d.LLM
	stage := d.stageLayers()
	var gs KVGroups
	for _, x := range m.mixers() {
		n := x.Layers - x.SharedKV
		share := n * stage / m.Layers
		if keepsSome := x.Kind.Recurrent() || x.Window > 0 && x.Compression.Ratio == 0; keepsSome || share == 0 {
			share = (n*stage + m.Layers - 1) / m.Layers
		}
		if x.compressed() {
			gs = append(gs, x.compressedGroups(share)...)
			continue
		}
		g := KVGroup{Kind: m.kvKind(&x), Layers: share, Window: x.Window}
		if x.Kind.Recurrent() {
			tp := d.TensorParallel
			g.StateBytes = int64(math.Ceil(x.State.stateBytes(tp) + x.State.convBytes(tp)))
		} else {
			g.TokenBytes = d.kvBytesPerTokenLayer(&x)
		}
		gs = append(gs, g)
	}
	return gs
}
