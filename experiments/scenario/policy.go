package scenario

import (
	"cmp"
	"fmt"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/sched"
)

// wholePromptTokens is the default of the longest sequence where prompts are not divided: an iteration has room
// for one, and the memory for its activations is set aside.
const wholePromptTokens = 16_384

// victimName is auto, or the name of a rule that picks the sequence to preempt.
type victimName string

// Names implements [yamldoc.Named].
func (victimName) Names() []string {
	return append([]string{"auto"}, yamldoc.NamesOfAll(sched.Victims())...)
}

// victim is the rule that picks the sequence to preempt.
func (e *Engine) victim() sched.Victim {
	if e.Victim == "auto" && e.SchedulingPolicy == "priority" {
		return sched.LeastUrgent
	}
	return yamldoc.ValueNamed(sched.Victims(), string(e.Victim))
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

// policy is a batching policy with its options and what it says of the engine around it.
type policy struct {
	sched.Defaults
	name     string
	rule     sched.Rule
	options  sched.Options
	software *software
}

// engineKeys is what the policy reads of the engine.
func (u *Setup) engineKeys() *sched.Keys {
	e := &u.Scenario.Engine
	return &sched.Keys{
		MaxNumBatchedTokens: limitInt32(*e.MaxNumBatchedTokens), BlockSize: limitInt32(e.BlockSize),
		LongPrefillTokenThreshold: limitInt32(e.LongPrefillTokenThreshold), PreemptionThreshold: e.PreemptionThreshold,
		MaxLoRAs:             optional.Value(e.MaxLoRAs),
		PadAdmissions:        e.Speculative != nil && u.Profile.PadAdmissions,
		EnableChunkedPrefill: e.EnableChunkedPrefill, Swap: e.Preemption == "swap", Watermark: e.Watermark,
		Victim: e.victim(), Admission: e.admission(),
	}
}

// scheduler makes the scheduler of a replica in a run with a seed.
func (u *Setup) scheduler(seed uint64, replica int) sched.Scheduler {
	e := u.engineKeys()
	e.Seed, e.Replica = seed, replica
	return u.policy.options.Make(e)
}

// anyScheduler makes a scheduler for checks.
func (u *Setup) anyScheduler() sched.Scheduler { return u.scheduler(0, 0) }

// policy is the one that the scenario names.
func (s *Scenario) policy() (p policy, err error) {
	policies := s.rules().Policies
	if r, ok := policies.Find(s.Engine.Policy); ok {
		options := s.Engine.Options.Of(&r)
		d := options.Defaults()
		return policy{d, r.Name, r, options, softwareNamed(d.Software)}, nil
	}
	names := policies.Names()
	f := s.Fault("engine.policy", "%q is not known (want %s)", yamldoc.Short(s.Engine.Policy), yamldoc.OneOf(names))
	f.Hint = cmp.Or(yamldoc.DidYouMean(s.Engine.Policy, names), "clifftop catalog policies lists all of them")
	return p, f
}

// host is the engine whose kernels, host and front end run: that of the policy, or that of kernels.
func (e *Engine) host(p *policy) *software {
	if e.ownKernels() {
		return p.software
	}
	return softwareNamed(e.Kernels)
}

// ownKernels reports whether the kernels are those of the policy's engine.
func (e *Engine) ownKernels() bool {
	return e.Policy != "vllm" || e.Kernels == "auto" || e.Kernels == "vllm"
}

// policyDefaults fills in what follows from the policy.
func (u engineResolver) policyDefaults() error {
	p, err := u.Scenario.policy()
	if err != nil {
		return err
	}
	u.policy = p
	s, e, d := u.Scenario, &u.Scenario.Engine, &p.Defaults
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
		u.Warn("declared_lengths", "workload.max_tokens is not set, so that clients declare the exact output length: "+
			"policy %s reserves KV with perfect knowledge", p.name)
	}
	for _, key := range e.Options.Unused(&p.rule) {
		u.Warn("unused", "engine.%s has no effect on policy %s", key, p.name)
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
		return s.Fault(chunking, "true is not allowed (want false: policy %s does not divide prompts)", p.name)
	}
	if d.WholePrompts || d.WholeByDefault && !s.Given(chunking) {
		e.EnableChunkedPrefill = false
	}
	if e.Preemption == "never" && e.Admission != "auto" && e.Admission != "full-length" {
		return s.Fault(s.FirstGiven("engine.preemption", "engine.admission"),
			"never is not possible with admission %s (want full-length)", e.Admission)
	}
	if !e.EnableChunkedPrefill && p.name != "vllm" && p.name != "preemptive" {
		u.whole = true
	}
	return nil
}

