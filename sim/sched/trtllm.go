package sched

import (
	"cmp"
	"errors"
	"fmt"
)

var (
	trtllmGuaranteedNoEvictRule = trtllmRule("trtllm-guaranteed-no-evict", GuaranteedNoEvict,
		"starts a request when the longest outputs of all fit; never pauses a request")
	trtllmMaxUtilizationRule = trtllmRule("trtllm-max-utilization", MaxUtilization,
		"starts a request when its prompt fits; the last started is paused when the pool runs out")
	trtllmStaticRule = trtllmRule("trtllm-static", StaticBatch, "starts requests only when the batch is empty")
)

func trtllmRule(name string, capacity Capacity, does string) Rule {
	return Rule{
		Name:    name,
		Does:    does,
		Source:  "TensorRT-LLM (batch_manager/capacityScheduler, microBatchScheduler)",
		Section: "trtllm",
		New: func() Options {
			return &TRTLLM{Capacity: capacity, FreeGPUMemory: 0.9, Waits: ContextWaits{Timeout: 50, Batching: 10}}
		},
	}
}

// TRTLLM is the scheduler of TensorRT-LLM. In each iteration the capacity policy decides first which requests may hold
// KV. Then all generating requests run, and contexts with the rest of the token budget. A context takes the blocks of
// its whole prompt when its first chunk runs.
//
// With prefix caching TensorRT-LLM delays a new request for an iteration when one that it just started produces what
// both share. Here the second finds the blocks of the first in the same iteration, so that it need not wait.
type TRTLLM struct {
	// Capacity is the capacity scheduler policy.
	Capacity Capacity
	// ChunkedContext cuts contexts at the rest of the token budget (enable_chunked_prefill, off by default); without it
	// a longer one waits.
	ChunkedContext bool
	// Chunking shares the budget among contexts, in multiples of ChunkUnit tokens except for the last chunk.
	Chunking Chunking `json:"context_chunking_policy" doc:"how prompts share the token budget"`

	ChunkUnit int32 `json:"context_chunk_size" range:"[1,16777216]" doc:"unit of chunks, in tokens; null is block_size"`

	// FreeGPUMemory is not the scheduler's: the pool takes this part of the memory.
	FreeGPUMemory float64 `json:"free_gpu_memory_fraction" range:"(0,1]" doc:"part of the memory left after loading"`

	// Waits says how data-parallel ranks wait for contexts of each other.
	Waits ContextWaits `json:",inline"`

	held    bool           // the ranks wait
	ordered bool           // the queue has an order
	why     Cause          // why the head was not started last
	shares  []contextShare // scratch
}

var _ ContextHolder = (*TRTLLM)(nil)

// Make implements [Options].
func (p *TRTLLM) Make(k *Keys) Scheduler {
	made := *p
	made.ChunkedContext = k.EnableChunkedPrefill
	made.ChunkUnit = cmp.Or(p.ChunkUnit, k.BlockSize)
	if !p.Waits.Balance {
		made.Waits = ContextWaits{}
	}
	return &made
}

// Defaults implements [Options].
func (p *TRTLLM) Defaults() Defaults {
	reserves := p.Capacity != MaxUtilization
	return Defaults{Software: "trtllm", Synchronous: true, WholeByDefault: true, BlockSize: 32, Reserves: reserves,
		LongOutputs: reserves}
}

// ContextWaits says how data-parallel ranks in lock step wait until all of them have contexts, so that a context does
// not stall ranks that only generate (attention_dp_config). The zero value is not to wait.
type ContextWaits struct {
	// Balance lets scenarios turn the wait on. The scheduler reads the numbers only.
	Balance bool `json:"attention_dp_enable_balance" doc:"data-parallel ranks wait until all have prompts"`
	// Timeout is the number of iterations after which contexts run although some ranks have none; 0 is not to wait.
	Timeout  int `json:"attention_dp_timeout_iters" range:"[1,1e6]" doc:"iterations after which they wait no longer"`
	Batching int `json:"attention_dp_batching_wait_iters" range:"[0,1e6]" doc:"iterations that prompts wait for more"`
}

// ContextHolder is a [Scheduler] of data-parallel ranks that wait for contexts of each other.
type ContextHolder interface {
	Scheduler
	// ContextWaits returns how the ranks wait.
	ContextWaits() ContextWaits
	// HoldContexts sets whether iterations leave contexts out.
	HoldContexts(hold bool)
}

// ContextWaits implements [ContextHolder].
func (p *TRTLLM) ContextWaits() ContextWaits { return p.Waits }

// HoldContexts implements [ContextHolder].
func (p *TRTLLM) HoldContexts(hold bool) { p.held = hold }

// Capacity is a rule that decides which requests may hold KV.
type Capacity uint8

