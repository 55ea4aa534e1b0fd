package sched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// SGLang is the scheduler of SGLang. Prefills go first: as long as waiting requests fit, iterations
// compute prompts only, and decoding sequences are held. Whether a request fits is an estimate
// that reserves, for the answers of the running ones, a share of what they may still produce. When the
// estimate was too hopeful and decoding runs out of KV, sequences are retracted: their answer so far is
// kept, and they are prefilled again from the tail of the queue.
//
// Differences from SGLang: a request alone on the replica is admitted whatever the estimate
// says, where SGLang cuts its max_new_tokens beforehand; and a request that a [QueueOrder] passes over keeps its place
// in the queue, where SGLang leaves the queue sorted.
type SGLang struct {
	// ChunkedPrefillSize is the most prompt tokens of an iteration, and prompts are cut to it, or to the engine's
	// token budget if that is less; 0 is no chunking. MaxPrefillTokens bounds the prompt tokens of an iteration too,
	// but cuts none: without chunking the first prompt of an iteration may be longer.
	ChunkedPrefillSize, MaxPrefillTokens int32
	// MixedChunk lets the decoding sequences ride along with prefills (enable_mixed_chunk).
	MixedChunk bool
	// Conservativeness scales the share of their remaining answers that is reserved for running requests
	// (schedule_conservativeness); 0 stands for 1.
	Conservativeness float64
	// QueueOrder is the order in which waiting requests are tried (schedule_policy).
	QueueOrder QueueOrder
	// PreemptByPriority lets a waiting request that does not fit retract running ones whose
	// priority is worse than its own by more than PreemptionThreshold. The queue should be ordered [ByPriority].
	PreemptByPriority   bool
	PreemptionThreshold int32

	// IgnoreEOS says that clients ask for answers of exactly the length that they declare, as benchmarks
	// do (ignore_eos). Without a prefix cache SGLang then looks ahead instead of estimating.
	IgnoreEOS bool

	page      int32 // page_size: the engine's block size
	lookAhead bool
	ratio     newTokenRatio
	gate      gate
	order     queueOrder
	attempt   pass
}

var _ Scheduler = (*SGLang)(nil)

// clippedAnswer is the most answer tokens that the estimate expects of a request, in tokens.
const clippedAnswer = 4096

// Validate implements [Scheduler].
func (p *SGLang) Validate(l Limits) error {
	p.page, p.lookAhead = l.BlockSize, p.IgnoreEOS && !l.PrefixCaching
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
	if v.RunningLen() == 0 {
		if _, waits := v.Waiting(0); !waits {
			p.ratio.reset(v.DecodeSteps())
			return
		}
	}
	if !p.MixedChunk {
		if !p.prefill(v) {
			p.decode(v)
		}
		return
	}
	decodes := v.Decoding()
	if p.decode(v) && p.prefill(v) && decodes > 0 {
		p.ratio.skip()
	}
}

// decode gives every decoding sequence one token. If the pool has no room for all it retracts as many as
// it takes, but for one, corrects the ratio, and returns false.
func (p *SGLang) decode(v View) bool {
	fits := v.DecodeFirst()
	if fits {
		return true
	}
	left := p.byAnswer(v)
	for !fits && len(left) > 1 {
		v.PreemptToTail(left[len(left)-1])
		left = left[:len(left)-1]
		fits = v.DecodeFirst()
	}
	if unfinished := v.NextPrefill(None); !fits && unfinished != None {
		v.PreemptToTail(unfinished)
		v.DecodeFirst()
	}
	p.ratio.correct(v, left)
	v.Blocked(HeldByPolicy)
	return false
}

// byAnswer lists the decoding sequences such that those to be retracted stand at the end, the first one
// last: the shortest answers, of equals the longest prompt, of equals the last admitted.
func (p *SGLang) byAnswer(v View) []Seq {
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

// prefill continues the unfinished prompt and admits waiting requests. It reports whether any tokens
// were given.
func (p *SGLang) prefill(v View) bool {
	unfinished := v.NextPrefill(None)
	if why := p.gate.shut(v); unfinished == None && why != NotBlocked && !p.PreemptByPriority {
		v.Blocked(why)
		return false
	}
	a := p.newPass(v)
	if unfinished != None {
		a.goOn()
	}
	why := a.admit()
	if why == LacksSeats || why == LacksKV {
		p.gate.close(v, why)
	}
	if why != NotBlocked {
		v.Blocked(why)
	}
	return len(a.batch) > 0
}

// Repeats implements [Scheduler]. Once a request did not fit nobody is tried before a sequence leaves,
// so that the falling ratio changes nothing until then.
func (p *SGLang) Repeats(v View) int {
	switch {
	case v.NextPrefill(None) != None:
		return 1 // it found no free blocks this time
	case p.gate.shut(v) != NotBlocked && !p.PreemptByPriority:
		return forever
	}
	w, waits := v.Waiting(0)
	switch {
	case !waits:
		return forever
	case p.PreemptByPriority && !p.lookAhead && !w.Live:
		return p.blockedFor(v, w)
	}
	return 1
}

// gate is SGLang's flag batch_is_full: once a request did not fit, none is tried until a sequence has left
// the running batch.
type gate struct {
	why   Cause
	since int64 // departures when it was shut
}

// shut is the cause for which the gate is shut, or NotBlocked.
func (g *gate) shut(v View) Cause {
	if g.why != NotBlocked && v.Departures() != g.since {
		g.why = NotBlocked
	}
	return g.why
}

func (g *gate) close(v View, why Cause) { g.why, g.since = why, v.Departures() }
