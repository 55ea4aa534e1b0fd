package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/engine"
	"clifftop/sim/kv"
	"clifftop/sim/sched"
)

// PoolSetup is a group of like replicas that are ready to run.
type PoolSetup struct {
	// Name is the name of the pool; empty in a fleet without pools.
	Name string
	// Ranks is the number of data-parallel ranks of each replica that serve requests side by side.
	Ranks int
	// Scenario is the scenario of one replica, with every default filled in.
	Scenario *Scenario
	// Deployment is the model on its GPUs.
	Deployment *model.Deployment
	// Memory says where a GPU's memory goes; nil where the KV pool is unlimited.
	Memory *model.KVBudget
	// Config is the engine's configuration, but for its scheduler, of which every run has its own.
	Config engine.Config

	number   int // of the pool in the scenario
	replicas int
	policy   policy
	ruled    []string // defaults that follow from the engine's rules for the GPU
	oneBatch string   // why pipeline stages work on one batch at a time; empty if they do not
}

// Engines is the number of engines of a pool: the data-parallel ranks of all its replicas.
func (p *PoolSetup) Engines() int { return p.replicas * p.Ranks }

// Release is the release of vLLM whose rules apply.
func (p *PoolSetup) Release() string { return p.policy.release.Name }

// KernelOptions are the options of the calibrated step times.
func (p *PoolSetup) KernelOptions() model.KernelOptions {
	return kernelOptions(&p.Scenario.Engine, p.Scenario.Workload.Sampling, &p.policy)
}

// resolveReplica resolves the scenario of one replica: the model on its GPUs, the KV cache, step times and the engine's
// configuration. It goes on after faults, so that all of them show, except where there is no Deployment.
func resolveReplica(s *Scenario, oneRank bool) (r PoolSetup, found findings) {
	p, e, more := resolvePolicy(s)
	if !found.add(more) {
		return r, found
	}
	if p.release, e, more = resolveRelease(s, e, &p); !found.add(more) {
		return r, found
	}
	drafts, e, more := resolveDrafts(s, e, &p)
	if !found.add(more) {
		return r, found
	}
	linear := s.StepTime.Kind == "linear"
	e.AsyncScheduling = e.AsyncScheduling.or(p.release.AsyncScheduling && !linear)
	place, more := resolvePlacement(s, &p)
	if !found.add(more) {
		return r, found
	}
	d := place.deployment
	ranks := s.Deployment.DataParallelSize
	if joined(s, d) {
		found.warn("ranks_together", "the %d data-parallel ranks of a replica are simulated as one engine with "+
			"balanced ranks",
			ranks)
	}
	if oneRank || joined(s, d) {
		ranks = 1
	}
	e, sizes := resolveSizes(s, e, &p, &d.GPU)
	e, assumed := resolveWholePrompts(s, e, &p, d.LLM.MaxContext)
	m, e, more := resolveMemory(s, e, &p, d, drafts)
	found.add(more)
	length, more := resolveLength(s, &e, &m, d, assumed)
	if found.add(more) {
		e.MaxModelLen = &length
	}
	e, seats := resolveSeats(s, e, &p, m.blocks)
	overheads := resolveOverheads(s, &e, &p, &d.GPU)
	timer, stepTime, more := resolveTimer(s, &e, &p, d)
	found.add(more)
	swap, e, more := resolveSwap(s, e, &d.GPU, m.budget)
	found.add(more)
	tiers, offload, more := resolveOffload(s, &e, d, m.budget)
	found.add(more)

	one := *s
	one.Model, one.GPU, one.Deployment, one.Engine = place.model, place.gpu, place.keys, e
	one.Overheads, one.StepTime, one.Offload = overheads, stepTime, offload
	if low, high := d.GPU.USDPerHour[0], d.GPU.USDPerHour[1]; high > 0 {
		optional.Default(&one.Cost.GPUHour, (low+high)/2)
	}
	c := engineConfig(&one, &p, d, &m)
	c.MaxModelLen, c.Timer, c.Connector = limitInt32(length), timer, tiers
	c.HostBlocks, c.HostFemtosPerBlock = swap.blocks, swap.femtosPerBlock
	sized, swapless := m.budget != nil || linear, e.Preemption == "swap" && e.EnablePrefixCaching
	complete := sized && timer != nil && length > 0 && !swapless
	c, more = resolveConfig(&one, &p, c, complete)
	found.add(more)
	r = PoolSetup{Ranks: ranks, Scenario: &one, Deployment: d, Memory: m.budget, Config: c, policy: p,
		ruled: slices.Concat(place.ruled, sizes, seats)}
	r.Config.Stages, r.oneBatch = pipelineStages(&r)
	return r, found
}

