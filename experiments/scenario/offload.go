package scenario

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
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
	Size unit.ByteSize `json:"size"`
	// Bandwidth is the bandwidth of its link, such as 25GB/s, shared by loads and stores.
	Bandwidth unit.ByteRate `json:"bandwidth"`
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

// offload connects the KV pool with the tiers.
func (u engineResolver) offload() error {
	o := u.Scenario.Offload
	if o == nil {
		return nil
	}
	if err := u.canOffload(); err != nil {
		return err
	}
	chunk, err := u.chunkTokens()
	if err != nil {
		return err
	}
	gpus := int64(u.Deployment.TensorParallel * u.Deployment.PipelineParallel)
	c := &engine.Connector{
		BlockBytes:  u.Memory.BlockBytes * gpus,
		ChunkBlocks: limitInt32(chunk / u.Scenario.Engine.BlockSize),
		MinTokens:   limitInt32(o.MinTokens),
	}
	if o.Fetch == "always" {
		c.Fetch = engine.FetchAlways
	}
	if c.Tiers, err = u.tiers(chunk, float64(c.BlockBytes)*float64(c.ChunkBlocks)); err != nil {
		return err
	}
	u.Config.Connector = c
	return nil
}

// canOffload checks that there are tiers, and a prefix cache that they can be behind.
func (u *Setup) canOffload() error {
	s, e := u.Scenario, &u.Scenario.Engine
	switch {
	case len(s.Offload.Tiers) == 0:
		return s.Fault("offload.tiers", "offload.tiers is empty: list at least one tier or remove offload")
	case u.Memory == nil:
		return s.Fault("offload", "tiers need KV blocks, which a linear step time does not have")
	case !e.EnablePrefixCaching && !s.Given("engine.enable_prefix_caching"):
		return s.Fault(s.FirstGiven("engine.policy", "offload"),
			"policy %s: it cannot load KV from a tier or another replica (want policy vllm)", e.Policy)
	case !e.EnablePrefixCaching:
		return s.Fault(s.FirstGiven("engine.enable_prefix_caching", "offload"),
			"tiers need the prefix cache (set enable_prefix_caching: true)")
	case s.Deployment.DataParallelSize > 1 && u.Deployment.LLM.Experts > 0:
		return s.Fault(s.FirstGiven("deployment.data_parallel_size", "offload"),
			"data-parallel ranks in lockstep cannot load KV from tiers (set data_parallel_size: 1)")
	}
	return nil
}

// chunkTokens is the number of tokens that tiers keep as one. It fills in the default.
func (u engineResolver) chunkTokens() (int, error) {
	s, o, block := u.Scenario, u.Scenario.Offload, u.Scenario.Engine.BlockSize
	back := optional.Value(o.Tiers[0].Write) == "back"
	if o.ChunkTokens == nil {
		usual := (256 + block - 1) / block * block
		if back {
			usual = block
		}
		o.ChunkTokens = &usual
	}
	chunk := *o.ChunkTokens
	switch {
	case chunk%block != 0:
		return 0, s.Fault("offload.chunk_tokens", "%d is not a multiple of block_size %d", chunk, block)
	case back && chunk != block:
		return 0, s.Fault("offload.chunk_tokens",
			"%d does not work with write: back on the first tier, because the KV cache evicts single blocks (want "+
				"block_size, %d)", chunk, block)
	}
	return chunk, nil
}

// tiers are those of the simulator, for chunks of so many tokens and bytes.
func (u engineResolver) tiers(tokens int, bytes float64) (all []engine.Tier, err error) {
	s := u.Scenario
	names := map[string]bool{}
	for i := range s.Offload.Tiers {
		t, key := &s.Offload.Tiers[i], fmt.Sprint("offload.tiers.", i)
		if names[t.Name] {
			return nil, s.Fault(key+".name", "the name %q is given twice (want another one)", yamldoc.Short(t.Name))
		}
		names[t.Name] = true
		tier := t.tier(bytes)
		if tier.Chunks < 1 {
			return nil, s.Fault(key+".size", "it is smaller than one chunk of %d tokens, which take %.3g MB", tokens,
				bytes/1e6)
		}
		if s.Lifecycle == nil {
			u.unused(tier.Persistent, key+".persistent", "replicas never stop without a lifecycle")
			tier.Persistent = false
		}
		all = append(all, tier)
	}
	return all, nil
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

// tierNames are the names of the tiers.
func (s *Scenario) tierNames() (names []string) {
	if s.Offload == nil {
		return nil
	}
	for i := range s.Offload.Tiers {
		names = append(names, s.Offload.Tiers[i].Name)
	}
	return names
}

// blame finds the key to report that a configuration is refused: that of the tiers if it is not without them.
func (u engineResolver) blame(c engine.Config, err error) error {
	key := "engine"
	if without := c; c.Connector != nil {
		if without.Connector = nil; without.Validate() == nil {
			key = "offload"
		}
	}
	return u.Scenario.Fault(key, "%s", strings.ReplaceAll(errors.Join(err).Error(), "\n", "; "))
}
