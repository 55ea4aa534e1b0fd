package scenario

import (
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/sched"
)

// Policy is a batching policy under the name that scenarios give it, together with what else is different in the
// engine that it comes from.
type Policy struct {
	// Name stands at engine.policy.
	Name string
	// Does says in one line what the policy does, and Source where that is taken from.
	Does, Source string
	// New makes the scheduler for a replica. The engine's knobs have their values.
	New func(e *Engine) sched.Scheduler
	// Engine says how the engine around it differs from vLLM's, where a scenario does not say otherwise.
	Engine EngineDefaults
}

// EngineDefaults are defaults of knobs that differ between engines. The zero value is those of vLLM's versions.
type EngineDefaults struct {
	// Synchronous engines compose an iteration when the one before it has ended.
	Synchronous bool
	// NoPrefixCaching is for engines that cannot share KV between requests.
	NoPrefixCaching bool
	// WholePrompts is for policies that never divide a prompt. The token budget is then at least the longest
	// sequence, which is at most [wholePromptTokens] where nothing else is said.
	WholePrompts bool
	// WholeByDefault is for those that divide them only when enable_chunked_prefill is given.
	WholeByDefault bool
	// BlockSize is the number of tokens in a KV block; 0 is 16.
	BlockSize int
	// TokenBudget is max_num_batched_tokens; 0 is 8192.
	TokenBudget int
	// Watermark is the part of the pool that admission leaves free.
	Watermark float64
	// Contiguous gives each sequence its KV in one piece.
	Contiguous bool
	// Reserves is for policies that set room for the longest answer aside.
	Reserves bool
	// Radix keeps the prefix cache by the token, in a radix tree.
	Radix bool
	// PoolMemory is the memory of the KV pool on a GPU, in bytes, by the engine's own rule; nil is vLLM's.
	PoolMemory func(e *Engine, d *model.Deployment, b *model.KVBudget) float64
}

// wholePromptTokens is the default of the longest sequence where prompts are not divided: an iteration has room
// for one, and the memory for its activations is set aside.
const wholePromptTokens = 16_384

// Policies lists the policies: add one to add a policy.
func Policies() []Policy {
	return []Policy{
		vllmPolicy(), preemptivePolicy(), vllmV0Policy(),
		sarathiPolicy(), orcaPolicy(), staticPolicy(),
		sglangPolicy(),
		trtllmPolicy("trtllm-guaranteed-no-evict", sched.GuaranteedNoEvict,
			"starts a request when the longest outputs of all fit; never pauses a request"),
		trtllmPolicy("trtllm-max-utilization", sched.MaxUtilization,
			"starts a request when its prompt fits; the last started is paused when the pool runs out"),
		trtllmPolicy("trtllm-static", sched.StaticBatch, "starts requests only when the batch is empty"),
		tgiPolicy(), mlfqPolicy(),
	}
}

func vllmPolicy() Policy {
	return Policy{
		Name:   "vllm",
		Does:   "one token budget for decodes and prefill chunks; running requests first; the last admitted is preempted and recomputed",
		Source: "vLLM V1 (v1/core/sched)",
		New: func(e *Engine) sched.Scheduler {
			p := vllmOf(e)
			return &p
		},
	}
}

// vllmOf is vLLM's policy with the engine's knobs.
func vllmOf(e *Engine) sched.VLLM {
	return sched.VLLM{
		Victim:                    e.victim(),
		DisableChunkedPrefill:     !e.EnableChunkedPrefill,
		LongPrefillTokenThreshold: limitInt32(e.LongPrefillTokenThreshold),
		Admission:                 e.admission(),
		Watermark:                 e.Watermark,
		Swap:                      e.Preemption == "swap",
	}
}

func preemptivePolicy() Policy {
	return Policy{
		Name:   "preemptive",
		Does:   "vLLM's, where a waiting request takes the place of running ones that are less urgent by the order",
		Source: "preemptive priority and SRPT, with recomputation",
		New: func(e *Engine) sched.Scheduler {
			p := &sched.Preemptive{VLLM: vllmOf(e), Threshold: int64(e.PreemptionThreshold)}
			p.Victim = sched.LeastUrgent
			return p
		},
	}
}

