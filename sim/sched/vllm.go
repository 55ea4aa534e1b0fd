package sched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

var vllmRule = Rule{
	Name: "vllm",
	Does: "one token budget for decodes and prefill chunks; running requests first; the last admitted is preempted " +
		"and recomputed",
	Source: "vLLM V1 (v1/core/sched)",
	New:    func() Options { return new(VLLM) },
}

// VLLM is the scheduler of vLLM's V1 engine: no phases, one token budget. Running requests come first, in order of
// admission, then waiting ones; every request is given the tokens that bring its computed tokens up to its known ones.
// Preempted requests are recomputed.
type VLLM struct {
	// Victim is the running request that is preempted. Scheduling policy "priority" takes [LeastUrgent], with the
	// queue's [ByPriority].
	Victim Victim
	// DisableChunkedPrefill admits a prompt only when the budget has room for all of it.
	DisableChunkedPrefill bool
	// LongPrefillTokenThreshold caps the tokens that one request gets in an iteration; 0 is no cap.
	LongPrefillTokenThreshold int32
	// Admission is what the pool must have room for when a request is admitted. vLLM has [FullPrompt], and
	// [FirstChunk] where scheduler_reserve_full_isl is false.
	Admission Admission
	// Watermark is the fraction of the pool that an admission leaves free while others run.
	Watermark float64
	// Swap moves the KV of a preempted request to host memory, as far as there is room, which V1 does not do. It
	// resumes where it was.
	Swap bool
	// MaxLoRAs is the number of adapters that requests of one iteration may use; 0 is no limit. A waiting request that
	// would exceed it is passed over, and others overtake it.
	MaxLoRAs int
	// PadAdmissions admits a request that misses one token with as many dummy drafts as the others have, if running
	// requests get tokens in the iteration and none of them is in prefill: the batch stays uniform, so that a CUDA
	// graph fits. The request waits if the budget has no room for all of them. vLLM does so since 0.25 (PR 45237).
	PadAdmissions bool

	pipeline bool    // preempted requests may wait with tokens in flight, and are passed over
	ordered  bool    // the queue has an order, which may change with every iteration
	adapters []int32 // of the iteration that is composed
	passed   bool    // requests were passed over in this iteration
	hit      bool    // the request that was not admitted had a prefix hit, which the iteration may evict
	uniform  bool    // running requests were given tokens in this iteration, and none of them was in prefill
}

var _ Scheduler = (*VLLM)(nil)

// Make implements [Options].
func (p *VLLM) Make(k *Keys) Scheduler {
	return &VLLM{
		Victim:                    k.Victim,
		DisableChunkedPrefill:     !k.EnableChunkedPrefill,
		LongPrefillTokenThreshold: k.LongPrefillTokenThreshold,
		Admission:                 k.Admission,
		Watermark:                 k.Watermark,
		Swap:                      k.Swap,
		MaxLoRAs:                  k.MaxLoRAs,
		PadAdmissions:             k.PadAdmissions,
	}
}

// Defaults implements [Options].
func (*VLLM) Defaults() Defaults { return Defaults{Software: "vllm"} }

// Validate implements [Scheduler].
func (p *VLLM) Validate(l Limits) error {
	p.pipeline, p.ordered = l.Pipeline, l.Ordered
	switch {
	case p.DisableChunkedPrefill && l.MaxNumBatchedTokens < int(l.MaxModelLen):
		return fmt.Errorf("max_num_batched_tokens: %d is less than max_model_len %d, which chunked prefill off does "+
			"not allow",
			l.MaxNumBatchedTokens, l.MaxModelLen)
	case l.Contiguous && p.Admission != FullLength:
		return errors.New("policy vllm: sequences grow block by block, which a contiguous pool does not allow")
	case l.Speculative && p.Admission == FullLength:
		return errors.New("policy vllm: room for the full length of requests does not go with drafts, which need more")
	case l.Connector && p.Admission == FullLength:
		return errors.New("policy vllm: room for the full length of requests does not go with KV that is loaded, " +
			"which takes room for the tokens known")
	case p.Swap && l.HostBlocks == 0:
		return errors.New("preemption: swap needs swap space in host memory, which has none")
	case p.Swap && l.PrefixCaching:
		return errors.New("preemption: swap does not go with prefix caching")
	case p.MaxLoRAs < 0:
		return fmt.Errorf("max_loras: %d is negative", p.MaxLoRAs)
	case p.LongPrefillTokenThreshold < 0:
		return fmt.Errorf("long_prefill_token_threshold: %d is negative", p.LongPrefillTokenThreshold)
	case !(p.Watermark >= 0 && p.Watermark < 1):
		return fmt.Errorf("watermark: %v is not allowed (want 0 or more, less than 1)", p.Watermark)
	}
	return nil
}

