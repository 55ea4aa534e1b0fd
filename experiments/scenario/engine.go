package scenario

import (
	"errors"
	"sort"
	"strconv"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/kv"
	"clifftop/sim/sched"
)

// engineResolver resolves the replicas of one pool: the model on its GPUs, the KV cache, step times and the engine's
// configuration.
type engineResolver struct{ *Setup }

// replica resolves what is of one replica.
func (u engineResolver) replica() (yamldoc.Faults, error) {
	return u.take(u.policyDefaults, u.engineDefaults, u.deployment, u.joinRanks, u.sizes, u.wholePrompts, u.memory, u.sequenceLength,
		u.seats, u.overheads, u.stepTime, u.frontend, u.offload, u.engine)
}

// joinRanks simulates the data-parallel ranks of a replica as one engine where prompts and outputs are computed apart.
// Ranks that exchange with each other's experts iterate in lock step, so that they begin and end as one.
func (u engineResolver) joinRanks() error {
	n := u.Scenario.Deployment.DataParallelSize
	if u.together = u.apart() && n > 1 && u.Deployment != nil && u.Deployment.LLM.Experts > 0; u.together {
		u.Warn("ranks_together", "the %d data-parallel ranks of a replica are simulated as one engine with balanced ranks", n)
	}
	return nil
}

// apart reports whether the replica only computes prompts, or only outputs.
func (u engineResolver) apart() bool { return u.role == "prefill" || u.role == "decode" }

// ranksTogether is the number of ranks that the engine stands for.
func (u engineResolver) ranksTogether() int {
	if !u.together {
		return 1
	}
	return u.Scenario.Deployment.DataParallelSize / max(1, u.Scenario.shares[u.role])
}

// spread is the timer of all ranks that the engine stands for, from that of one.
func (u engineResolver) spread(rank model.StepTimer) model.StepTimer {
	if !u.together {
		return rank
	}
	s := u.Scenario
	return model.NewSpread(rank, s.Deployment.DataParallelSize, s.shares[u.role], *s.Engine.MaxNumBatchedTokens)
}

// engineDefaults fills in what follows from the engine's version.
func (u engineResolver) engineDefaults() error {
	s := u.Scenario
	p, err := profileFor(optional.Value(s.Engine.Version))
	if err != nil {
		return s.Fault("engine.version", "%v", err)
	}
	u.unused(s.Engine.Policy != "vllm" && s.Engine.Kernels != "auto", "engine.kernels", "it belongs to policy vllm")
	if k := u.Scenario.Engine.host(&u.policy).allReduce; k != 0 {
		p.AllReduce = k
	}
	u.Profile = p
	if minor, _ := strconv.Atoi(strings.TrimPrefix(p.Name, "vllm-0.")); minor > currentMinor {
		u.Warn("version", "%s is not known: the rules of vllm-0.%d apply", p.Name, currentMinor)
	}
	linear := s.StepTime.Kind == "linear"
	optional.Default(&s.Engine.GPUMemoryUtilization, p.GPUMemoryUtilization)
	decide := func(t *Toggle, on bool) {
		switch {
		case *t != Auto:
		case on:
			*t = On
		default:
			*t = Off
		}
	}
	decide(&s.Engine.SchedulerReserveFullISL, p.SchedulerReserveFullISL)
	if err := u.speculative(); err != nil {
		return err
	}
	decide(&s.Engine.AsyncScheduling, p.AsyncScheduling && !linear)
	decide(&s.Engine.FuseAllReduceRMS, p.FuseAllReduce)
	return nil
}