func vllmV0Policy() Policy {
	return Policy{
		Name:   "vllm-v0",
		Does:   "whole prompts first, in iterations of their own, then decodes; the last admitted is recomputed, or swapped",
		Source: "vLLM V0, the default until 2025",
		New: func(e *Engine) sched.Scheduler {
			return &sched.VLLMV0{Watermark: e.Watermark, Swap: e.Preemption == "swap"}
		},
		Engine: EngineDefaults{Synchronous: true, NoPrefixCaching: true, WholePrompts: true, Watermark: 0.01},
	}
}

func sarathiPolicy() Policy {
	return Policy{
		Name:   "sarathi",
		Does:   "a small token budget: decodes first, then chunks of prompts; KV of whole prompts taken on admission",
		Source: "Agrawal et al., Sarathi-Serve, OSDI 2024",
		New:    func(e *Engine) sched.Scheduler { return &sched.Sarathi{Watermark: e.Watermark} },
		Engine: EngineDefaults{Synchronous: true, NoPrefixCaching: true, TokenBudget: 512, Watermark: 0.01},
	}
}

func orcaPolicy() Policy {
	return Policy{
		Name:   "orca",
		Does:   "whole prompts beside decodes, iteration by iteration; room for the longest answer taken on admission",
		Source: "Yu et al., Orca, OSDI 2022",
		New:    func(*Engine) sched.Scheduler { return &sched.Orca{} },
		Engine: EngineDefaults{Synchronous: true, Reserves: true, NoPrefixCaching: true, WholePrompts: true,
			Contiguous: true},
	}
}

func staticPolicy() Policy {
	return Policy{
		Name:   "static",
		Does:   "batches padded to the longest prompt that run until the longest answer has ended",
		Source: "FasterTransformer",
		New:    func(*Engine) sched.Scheduler { return &sched.Static{} },
		Engine: EngineDefaults{Synchronous: true, Reserves: true, NoPrefixCaching: true, WholePrompts: true,
			TokenBudget: 65_536, Contiguous: true},
	}
}

// victim is the rule for whom to preempt.
func (e *Engine) victim() sched.Victim {
	switch e.Victim {
	case "least-urgent":
		return sched.LeastUrgent
	case "most-remaining":
		return sched.MostRemaining
	case "least-progress":
		return sched.LeastProgress
	case "longest":
		return sched.Longest
	case "auto":
		if e.SchedulingPolicy == "priority" {
			return sched.LeastUrgent
		}
	}
	return sched.LastAdmitted
}

// admission is the rule for what must fit.
func (e *Engine) admission() sched.Admission {
	switch {
	case e.Admission == "full-length", e.Preemption == "never":
		return sched.FullLength
	case e.Admission == "first-chunk", e.Admission == "auto" && e.SchedulerReserveFullISL != On:
		return sched.FirstChunk
	}
	return sched.FullPrompt
}

// Use lets the scenario name a policy that is not built in. One that has the name of another takes its place.
func (s *Scenario) Use(p Policy) { s.own = append(s.own, p) }

// policy is the one that the scenario names.
func (s *Scenario) policy() (Policy, error) {
	known := Policies()
	var names []string
	for i := len(s.own) - 1; i >= 0; i-- {
		if s.own[i].Name == s.Engine.Policy {
			return s.own[i], nil
		}
		names = append(names, s.own[i].Name)
	}
	for _, p := range known {
		if p.Name == s.Engine.Policy {
			return p, nil
		}
		names = append(names, p.Name)
	}
	f := s.Fault("engine.policy", "%q is not known (want %s)", yamldoc.Short(s.Engine.Policy), yamldoc.OneOf(names))
	f.Hint = yamldoc.DidYouMean(s.Engine.Policy, names)
	return Policy{}, f
}

