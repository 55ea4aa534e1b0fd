package scenario

import (
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/engine"
)

// resolveOffload connects the KV pool with the tiers, and fills in the size of their chunks.
func resolveOffload(s *Scenario, e *Engine, d *model.Deployment, budget *model.KVBudget) (
	c *engine.Connector, o *Offload, found findings) {
	if s.Offload == nil {
		return nil, nil, found
	}
	own := *s.Offload
	o = &own
	if fault := cannotOffload(s, e, d, budget); fault != nil {
		return nil, o, refuse(fault)
	}
	back := optional.Value(o.Tiers[0].Write) == "back"
	usual := (256 + e.BlockSize - 1) / e.BlockSize * e.BlockSize
	if back {
		usual = e.BlockSize
	}
	optional.Default(&o.ChunkTokens, usual)
	chunk := *o.ChunkTokens
	switch {
	case chunk%e.BlockSize != 0:
		return nil, o, s.refuse("offload.chunk_tokens", "%d is not a multiple of block_size %d", chunk, e.BlockSize)
	case back && chunk != e.BlockSize:
		return nil, o, s.refuse("offload.chunk_tokens",
			"%d does not work with write: back on the first tier, because the KV cache evicts single blocks (want "+
				"block_size, %d)", chunk, e.BlockSize)
	}
	c = &engine.Connector{
		BlockBytes:  budget.BlockBytes * int64(d.TensorParallel*d.PipelineParallel),
		ChunkBlocks: limitInt32(chunk / e.BlockSize),
		MinTokens:   limitInt32(o.MinTokens),
	}
	if o.Fetch == "always" {
		c.Fetch = engine.FetchAlways
	}
	var more findings
	c.Tiers, more = resolveTiers(s, o.Tiers, chunk, float64(c.BlockBytes)*float64(c.ChunkBlocks))
	if !found.add(more) {
		return nil, o, found
	}
	return c, o, found
}

// cannotOffload refuses tiers where there is no prefix cache that they can be behind.
func cannotOffload(s *Scenario, e *Engine, d *model.Deployment, budget *model.KVBudget) *yamldoc.Fault {
	switch {
	case len(s.Offload.Tiers) == 0:
		return s.Fault("offload.tiers", "offload.tiers is empty: list at least one tier or remove offload")
	case budget == nil:
		return s.Fault("offload", "tiers need KV blocks, which a linear step time does not have")
	case !e.EnablePrefixCaching && !s.Given("engine.enable_prefix_caching"):
		return s.Fault(s.FirstGiven("engine.policy", "offload"),
			"policy %s: it cannot load KV from a tier or another replica (want policy vllm)", e.Policy)
	case !e.EnablePrefixCaching:
		return s.Fault(s.FirstGiven("engine.enable_prefix_caching", "offload"),
			"tiers need the prefix cache (set enable_prefix_caching: true)")
	case s.Deployment.DataParallelSize > 1 && d.LLM.Experts > 0:
		return s.Fault(s.FirstGiven("deployment.data_parallel_size", "offload"),
			"data-parallel ranks in lockstep cannot load KV from tiers (set data_parallel_size: 1)")
	}
	return nil
}

// resolveTiers returns the tiers of the simulator, for chunks of so many tokens and bytes.
func resolveTiers(s *Scenario, tiers []OffloadTier, tokens int, bytes float64) (all []engine.Tier, found findings) {
	for i := range tiers {
		t, key := &tiers[i], fmt.Sprint("offload.tiers.", i)
		if slices.ContainsFunc(tiers[:i], func(other OffloadTier) bool { return other.Name == t.Name }) {
			return nil, s.refuse(key+".name", "the name %q is given twice (want another one)", yamldoc.Short(t.Name))
		}
		tier := t.tier(bytes)
		if tier.Chunks < 1 {
			return nil, s.refuse(key+".size", "it is smaller than one chunk of %d tokens, which take %.3g MB",
				tokens, bytes/1e6)
		}
		if s.Lifecycle == nil {
			found.unused(tier.Persistent, key+".persistent", "replicas never stop without a lifecycle")
			tier.Persistent = false
		}
		all = append(all, tier)
	}
	return all, found
}
