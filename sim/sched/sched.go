// Package sched has the batching policies, one file each, and the interface between a policy and the engine that it
// runs on.
//
// A policy composes one iteration at a time. It queries a [View] and acts through the view's methods; it keeps no state
// of sequences of its own. The engine calls it only when something may have changed: between changes it repeats the
// last decision for many iterations at once.
//
// # Sequences
//
// A request in the running batch is a sequence. It has known tokens, the prompt and the output so far, and computed
// tokens, whose KV is in the pool once the iterations in flight have ended. A sequence in prefill has more than one
// known token to compute, or has not reached the end of them since its admission; with the last of them it produces the
// next output token. From the next iteration on it decodes: each iteration that gives it one token computes that one
// and produces another. A sequence whose whole output is scheduled, as far as the engine can predict it, is given no
// more tokens; it keeps its seat and its blocks until its last token has been processed.
//
// A token counts as known from the iteration after the one that produces it, whether or not that iteration has ended;
// so a policy need not know how many iterations are in flight.
//
// # One iteration
//
// A composition gives tokens: to all decoding sequences at once ([Decoding.DecodeAll], [Decoding.DecodeFirst]), to
// single sequences (Grow, then Give), to waiting requests (Admit). No sequence is given tokens twice; what was given to
// a sequence that is then preempted returns to the budget. A running sequence that is given no tokens is held: it keeps
// its seat and its blocks, and its client waits. An iteration without tokens is not run: if the composition preempted a
// sequence and nothing is in flight, the policy is called again at the same instant; otherwise at the next boundary. A
// policy must be able to admit, on an idle engine, any request whose declared length fits the pool; otherwise the run
// fails, because it would never end.
//
// The batch is always in running order: so are its rows, and the order in which its results are streamed and its
// sequences end. KV blocks are taken in the order of giving.
//
// A policy that breaks a rule of this package fails the run with an error.
package sched

// Seq is a handle to a running sequence. It is valid until the sequence leaves the running batch.
type Seq int32

// None is no sequence.
const None Seq = -1

// Scheduler is a batching policy. It may keep state between iterations, such as a counter or a ratio, as
// long as that depends only on what its views showed. A scheduler serves one replica.
type Scheduler interface {
	// Schedule composes the next iteration.
	Schedule(v View)
	// Repeats returns for how many iterations, this one included, Schedule would do the same. It is called after a
	// Schedule whose whole effect was one token for every decoding sequence, and perhaps a Pad and a Blocked. The view
	// is as after Schedule; the policy may query it, but not act. At each of these iterations time has advanced,
	// DecodeSteps and the output of sequences have grown by one, and free blocks are fewer.
	//
	// The engine itself ends the repetition when a sequence leaves, when a prefill chunk that was in flight has been
	// computed, when blocks are freed that were kept for KV in flight, when the pool cannot hold the next step, when
	// the queue has a new head and, if the policy called WaitingLen or looked beyond the head in Schedule or here, when
	// a request joins the queue. A policy that cannot promise more returns 1. State of the policy that changes with
	// each call of Schedule must not depend on skipped calls; use [Iteration.DecodeSteps] instead.
	Repeats(v View) int
	// Validate checks the policy's knobs against its engine.
	Validate(l Limits) error
}

// EndObserver is a [Scheduler] whose state depends on the sequences that end.
type EndObserver interface {
	Scheduler
	// Ended is called when a running sequence ends, complete or cancelled, before the next iteration is composed. The
	// argument is its progress at the end.
	Ended(p Progress)
}

// Limits are the properties of an engine that matter to a policy.
type Limits struct {
	// MaxNumSeqs is the number of seats in the running batch, MaxNumBatchedTokens the token budget of an
	// iteration; the latter is at least the former.
	MaxNumSeqs, MaxNumBatchedTokens int
	// MaxModelLen is the longest sequence, prompt and output, in tokens.
	MaxModelLen int32
	// MaxPromptLen is the longest prompt in tokens; 0 is that of the longest sequence.
	MaxPromptLen int32
	// BlockSize is the number of tokens in a KV block, NumGPUBlocks the number of blocks as the engine logs
	// it, the null block included; 0 is an unlimited pool.
	BlockSize    int32
	NumGPUBlocks int
	// HostBlocks is the number of KV blocks in host memory; 0 is no swapping.
	HostBlocks int
	// Connector means that KV of waiting requests may be loaded from a tier or another replica.
	Connector bool
	// PrefixCaching means that leading tokens of requests may be cached. Contiguous means that a sequence holds one
	// range of the pool, so that it must reserve on admission all that it will need.
	PrefixCaching, Contiguous bool
	// Ordered means that the queue has an [Order], so that only its head can be seen.
	Ordered bool
	// Pipeline means that there are several pipeline stages, so that preempted requests may wait [Progress.InFlight].
	Pipeline bool
	// Async means that an iteration is composed while the one before it runs.
	Async bool
	// Speculative means that decoding sequences are given drafts, so that each must be visited: DecodeAll and
	// DecodeFirst schedule nothing.
	Speculative bool
	// Hybrid means that there are KV cache groups with block tables of their own, so that each sequence must be
	// visited: DecodeAll and DecodeFirst schedule nothing.
	Hybrid bool
}

// Grouped is a [Scheduler] that allocates blocks of several KV cache groups: it asks [Grouping] instead of BlocksFor.
type Grouped interface {
	Scheduler
	// Grouped reports settings that do not work with groups.
	Grouped() error
}
