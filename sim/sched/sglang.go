package sched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

var sglangRule = Rule{
	Name: "sglang",
	Does: "prompts first, in chunks and iterations of their own; admission by an estimate of outputs; retracts " +
		"when it was wrong; radix cache",
	Source:  "SGLang (managers/schedule_policy, mem_cache/radix_cache)",
	Section: "sglang",
	New: func() Options {
		return &SGLang{MaxPrefillTokens: 16_384, Conservativeness: 1,
			SGLangEngine: SGLangEngine{Eviction: "lru", RecvInterval: 1}}
	},
}

// SGLang is the scheduler of SGLang. Prefills come first: as long as waiting requests fit, iterations compute prompts
// only, and decoding sequences are held. Whether a request fits is an estimate that reserves, for the outputs of the
// running ones, a fraction of what they may still produce. When the estimate was too low and decoding runs out of KV,
// sequences are retracted: their output so far is kept, and they are prefilled again from the tail of the queue.
//
// Differences from SGLang: a request alone on the replica is always admitted, where SGLang cuts its max_new_tokens
// beforehand; and a request that a [QueueOrder] skips keeps its place in the queue, where SGLang leaves the queue
// sorted.
type SGLang struct {
	// ChunkedPrefillSize is the most prompt tokens of an iteration, and prompts are cut to it, or to the engine's
	// token budget if that is less; 0 is no chunking. MaxPrefillTokens bounds the prompt tokens of an iteration too,
	// but cuts none: without chunking the first prompt of an iteration may be longer.
	ChunkedPrefillSize int32 `json:"chunked_prefill_size" range:"[1,16777216]" doc:"most prompt tokens of an iteration"`
	MaxPrefillTokens   int32 `json:"max_prefill_tokens" range:"[1,16777216]" doc:"bounds them too, but cuts no prompt"`

	MixedChunk bool       `json:"enable_mixed_chunk" doc:"adds decodes to the iterations of prefills"`
	QueueOrder QueueOrder `json:"schedule_policy" doc:"order in which waiting requests are tried"`

	// Conservativeness scales the fraction of their remaining outputs that is reserved for running requests; 0 stands
	// for 1.
	Conservativeness float64 `json:"schedule_conservativeness" range:"(0,1000]" doc:"scales what outputs reserve"`

	// Retract sets PreemptByPriority and PreemptionThreshold.
	Retract *int `json:"priority_scheduling_preemption_threshold" range:"[0,65535]" doc:"difference that retracts"`

	SGLangEngine

	// IgnoreEOS means that outputs have exactly the declared length, as in benchmarks. Without a prefix cache SGLang
	// then looks ahead instead of estimating.
	IgnoreEOS bool `json:"ignore_eos" doc:"requests carry ignore_eos: SGLang looks ahead if nothing is cached"`

	// Seed and Replica determine the draws of [RandomOrder].
	Seed    uint64
	Replica int
	// PreemptByPriority retracts running requests for a waiting one that does not fit, if their priority is worse than
	// its own by more than PreemptionThreshold. The queue should be ordered [ByPriority].
	PreemptByPriority   bool
	PreemptionThreshold int32

	page      int32 // page_size: the engine's block size
	lookAhead bool
	ratio     newTokenRatio
	running   sglangBatch
	order     queueOrder
	attempt   pass
	batches   int64 // prefill batches so far
	mixed     int   // blocks that the decoding sequences of a mixed iteration have taken
	// matched is the number of tokens to compute of waiting requests when they were last matched, by request.
	// Preemption by priority uses it.
	matched map[int64]int32
}

// SGLangEngine are options of the engine around the scheduler.
type SGLangEngine struct {
	MemFractionStatic float64 `json:"mem_fraction_static" range:"(0,1]" doc:"part of free memory for weights and pool"`

	// Eviction: lfu and slru go by hits as SGLang has counted them since March 2026; before, both were lru. priority
	// evicts last what requests of urgent priority have cached.
	Eviction string `json:"radix_eviction_policy" one:"lru fifo mru filo lfu slru priority" doc:"order of eviction"`
	// RecvInterval applies while the scheduler only decodes. After an iteration with prompts, and when idle, it
	// receives requests at once.
	RecvInterval int `json:"scheduler_recv_interval" range:"[1,1000]" doc:"decoding iterations between receipts"`
}

var _ EndObserver = (*SGLang)(nil)

