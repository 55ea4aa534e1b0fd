package scenario

import (
	"errors"
	"sort"

	"clifftop/experiments/internal/optional"
	"clifftop/model"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
)

// memory is the KV cache of an engine.
type memory struct {
	budget *model.KVBudget // nil where the pool is unlimited, or the model does not fit
	blocks int             // 0 is unlimited
	groups model.KVGroups
	hybrid *engine.Hybrid
	drafts engine.Speculative // that take place in it
}

// resolveMemory sizes the KV pool. A linear step time leaves it unlimited unless its size is given.
func resolveMemory(s *Scenario, e Engine, p *policy, d *model.Deployment, drafts engine.Speculative) (
	m memory, _ Engine, found findings) {
	m.drafts = drafts
	if s.StepTime.Kind == "linear" {
		m.blocks = optional.Value(e.NumGPUBlocksOverride)
		if m.blocks == 0 && !s.Given("engine.enable_prefix_caching") {
			e.EnablePrefixCaching = false // an unlimited pool has no blocks to share
		}
		return m, e, found
	}
	drafter, fault := drafterMemory(s, d)
	if fault != nil {
		return m, e, refuse(fault)
	}
	m.hybrid, e = resolveHybrid(s, e, p, d, drafts.On())
	grouped := m.hybrid != nil
	found.unused(e.PrefixCacheRetentionInterval != nil && !grouped, "engine.prefix_cache_retention_interval",
		"no KV cache groups with windows have block tables here")
	knobs := model.MemoryKnobs{
		Utilization: *e.GPUMemoryUtilization, BlockSize: e.BlockSize,
		MaxNumBatchedTokens: *e.MaxNumBatchedTokens, MaxNumSeqs: *e.MaxNumSeqs,
		CountGraphs: p.release.GraphsInBudget, MaxCapture: optional.Value(e.MaxCudagraphCaptureSize),
		BlocksOverride: optional.Value(e.NumGPUBlocksOverride), Drafter: drafter, Grouped: grouped,
	}
	if rule := p.software.pool; rule != nil {
		keys := p.keys(&e)
		knobs.Pool = func(d *model.Deployment, b *model.KVBudget) float64 { return rule(p.options, keys, d, b) }
	}
	budget, err := d.KVBlocks(knobs)
	var misfit *model.FitError
	switch {
	case errors.As(err, &misfit):
		f := s.Fault(s.FirstGiven("deployment.dtype", "deployment.tensor_parallel_size", "model", "gpu",
			"engine.gpu_memory_utilization", "engine.max_num_batched_tokens", "engine.max_num_seqs"), "%v", misfit)
		f.Cause = misfit
		return m, e, refuse(f)
	case err != nil:
		return m, e, s.refuse("engine", "%v", err)
	}
	m.budget, m.blocks = &budget, budget.Blocks
	if !grouped {
		m.groups = d.KVGroups()
	}
	return m, e, found
}

// resolveHybrid returns vLLM's KV cache groups of a model with windows, and the engine's keys with the block size that
// these need. They are nil if all layers keep every token, or if the groups are charged to sequences: under other
// policies, and with features that the groups do not support.
func resolveHybrid(s *Scenario, e Engine, p *policy, d *model.Deployment, drafts bool) (*engine.Hybrid, Engine) {
	groups := d.CacheGroups(e.BlockSize)
	if n := len(groups.Groups); n == 0 || n == 1 && groups.Groups[0].KeepsAll() {
		return nil, e
	}
	grouped, ok := p.scheduler(&e, 0, 0).(sched.Grouped)
	chunked := groups.Has(model.ChunkedLocalAttention) && !p.release.ChunkedGroups
	states := groups.Has(model.RecurrentState)
	if !ok || grouped.Grouped() != nil || chunked || states && drafts || d.PipelineParallel > 1 || s.Offload != nil ||
		s.apart() || e.KVAllocation == "contiguous" || e.Preemption == "swap" {
		return nil, e
	}
	if states {
		e = resolveRecurrent(s, e, d, &groups)
	}
	e.BlockSize = d.BlockSize(e.BlockSize)
	h := &engine.Hybrid{CacheGroups: groups, Retention: p.release.RetentionInterval}
	optional.Set(&h.Retention, e.PrefixCacheRetentionInterval)
	return h, e
}

// resolveRecurrent sets what vLLM does for models with recurrent layers: blocks are as long as a state needs, and
// prefixes are not cached unless the scenario asks for it. Mamba-2 then keeps the state at the end of every block,
// other layers those at the ends of iterations (mamba_cache_mode).
func resolveRecurrent(s *Scenario, e Engine, d *model.Deployment, groups *model.CacheGroups) Engine {
	e.BlockSize = d.BlockSize(e.BlockSize)
	mode := model.LastState
	switch {
	case !s.Given("engine.enable_prefix_caching") || !e.EnablePrefixCaching:
		e.EnablePrefixCaching = false
	case d.LLM.HasMixer(model.Mamba2):
		mode = model.AllStates
	default:
		mode = model.AlignedState
	}
	longest := d.LLM.MaxContext
	if n := optional.Value(e.MaxModelLen); n > 0 {
		longest = n
	}
	groups.SetRecurrentMode(mode, max(longest, e.BlockSize))
	return e
}

// room is the longest sequence that the pool holds, in tokens. Those that can be scheduled and not processed take room
// too, with the slots ahead of drafts. vLLM leaves those out, so that a request that needs the whole pool can wait for
// ever.
func (m *memory) room(e *Engine) int {
	usable := m.blocks - 1
	if m.hybrid != nil {
		c := engine.Config{AsyncScheduling: e.AsyncScheduling == On, MaxNumBatchedTokens: *e.MaxNumBatchedTokens}
		return m.hybrid.Longest(usable, c.InFlightTokens()+int(m.drafts.Lookahead()))
	}
	tooMany := sort.Search(usable+1, func(blocks int) bool {
		return blocks+m.groups.Charge(blocks, e.BlockSize) > usable
	})
	return (tooMany - 1) * e.BlockSize
}

// resolveLength finds the longest sequence, 0 after a fault: what is asked for must fit the pool, the model's own is
// lowered to what fits. assumed is the length that follows from undivided prompts.
func resolveLength(s *Scenario, e *Engine, m *memory, d *model.Deployment, assumed int) (length int, found findings) {
	length = d.LLM.MaxContext
	optional.Set(&length, e.MaxModelLen)
	if m.blocks > 0 {
		room := m.room(e)
		switch {
		case length <= room:
		case e.MaxModelLen != nil && assumed == 0:
			return 0, s.refuse("engine.max_model_len",
				"%d tokens do not fit the KV pool: it holds %d, %d too few (want %d or less, or more memory)",
				length, room, length-room, room)
		default:
			found.warn("max_model_len", "max_model_len is %d, the size of the KV cache; the model allows %d", room,
				d.LLM.MaxContext)
			length = room
		}
	}
	if length == assumed {
		found.warn("max_model_len", "max_model_len is %d, the token budget of an iteration: policy %s does not "+
			"divide prompts",
			length, e.Policy)
	}
	if length < 2 {
		return 0, s.refuse("engine.max_model_len", "the KV pool holds %d tokens (want room for 2 or more)", length)
	}
	return length, found
}