// sizes fills in max_num_seqs and max_num_batched_tokens by the rules of the engine. A step time that knows no GPU has
// 256 and 8,192.
func (u engineResolver) sizes() error {
	e := &u.Scenario.Engine
	own := batchSizes{
		maxNumSeqs:          256,
		maxNumBatchedTokens: max(cmp.Or(u.policy.TokenBudget, 8192), optional.Value(e.MaxNumSeqs)),
	}
	rule, seats, tokens := u.policy.software.sizes, e.MaxNumSeqs == nil, e.MaxNumBatchedTokens == nil
	if rule != nil && u.Scenario.StepTime.Kind != "linear" {
		gpu := &u.Deployment.GPU
		own = rule(gpuSize{
			bytes: cmp.Or(gpu.ReportedBytes, gpu.MemoryBytes), a100: strings.HasPrefix(gpu.Name, "a100"),
			a100Small: u.Profile.A100Small,
		})
		u.ruledSeats = seats && u.policy.software.seats != nil
	} else {
		seats, tokens = false, false
	}
	optional.Default(&e.MaxNumBatchedTokens, own.maxNumBatchedTokens)
	optional.Default(&e.MaxNumSeqs, min(own.maxNumSeqs, *e.MaxNumBatchedTokens))
	if seats && !u.ruledSeats {
		u.ruled = append(u.ruled, fmt.Sprint("max_num_seqs ", *e.MaxNumSeqs))
	}
	if tokens {
		u.ruled = append(u.ruled, fmt.Sprint("max_num_batched_tokens ", *e.MaxNumBatchedTokens))
	}
	return nil
}

// seats sets max_num_seqs by the engine's rule, where that depends on the pool.
func (u engineResolver) seats() error {
	e := &u.Scenario.Engine
	if !u.ruledSeats || u.Config.NumGPUBlocks == 0 || e.MaxModelLen == nil {
		return nil
	}
	n := u.policy.software.seats((u.Config.NumGPUBlocks-1)*e.BlockSize, *e.MaxModelLen)
	e.MaxNumSeqs = optional.Of(min(n, *e.MaxNumBatchedTokens))
	u.ruled = append(u.ruled, fmt.Sprint("max_num_seqs ", *e.MaxNumSeqs))
	return nil
}

// EngineDefaults names the knobs that follow from the engine's rules for the GPU, with their values; empty if there are
// none.
func (u *Setup) EngineDefaults() string {
	first := u.Pools[0].Setup
	if len(first.ruled) == 0 {
		return ""
	}
	of := first.Scenario.Engine.Policy
	if first.policy.software.vllmHost {
		of = first.Profile.Name
	}
	return fmt.Sprintf("%s (%s on %s)", strings.Join(first.ruled, ", "), of, first.Deployment.GPU.Name)
}

// wholePrompts lets an iteration hold the longest sequence where prompts are not divided. Where nothing is said of
// its length, that is the model's, or less.
func (u engineResolver) wholePrompts() error {
	s, e := u.Scenario, &u.Scenario.Engine
	if !u.whole || u.policy.LongOutputs && s.Given("engine.max_num_batched_tokens") {
		return nil
	}
	if e.MaxModelLen == nil {
		length := wholePromptTokens
		if s.Given("engine.max_num_batched_tokens") {
			length = *e.MaxNumBatchedTokens
		}
		u.assumedLength = length
		if u.Deployment != nil && u.Deployment.LLM.MaxContext > 0 {
			length = min(length, u.Deployment.LLM.MaxContext)
		}
		e.MaxModelLen = &length
	}
	if !s.Given("engine.max_num_batched_tokens") {
		e.MaxNumBatchedTokens = optional.Of(max(*e.MaxNumBatchedTokens, *e.MaxModelLen))
	}
	return nil
}