// Make implements [Options].
func (p *SGLang) Make(k *Keys) Scheduler {
	made := *p
	made.Seed, made.Replica = k.Seed, k.Replica
	if !k.EnableChunkedPrefill {
		made.ChunkedPrefillSize = 0
	} else {
		made.ChunkedPrefillSize = p.Chunk(k)
	}
	if p.Retract != nil {
		made.PreemptByPriority, made.PreemptionThreshold = true, int32(*p.Retract)
	}
	return &made
}

// Chunk returns the most prompt tokens of an iteration.
func (p *SGLang) Chunk(k *Keys) int32 { return cmp.Or(p.ChunkedPrefillSize, k.MaxNumBatchedTokens) }

// Defaults implements [Options].
func (p *SGLang) Defaults() Defaults {
	return Defaults{Software: "sglang", UnpredictedEnds: true, BlockSize: 1, Radix: true, RadixEviction: p.Eviction,
		RecvInterval: p.RecvInterval}
}

// Idle implements [IdleOptions].
func (p *SGLang) Idle(caching bool, report func(key, why string)) {
	if p.IgnoreEOS && caching {
		report("ignore_eos", "SGLang looks ahead only without a prefix cache (want enable_prefix_caching: false)")
	}
	if p.Eviction != "lru" && !caching {
		report("radix_eviction_policy", "there is no prefix cache")
	}
}

// BySession implements [IdleOptions].
func (p *SGLang) BySession() string {
	if p.QueueOrder == RoutingKey {
		return "schedule_policy"
	}
	return ""
}

// retractionTokens is the number of tokens for each sequence that goes on that SGLang makes available when it retracts
// one (SGLANG_RETRACT_DECODE_STEPS).
const retractionTokens = 20

// clipMaxNewTokens is the most output tokens that the estimate expects of a request.
const clipMaxNewTokens = 4096

// Validate implements [Scheduler].
func (p *SGLang) Validate(l Limits) error {
	p.page, p.lookAhead, p.running.async = l.BlockSize, p.IgnoreEOS && !l.PrefixCaching, l.Async
	switch {
	case l.Speculative || l.Connector:
		return needsTokens("sglang", l)
	case p.ChunkedPrefillSize < 0 || p.ChunkedPrefillSize > 0 && p.ChunkedPrefillSize < p.page:
		return fmt.Errorf("chunked_prefill_size: %d is not allowed (want 0, or page_size %d or more)",
			p.ChunkedPrefillSize, p.page)
	case l.MaxNumBatchedTokens < int(p.page):
		return fmt.Errorf("max_num_batched_tokens: %d is less than page_size %d", l.MaxNumBatchedTokens, p.page)
	case p.ChunkedPrefillSize == 0 && l.MaxNumBatchedTokens < int(l.MaxModelLen):
		return needsWholePrompts("sglang without chunked_prefill_size", l)
	case p.MaxPrefillTokens < 1:
		return fmt.Errorf("max_prefill_tokens: %d is not allowed (want 1 or more)", p.MaxPrefillTokens)
	case p.MixedChunk && p.ChunkedPrefillSize == 0:
		return errors.New("enable_mixed_chunk: there are no chunks without chunked_prefill_size")
	case !(p.Conservativeness >= 0):
		return fmt.Errorf("schedule_conservativeness: %v is not allowed (want 0 or more)", p.Conservativeness)
	case p.PreemptionThreshold < 0:
		return fmt.Errorf("priority_scheduling_preemption_threshold: %d is negative", p.PreemptionThreshold)
	case p.QueueOrder != FirstCome && (l.Ordered || p.PreemptByPriority):
		return fmt.Errorf("schedule_policy: %v does not go with priorities or another order of the queue", p.QueueOrder)
	}
	return needsPages("sglang", l)
}

// Schedule implements [Scheduler].
func (p *SGLang) Schedule(v View) {
	p.ratio.start(p.Conservativeness)
	p.running.begin(v)
	if p.MixedChunk {
		p.scheduleMixed(v)
		return
	}
	if p.prefill(v) {
		return
	}
	if p.running.filter(); v.RunningLen() > 0 {
		p.decode(v)
		return
	}
	p.turnWithoutBatch(v)
}

