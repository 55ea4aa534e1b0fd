package model

import (
	"math"
	"slices"
	"sort"

	"clifftop/internal/faults"
)

// RecurrentMode says which recurrent states a sequence keeps: vLLM's mamba_cache_mode.
type RecurrentMode uint8

// The modes.
const (
	LastState    RecurrentMode = iota // "none": one state for each sequence, no prefix caching
	AlignedState                      // "align": the states at the ends of iterations that end on a block boundary
	AllStates                         // "all": the state at the end of each block
)

// CacheGroup is one of vLLM's KV cache groups: layers that share a block table, because they keep the KV of the same
// tokens. A block of the group is BlockSize tokens in each of its layers.
type CacheGroup struct {
	Kind      KVKind
	Layers    int           // of compressed attention: the most layers with pages of one size
	Window    int           // tokens of the window or chunk; 0 for kinds without one
	BlockSize int           // tokens
	Mode      RecurrentMode // of [RecurrentState]
}

// Skipped returns how many leading tokens of a sequence the next token does not attend to, when this many tokens are
// computed and their results are known.
func (g *CacheGroup) Skipped(processed int) int {
	switch g.Kind {
	case SlidingWindow:
		return max(0, processed-g.Window+1)
	case ChunkedLocalAttention:
		return processed / g.Window * g.Window
	case RecurrentState:
		return max(0, processed-1)
	}
	return 0
}

// HitBlocks returns the number of blocks before a boundary that the group needs for a prefix hit that ends there; 0
// means all blocks.
func (g *CacheGroup) HitBlocks() int {
	switch g.Kind {
	case SlidingWindow:
		return ceilDiv(g.Window-1, g.BlockSize)
	case RecurrentState:
		return 1
	}
	return 0
}

// KeepsAll reports whether a sequence keeps the KV of all its tokens.
func (g *CacheGroup) KeepsAll() bool { return g.Kind == FullAttention || g.Kind == LatentAttention }

// Recycles reports whether a sequence frees blocks between the chunks of its prefill, so that Most is less than the
// blocks of all its tokens.
func (g *CacheGroup) Recycles() bool {
	return g.Kind == SlidingWindow || g.Kind == ChunkedLocalAttention
}

// Aligned reports whether the group keeps recurrent states only at the ends of chunks.
func (g *CacheGroup) Aligned() bool { return g.Kind == RecurrentState && g.Mode == AlignedState }

// Sparse reports whether a prefix retention interval applies to the group.
func (g *CacheGroup) Sparse() bool { return g.Kind == SlidingWindow || g.Kind == RecurrentState }

// Most returns vLLM's bound of the blocks that a sequence of this many tokens holds at a time
// (max_admission_blocks_per_request). inFlight is the number of tokens that can be scheduled and not processed: the
// token budget, twice with asynchronous scheduling.
func (g *CacheGroup) Most(tokens, inFlight int) int {
	switch g.Kind {
	case SlidingWindow:
		return ceilDiv(min(g.Window-1+inFlight, tokens), g.BlockSize) + 1
	case ChunkedLocalAttention:
		return ceilDiv(min(g.Window+inFlight, tokens), g.BlockSize)
	case RecurrentState:
		switch g.Mode {
		case LastState:
			return 1
		case AlignedState:
			return 2
		}
	}
	return ceilDiv(tokens, g.BlockSize)
}

// CacheGroups are the KV cache groups of a model in vLLM's order. They share one pool: a block of the pool has
// PageBytes for each layer of the largest group. Smaller groups leave the rest unused.
type CacheGroups struct {
	Groups    []CacheGroup
	PageBytes int64
}

// Has reports whether one of the groups is of a kind.
func (g *CacheGroups) Has(kind KVKind) bool {
	return slices.ContainsFunc(g.Groups, func(c CacheGroup) bool { return c.Kind == kind })
}

// BlockSize returns the tokens of a block of vLLM's pool for a given size: more if recurrent layers need it, and the
// smallest of all groups with compressed attention, whose blocks have fixed sizes.
func (d *Deployment) BlockSize(given int) int {
	if !d.LLM.compressed() {
		return d.KVGroups().blockSize(given)
	}
	least := compressedBlock
	for _, g := range d.compressedCache().Groups {
		least = min(least, g.BlockSize)
	}
	return least
}

// blockSize returns vLLM's block size for a given one: with recurrent layers, the least multiple of 16 tokens for which
// a page of attention holds a state.
func (gs KVGroups) blockSize(given int) int {
	const alignment = 16
	state, token := int64(0), int64(0)
	for i := range gs {
		if gs[i].Kind == CompressorState {
			continue // has blocks of its own
		}
		state, token = max(state, gs[i].StateBytes), max(token, gs[i].TokenBytes)
	}
	if state == 0 || token == 0 {
		return given
	}
	return max(given, alignment*int((state+alignment*token-1)/(alignment*token)))
}