// Schedule implements [Scheduler].
func (p *VLLM) Schedule(v View) {
	p.passed, p.hit = false, false
	if p.extendRunning(v) {
		v.Blocked(p.admitWaiting(v))
	} else {
		v.Blocked(HeldByPolicy)
	}
}

// extendRunning gives the running requests their tokens, and reports whether it did so without a preemption.
func (p *VLLM) extendRunning(v View) bool {
	calm, given := true, false
	p.uniform = p.PadAdmissions && v.NextPrefill(None) == None
	for s := v.DecodeAll(); s != None && v.Budget() > 0; s = v.Next(s) {
		want := v.Clip(s, min(p.capped(v.Missing(s)), v.Budget()), p.LongPrefillTokenThreshold)
		if want == 0 {
			continue
		}
		for !v.Grow(s, want) {
			victim := p.Victim.Of(v)
			p.preempt(v, victim)
			calm = false
			if victim == s {
				return false
			}
		}
		v.Give(s, want)
		given = true
	}
	p.uniform = p.uniform && given
	return calm
}

func (p *VLLM) preempt(v View, s Seq) {
	if !p.Swap || !v.SwapOut(s) {
		v.Preempt(s)
	}
}

// admitWaiting admits from the head of the queue while seats, budget and KV blocks last. A request is overtaken only
// while the limit of adapters holds it back, or an iteration in flight computes for it. The cause that blocks the head
// is returned.
func (p *VLLM) admitWaiting(v View) (head Cause) {
	p.countAdapters(v)
	for {
		// As in vLLM, seats and budget are examined first.
		if (p.pipeline || p.MaxLoRAs > 0) && v.Seats() > 0 && v.Budget() > 0 {
			next, ok := v.Peek(0)
			if ok && (next.InFlight || !p.adapterFits(next.Adapter)) {
				head, p.passed = HeldByPolicy, true
				v.Skip()
				continue
			}
		}
		w, ok := v.Waiting(0)
		if !ok {
			return head
		}
		if why := p.admit(v, &w); why != NotBlocked {
			p.hit = w.Cached > 0
			return cmp.Or(head, why)
		}
		p.use(w.Adapter)
	}
}

// countAdapters finds the adapters of the running requests that are part of the iteration.
func (p *VLLM) countAdapters(v View) {
	if p.MaxLoRAs == 0 {
		return
	}
	p.adapters = p.adapters[:0]
	for s := v.First(); s != None; s = v.Next(s) {
		if v.Given(s) > 0 {
			p.use(v.Progress(s).Adapter)
		}
	}
}

// use adds an adapter to those of the iteration, if their number is limited.
func (p *VLLM) use(adapter int32) {
	if p.MaxLoRAs > 0 && adapter != 0 && !slices.Contains(p.adapters, adapter) {
		p.adapters = append(p.adapters, adapter)
	}
}

// adapterFits reports whether a request with an adapter may be added to the iteration.
func (p *VLLM) adapterFits(adapter int32) bool {
	return p.MaxLoRAs == 0 || adapter == 0 || len(p.adapters) < p.MaxLoRAs || slices.Contains(p.adapters, adapter)
}