// scheduleMixed composes an iteration of prefill chunks and decoding sequences.
func (p *SGLang) scheduleMixed(v View) {
	decodes, free := v.Decoding(), v.FreeBlocks()
	if decodes > 0 && !p.decode(v) {
		p.running.filter()
		return
	}
	p.mixed = free - v.FreeBlocks()
	if p.prefill(v) {
		if decodes > 0 {
			p.ratio.skip()
		}
		return
	}
	if p.running.filter(); v.RunningLen() == 0 {
		p.turnWithoutBatch(v)
	}
}

// turnWithoutBatch is a turn of SGLang's loop without a batch, which takes no time: all sequences have ended, and the
// running batch has been filtered. The next turn tries the waiting requests. If there are none, the ratio is reset.
func (p *SGLang) turnWithoutBatch(v View) {
	if v.WaitingLen() == 0 {
		p.ratio.reset(v.DecodeSteps())
	}
	p.running.full = NotBlocked
	p.prefill(v)
}

// decode gives every decoding sequence one token. If the pool has no room for all it retracts as many as needed, but
// keeps one, corrects the ratio, and returns false.
func (p *SGLang) decode(v View) bool {
	p.running.rows = v.Decoding()
	fits := v.DecodeFirst()
	if fits {
		return true
	}
	left := p.retractionOrder(v)
	for !fits && len(left) > 1 {
		v.PreemptToTail(left[len(left)-1])
		left = left[:len(left)-1]
		v.MakeRoom(retractionTokens * len(left))
		fits = v.DecodeFirst()
	}
	if unfinished := v.NextPrefill(None); !fits && unfinished != None {
		v.PreemptToTail(unfinished)
		v.DecodeFirst()
	}
	p.running.full, p.running.rows = NotBlocked, len(left)
	p.ratio.correct(v, left, p.running.inFlight)
	v.Blocked(HeldByPolicy)
	return false
}

// retractionOrder lists the decoding sequences in the reverse order of retraction: the shortest output is retracted
// first, of equals the longest prompt, of equals the last admitted.
func (p *SGLang) retractionOrder(v View) []Seq {
	type candidate struct {
		seq Seq
		Progress
	}
	var list []candidate
	prefilling := v.NextPrefill(None)
	for s := v.First(); s != None; s = v.Next(s) {
		if s != prefilling && v.Missing(s) == 1 {
			list = append(list, candidate{s, v.Progress(s)})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Generated, a.Generated), cmp.Compare(a.Prompt, b.Prompt))
	})
	seqs := make([]Seq, len(list))
	for i, c := range list {
		seqs[i] = c.seq
	}
	return seqs
}

// prefill continues the unfinished prompt and admits waiting requests. It reports whether any tokens were given.
func (p *SGLang) prefill(v View) bool {
	b, unfinished := &p.running, v.NextPrefill(None)
	if p.PreemptByPriority {
		b.full = NotBlocked
	}
	if unfinished == None {
		if _, waits := v.Peek(0); !waits {
			clear(p.matched)
			return false
		}
		if b.full == NotBlocked && v.Seats() <= b.ended && !p.PreemptByPriority {
			b.full = LacksSeats
		}
		if b.full != NotBlocked {
			v.Blocked(b.full)
			return false
		}
	}
	decodes := v.Decoding()
	a := p.newPass(v)
	if unfinished != None {
		a.goOn()
	}
	if why := a.admit(); why != NotBlocked {
		v.Blocked(why)
	}
	if len(a.batch) == 0 {
		return false
	}
	if p.MixedChunk {
		b.forget() // the running batch is filtered, even if that leaves nothing to add
	} else {
		decodes = 0
	}
	b.launched(v, a.batch, decodes)
	p.batches++
	return true
}

// Repeats implements [Scheduler]. Once a request did not fit none is tried before a sequence leaves,
// so that the falling ratio changes nothing until then.
func (p *SGLang) Repeats(v View) int {
	switch {
	case v.NextPrefill(None) != None || p.running.filtered:
		return 1
	case p.running.full != NotBlocked && !p.PreemptByPriority:
		return forever
	}
	next, waits := v.Peek(0)
	switch {
	case !waits:
		return forever
	case !p.PreemptByPriority || p.lookAhead || len(p.newPass(v).lesser(next.Priority)) > 0:
		return 1
	case p.MixedChunk && p.page > 1: // the room depends on how many sequences begin a page
		return 1
	case v.Seats() == 0: // and the request is not matched
		return forever
	}
	if w, _ := v.Waiting(0); !w.Live {
		return p.blockedFor(v, w)
	}
	return 1
}