// memory sizes the KV pool. A linear step time leaves it unlimited unless its size is given.
func (u engineResolver) memory() error {
	s := u.Scenario
	e := &s.Engine
	if s.StepTime.Kind == "linear" {
		u.Config.NumGPUBlocks = optional.Value(e.NumGPUBlocksOverride)
		if u.Config.NumGPUBlocks == 0 && !s.Given("engine.enable_prefix_caching") {
			e.EnablePrefixCaching = false // an unlimited pool has no blocks to share
		}
		return nil
	}
	knobs := model.MemoryKnobs{
		Utilization: *e.GPUMemoryUtilization, BlockSize: e.BlockSize,
		MaxNumBatchedTokens: *e.MaxNumBatchedTokens, MaxNumSeqs: *e.MaxNumSeqs,
		CountGraphs: u.Profile.GraphsInBudget, MaxCapture: optional.Value(e.MaxCudagraphCaptureSize),
		BlocksOverride: optional.Value(e.NumGPUBlocksOverride),
	}
	var err error
	if knobs.Drafter, err = u.drafterMemory(); err != nil {
		return err
	}
	u.Config.Hybrid = u.hybrid()
	if knobs.Grouped = u.Config.Hybrid != nil; knobs.Grouped {
		knobs.BlockSize = e.BlockSize
	}
	u.unused(e.PrefixCacheRetentionInterval != nil && !knobs.Grouped, "engine.prefix_cache_retention_interval",
		"no KV cache groups with windows have block tables here")
	if rule := u.policy.software.pool; rule != nil {
		keys := u.engineKeys()
		knobs.Pool = func(d *model.Deployment, b *model.KVBudget) float64 { return rule(u.policy.options, keys, d, b) }
	}
	budget, err := u.Deployment.KVBlocks(knobs)
	var misfit *model.FitError
	switch {
	case errors.As(err, &misfit):
		u.misfit = misfit
		f := s.Fault(s.FirstGiven("deployment.dtype", "deployment.tensor_parallel_size", "model", "gpu",
			"engine.gpu_memory_utilization", "engine.max_num_batched_tokens", "engine.max_num_seqs"), "%v", misfit)
		f.Cause = misfit
		return f
	case err != nil:
		return s.Fault("engine", "%v", err)
	}
	u.Memory = &budget
	u.Config.NumGPUBlocks = budget.Blocks
	if u.Config.Hybrid == nil {
		u.Config.Groups = u.Deployment.KVGroups()
	}
	return nil
}

// hybrid returns vLLM's KV cache groups of a model with windows; nil if all layers keep every token, or if the groups
// are charged to sequences: under other policies, and with features that the groups do not support.
func (u engineResolver) hybrid() *engine.Hybrid {
	s, e := u.Scenario, &u.Scenario.Engine
	groups := u.Deployment.CacheGroups(e.BlockSize)
	if n := len(groups.Groups); n == 0 || n == 1 && groups.Groups[0].KeepsAll() || u.policy.options == nil {
		return nil
	}
	grouped, ok := u.anyScheduler().(sched.Grouped)
	chunked := groups.Has(model.ChunkedLocalAttention) && !u.Profile.ChunkedGroups
	states := groups.Has(model.RecurrentState)
	if !ok || grouped.Grouped() != nil || chunked || states && u.Config.Speculative.On() ||
		u.Deployment.PipelineParallel > 1 || s.Offload != nil || u.apart() ||
		e.KVAllocation == "contiguous" || e.Preemption == "swap" {
		return nil
	}
	if states {
		u.recurrent(&groups)
	}
	e.BlockSize = u.Deployment.BlockSize(e.BlockSize)
	h := &engine.Hybrid{CacheGroups: groups, Retention: u.Profile.RetentionInterval}
	if e.PrefixCacheRetentionInterval != nil {
		h.Retention = *e.PrefixCacheRetentionInterval
	}
	return h
}

// recurrent sets what vLLM does for models with recurrent layers: blocks are as long as a state needs, and prefixes are
// not cached unless the scenario asks for it. Mamba-2 then keeps the state at the end of every block, other layers
// those at the ends of iterations (mamba_cache_mode).
func (u engineResolver) recurrent(groups *model.CacheGroups) {
	e := &u.Scenario.Engine
	e.BlockSize = u.Deployment.BlockSize(e.BlockSize)
	mode := model.LastState
	switch {
	case !u.Scenario.Given("engine.enable_prefix_caching") || !e.EnablePrefixCaching:
		e.EnablePrefixCaching = false
	case u.Deployment.LLM.HasMixer(model.Mamba2):
		mode = model.AllStates
	default:
		mode = model.AlignedState
	}
	longest := u.Deployment.LLM.MaxContext
	if n := optional.Value(e.MaxModelLen); n > 0 {
		longest = n
	}
	groups.SetRecurrentMode(mode, max(longest, e.BlockSize))
}

