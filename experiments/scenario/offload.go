package scenario

import (
	"math"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/engine"
	"clifftop/sim/kv"
)

// Offload is memory beyond the KV pool that keeps what requests have computed, so that later ones load it. It needs
// policy vllm and its prefix caching.
type Offload struct {
	// Tiers are looked up in this order for blocks that the prefix cache does not have.
	Tiers []OffloadTier `json:"tiers"`
	// ChunkTokens is the number of tokens in a chunk of a tier, a multiple of block_size; the default is 256, or
	// block_size if the first tier uses write: back.
	ChunkTokens *int `json:"chunk_tokens" range:"[1,1048576]"`
	// Fetch says when tokens are loaded: always, or only if loading is faster than computing them.
	Fetch string `json:"fetch" one:"faster always"`
	// MinTokens is the minimum number of tokens that are loaded for a request.
	MinTokens int `json:"min_tokens" range:"[0,1000000000]"`
}

func (o *Offload) SetDefaults() { o.Fetch = "faster" }

// OffloadTier is a tier of one replica, all its GPUs together.
type OffloadTier struct {
	// Name is the name of the tier in results.
	Name string `json:"name"`
	// Size is the capacity, such as 64GiB.
	Size yamldoc.ByteSize `json:"size"`
	// Bandwidth is the bandwidth of its link, such as 25GB/s, shared by loads and stores.
	Bandwidth yamldoc.ByteRate `json:"bandwidth"`
	// Latency is added to the transfer time of a load.
	Latency *yamldoc.Duration `json:"latency,omitempty"`
	// Eviction is the eviction policy: lru (least recently used, the default) or arc (adaptive replacement).
	Eviction *evictionName `json:"eviction,omitempty"`
	// Write says what is stored: through, the default, stores what requests compute; back stores what the KV cache
	// or the previous tier evicts.
	Write *string `json:"write,omitempty" one:"through back"`
	// Persistent says that the content survives a crash or restart of the replica, as in an external store; memory
	// of the replica's host process does not.
	Persistent *bool `json:"persistent,omitempty"`
}

// evictionName is the name of an eviction policy.
type evictionName string

// Names implements [yamldoc.Named].
func (evictionName) Names() []string { return yamldoc.NamesOfAll(kv.Evictions()) }

func (*OffloadTier) Variants() (string, map[string]yamldoc.VariantKeys) {
	keys := yamldoc.VariantKeys{Required: []string{"name", "size", "bandwidth"},
		Optional: []string{"latency", "write", "persistent"}}
	variants := map[string]yamldoc.VariantKeys{"": keys}
	for _, name := range evictionName("").Names() {
		variants[name] = keys
	}
	return "eviction", variants
}

// tier is the tier of the simulator, whose chunks have so many bytes.
func (t *OffloadTier) tier(chunk float64) engine.Tier {
	x := engine.Tier{
		Name: t.Name, Chunks: int(min(float64(t.Size)/chunk, math.MaxInt32)), BytesPerSecond: int64(t.Bandwidth),
		WriteBack: optional.Value(t.Write) == "back", Persistent: optional.Value(t.Persistent),
		Eviction: yamldoc.ValueNamed(kv.Evictions(), string(optional.Value(t.Eviction))),
	}
	if t.Latency != nil {
		x.Latency = t.Latency.Clock()
	}
	return x
}

func (o *Offload) names() (names []string) {
	if o == nil {
		return nil
	}
	for i := range o.Tiers {
		names = append(names, o.Tiers[i].Name)
	}
	return names
}