// policyDefaults fills in what follows from the policy.
func (u engineResolver) policyDefaults() error {
	p, err := u.Scenario.policy()
	if err != nil {
		return err
	}
	u.policy = p
	s, e, d := u.Scenario, &u.Scenario.Engine, p.Engine
	if d.Synchronous && e.AsyncScheduling == Auto {
		e.AsyncScheduling = Off
	}
	usual := &Default().Engine // a program may have set a knob that no file gives
	if d.NoPrefixCaching && !s.Given("engine.enable_prefix_caching") {
		e.EnablePrefixCaching = false
	}
	if d.BlockSize > 0 && !s.Given("engine.block_size") && e.BlockSize == usual.BlockSize {
		e.BlockSize = d.BlockSize
	}
	if (d.Reserves || e.admission() == sched.FullLength) && s.Workload.MaxTokens == nil {
		u.Warn("declared_lengths", "workload.max_tokens is not set, so that clients declare the exact output length: policy %s reserves KV with perfect knowledge", p.Name)
	}
	u.warnUnused(p.Name)
	if d.TokenBudget > 0 && !s.Given("engine.max_num_batched_tokens") &&
		e.MaxNumBatchedTokens == usual.MaxNumBatchedTokens {
		e.MaxNumBatchedTokens = max(d.TokenBudget, e.MaxNumSeqs)
	}
	if !s.Given("engine.watermark") && e.Watermark == usual.Watermark {
		e.Watermark = d.Watermark
	}
	if e.KVAllocation == "auto" {
		e.KVAllocation = "paged"
		if d.Contiguous && s.StepTime.Kind != "linear" {
			e.KVAllocation = "contiguous"
		}
	}
	chunking := "engine.enable_chunked_prefill"
	if d.WholePrompts && s.Given(chunking) && e.EnableChunkedPrefill {
		return s.Fault(chunking, "true is not allowed (want false: policy %s does not divide prompts)", p.Name)
	}
	if d.WholePrompts || d.WholeByDefault && !s.Given(chunking) {
		e.EnableChunkedPrefill = false
	}
	if e.Preemption == "never" && e.Admission != "auto" && e.Admission != "full-length" {
		return s.Fault(s.FirstGiven("engine.preemption", "engine.admission"),
			"never is not possible with admission %s (want full-length)", e.Admission)
	}
	if !e.EnableChunkedPrefill && p.Name != "vllm" && p.Name != "preemptive" {
		u.whole = true
	}
	return nil
}

// wholePrompts lets an iteration hold the longest sequence where prompts are not divided. Where nothing is said of
// its length, that is the model's, or less.
func (u engineResolver) wholePrompts() error {
	s, e := u.Scenario, &u.Scenario.Engine
	if !u.whole {
		return nil
	}
	if e.MaxModelLen == nil {
		length := wholePromptTokens
		if s.Given("engine.max_num_batched_tokens") {
			length = e.MaxNumBatchedTokens
		}
		u.assumedLength = length
		if u.Deployment != nil && u.Deployment.LLM.MaxContext > 0 {
			length = min(length, u.Deployment.LLM.MaxContext)
		}
		e.MaxModelLen = &length
	}
	if !s.Given("engine.max_num_batched_tokens") {
		e.MaxNumBatchedTokens = max(e.MaxNumBatchedTokens, *e.MaxModelLen)
	}
	return nil
}

// warnUnused tells of knobs that belong to another policy.
func (u engineResolver) warnUnused(policy string) {
	e := &u.Scenario.Engine
	for _, k := range []struct {
		of      string
		changed bool
	}{
		{"sglang", e.SGLang != defaultSGLang()}, {"trtllm", e.TRTLLM != defaultTRTLLM()},
		{"tgi", e.TGI != defaultTGI()}, {"mlfq", e.MLFQ != defaultMLFQ()},
	} {
		if k.changed && !strings.HasPrefix(policy, k.of) {
			u.Warn("unused", "engine.%s has no effect on policy %s", k.of, policy)
		}
	}
}