// inFlight returns the number of tokens that can be scheduled and not processed, with the slots ahead of drafts. vLLM
// leaves those out, so that a request that needs the whole pool can wait for ever.
func (u engineResolver) inFlight() int {
	e := &u.Scenario.Engine
	c := engine.Config{AsyncScheduling: e.AsyncScheduling == On, MaxNumBatchedTokens: *e.MaxNumBatchedTokens}
	return c.InFlightTokens() + int(u.Config.Speculative.Lookahead())
}

// room is the longest sequence that the pool holds, in tokens.
func (u engineResolver) room() int {
	usable := u.Config.NumGPUBlocks - 1
	if h := u.Config.Hybrid; h != nil {
		return h.Longest(usable, u.inFlight())
	}
	groups, size := u.Config.Groups, u.Scenario.Engine.BlockSize
	tooMany := sort.Search(usable+1, func(blocks int) bool { return blocks+groups.Charge(blocks, size) > usable })
	return (tooMany - 1) * size
}

// sequenceLength finds the longest sequence: what is asked for must fit the pool, the model's own is
// lowered to what fits.
func (u engineResolver) sequenceLength() error {
	s := u.Scenario
	e := &s.Engine
	asked := e.MaxModelLen
	if asked == nil {
		asked = optional.Of(u.Deployment.LLM.MaxContext)
	}
	length := optional.Value(asked)
	if u.Config.NumGPUBlocks > 0 {
		room := u.room()
		if length > room && e.MaxModelLen != nil && u.assumedLength == 0 {
			return s.Fault("engine.max_model_len",
				"%d tokens do not fit the KV pool: it holds %d, %d too few (want %d or less, or more memory)",
				length, room, length-room, room)
		}
		if length > room {
			u.Warn("max_model_len", "max_model_len is %d, the size of the KV cache; the model allows %d", room,
				u.Deployment.LLM.MaxContext)
			length = room
		}
	}
	if length == u.assumedLength {
		u.Warn("max_model_len", "max_model_len is %d, the token budget of an iteration: policy %s does not divide prompts",
			length, e.Policy)
	}
	if length < 2 {
		return s.Fault("engine.max_model_len", "the KV pool holds %d tokens (want room for 2 or more)", length)
	}
	e.MaxModelLen = &length
	u.Config.MaxModelLen = limitInt32(length)
	return nil
}

// overheads are those of the calibration, or none beside a linear step time.
func (u engineResolver) overheads() error {
	o := &u.Scenario.Overheads
	frontend, perToken, stream := u.Profile.Frontend, u.Profile.FrontendPerToken, 48*clock.Microsecond
	if d := u.Scenario.Engine.host(&u.policy); d.frontend > 0 {
		frontend, perToken = d.frontend, d.frontendPerToken
	}
	if own := u.ownFrontend(); own > 0 {
		frontend = own
	}
	if u.Scenario.StepTime.Kind == "linear" {
		frontend, perToken, stream = 0, 0, 0
	}
	optional.Default(&o.Frontend, yamldoc.Duration(frontend))
	optional.Default(&o.FrontendPerToken, yamldoc.Duration(perToken))
	optional.Default(&o.StreamPerSequence, yamldoc.Duration(stream))
	optional.Default(&o.NetworkIn, 0)
	optional.Default(&o.NetworkOut, 0)
	u.Config.Frontend = o.Frontend.Clock()
	u.Config.FrontendPerToken = o.FrontendPerToken.Clock()
	u.Config.StreamPerSequence = o.StreamPerSequence.Clock()
	u.Config.StreamInterval = u.Scenario.Engine.StreamInterval
	u.Config.NetworkIn, u.Config.NetworkOut = o.NetworkIn.Clock(), o.NetworkOut.Clock()
	return nil
}

// ownFrontend is what calibration found of the machine's front end; 0 where it did not look.
func (u engineResolver) ownFrontend() clock.Duration {
	if u.Deployment == nil {
		return 0
	}
	return clock.FromSeconds(u.Deployment.GPU.FrontendSeconds)
}