// resolveRelease returns the release of the engine that is imitated, and the engine's keys with what follows from it.
func resolveRelease(s *Scenario, e Engine, p *policy) (release release, _ Engine, found findings) {
	release, err := releaseFor(optional.Value(e.Version))
	if err != nil {
		return release, e, s.refuse("engine.version", "%v", err)
	}
	found.unused(e.Policy != "vllm" && e.Kernels != "auto", "engine.kernels", "it belongs to policy vllm")
	if k := e.host(p).allReduce; k != 0 {
		release.AllReduce = k
	}
	if minor, _ := strconv.Atoi(strings.TrimPrefix(release.Name, "vllm-0.")); minor > currentMinor {
		found.warn("version", "%s is not known: the rules of vllm-0.%d apply", release.Name, currentMinor)
	}
	optional.Default(&e.GPUMemoryUtilization, release.GPUMemoryUtilization)
	e.SchedulerReserveFullISL = e.SchedulerReserveFullISL.or(release.SchedulerReserveFullISL)
	e.FuseAllReduceRMS = e.FuseAllReduceRMS.or(release.FuseAllReduce)
	return release, e, found
}

// engineConfig is the configuration of the engine as the keys of a replica say it.
func engineConfig(s *Scenario, p *policy, d *model.Deployment, m *memory) engine.Config {
	e, o, n := &s.Engine, &s.Overheads, ranksTogether(s, d)
	c := engine.Config{
		MaxNumSeqs: n * *e.MaxNumSeqs, MaxNumBatchedTokens: n * *e.MaxNumBatchedTokens, NumGPUBlocks: m.blocks,
		BlockSize: limitInt32(e.BlockSize), Groups: m.groups, Hybrid: m.hybrid, PrefixCaching: e.EnablePrefixCaching,
		AppendUnkeyed: p.release.AppendUnkeyed, Radix: p.Radix && e.EnablePrefixCaching, RecvInterval: p.RecvInterval,
		AsyncScheduling: e.AsyncScheduling == On, UnpredictedEnds: p.UnpredictedEnds, Speculative: m.drafts,
		Contiguous: e.KVAllocation == "contiguous",
		Frontend:   o.Frontend.Clock(), FrontendPerToken: o.FrontendPerToken.Clock(),
		StreamPerSequence: o.StreamPerSequence.Clock(), StreamInterval: e.StreamInterval,
		NetworkIn: o.NetworkIn.Clock(), NetworkOut: o.NetworkOut.Clock(),
		CPUStep: o.CPU.Clock(), CPUPerSequence: o.CPUPerSequence.Clock(),
		MaxQueuedRequests: optional.Value(e.MaxNumQueuedReqs),
		MaxQueuedTokens:   int64(optional.Value(e.MaxNumQueuedTokens)),
		MaxTokens:         limitInt32(optional.Value(s.Workload.MaxTokens)),
	}
	if n > 1 {
		c.NumGPUBlocks = n*(m.blocks-1) + 1
	}
	if c.Radix {
		c.RadixEviction = yamldoc.ValueNamed(kv.LeafOrders(), p.RadixEviction)
	}
	if !e.EnableChunkedPrefill && p.LongOutputs {
		c.MaxPromptLen = limitInt32(c.MaxNumBatchedTokens)
	}
	return c
}