// GroupLayers divides the layers of a model, by kind in order of first appearance, into vLLM's KV cache groups. Layers
// with smaller pages get larger blocks, and blocks grow until a recurrent state fits into one. Groups have as many
// layers as the kind with the fewest or, if no kind has half as many again as that, as the kind with the most.
// blockSize is in tokens.
func GroupLayers(kinds KVGroups, blockSize int) (CacheGroups, error) {
	var f faults.List
	var gs CacheGroups
	blockSize = kinds.blockSize(blockSize)
	fewest, most := math.MaxInt, 0
	for i := range kinds {
		k := &kinds[i]
		gs.PageBytes = max(gs.PageBytes, k.TokenBytes*int64(blockSize), k.StateBytes)
		fewest, most = min(fewest, k.Layers), max(most, k.Layers)
	}
	size := fewest
	if 2*most < 3*fewest {
		size = most
	}
	for i := range kinds {
		k := &kinds[i]
		page := k.TokenBytes * int64(blockSize)
		if k.Kind == RecurrentState { // padded to the page of attention
			page = gs.PageBytes
		}
		f.Check(page > 0 && gs.PageBytes%page == 0,
			"KV cache groups: pages of %d and %d bytes (want multiples)", page, gs.PageBytes)
		if f.Err() != nil {
			return gs, f.Err()
		}
		g := CacheGroup{Kind: k.Kind, Window: k.Window, BlockSize: blockSize * int(gs.PageBytes/page)}
		parts := ceilDiv(k.Layers, size)
		for p := range parts {
			g.Layers = (k.Layers - p + parts - 1) / parts // every parts-th layer, from layer p on
			gs.Groups = append(gs.Groups, g)
		}
	}
	return gs, nil
}

// SetRecurrentMode sets the mode of recurrent groups. Without states of their own for prefixes, a block of theirs is as
// long as the longest sequence.
func (gs *CacheGroups) SetRecurrentMode(m RecurrentMode, longest int) {
	for i := range gs.Groups {
		g := &gs.Groups[i]
		if g.Kind != RecurrentState {
			continue
		}
		if g.Mode = m; m == LastState {
			g.BlockSize = longest
		}
	}
}

// LargestGroup returns the number of layers of the largest group.
func (gs *CacheGroups) LargestGroup() int {
	most := 0
	for i := range gs.Groups {
		most = max(most, gs.Groups[i].Layers)
	}
	return most
}

// BlockBytes returns the bytes of a block of the pool.
func (gs *CacheGroups) BlockBytes() int64 { return gs.PageBytes * int64(gs.LargestGroup()) }

// MostBlocks returns the number of blocks that the pool must have for a sequence of this many tokens: see
// [CacheGroup.Most].
func (gs *CacheGroups) MostBlocks(tokens, inFlight int) int {
	sum := 0
	for i := range gs.Groups {
		sum += gs.Groups[i].Most(tokens, inFlight)
	}
	return sum
}

// Held returns the number of blocks that a sequence of this many tokens holds at most while it decodes.
func (gs *CacheGroups) Held(tokens int) int {
	sum := 0
	for i := range gs.Groups {
		g := &gs.Groups[i]
		sum += min(g.Most(tokens, 1), ceilDiv(tokens, g.BlockSize))
	}
	return sum
}

// Longest returns the length of the longest sequence that fits so many blocks, in tokens.
func (gs *CacheGroups) Longest(blocks, inFlight int) int {
	if len(gs.Groups) == 0 {
		return 0
	}
	const limit = math.MaxInt32
	return sort.Search(limit, func(n int) bool { return gs.MostBlocks(n+1, inFlight) > blocks })
}

// ScheduledBlock returns vLLM's scheduler_block_size, the least common multiple of the block sizes: prefix hits are
// multiples of it.
func (gs *CacheGroups) ScheduledBlock() int {
	size := 1
	for i := range gs.Groups {
		b := gs.Groups[i].BlockSize
		size = size / gcd(size, b) * b
	}
	return size
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// Validate reports every fault of the groups.
func (gs *CacheGroups) Validate() error {
	var f faults.List
	f.Check(len(gs.Groups) > 0, "KV cache groups: there is none")
	for i := range gs.Groups {
		g := &gs.Groups[i]
		f.Check(int(g.Kind) < len(kvKinds) && g.BlockSize >= 1 && g.Mode <= AllStates &&
			(g.Kind != SlidingWindow && g.Kind != ChunkedLocalAttention || g.Window >= 1),
			"KV cache group %d: %+v is not allowed (want a block size, and the window of its kind)", i, *g)
	}
	return f.Err()
}

// CacheGroups returns the KV cache groups of the longest pipeline stage with blocks of this many tokens.
func (d *Deployment) CacheGroups(blockSize int) CacheGroups {
	if d.LLM.compressed() {
		return d.compressedCache()
	}
	gs, _ := GroupLayers(d.KVGroups(), blockSize)
	return gs
}
