package engine

import (
	"slices"

	"clifftop/internal/faults"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/kv"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Config describes one serving engine. Knobs carry vLLM's names.
type Config struct {
	// Scheduler composes the iterations. Each engine needs its own.
	Scheduler sched.Scheduler
	// Order ranks the waiting queue; nil is first come, first served.
	Order sched.Order
	// Timer returns the length of iterations.
	Timer model.StepTimer

	// MaxNumSeqs limits the running batch; MaxNumBatchedTokens the tokens of one iteration, and
	// is at least MaxNumSeqs.
	MaxNumSeqs, MaxNumBatchedTokens int
	// MaxModelLen is the longest sequence, prompt and output, in tokens. A prompt that reaches it is rejected; an
	// output that reaches it is cut.
	MaxModelLen int32
	// MaxPromptLen is the longest prompt that is served, in tokens; 0 is MaxModelLen - 1. Engines that divide no prompt
	// reject one that is longer than an iteration.
	MaxPromptLen int32

	// BlockSize is the number of tokens in a KV block.
	BlockSize int32
	// NumGPUBlocks is the number of KV blocks that vLLM logs. It includes the null block, so that NumGPUBlocks-1 blocks
	// are usable. 0 means an unlimited pool.
	NumGPUBlocks int
	// PrefixCaching lets requests reuse the blocks of other requests that begin with the same tokens. It needs a
	// limited pool.
	PrefixCaching bool
	// AppendUnkeyed puts freed blocks that hold no cached prefix at the back of the free list, as vLLM did before 0.28.
	// Otherwise they go to the front.
	AppendUnkeyed bool

	// Groups are the KV cache groups that are charged to sequences; nil is one group that keeps every token.
	Groups model.KVGroups
	// Hybrid are KV cache groups with block tables of their own, as in vLLM; nil is one block table. It needs a
	// scheduler that is [sched.Grouped], and a limited pool.
	Hybrid *Hybrid

	// AsyncScheduling keeps two iterations in flight: the next one is scheduled while one runs.
	AsyncScheduling bool
	// Stages is the number of pipeline stages. Each stage may work on a batch of its own: this many iterations are in
	// flight, with or without asynchronous scheduling. 0 and 1 mean no pipeline. It needs a scheduler that is
	// [sched.Pipelined].
	Stages int
	// Frontend and FrontendPerToken are the delay of a request on its way to the engine's queue: a constant, and a part
	// for each token of the prompt.
	Frontend, FrontendPerToken clock.Duration
	// NetworkIn is the latency from a client to the front end, NetworkOut that of tokens back to the client.
	NetworkIn, NetworkOut clock.Duration
	// StreamPerSequence is the time that the front end takes to send the output of a sequence to its client.
	StreamPerSequence clock.Duration
	// StreamInterval is the number of tokens of a chunk (vLLM's and SGLang's stream_interval): a client gets the first
	// token at once, then each StreamInterval tokens a chunk, and the last chunk when the output ends. Tokens that are
	// held back take no time of the front end. 0 and 1 send every token.
	StreamInterval int

	// MaxTokens is the longest output that clients ask for, in tokens. The engine does not know that an output will be
	// shorter: it ends with an unpredictable end-of-sequence token. Under asynchronous scheduling the next iteration
	// then computes for the sequence without effect, although its seat and its blocks are free. 0 means that clients
	// ask for exactly the output that they get.
	MaxTokens int32

	// UnpredictedEnds means that the engine foresees no end, not even at the declared length. Under asynchronous
	// scheduling every sequence then takes part in one more iteration without effect, as with SGLang's overlap.
	UnpredictedEnds bool

	// RecvInterval makes the scheduler receive requests only at each RecvInterval-th composition while it decodes
	// (SGLang's scheduler_recv_interval). Compositions after other iterations, or after none, receive as ever. 0 and 1
	// receive at each composition. Aborts are not delayed.
	RecvInterval int

	// CPUStep and CPUPerSequence are the host's time for an iteration: a constant, and a part for each sequence in it.
	// It is added to the GPU's time. Under asynchronous scheduling both overlap, and the longer one counts.
	CPUStep, CPUPerSequence clock.Duration

	// MaxQueuedRequests and MaxQueuedTokens limit admission. A request is rejected if, when it reaches the queue, the
	// engine has this many requests, waiting or running, or this many prompt tokens still to be computed; 0 means no
	// limit.
	MaxQueuedRequests int
	MaxQueuedTokens   int64

	// HostBlocks is the number of KV blocks of swapped-out sequences that fit into host memory; 0 means that there is
	// no swapping. An iteration takes HostFemtosPerBlock femtoseconds longer for each block that is copied, in either
	// direction.
	HostBlocks         int
	HostFemtosPerBlock int64

	// Contiguous allocates to each sequence one contiguous range of the pool, the first one that is large enough,
	// instead of single blocks. The policy reserves the blocks that a sequence may ever need when it admits the
	// sequence.
	Contiguous bool
	// Radix keeps the prefix cache as a radix tree of tokens, as SGLang does, instead of hashed blocks. It needs
	// PrefixCaching. RadixEviction is the order in which it evicts leaves.
	Radix         bool
	RadixEviction kv.LeafOrder

	// Connector loads and stores KV outside the pool; nil for none. It needs a policy that starts the loads.
	Connector *Connector

	// Speculative is the settings of speculative decoding. It needs a policy that gives sequences their tokens one by
	// one.
	Speculative Speculative

	// MaxSpan is the maximum number of iterations in a span; 0 means no limit, and 1 single steps. It does not change
	// results.
	MaxSpan int
	// DisablePlain composes all iterations by the general cycle. It does not change results.
	DisablePlain bool
	// Check asserts the invariants after every change, which makes a run slower. Floor, if it is not nil, then returns
	// a lower bound of the length of an iteration, in seconds.
	Check bool
	Floor func(b *model.Batch) float64
}

// Hybrid is KV cache groups that share the pool, as vLLM's hybrid KV cache manager has them. Each group has its own
// block table. A sequence takes and frees the blocks of one group after the other. Blocks that no further token attends
// to are freed when the sequence is next given blocks.
type Hybrid struct {
	model.CacheGroups
	// Retention is vLLM's prefix_cache_retention_interval, for sliding windows and recurrent states. Of these groups, the
	// prefix cache has what a hit needs that ends at a multiple of Retention, at the end of the prompt, or where an
	// earlier lookup found that only other groups had more. 0 leaves out the multiples. [DenseRetention] keeps all.
	Retention int
}

// DenseRetention is the retention of every block: prefix_cache_retention_interval is null.
const DenseRetention = -1

// validateGroups returns the faults of the KV cache groups.
func (c *Config) validateGroups() error {
	var found faults.List
	want, h := found.Check, c.Hybrid
	found.Add(h.CacheGroups.Validate())
	g, ok := c.Scheduler.(sched.Grouped)
	want(ok, "KV cache groups: the policy allocates blocks of one group only (want policy vllm)")
	if ok {
		found.Add(g.Grouped())
	}
	want(c.NumGPUBlocks != 0, "KV cache groups: they need a limited pool")
	want(len(c.Groups) == 0, "KV cache groups: groups with block tables are not charged")
	want(!c.Radix && !c.Contiguous, "KV cache groups: they work on a paged pool with hashed blocks")
	want(c.HostBlocks == 0, "KV cache groups: sequences are computed again, not swapped")
	want(c.Connector == nil, "KV cache groups: a KV connector loads and stores one group only")
	want(c.Stages < 2, "KV cache groups: pipeline stages are not supported")
	size := 1
	if found.Err() == nil {
		size = h.ScheduledBlock()
	}
	want(h.Retention == DenseRetention || h.Retention >= 0 && h.Retention%size == 0,
		"prefix_cache_retention_interval: %d is not allowed (want a multiple of %d)", h.Retention, size)
	for i := range h.Groups {
		g := &h.Groups[i]
		want(g.Kind != model.RecurrentState || g.Mode != model.LastState || !c.PrefixCaching,
			"mamba_cache_mode: none has no prefix caching (want align or all)")
		want(!c.PrefixCaching || g.BlockSize == size || g.Kind != model.ChunkedLocalAttention && !g.Aligned(),
			"KV cache groups: %v has blocks of %d tokens, and a prefix hit is a multiple of %d (want equal blocks)",
			g.Kind, g.BlockSize, size)
	}
	return found.Err()
}

// hasKind reports whether layers of a kind have a group, or are charged.
func (c *Config) hasKind(kind model.KVKind) bool {
	return slices.ContainsFunc(c.Groups, func(g model.KVGroup) bool { return g.Kind == kind }) ||
		c.Hybrid != nil && c.Hybrid.Has(kind)
}

// Clip returns how many of n tokens a prefill chunk has that begins behind the first start ones. Recurrent groups in
// align mode keep states only at the ends of chunks, so that a chunk ends at a block boundary, at the last one before
// the end of the prefill, and where other groups have a longer hit (the junction; 0 is none). A chunk of most tokens,
// the largest that is possible, may end inside a block that is larger. It is _mamba_block_aligned_split of vLLM's
// scheduler.
func (h *Hybrid) Clip(start, n, prompt, known, junction, most int32) int32 {
	size := h.aligned()
	ends := max(prompt, known-1)
	if size == 0 || start >= ends {
		return n
	}
	end := start + n
	if end < ends {
		if at := end / size * size; at > start || size <= most {
			end = at
		}
	}
	stops := [3]int32{known / size * size, 0, 0}
	if start%size != 0 {
		stops[1] = (start/size + 1) * size
	}
	if start < junction && junction < end {
		stops[2] = start + (junction-start)/size*size
	}
	for _, at := range stops {
		if start < at && at < end {
			end = at
		}
	}
	return max(end-start, 0)
}

// aligned returns the block size of recurrent groups in align mode; 0 if there is none.
func (h *Hybrid) aligned() int32 {
	for i := range h.Groups {
		if g := &h.Groups[i]; g.Aligned() {
			return int32(g.BlockSize)
		}
	}
	return 0
}

// InFlightTokens returns the number of tokens that can be scheduled and not processed.
func (c *Config) InFlightTokens() int {
	if c.AsyncScheduling {
		return 2 * c.MaxNumBatchedTokens
	}
	return c.MaxNumBatchedTokens
}

// Charge returns the number of blocks that a sequence is charged for KV cache groups that keep only some of its tokens.
// blocks is the number that it holds.
func (c *Config) Charge(blocks int) int { return c.Groups.Charge(blocks, int(c.BlockSize)) }

// mostCharged returns the number of blocks from which on the charge is constant; 0 means that there is no charge.
func (c *Config) mostCharged() int { return c.Groups.MostCharged(int(c.BlockSize)) }

// UnlimitedBlocks is the size of an unlimited pool.
const UnlimitedBlocks = 1 << 40

// UsableBlocks returns the number of KV blocks that sequences can hold.
func (c *Config) UsableBlocks() int {
	if c.NumGPUBlocks == 0 {
		return UnlimitedBlocks
	}
	return c.NumGPUBlocks - 1
}

// limits returns the part of the configuration that a policy sees.
func (c *Config) limits() sched.Limits {
	return sched.Limits{
		// A request in the queue has fewer tokens than the maximum model length, which leaves one for a slot.
		MaxNumSeqs: c.MaxNumSeqs, MaxNumBatchedTokens: c.MaxNumBatchedTokens - max(0, int(c.Speculative.Slots)-1),
		MaxModelLen: c.MaxModelLen, BlockSize: c.BlockSize, NumGPUBlocks: c.NumGPUBlocks,
		HostBlocks: c.HostBlocks, PrefixCaching: c.PrefixCaching, Contiguous: c.Contiguous, MaxPromptLen: c.MaxPromptLen,
		Connector: c.Connector != nil, Ordered: c.Order != nil, Async: c.AsyncScheduling,
		Speculative: c.Speculative.Tokens > 0, Pipeline: c.Stages > 1, Hybrid: c.Hybrid != nil,
	}
}

// Limited reports whether the queue may reject requests.
func (c *Config) Limited() bool { return c.MaxQueuedRequests > 0 || c.MaxQueuedTokens > 0 }

// Validate returns all errors of the configuration.
func (c *Config) Validate() error {
	var found faults.List
	want := found.Check
	want(c.Scheduler != nil, "no scheduler")
	want(c.Timer != nil, "no step timer")
	want(c.MaxNumSeqs >= 1, "max_num_seqs: %d is not allowed (want 1 or more)", c.MaxNumSeqs)
	want(c.MaxNumBatchedTokens >= c.MaxNumSeqs, "max_num_batched_tokens: %d is less than max_num_seqs %d",
		c.MaxNumBatchedTokens, c.MaxNumSeqs)
	want(c.MaxModelLen >= 2, "max_model_len: %d is not allowed (want 2 or more)", c.MaxModelLen)
	want(c.MaxPromptLen >= 0, "longest prompt: %d is negative", c.MaxPromptLen)
	want(c.BlockSize >= 1, "block_size: %d is not allowed (want 1 or more)", c.BlockSize)
	want(c.NumGPUBlocks == 0 || c.NumGPUBlocks >= 2, "num_gpu_blocks: %d is not allowed (want 2 or more)",
		c.NumGPUBlocks)
	want(c.NumGPUBlocks != 0 || !c.PrefixCaching,
		"enable_prefix_caching: an unlimited pool has no cache (set num_gpu_blocks_override)")
	found.Add(c.Groups.Validate())
	want(c.Frontend >= 0 && c.FrontendPerToken >= 0 && c.NetworkIn >= 0 && c.NetworkOut >= 0 &&
		c.StreamPerSequence >= 0, "overheads: a delay is negative")
	want(c.StreamInterval >= 0, "stream_interval: %d is negative", c.StreamInterval)
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
	if c.Hybrid != nil {
		found.Add(c.validateGroups())
	}
	want(!c.UnpredictedEnds || c.Connector == nil && !c.Speculative.On() && c.Stages <= 1,
		"unpredicted ends: they do not go with KV connectors, drafts and pipeline stages")
	want(c.RecvInterval >= 0, "scheduler_recv_interval: %d is negative", c.RecvInterval)
	want(c.RecvInterval <= 1 || c.Stages <= 1, "scheduler_recv_interval: it does not go with pipeline stages")
	want(c.MaxSpan >= 0, "max span: %d is negative", c.MaxSpan)
	if c.Stages != 0 && c.Stages != 1 {
		found.Add(c.validatePipeline()...)
	}
	if c.Speculative.Tokens != 0 {
		found.Add(c.validateDrafts())
	}
	if c.Connector != nil {
		found.Add(c.validateConnector())
	}
	if o, ok := c.Order.(interface{ Validate() error }); ok {
		found.Add(o.Validate())
	}
	if c.Scheduler != nil {
		found.Add(c.Scheduler.Validate(c.limits()))
	}
	return found.Err()
}

// hostTime returns how long the host takes for an iteration with a number of sequences.
func (c *Config) hostTime(rows int) clock.Duration {
	return c.CPUStep + clock.Duration(rows)*c.CPUPerSequence
}

// blocksFor returns the number of blocks that hold this many tokens.
func (c *Config) blocksFor(tokens int32) int {
	return int((uint32(tokens) + uint32(c.BlockSize) - 1) / uint32(c.BlockSize)) // the sum of two int32 fits
}

// PagesFor returns the number of blocks that a sequence of this many tokens takes from the pool, with the charge for
// groups that keep only some of them. With groups that have block tables it is vLLM's bound of what the sequence holds
// at a time.
func (c *Config) PagesFor(tokens int32) int {
	if c.Hybrid != nil {
		return c.Hybrid.MostBlocks(int(tokens), c.InFlightTokens())
	}
	blocks := c.blocksFor(tokens)
	return blocks + c.Charge(blocks)
}

// visible returns the instant at which a request reaches the engine's queue if no router holds it.
func (c *Config) visible(req *workload.Request) clock.Time {
	return req.Arrival.Add(c.NetworkIn + c.Handling(req))
}

// declaredOf returns the longest output that the engine has to expect, in tokens.
func (c *Config) declaredOf(req *workload.Request) int32 {
	return min(max(req.OutputTokens, c.MaxTokens), c.MaxModelLen-req.InputTokens)
}

// Handling returns how long the front end processes a request.
func (c *Config) Handling(req *workload.Request) clock.Duration {
	return c.Frontend + clock.Duration(req.InputTokens)*c.FrontendPerToken
}

// OutputOf returns the number of output tokens of a request: its length, cut at the maximum model length.
func (c *Config) OutputOf(req *workload.Request) int32 {
	return min(req.OutputTokens, c.MaxModelLen-req.InputTokens)
}

// NeverFits reports whether a request can never be served.
func (c *Config) NeverFits(req *workload.Request) bool {
	return req.InputTokens >= c.MaxModelLen || c.MaxPromptLen > 0 && req.InputTokens > c.MaxPromptLen ||
		c.PagesFor(c.longest(req)) > c.UsableBlocks()
}

// SurelyFits returns the length of the longest prompt that certainly fits with any output. It may be less than the
// length of some that fit.
func (c *Config) SurelyFits() int32 {
	if c.Hybrid != nil || c.Speculative.Tokens > 0 || c.PagesFor(c.MaxModelLen) > c.UsableBlocks() {
		return 0
	}
	if c.MaxPromptLen > 0 {
		return min(c.MaxPromptLen, c.MaxModelLen-1)
	}
	return c.MaxModelLen - 1
}

// longest returns the largest number of tokens that a request needs slots for. The last token of an output is never
// computed.
func (c *Config) longest(req *workload.Request) int32 {
	tokens := req.InputTokens + c.declaredOf(req) - 1
	if c.Speculative.Tokens > 0 {
		return c.withDrafts(tokens)
	}
	return tokens
}