func (u engineResolver) stepTime() error {
	err := u.readTable()
	if err != nil {
		return err
	}
	timer, err := u.Scenario.shared().timer(u.newTimer, u.KernelOptions(), u.Scenario.StepTime, u.Deployment)
	if err == nil {
		timer = u.spread(timer)
		timer, err = u.drafting(timer)
	}
	if err != nil {
		return u.Scenario.Fault("step_time", "%v", err)
	}
	const longest = int64(clock.Hour) * clock.FemtosPerPico
	if first, slope, _ := timer.Span(&model.Batch{Decodes: 1, Context: 1, Emit: 1}); first <= 0 || slope < 0 ||
		first > longest {
		return u.Scenario.Fault(u.Scenario.FirstGiven("gpu", "step_time"),
			"an iteration with one sequence takes %.3g s (want more than 0, at most 3600: see the peaks and the bandwidth of "+
				"the GPU)", float64(first)/1e15)
	}
	u.Config.Timer = timer
	u.checkTable()
	return nil
}

// engine fills in the rest of the configuration and checks it.
func (u engineResolver) engine() error {
	s := u.Scenario
	e := &s.Engine
	c := &u.Config
	c.MaxNumSeqs, c.MaxNumBatchedTokens = *e.MaxNumSeqs, *e.MaxNumBatchedTokens
	if n := u.ranksTogether(); n > 1 {
		c.MaxNumSeqs, c.MaxNumBatchedTokens = n*c.MaxNumSeqs, n*c.MaxNumBatchedTokens
		c.NumGPUBlocks = n*(c.NumGPUBlocks-1) + 1
	}
	c.BlockSize = limitInt32(e.BlockSize)
	c.PrefixCaching = e.EnablePrefixCaching
	c.AppendUnkeyed = u.Profile.AppendUnkeyed
	if c.Radix = u.policy.Radix && c.PrefixCaching; c.Radix {
		c.RadixEviction = yamldoc.ValueNamed(kv.LeafOrders(), u.policy.RadixEviction)
	}
	if o, ok := u.policy.options.(sched.IdleOptions); ok {
		o.Idle(c.PrefixCaching, func(key, why string) {
			u.unused(true, "engine."+u.policy.rule.Section+"."+key, why)
		})
	}
	c.RecvInterval = u.policy.RecvInterval
	c.AsyncScheduling, c.UnpredictedEnds = e.AsyncScheduling == On, u.policy.UnpredictedEnds
	var err error
	if c.Order, err = u.order(); err != nil {
		return s.Fault("engine.order", "%v", err)
	}
	if c.MaxNumBatchedTokens < c.MaxNumSeqs {
		return s.Fault(s.FirstGiven("engine.max_num_batched_tokens", "engine.max_num_seqs"),
			"max_num_batched_tokens %d is less than max_num_seqs %d (want as many or more)", c.MaxNumBatchedTokens,
			c.MaxNumSeqs)
	}
	if !e.EnableChunkedPrefill && u.policy.LongOutputs {
		c.MaxPromptLen = limitInt32(c.MaxNumBatchedTokens)
	} else if !e.EnableChunkedPrefill && e.MaxModelLen != nil && c.MaxNumBatchedTokens < *e.MaxModelLen {
		return s.Fault("engine.enable_chunked_prefill",
			"false needs max_num_batched_tokens %d to be at least max_model_len %d (set one of them)",
			c.MaxNumBatchedTokens, *e.MaxModelLen)
	}
	sized := u.Memory != nil || s.StepTime.Kind == "linear"
	swapless := e.Preemption == "swap" && e.EnablePrefixCaching
	if !sized || u.policy.options == nil || c.Timer == nil || c.MaxModelLen == 0 || swapless {
		return nil // reported before
	}
	if e.KVAllocation == "contiguous" && e.EnablePrefixCaching {
		return s.Fault(s.FirstGiven("engine.kv_allocation", "engine.enable_prefix_caching", "engine.policy"),
			"prefix caching needs paged KV (want enable_prefix_caching: false, or kv_allocation: paged)")
	}
	check := *c
	check.Scheduler = u.anyScheduler()
	if err := check.Validate(); err != nil {
		return u.blame(check, err)
	}
	return nil
}