// resolveConfig adds the order of the queue to a configuration, and checks the whole if it is complete.
func resolveConfig(s *Scenario, p *policy, c engine.Config, complete bool) (_ engine.Config, found findings) {
	e := &s.Engine
	if o, ok := p.options.(sched.IdleOptions); ok {
		o.Idle(c.PrefixCaching, func(key, why string) {
			found.unused(true, "engine."+p.rule.Section+"."+key, why)
		})
	}
	order, more, err := resolveOrder(s)
	found.add(more)
	c.Order = order
	switch {
	case err != nil:
		found.fault(s.Fault("engine.order", "%v", err))
	case c.MaxNumBatchedTokens < c.MaxNumSeqs:
		found.fault(s.Fault(s.FirstGiven("engine.max_num_batched_tokens", "engine.max_num_seqs"),
			"max_num_batched_tokens %d is less than max_num_seqs %d (want as many or more)", c.MaxNumBatchedTokens,
			c.MaxNumSeqs))
	case !e.EnableChunkedPrefill && !p.LongOutputs && c.MaxNumBatchedTokens < optional.Value(e.MaxModelLen):
		found.fault(s.Fault("engine.enable_chunked_prefill",
			"false needs max_num_batched_tokens %d to be at least max_model_len %d (set one of them)",
			c.MaxNumBatchedTokens, *e.MaxModelLen))
	case !complete:
	case e.KVAllocation == "contiguous" && e.EnablePrefixCaching:
		found.fault(s.Fault(s.FirstGiven("engine.kv_allocation", "engine.enable_prefix_caching", "engine.policy"),
			"prefix caching needs paged KV (want enable_prefix_caching: false, or kv_allocation: paged)"))
	default:
		check := c
		check.Scheduler = p.scheduler(e, 0, 0)
		if err := check.Validate(); err != nil {
			found.fault(s.Fault(refusedKey(check), "%s", strings.ReplaceAll(errors.Join(err).Error(), "\n", "; ")))
		}
	}
	return c, found
}

// refusedKey returns the key of a refused configuration: the key of the tiers if it is accepted without them.
func refusedKey(c engine.Config) string {
	if c.Connector != nil {
		if c.Connector = nil; c.Validate() == nil {
			return "offload"
		}
	}
	return "engine"
}

// pipelineStages is the number of pipeline stages that work on batches of their own; 0 if they work on one batch at a
// time, with the reason.
func pipelineStages(r *PoolSetup) (stages int, why string) {
	d, s := r.Deployment, r.Scenario
	if d.PipelineParallel == 1 {
		return 0, ""
	}
	check := r.Config
	check.Stages, check.Scheduler = d.PipelineParallel, r.policy.scheduler(&s.Engine, 0, 0)
	_, ok := check.Scheduler.(sched.Pipelined)
	switch {
	case s.apart():
		return 0, "replicas that divide prompts and answers among them have no more in flight"
	case d.LLM.Experts > 0 && r.Ranks > 1:
		return 0, "ranks in lock step have no more in flight"
	case !ok:
		return 0, fmt.Sprintf("policy %s has no more in flight", s.Engine.Policy)
	}
	if err := check.Validate(); err != nil {
		return 0, strings.NewReplacer("pipeline stages: ", "", "\n", "; ").Replace(err.Error())
	}
	return d.PipelineParallel, ""
}

// scheduler makes the scheduler of an engine in a run with a seed.
func (p *PoolSetup) scheduler(seed uint64, number int) sched.Scheduler {
	return p.policy.scheduler(&p.Scenario.Engine, seed, number)
}

// checkedConfig is the configuration of an engine that does all the work on requests, with a scheduler for checks.
func (p *PoolSetup) checkedConfig(check bool) engine.Config {
	c := p.Config
	c.Scheduler, c.Check = p.scheduler(0, 0), check
	if w, ok := c.Timer.(interface{ Work() *model.Work }); ok && check {
		c.Floor = w.Work().Floor
	}
	return c
}

// connector connects a replica of the pool with others, and with the tiers that it has.
func (p *PoolSetup) connector() *engine.Connector {
	var c engine.Connector
	if p.Config.Connector != nil {
		c = *p.Config.Connector
	}
	gpus := p.Deployment.TensorParallel * p.Deployment.PipelineParallel // that hold a block
	c.BlockBytes = p.Deployment.KVBytesPerToken() * int64(gpus) * int64(p.Config.BlockSize)
	return &c
}
