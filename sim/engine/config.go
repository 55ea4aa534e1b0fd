package engine

import (
	"clifftop/internal/faults"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Config describes one serving engine. Knobs carry vLLM's names.
type Config struct {
	// Scheduler composes the iterations. Each replica needs its own.
	Scheduler sched.Scheduler
	// Order ranks the waiting queue; nil is first come, first served.
	Order sched.Order
	// Timer gives the length of iterations.
	Timer model.StepTimer

	// MaxNumSeqs limits the running batch; MaxNumBatchedTokens the tokens of one iteration, and
	// is at least MaxNumSeqs.
	MaxNumSeqs, MaxNumBatchedTokens int
	// MaxModelLen is the longest sequence, prompt and answer, in tokens. A prompt that reaches
	// it is rejected; an answer that reaches it is cut.
	MaxModelLen int32

	// BlockSize is the number of tokens in a KV block.
	BlockSize int32
	// NumGPUBlocks is the number of KV blocks that vLLM logs; it includes the null block, so that
	// NumGPUBlocks-1 are usable. 0 means an unlimited pool.
	NumGPUBlocks int
	// PrefixCaching lets requests reuse the blocks of others that lead with the same tokens. It needs a
	// limited pool.
	PrefixCaching bool
	// AppendUnkeyed puts freed blocks that hold no cached prefix at the back of the free list,
	// as vLLM did before 0.28, and not at the front.
	AppendUnkeyed bool

	// Groups are the KV cache groups that share the pool; nil is one group that keeps every token.
	Groups model.KVGroups

	// AsyncScheduling keeps two iterations in flight: the next is scheduled while one runs.
	AsyncScheduling bool
	// Stages is the number of stages of a pipeline, each of which may work on a batch of its own: so many iterations
	// are in flight, with or without asynchronous scheduling. 0 and 1 are no pipeline. It needs a scheduler that is
	// [sched.Pipelined].
	Stages int
	// Frontend and FrontendPerToken delay a request on its way to the engine's queue:
	// a constant, and a part for each token of the prompt.
	Frontend, FrontendPerToken clock.Duration
	// NetworkIn is the way from a client to the front end, NetworkOut that of tokens back.
	NetworkIn, NetworkOut clock.Duration
	// StreamPerSequence delays the k-th sequence of a batch by k times this on the way to the client.
	StreamPerSequence clock.Duration

	// MaxTokens is the longest answer that clients ask for. The engine does not know that an answer
	// will be shorter: it ends by an end-of-sequence token, unpredictably, and under asynchronous
	// scheduling takes part in one more iteration, for nothing. 0 means that clients ask for exactly
	// what they get.
	MaxTokens int32

	// CPUStep and CPUPerSequence are the host's time for an iteration: a constant, and a part
	// for each sequence in it. It adds to the GPU's time, or hides behind it under asynchronous
	// scheduling, where the longer of both counts.
	CPUStep, CPUPerSequence clock.Duration

	// MaxQueuedRequests and MaxQueuedTokens reject a request that finds so many requests in the
	// engine, waiting or running, or so many prompt tokens still to be computed, when it comes to the
	// queue; 0 is no limit.
	MaxQueuedRequests int
	MaxQueuedTokens   int64

	// HostBlocks is the number of KV blocks that host memory takes for sequences that are
	// swapped out; 0 means that there is no swapping. An iteration lasts HostFemtosPerBlock longer for
	// each block that is copied, either way.
	HostBlocks         int
	HostFemtosPerBlock int64

	// Contiguous gives each sequence one hole of the pool, the first that is large enough, and not
	// any blocks. The policy reserves what a sequence may ever need when it admits it.
	Contiguous bool
	// Radix keeps the prefix cache as a radix tree of tokens, as SGLang does, and not as
	// hashed blocks. It needs PrefixCaching.
	Radix bool

	// Connector connects the KV pool with KV elsewhere; nil for none. It needs a policy that loads it.
	Connector *Connector

	// Speculative is speculative decoding, with policies that give sequences their tokens one by one.
	Speculative Speculative

	// MaxSpan limits how many iterations are taken at once; 0 is no limit, 1 steps singly. It
	// changes no result.
	MaxSpan int
	// Check asserts the invariants after every change, at a cost. Floor, if it is known, is then a length
	// in seconds that no iteration may beat.
	Check bool
	Floor func(b *model.Batch) float64
}

// Charge returns the blocks that a sequence that holds so many blocks is charged for KV cache groups that keep only some
// of its tokens.
func (c *Config) Charge(blocks int) int { return c.Groups.Charge(blocks, int(c.BlockSize)) }

// mostCharged returns the number of blocks from which on the charge stays the same; 0 means that there is no charge.
func (c *Config) mostCharged() int { return c.Groups.MostCharged(int(c.BlockSize)) }

// UnlimitedBlocks is the size of an unlimited pool.
const UnlimitedBlocks = 1 << 40

// UsableBlocks is the number of KV blocks that sequences can hold.
func (c *Config) UsableBlocks() int {
	if c.NumGPUBlocks == 0 {
		return UnlimitedBlocks
	}
	return c.NumGPUBlocks - 1
}

// limits is what a policy learns of the configuration.
func (c *Config) limits() sched.Limits {
	return sched.Limits{
		MaxNumSeqs: c.MaxNumSeqs, MaxNumBatchedTokens: c.MaxNumBatchedTokens, MaxModelLen: c.MaxModelLen,
		BlockSize: c.BlockSize, NumGPUBlocks: c.NumGPUBlocks,
		HostBlocks: c.HostBlocks, PrefixCaching: c.PrefixCaching, Contiguous: c.Contiguous,
		Connector: c.Connector != nil, Ordered: c.Order != nil, Async: c.AsyncScheduling,
		Speculative: c.Speculative.On(),
	}
}

// Limited reports whether the queue may refuse requests.
func (c *Config) Limited() bool { return c.MaxQueuedRequests > 0 || c.MaxQueuedTokens > 0 }

// Validate reports every fault of the configuration.
func (c *Config) Validate() error {
	var found faults.List
	want := found.Check
	want(c.Scheduler != nil, "no scheduler")
	want(c.Timer != nil, "no step timer")
	want(c.MaxNumSeqs >= 1, "max_num_seqs: %d is not allowed (want 1 or more)", c.MaxNumSeqs)
	want(c.MaxNumBatchedTokens >= c.MaxNumSeqs, "max_num_batched_tokens: %d is less than max_num_seqs %d",
		c.MaxNumBatchedTokens, c.MaxNumSeqs)
	want(c.MaxModelLen >= 2, "max_model_len: %d is not allowed (want 2 or more)", c.MaxModelLen)
	want(c.BlockSize >= 1, "block_size: %d is not allowed (want 1 or more)", c.BlockSize)
	want(c.NumGPUBlocks == 0 || c.NumGPUBlocks >= 2, "num_gpu_blocks: %d is not allowed (want 2 or more)",
		c.NumGPUBlocks)
	want(c.NumGPUBlocks != 0 || !c.PrefixCaching,
		"enable_prefix_caching: an unlimited pool has no cache (set num_gpu_blocks_override)")
	found.Add(c.Groups.Validate())
	want(c.Frontend >= 0 && c.FrontendPerToken >= 0 && c.NetworkIn >= 0 && c.NetworkOut >= 0 &&
		c.StreamPerSequence >= 0, "overheads: a delay is negative")
	want(c.MaxTokens >= 0, "max_tokens: %d is negative", c.MaxTokens)
	want(c.CPUStep >= 0 && c.CPUPerSequence >= 0, "overheads: a host time is negative")
	want(c.MaxQueuedRequests >= 0, "max_num_queued_reqs: %d is negative", c.MaxQueuedRequests)
	want(c.MaxQueuedTokens >= 0, "max_num_queued_tokens: %d is negative", c.MaxQueuedTokens)
	want(c.HostBlocks >= 0 && c.HostFemtosPerBlock >= 0, "swap space: a size or a time is negative")
	want(!c.Contiguous || c.mostCharged() == 0, "contiguous KV: it has no charge for windowed layers")
	want(c.HostBlocks == 0 || !c.PrefixCaching,
		"swap space: sequences that share a prefix cache are not swapped (turn one of them off)")
	want(!c.Contiguous || !c.PrefixCaching, "contiguous KV: it has no prefix cache")
	want(!c.Contiguous || c.NumGPUBlocks != 0, "contiguous KV: it needs a limited pool")
	want(!c.Radix || c.PrefixCaching, "radix: prefix caching is off")
	want(c.MaxSpan >= 0, "max span: %d is negative", c.MaxSpan)
	if c.Stages != 0 && c.Stages != 1 {
		found.Add(c.validatePipeline()...)
	}
	found.Add(c.Speculative.validate(c))
	if c.Connector != nil {
		found.Add(c.Connector.validate(c))
	}
	if o, ok := c.Order.(interface{ Validate() error }); ok {
		found.Add(o.Validate())
	}
	if c.Scheduler != nil {
		found.Add(c.Scheduler.Validate(c.limits()))
	}
	return found.Err()
}

// blocksFor is the number of blocks that hold the given tokens.
func (c *Config) blocksFor(tokens int32) int {
	return int((int64(tokens) + int64(c.BlockSize) - 1) / int64(c.BlockSize))
}

// pagesFor returns the number of blocks that a sequence of the given tokens takes from the pool, with the charge for
// groups that keep only some of them.
func (c *Config) pagesFor(tokens int32) int {
	blocks := c.blocksFor(tokens)
	return blocks + c.Charge(blocks)
}

// visible is the instant at which a request reaches the engine's queue if no router holds it.
func (c *Config) visible(req *workload.Request) clock.Time {
	return req.Arrival.Add(c.NetworkIn + c.Handling(req))
}

// declaredOf is the longest answer that the engine has to expect.
func (c *Config) declaredOf(req *workload.Request) int32 {
	return min(max(req.OutputTokens, c.MaxTokens), c.MaxModelLen-req.InputTokens)
}

// Handling is how long the front end has a request that has come to it.
func (c *Config) Handling(req *workload.Request) clock.Duration {
	return c.Frontend + clock.Duration(req.InputTokens)*c.FrontendPerToken
}

// OutputOf is the number of tokens that the answer to a request will have: its length, cut at the longest
// sequence that the model takes.
func (c *Config) OutputOf(req *workload.Request) int32 {
	return min(req.OutputTokens, c.MaxModelLen-req.InputTokens)
}

// NeverFits reports whether a request can never be served.
func (c *Config) NeverFits(req *workload.Request) bool {
	return req.InputTokens >= c.MaxModelLen ||
		c.pagesFor(c.most(req.InputTokens, c.declaredOf(req))) > c.UsableBlocks()
}