// admit admits w, the head of the queue, or returns what it lacks.
func (p *VLLM) admit(v View, w *Waiting) Cause {
	want, whole := p.chunk(v, w)
	switch {
	case v.Seats() == 0:
		return LacksSeats
	case v.Budget() == 0:
		return LacksBudget
	case w.Loadable > 0:
		return p.load(v, w)
	case !whole && (p.DisableChunkedPrefill || p.pads(w)):
		return LacksBudget
	case w.Grouped:
		return p.admitGrouped(v, want)
	case p.asks(v, w, want) > v.LargestFree():
		return LacksKV
	case p.Admission == FullLength:
		admitFull(v, *w, want)
	default:
		v.Admit(0, want)
	}
	return NotBlocked
}

// admitGrouped is the last part of admit with KV cache groups: the chunk must be worth it, and its blocks be free. If
// the whole prompt is reserved, the gate counts what a sequence of that length may hold at a time.
func (p *VLLM) admitGrouped(v View, want int32) Cause {
	if want = v.ClipWaiting(0, want, p.LongPrefillTokenThreshold); want == 0 {
		return LacksBudget
	}
	free := v.LargestFree() - p.reserve(v)
	if p.Admission == FullPrompt && v.Needs(0, want, true) > free || v.Needs(0, want, false) > free {
		return LacksKV
	}
	v.Admit(0, want)
	return NotBlocked
}

// Grouped implements [Grouped].
func (p *VLLM) Grouped() error {
	if p.Admission == FullLength {
		return errors.New("policy vllm: room for the full length of requests does not go with KV cache groups")
	}
	return nil
}

var _ Grouped = (*VLLM)(nil)

// load loads the KV of w, the head of the queue, which then leaves the queue, or returns what it lacks.
func (p *VLLM) load(v View, w *Waiting) Cause {
	if v.BlocksFor(w.Known)-w.Held+p.reserve(v) > v.LargestFree() || !v.Load(0) {
		return LacksKV
	}
	return NotBlocked
}

// chunk returns the number of tokens that w is given if it is admitted now; whole means that the budget does not cut
// it.
func (p *VLLM) chunk(v View, w *Waiting) (tokens int32, whole bool) {
	want := w.Known - max(w.Cached, w.Computed)
	if p.pads(w) {
		want += w.Padding
	}
	want = p.capped(want)
	return min(want, v.Budget()), want <= v.Budget()
}

// pads reports whether w is admitted with dummy drafts.
func (p *VLLM) pads(w *Waiting) bool { return p.uniform && w.Padding > 0 }

// asks returns the number of free blocks required to admit w with want tokens.
func (p *VLLM) asks(v View, w *Waiting, want int32) int {
	reserve := p.reserve(v)
	chunk := v.Slots(max(w.Cached, w.Computed) + want)
	switch p.Admission {
	case FullLength:
		return fullBlocks(v, *w) + reserve
	case FirstChunk:
		return v.BlocksFor(chunk) - w.Held + reserve
	}
	return v.BlocksFor(max(w.Known, chunk)) - w.Held + reserve
}

// reserve returns the number of blocks that an admission leaves free.
func (p *VLLM) reserve(v View) int {
	if v.RunningLen() == 0 {
		return 0
	}
	return int(p.Watermark * float64(v.Blocks()))
}

func (p *VLLM) capped(tokens int32) int32 {
	if p.LongPrefillTokenThreshold > 0 {
		return min(tokens, p.LongPrefillTokenThreshold)
	}
	return tokens
}

// Repeats implements [Scheduler]. A request that was not admitted stays so while the number of free blocks falls,
// unless its prompt is still being generated, or the eviction of cached blocks changes the number of blocks that it
// needs. Behind requests that were passed over, the order of the queue may change.
func (p *VLLM) Repeats(v View) int {
	byHit := p.Admission == FirstChunk || p.DisableChunkedPrefill
	if w, ok := v.Waiting(0); p.passed && p.ordered || ok && (w.Live || (p.hit || w.Cached+w.Loadable > 0) && byHit) {
		return 1
	}
	return forever
}
