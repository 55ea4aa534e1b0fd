package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/sched"
)

// wholePromptTokens is the default of the longest sequence where prompts are not divided: an iteration has room
// for one, and the memory for its activations is set aside.
const wholePromptTokens = 16_384

// policy is a batching policy with its options and what it says of the engine around it.
type policy struct {
	sched.Defaults
	name     string
	rule     sched.Rule
	options  sched.Options
	software *software
	release  release // of vLLM
}

// meanDrafts reports whether drafts are in the step time only, because the engine gives each sequence one token in an
// iteration.
func (p *policy) meanDrafts(s *Scenario) bool {
	_, builtIn := BuiltIn().Policies.Find(p.name)
	return builtIn && p.name != "vllm" || s.apart()
}

func (p *policy) scheduler(e *Engine, seed uint64, replica int) sched.Scheduler {
	keys := p.keys(e)
	keys.Seed, keys.Replica = seed, replica
	return p.options.Make(keys)
}

func (p *policy) keys(e *Engine) *sched.Keys {
	return &sched.Keys{
		MaxNumBatchedTokens: limitInt32(*e.MaxNumBatchedTokens), BlockSize: limitInt32(e.BlockSize),
		LongPrefillTokenThreshold: limitInt32(e.LongPrefillTokenThreshold), PreemptionThreshold: e.PreemptionThreshold,
		MaxLoRAs:             optional.Value(e.MaxLoRAs),
		PadAdmissions:        e.Speculative != nil && p.release.PadAdmissions,
		EnableChunkedPrefill: e.EnableChunkedPrefill, Swap: e.Preemption == "swap", Watermark: e.Watermark,
		Victim: e.victim(), Admission: e.admission(),
	}
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

// host is the engine whose kernels, host and front end run: the engine of the policy, or of the kernels.
func (e *Engine) host(p *policy) *software {
	if e.ownKernels() {
		return p.software
	}
	return softwareNamed(e.Kernels)
}

// ownKernels reports whether the kernels belong to the policy's engine.
func (e *Engine) ownKernels() bool {
	return e.Policy != "vllm" || e.Kernels == "auto" || e.Kernels == "vllm"
}

func (s *Scenario) policy() (p policy, fault *yamldoc.Fault) {
	policies := s.rules().Policies
	if r, ok := policies.Find(s.Engine.Policy); ok {
		options := s.Engine.Options.Of(&r)
		d := options.Defaults()
		return policy{Defaults: d, name: r.Name, rule: r, options: options, software: softwareNamed(d.Software)}, nil
	}
	names := policies.Names()
	fault = s.Fault("engine.policy", "%q is not known (want %s)", yamldoc.Short(s.Engine.Policy), yamldoc.OneOf(names))
	fault.Hint = cmp.Or(yamldoc.DidYouMean(s.Engine.Policy, names), "clifftop catalog policies lists all of them")
	return p, fault
}

// resolvePolicy returns the policy that the scenario names, and the engine's keys with what follows from it.
func resolvePolicy(s *Scenario) (p policy, e Engine, found findings) {
	e = s.Engine
	p, fault := s.policy()
	if fault != nil {
		return p, e, refuse(fault)
	}
	d := &p.Defaults
	if d.Synchronous {
		e.AsyncScheduling = e.AsyncScheduling.or(false)
	}
	usual := defaultEngine() // a program may have set a knob that no file gives
	if d.NoPrefixCaching && !s.Given("engine.enable_prefix_caching") {
		e.EnablePrefixCaching = false
	}
	if d.BlockSize > 0 && !s.Given("engine.block_size") && e.BlockSize == usual.BlockSize {
		e.BlockSize = d.BlockSize
	}
	if (d.Reserves || e.admission() == sched.FullLength) && s.Workload.MaxTokens == nil {
		found.warn("declared_lengths", "workload.max_tokens is not set, so that clients declare the exact output "+
			"length: policy %s reserves KV with perfect knowledge", p.name)
	}
	for _, key := range e.Options.Unused(&p.rule) {
		found.warn("unused", "engine.%s has no effect on policy %s", key, p.name)
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
	switch {
	case d.WholePrompts && s.Given(chunking) && e.EnableChunkedPrefill:
		found.fault(s.Fault(chunking, "true is not allowed (want false: policy %s does not divide prompts)", p.name))
	case e.Preemption == "never" && e.Admission != "auto" && e.Admission != "full-length":
		found.fault(s.Fault(s.FirstGiven("engine.preemption", "engine.admission"),
			"never is not possible with admission %s (want full-length)", e.Admission))
	}
	if d.WholePrompts || d.WholeByDefault && !s.Given(chunking) {
		e.EnableChunkedPrefill = false
	}
	return p, e, found
}

// resolveSizes fills in max_num_seqs and max_num_batched_tokens by the rules of the engine, and names those that follow
// from the GPU. A step time that knows no GPU has 256 and 8,192.
func resolveSizes(s *Scenario, e Engine, p *policy, gpu *model.GPU) (_ Engine, ruled []string) {
	own := batchSizes{
		maxNumSeqs:          256,
		maxNumBatchedTokens: max(cmp.Or(p.TokenBudget, 8192), optional.Value(e.MaxNumSeqs)),
	}
	rule := p.software.sizes
	byGPU := rule != nil && s.StepTime.Kind != "linear"
	if byGPU {
		own = rule(gpuSize{
			bytes: cmp.Or(gpu.ReportedBytes, gpu.MemoryBytes), a100: strings.HasPrefix(gpu.Name, "a100"),
			a100Small: p.release.A100Small,
		})
	}
	seats, tokens := byGPU && e.MaxNumSeqs == nil && p.software.seats == nil, byGPU && e.MaxNumBatchedTokens == nil
	optional.Default(&e.MaxNumBatchedTokens, own.maxNumBatchedTokens)
	optional.Default(&e.MaxNumSeqs, min(own.maxNumSeqs, *e.MaxNumBatchedTokens))
	if seats {
		ruled = append(ruled, fmt.Sprint("max_num_seqs ", *e.MaxNumSeqs))
	}
	if tokens {
		ruled = append(ruled, fmt.Sprint("max_num_batched_tokens ", *e.MaxNumBatchedTokens))
	}
	return e, ruled
}

// resolveSeats sets max_num_seqs by the engine's rule, where that depends on the pool.
func resolveSeats(s *Scenario, e Engine, p *policy, blocks int) (_ Engine, ruled []string) {
	rule := p.software.seats
	if rule == nil || s.Engine.MaxNumSeqs != nil || s.StepTime.Kind == "linear" || blocks == 0 || e.MaxModelLen == nil {
		return e, nil
	}
	e.MaxNumSeqs = optional.Of(min(rule((blocks-1)*e.BlockSize, *e.MaxModelLen), *e.MaxNumBatchedTokens))
	return e, []string{fmt.Sprint("max_num_seqs ", *e.MaxNumSeqs)}
}

// resolveWholePrompts lets an iteration hold the longest sequence where prompts are not divided. Where nothing is said
// of its length, it is the model's or less, and assumed is the length before that.
func resolveWholePrompts(s *Scenario, e Engine, p *policy, maxContext int) (_ Engine, assumed int) {
	budget := s.Given("engine.max_num_batched_tokens")
	if e.EnableChunkedPrefill || p.name == "vllm" || p.name == "preemptive" || p.LongOutputs && budget {
		return e, 0
	}
	if e.MaxModelLen == nil {
		assumed = wholePromptTokens
		if budget {
			assumed = *e.MaxNumBatchedTokens
		}
		length := assumed
		if maxContext > 0 {
			length = min(length, maxContext)
		}
		e.MaxModelLen = &length
	}
	if !budget {
		e.MaxNumBatchedTokens = optional.Of(max(*e.MaxNumBatchedTokens, *e.MaxModelLen))
	}
	return e, assumed
}

// resolveOrder returns the rank of waiting requests; nil is first come, first served.
func resolveOrder(s *Scenario) (order sched.Order, found findings, err error) {
	o, key := s.Engine.Order, "order"
	if o.Rule == "" {
		o.Rule, key = s.Engine.SchedulingPolicy, "scheduling_policy"
	}
	options, ok := o.Options(s.rules().Orders, o.Rule)
	if !ok {
		return nil, found, fmt.Errorf("%q is not known", o.Rule)
	}
	if i, ok := options.(sched.IdleOrder); ok {
		if why := i.Idle(s.Workload.orderTraffic()); why != "" {
			found.warn(o.Rule, "%s is %s, but %s", key, o.Rule, why)
		}
	}
	order = options.Make(s.Run.Seed)
	if v, ok := order.(interface{ Validate() error }); ok {
		err = v.Validate()
	}
	return order, found, err
}

// orderTraffic returns the properties of the traffic that orders use.
func (w *Workload) orderTraffic() sched.OrderTraffic {
	return sched.OrderTraffic{
		Labelled: w.Trace != nil || len(w.Classes) > 0,
		Users: w.Arrivals != nil && slices.ContainsFunc(w.Arrivals.Stages, func(t Stage) bool {
			return t.Users != nil
		}),
	}
}