// The capacity policies.
const (
	// GuaranteedNoEvict starts a request only if there is room for its prompt and its longest output, in addition to
	// what the running ones may still take; no sequence is ever paused.
	GuaranteedNoEvict Capacity = iota
	// MaxUtilization starts a request if there is room for its prompt. When the pool runs out the request started last
	// is paused, and computed again later.
	MaxUtilization
	// StaticBatch is GuaranteedNoEvict, but contexts are computed, and requests started, only while none generates.
	StaticBatch
)

// String returns TensorRT-LLM's name for the policy.
func (c Capacity) String() string {
	return [...]string{"GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"}[c]
}

// Chunking is a rule that shares the token budget among contexts.
type Chunking uint8

// The chunking policies.
const (
	// FirstComeFirstServed gives each context all that it can use, in order. One that is left with less than a unit
	// gets nothing, and a later one that fits whole overtakes it.
	FirstComeFirstServed Chunking = iota
	// EqualProgress gives all contexts one unit each in turn.
	EqualProgress
)

// Names returns TensorRT-LLM's names for the policies.
func (Chunking) Names() []string { return []string{"FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS"} }

// String returns TensorRT-LLM's name for the policy.
func (c Chunking) String() string { return c.Names()[c] }

// Validate implements [Scheduler].
func (p *TRTLLM) Validate(l Limits) error {
	switch p.ordered = l.Ordered; {
	case l.Speculative || l.Connector:
		return needsTokens("trtllm", l)
	case !p.ChunkedContext && l.MaxNumBatchedTokens < int(p.longestContext(l)):
		return needsWholePrompts("trtllm without enable_chunked_prefill", l)
	case p.ChunkedContext && (p.ChunkUnit < 1 || int(p.ChunkUnit) > l.MaxNumBatchedTokens):
		return fmt.Errorf("chunk unit: %d is not allowed (want 1 to max_num_tokens %d)", p.ChunkUnit,
			l.MaxNumBatchedTokens)
	case p.Chunking == EqualProgress && l.Ordered:
		return errors.New("chunking policy: EQUAL_PROGRESS does not go with an order of the queue")
	}
	return needsPages("trtllm", l)
}

// longestContext is the most tokens of a context: a paused request is computed again with its output so far.
func (p *TRTLLM) longestContext(l Limits) int32 {
	if p.Capacity != MaxUtilization && l.MaxPromptLen > 0 {
		return min(l.MaxPromptLen, l.MaxModelLen)
	}
	return l.MaxModelLen
}

// Schedule implements [Scheduler].
func (p *TRTLLM) Schedule(v View) {
	r := newRoom(p.Capacity, v)
	for !v.DecodeFirst() {
		last := lastStarted(v)
		if last == None {
			break
		}
		v.Preempt(last)
		r.closed = true
	}
	switch {
	case p.held:
		p.why = NotBlocked
		if v.WaitingLen() > 0 {
			p.why = HeldByPolicy
		}
	case p.ChunkedContext && p.Chunking == EqualProgress:
		p.why = p.inTurns(v, r)
	default:
		p.why = p.inOrder(v, r)
	}
	if p.why != NotBlocked {
		v.Blocked(p.why)
	}
}

// Repeats implements [Scheduler]. Decoding takes what it was promised, or makes blocks scarcer: a request
// that could not be started still cannot, unless the cache holds more of it. But one that lacks tokens of
// the budget may lack blocks later.
func (p *TRTLLM) Repeats(v View) int {
	if p.Capacity == MaxUtilization && p.why == LacksBudget {
		return 1
	}
	if w, ok := v.Waiting(0); ok && w.Live {
		return 1
	}
	return forever
}

// lastStarted returns the last admitted sequence that is not about to end.
func lastStarted(v View) Seq {
	s := v.Last()
	for s != None && v.Missing(s) == 0 {
		s = v.Prev(s)
	}
	return s
}

// inOrder gives running contexts, then waiting requests, all that they can use. It returns the cause that
// stopped it, if there is one.
func (p *TRTLLM) inOrder(v View, r *room) (head Cause) {
	for s := v.NextPrefill(None); s != None && !r.contextsWait; s = v.NextPrefill(s) {
		if n := p.chunk(v.Missing(s), v.Budget()); n > 0 && v.Grow(s, n) {
			v.Give(s, n)
		}
	}
	for i := 0; ; {
		w, why := r.next(i)
		if w == nil || why != NotBlocked {
			return cmp.Or(head, why)
		}
		n := p.chunk(w.Known-w.Cached, v.Budget())
		switch {
		case n > 0:
			r.start(i, n, *w)
			continue
		case !p.ChunkedContext || v.Budget() == 0:
			return LacksBudget
		}
		head = LacksBudget
		r.look(*w)
		if p.ordered {
			v.Skip()
		} else {
			i++
		}
	}
}

// chunk returns the number of tokens of the budget for a context that lacks missing tokens.
func (p *TRTLLM) chunk(missing, budget int32) int32 {
	switch {
	case missing <= budget:
		return missing
	case !p.ChunkedContext:
		return 0
	}
	return budget / p.ChunkUnit * p.ChunkUnit
}
