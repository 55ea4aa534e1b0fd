package naive

import (
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// iteration is one forward pass.
type iteration struct {
	budget   int32 // tokens that can still be given, and slots of drafts
	perRow   int32 // slots of drafts that each sequence takes
	before   snapshot
	preempts bool    // a sequence was preempted while composing
	loads    bool    // a load begins
	shares   []share // in running order
	end      clock.Time

	padRows    int
	padContext int64
	padTo      int32
}

// snapshot is the state of an engine when it begins to compose an iteration.
type snapshot struct {
	running             []*sequence
	waiting             int       // requests in the queue
	head                *sequence // the first of them
	joined              int64     // requests that have joined the queue so far
	serials, departures int64     // sequences that have joined and left the batch so far
}

// Budget is the number of tokens that can still be given.
func (it *iteration) Budget() int32 { return max(0, it.budget-it.perRow) }

// Pad adds rows to the batch of decodes, with so much context in all.
func (it *iteration) Pad(rows int, context int64) { it.padRows, it.padContext = rows, context }

// PadChunks makes prefill chunks cost as if they had at least this many tokens.
func (it *iteration) PadChunks(to int32) { it.padTo = to }

// share is the part of one sequence in an iteration.
type share struct {
	seq     *sequence
	serial  int64 // of its admission
	upTo    int32 // its computed tokens, these included
	chunk   bool  // of a prefill
	dummies int32 // of those computed by the iteration that admits it, the dummy drafts
	emits   bool  // produces a token at the iteration's end
	// vain means that its output ended before, so that the token is not delivered.
	vain bool
	// first means that it is the first token of the request.
	first bool
	seen  clock.Time // when the token leaves the front end
	// dropped means that the token is dropped because the request was retracted.
	dropped bool
	// stashed means that the chunk entered the radix cache before the iteration was processed.
	stashed bool
	// produces is the number of tokens, rejected that of drafts that were computed and are wrong.
	produces, rejected int32
	// unseen is the number of tokens that it was scheduled to produce and does not.
	unseen int32
	// again is the number of tokens computed before, lost that of those that the cache had lost, given that of all.
	again, lost, given int32
}

// pass is the sum over the sequences of an iteration.
type pass struct {
	it      *iteration
	batch   model.Batch
	span    event.Span
	squares uint64      // of contexts
	gaps    []*sequence // those that did not produce in the previous iteration
}

// launch starts a composed iteration and reports it.
func (n *Engine) launch(it *iteration, at clock.Time) {
	n.gpu.lastComposed = at
	shared := int64(n.kv.shared()) * int64(n.cfg.BlockSize)
	used := n.cfg.UsableBlocks() - n.FreeBlocks()
	p := pass{it: it, batch: model.Batch{SharedTokens: shared}, span: event.Span{
		UsedBlocks: used, MostBlocks: used, Shared: shared,
		PaddedRows: it.padRows, PaddedContext: it.padContext, SwappedBlocks: n.changes.moved,
	}}
	span := &p.span
	step := event.Step{Span: span, Preempted: n.changes.preempted, SwappedOut: n.changes.swapped,
		FreeBlocks: n.FreeBlocks(), Running: len(n.running), Waiting: n.waits()}
	for _, s := range n.running {
		if s.given > 0 {
			step.Scheduled = append(step.Scheduled, p.compute(n, s))
		}
	}
	for _, s := range n.running {
		span.EmptyBlocks += max(0, s.reserved-n.blocksFor(s.computed))
	}
	span.Decodes, span.Context = p.batch.Decodes, p.batch.Context
	p.batch.ContextDeviation = model.ContextDeviation(p.batch.Decodes, p.batch.Context, p.squares)
	if p.batch.Decodes > 0 {
		n.decodeSteps++
	}
	n.gpu.schedule(it, at, span, &p.batch)
	n.gpu.charge(it, span)

	n.sendOutputs(it, span)
	n.obs.Span(span)
	for _, s := range p.gaps {
		n.obs.Gap(it.end, it.end.Sub(s.lastEnd), 1)
	}
	for _, sh := range it.shares {
		if sh.emits {
			sh.seq.lastIteration, sh.seq.lastEnd = n.gpu.launched, it.end
		}
	}
	if n.obs.WantsSteps() {
		n.obs.Step(&step)
	}
	n.inFlight = append(n.inFlight, it)
	n.gpu.launched++
	n.changes = changes{}
}

// compute computes the tokens that a sequence was given, adds its share to the iteration, and returns what observers
// see.
func (p *pass) compute(n *Engine, s *sequence) event.Share {
	decodes := s.produces
	sh := share{seq: s, serial: s.serial, given: s.given, chunk: !decodes, emits: s.computed+s.given >= s.known(),
		first: s.scheduled == 0, vain: s.scheduled >= s.output, produces: 1, rejected: s.padding}
	drafts := max(0, s.computed+s.given-s.known()) // those that are computed
	speculative := drafts
	if decodes {
		if sh.produces = 0; sh.emits { // a threshold below the number of drafts leaves tokens behind
			sh.produces, sh.rejected = n.verify(s, drafts, &p.span)
		}
		speculative = s.given
		if sh.emits {
			p.batch.Decodes++
			p.batch.Context += int64(s.computed + s.given)
			p.squares += uint64(int64(s.computed+s.given) * int64(s.computed+s.given))
			speculative--
		}
		p.batch.Drafts += int(speculative)
		p.batch.Emit += int(s.given)
	} else {
		sh.dummies = drafts
		sh.again, sh.lost = n.chunk(s, s.given-drafts, p)
		p.batch.Drafts += int(drafts)
		p.batch.Emit += int(drafts)
		s.highest = max(s.highest, s.computed+s.given-drafts)
		drafts = s.padding
	}
	p.span.Drafts += int(speculative)
	s.computed += s.given
	s.inFlight += s.given
	s.rejected += sh.rejected
	s.highest = max(s.highest, s.computed-s.rejected)
	sh.upTo = s.computed
	seen := event.Share{Request: s.rec.Request.ID, Tokens: s.given, Cached: s.found, Loaded: s.loaded,
		Emits: sh.emits, Drafts: speculative}
	if sh.emits {
		p.emit(n, s, &sh, drafts)
		seen.Ends, seen.Produced = s.scheduled == s.output, sh.produces
	}
	p.it.shares = append(p.it.shares, sh)
	s.padding = 0
	return seen
}

// emit schedules the output tokens of a sequence. drafts is the number of its drafts.
func (p *pass) emit(n *Engine, s *sequence, sh *share, drafts int32) {
	s.produces = true
	s.scheduled += sh.produces
	sh.unseen = 1 + drafts - sh.produces
	s.unseen += sh.unseen
	if s.ahead {
		n.propose(s)
	}
	for range sh.produces {
		n.accounts.token(s)
	}
	switch {
	case !sh.chunk && s.lastIteration == n.gpu.launched-1 && n.gpu.pipeline == nil:
		p.span.Gaps++
	case !sh.first:
		p.gaps = append(p.gaps, s)
	}
	if sh.chunk {
		p.batch.Emit++
		p.span.FirstTokens++
	}
}

// verify returns how many output tokens the next iteration of s produces with the given drafts, and how many drafts are
// rejected.
func (n *Engine) verify(s *sequence, drafts int32, span *event.Span) (produces, rejected int32) {
	if !n.cfg.Speculative.On() {
		return 1, 0
	}
	accepted := accepted(&n.cfg.Speculative, s, drafts)
	s.verified++
	produces = max(1, min(1+accepted, s.output-s.scheduled)) // an iteration after the last token produces one in vain
	span.Accepted += int(accepted)
	span.Discarded += int(1 + accepted - produces)
	return produces, drafts - accepted
}

// chunk counts the given tokens of a prefill chunk of s: those that were computed before, and those that the cache had
// lost.
func (n *Engine) chunk(s *sequence, given int32, p *pass) (again, lost int32) {
	cost := max(given, p.it.padTo)
	chunk := model.Chunk{New: cost, Cached: s.computed, ImageTokens: s.rec.Request.Images.Tokens}
	for i := range s.rec.Request.Images.Count {
		if first := s.rec.Request.Images.At + i*s.rec.Request.Images.Tokens; first >= s.computed &&
			first < s.computed+given {
			chunk.Images++
		}
	}
	p.batch.Chunks = append(p.batch.Chunks, chunk)
	p.span.PaddedTokens += int(cost - given)
	again = max(0, min(s.computed+given, s.highest)-s.computed)
	for k := s.computed + again; k < s.computed+given; k++ {
		if s.lostFrom <= k && k < s.lostTo {
			lost++
		}
	}
	s.rec.LostTokens += lost
	p.span.LostTokens += int(lost)
	s.rec.RecomputedTokens += again
	p.span.RecomputedTokens += int(again)
	p.span.PrefillTokens += int(given - again)
	return again, lost
}
