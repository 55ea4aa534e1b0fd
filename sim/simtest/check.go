package simtest

import (
	"errors"
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// CheckRecording asserts what holds in every run of the engine described by cfg, from the first request to the last:
// time is monotone, and iterations follow each other without a lost femtosecond; every request ends once, with instants
// in order; tokens, gaps, preemptions and integrals of levels agree between iterations and records; limits are kept;
// and the engine never idles while it could schedule a request.
func CheckRecording(cfg *engine.Config, t *Recorder) error {
	t.settle()
	c := checker{cfg: cfg, t: t}
	for _, f := range t.faults {
		c.want(false, "%s", f)
	}
	c.iterations()
	c.pipeline()
	c.records()
	c.tokens()
	c.gpuTime()
	c.levels()
	c.idle()
	return errors.Join(c.faults...)
}

type checker struct {
	cfg    *engine.Config
	t      *Recorder
	faults []error
}

func (c *checker) want(ok bool, format string, args ...any) {
	if !ok && len(c.faults) < 20 {
		c.faults = append(c.faults, fmt.Errorf(format, args...))
	}
}

func (c *checker) iterations() {
	var last clock.Progression
	var blocks clock.Uint128
	known := true
	for i, it := range c.t.Iterations {
		this := clock.Progression{Start: it.Start, Remainder: it.Remainder, First: it.Femtos, N: 1}
		c.want(it.Femtos >= 0 && it.End == this.End(1), "iteration %d: does not end where it should: %+v", i, it)
		c.want(it.Start >= last.End(1), "iteration %d: starts before the previous one ends: %+v", i, it)
		wait, remainder := it.Start.Sub(last.End(1)), int64(0)
		if wait == 0 {
			remainder = last.EndRemainder(1)
		}
		c.want(it.Remainder == remainder, "iteration %d: remainder %d, want %d", i, it.Remainder, remainder)
		if i > 0 {
			c.want(it.Wait == wait, "iteration %d: wait %d, want %d", i, it.Wait, wait)
		} else {
			c.want(it.Wait == 0, "first iteration: wait %d, want 0", it.Wait)
		}
		host := int64(c.cfg.CPUStep) * clock.FemtosPerPico
		c.want(it.Femtos >= host+int64(it.SwappedBlocks)*c.cfg.HostFemtosPerBlock || c.cfg.AsyncScheduling &&
			it.Femtos >= host || c.cfg.Stages > 1,
			"iteration %d: shorter than the host needs for it: %+v", i, it)
		c.want(it.HostFemtos >= 0 && it.SwapFemtos >= 0 && it.HostFemtos+it.SwapFemtos <= it.Femtos,
			"iteration %d: shorter than its parts: %+v", i, it)
		c.want(it.SwappedBlocks == 0 || c.cfg.HostBlocks > 0, "iteration %d: %d blocks moved without host memory", i,
			it.SwappedBlocks)
		tokens := it.Decodes + it.Drafts + it.PrefillTokens + it.RecomputedTokens
		c.want(it.Drafts <= c.cfg.MaxNumSeqs*int(c.cfg.Speculative.Tokens), "iteration %d: %d drafts of %d sequences "+
			"at most", i, it.Drafts, c.cfg.MaxNumSeqs)
		c.want(0 <= it.Discarded && it.Discarded <= it.Accepted && it.Accepted <= it.Drafts,
			"iteration %d: drafts: %+v", i, it)
		c.want(tokens >= 1, "iteration %d: empty: %+v", i, it)
		c.want(tokens <= c.cfg.MaxNumBatchedTokens, "iteration %d: %d tokens exceed the budget %d", i, tokens,
			c.cfg.MaxNumBatchedTokens)
		c.want(it.Gaps <= it.Decodes, "iteration %d: %d gaps of %d decodes", i, it.Gaps, it.Decodes)
		c.want(it.Decodes+it.FirstTokens <= c.cfg.MaxNumSeqs, "iteration %d: %d tokens produced exceed %d seats", i,
			it.Decodes+it.FirstTokens, c.cfg.MaxNumSeqs)
		c.want(it.UsedBlocks <= c.cfg.UsableBlocks(), "iteration %d: %d blocks used of %d", i, it.UsedBlocks,
			c.cfg.UsableBlocks())
		c.want(it.EmptyBlocks <= max(it.UsedBlocks, -1) && (it.EmptyBlocks >= 0 || it.UsedBlocks < 0),
			"iteration %d: %d empty blocks of %d", i, it.EmptyBlocks, it.UsedBlocks)
		known = known && it.UsedBlocks >= 0
		blocks = blocks.Add(clock.Mul64(uint64(max(0, it.UsedBlocks)), uint64(it.Femtos)))
		last = this
	}
	c.want(!known || blocks == c.t.BlockFemtos, "sum of BlockFemtos: %v, want %v", c.t.BlockFemtos, blocks)
	for i, s := range c.t.Steps {
		if i < len(c.t.Iterations) {
			c.step(i, s, c.t.Iterations[i])
		}
	}
	c.want(len(c.t.Steps) == 0 || len(c.t.Steps) == len(c.t.Iterations), "%d steps, but %d iterations", len(c.t.Steps),
		len(c.t.Iterations))
}

// step compares an iteration in detail with its totals.
func (c *checker) step(i int, s Step, it Iteration) {
	tokens, drafts, produced, emits := int32(0), int32(0), int32(0), 0
	for _, sh := range s.Scheduled {
		tokens += sh.Tokens
		drafts += sh.Drafts
		produced += sh.Produced
		c.want((sh.Produced > 0) == sh.Emits && sh.Produced <= 1+sh.Drafts, "step %d: %+v", i, sh)
		if sh.Emits {
			emits++
		}
		c.want(sh.Emits || !sh.Ends, "step %d: request %d ends without a token", i, sh.Request)
	}
	c.want(int(produced) == it.Decodes+it.FirstTokens+it.Accepted-it.Discarded && int(drafts) == it.Drafts,
		"step %d: produces %d tokens of %d drafts, iteration %+v", i, produced, drafts, it)
	c.want(int(tokens) == it.Decodes+it.Drafts+it.PrefillTokens+it.RecomputedTokens,
		"step %d: %d tokens, iteration %+v", i, tokens, it)
	c.want(emits == it.Decodes+it.FirstTokens, "step %d: %d tokens produced, iteration %+v", i, emits, it)
	c.want(it.UsedBlocks < 0 || s.FreeBlocks+it.UsedBlocks == c.cfg.UsableBlocks(),
		"step %d: %d free and %d used blocks of %d",
		i, s.FreeBlocks, it.UsedBlocks, c.cfg.UsableBlocks())
}

func (c *checker) records() {
	sent := make(map[int64]bool)
	for _, a := range c.t.Arrivals {
		c.want(!sent[a.Request.ID], "request %d: sent twice", a.Request.ID)
		sent[a.Request.ID] = true
	}
	for i := range c.t.Records {
		rec := &c.t.Records[i]
		c.want(sent[rec.Request.ID], "request %d: ended twice, or was never sent", rec.Request.ID)
		delete(sent, rec.Request.ID)
		c.record(rec)
	}
	c.want(len(sent) == 0, "%d requests never ended", len(sent))
}

func (c *checker) record(rec *event.Record) {
	r := &rec.Request
	answer, declared := naive.OutputLengths(c.cfg, r)
	blocks := c.cfg.PagesFor(naive.MostTokens(c.cfg, r.InputTokens, declared))
	visible := r.Arrival.Add(c.cfg.NetworkIn + c.cfg.Frontend + clock.Duration(r.InputTokens)*c.cfg.FrontendPerToken)
	fits := answer >= 1 && blocks <= c.cfg.UsableBlocks()
	var ok bool
	switch rec.Outcome {
	case event.Completed:
		ok = fits && rec.Tokens == answer && rec.ClientLast >= rec.LastToken && rec.ClientFirst != clock.Never &&
			rec.LastToken != clock.Never
		if !c.cfg.AsyncScheduling || answer == declared {
			ok = ok && rec.LastToken == rec.Released
		}
	case event.Rejected:
		ok = rec.Queued == clock.Never && rec.Tokens == 0
		if rec.Refusal == event.Busy {
			ok = ok && fits && c.cfg.MaxQueuedRequests+int(c.cfg.MaxQueuedTokens) > 0 && rec.Released == visible
		} else {
			ok = ok && !fits && rec.Refusal == event.NeverFits && rec.Released == r.Arrival.Add(c.cfg.NetworkIn)
		}
	case event.TimedOut, event.Cancelled:
		ok = (fits || rec.Queued == clock.Never && c.cfg.NetworkIn > 0) && rec.Ending.GaveUp() &&
			(rec.Outcome == event.Cancelled) == (rec.Ending == workload.Cancelled) &&
			rec.ClientLast == clock.Never && (rec.LastToken != clock.Never) == (fits && rec.Tokens == answer)
	case event.Failed:
		ok = fits && c.cfg.Connector != nil && c.cfg.Connector.FailLost && rec.Ending == workload.Disconnected &&
			rec.Tokens < answer &&
			rec.Queued != clock.Never && rec.LastToken == clock.Never && rec.ClientLast == clock.Never
	}
	c.departure(rec)
	c.want((rec.Refusal != event.NotRefused) == (rec.Outcome == event.Rejected), "request %d: %v, refused because %v",
		r.ID, rec.Outcome, rec.Refusal)
	c.want(ok, "request %d: %v with record %+v", r.ID, rec.Outcome, rec)
	c.want((rec.FirstToken != clock.Never) == (rec.Tokens > 0), "request %d: first token at %v of %d", r.ID,
		rec.FirstToken, rec.Tokens)
	c.want(rec.Ending.GaveUp() || (rec.ClientFirst != clock.Never) == (rec.Tokens > 0),
		"request %d: client's first token at %v of %d", r.ID, rec.ClientFirst, rec.Tokens)
	c.want(rec.CachedTokens%c.cfg.BlockSize == 0 && rec.CachedTokens < r.InputTokens,
		"request %d: %d cached tokens of %d", r.ID, rec.CachedTokens, r.InputTokens)
	c.want(rec.Preemptions > 0 || rec.RecomputedTokens == 0, "request %d: %d tokens recomputed without preemption",
		r.ID, rec.RecomputedTokens)

	c.want(rec.Queued == clock.Never || rec.Queued == visible, "request %d: queued at %v, want %v", r.ID, rec.Queued,
		visible)
	last := r.Arrival
	for i, at := range []clock.Time{rec.Queued, rec.Scheduled, rec.FirstToken, rec.LastToken, rec.Released} {
		if at != clock.Never {
			c.want(at >= last, "request %d: instant %d of its record lies before the one before: %+v", r.ID, i, rec)
			last = at
		}
	}
}

// iterationSums are sums over iterations.
type iterationSums struct {
	emitted, produced, gaps, recomputed, prefilled, decoded, computed, rejected int

	inGaps clock.Duration
}

func (c *checker) sumIterations() (s iterationSums) {
	last := clock.Time(0)
	for _, it := range c.t.Iterations {
		s.emitted += it.Decodes + it.FirstTokens
		s.produced += it.Decodes + it.FirstTokens + it.Accepted - it.Discarded
		s.decoded += it.Decodes + it.Accepted - it.Discarded
		s.computed += it.Decodes + it.Drafts + it.PrefillTokens + it.RecomputedTokens
		s.rejected += it.Drafts - it.Accepted + it.Discarded
		s.gaps += it.Gaps
		s.prefilled += it.PrefillTokens
		s.recomputed += it.RecomputedTokens
		s.inGaps += clock.Duration(it.Gaps) * it.End.Sub(last)
		last = it.End
	}
	for _, g := range c.t.Gapped {
		s.gaps++
		s.inGaps += g.Gap
	}
	return s
}

// recordSums are sums over requests. misses, later, decodes and unpredicted are of those that were served.
type recordSums struct {
	delivered, started, recomputed, preempted int

	misses, later, decodes, unpredicted int
	cancelled                           int
	firstToLast                         clock.Duration
}

func (c *checker) sumRecords() (s recordSums) {
	for i := range c.t.Records {
		rec := &c.t.Records[i]
		s.delivered += int(rec.Tokens)
		s.recomputed += int(rec.RecomputedTokens)
		s.preempted += int(rec.Preemptions)
		if rec.Tokens > 0 {
			s.started++
		}
		switch {
		case rec.LastToken != clock.Never: // served, whether or not its client has left
			s.firstToLast += rec.LastToken.Sub(rec.FirstToken)
			s.misses += int(rec.Request.InputTokens - rec.CachedTokens - rec.LoadedTokens - rec.PulledTokens)
			s.later += int(rec.LaterCachedTokens)
			s.decodes += int(rec.Tokens) - 1
			answer, declared := naive.OutputLengths(c.cfg, &rec.Request)
			if c.cfg.AsyncScheduling && (answer < declared || c.cfg.UnpredictedEnds ||
				c.cfg.Speculative.On() && answer > 1) {
				s.unpredicted++
			}
		case rec.Scheduled != clock.Never:
			s.cancelled++
		}
	}
	return s
}

// tokens compares the sums over iterations with the sums over requests.
func (c *checker) tokens() {
	it, req := c.sumIterations(), c.sumRecords()
	dropped := 0
	for _, d := range c.t.Drops {
		dropped += d.Tokens
	}
	c.want(it.produced == req.delivered+dropped, "tokens: %d produced, %d delivered, %d dropped", it.produced,
		req.delivered, dropped)
	c.want(it.recomputed == req.recomputed, "tokens: %d recomputed in iterations, %d in records", it.recomputed,
		req.recomputed)
	c.want(req.preempted == len(c.t.Preemptions), "preemptions: %d, but %d in records", len(c.t.Preemptions),
		req.preempted)
	opened := it.emitted - it.gaps // sequences that produced a token
	c.want(req.started <= opened && opened <= req.started+dropped, "gaps: %d of %d tokens of %d sequences", it.gaps,
		it.produced, req.started)
	if req.cancelled > 0 {
		return
	}
	unpredicted := req.unpredicted
	if c.cfg.UnpredictedEnds { // the token in flight of a preempted sequence is dropped
		unpredicted += req.preempted
	}
	c.want(dropped <= unpredicted, "tokens: %d dropped, but no client left and %d outputs ended unpredicted",
		dropped, unpredicted)
	c.want(dropped > 0 || it.inGaps == req.firstToLast, "gaps: they sum to %d, but from first to last tokens it is %d",
		it.inGaps, req.firstToLast)
	c.want(unpredicted > 0 || it.prefilled+it.decoded == req.misses-req.later+req.decodes+dropped,
		"tokens: %d computed, but requests need %d and %d were dropped",
		it.prefilled+it.decoded, req.misses-req.later+req.decodes, dropped)
	if req.preempted > 0 {
		return
	}
	c.want(req.later == 0, "tokens: %d found after preemptions, but there were none", req.later)
	c.want(it.prefilled == req.misses, "tokens: %d prefilled, but prompts miss %d", it.prefilled, req.misses)
	c.want(it.computed == req.misses+it.recomputed+req.decodes+dropped+it.rejected,
		"tokens: %d computed, prompts miss %d, %d recomputed, %d decoded, %d rejected", it.computed, req.misses,
		it.recomputed, req.decodes, it.rejected)
	c.want(it.decoded == req.decodes+dropped, "tokens: %d decoded, but outputs need %d and %d were dropped", it.decoded,
		req.decodes, dropped)
}

// levels checks them, and Little's law for them: the integral of a level is the sum of residences.
func (c *checker) levels() {
	var system, engine, running, decoding timeSum
	last := LevelChange{}
	for _, ch := range c.t.Changes {
		l := ch.Levels
		c.want(l.Decoding >= 0 && l.Decoding <= l.Running && l.Running <= c.cfg.MaxNumSeqs && l.Waiting >= 0 &&
			l.Running+l.Waiting <= l.System,
			"levels at %v: %+v", ch.At, l)
		c.want(l.Waiting > 0 || l.Blocked == sched.NotBlocked, "levels at %v: blocked by %v, but no request waits",
			ch.At, l.Blocked)
		c.want(c.cfg.MaxQueuedRequests == 0 || l.Waiting+l.Running <= c.cfg.MaxQueuedRequests,
			"levels at %v: %+v, but %d are allowed",
			ch.At, l, c.cfg.MaxQueuedRequests)
		d := ch.At.Sub(last.At)
		system.add(last.Levels.System, d)
		engine.add(last.Levels.Waiting+last.Levels.Running, d)
		running.add(last.Levels.Running, d)
		decoding.add(last.Levels.Decoding, d)
		last = ch
	}
	c.want(last.Levels == event.Levels{}, "levels at the end: %+v", last.Levels)

	var inSystem, inEngine, seated, decodes timeSum
	for i := range c.t.Records {
		rec := &c.t.Records[i]
		inSystem.between(rec.Request.Arrival, rec.Released)
		inEngine.between(rec.Queued, rec.Released)
		seated.between(rec.Scheduled, rec.Released)
		decodes.between(rec.FirstToken, rec.Released)
	}
	c.want(system == inSystem, "Little's law: system %v, records %v", system, inSystem)
	c.want(engine == inEngine, "Little's law: waiting and running %v, records %v", engine, inEngine)
	if len(c.t.Preemptions) == 0 {
		c.want(running == seated, "Little's law: running %v, records %v", running, seated)
		c.want(decoding == decodes, "Little's law: decoding %v, records %v", decoding, decodes)
	}
}

// timeSum is a sum of durations in 128 bits.
type timeSum struct{ clock.Uint128 }

func (w *timeSum) add(n int, d clock.Duration) {
	w.Uint128 = w.Uint128.Add(clock.Mul64(uint64(n), uint64(d)))
}

func (w *timeSum) between(from, to clock.Time) {
	if from != clock.Never {
		w.add(1, to.Sub(from))
	}
}

// idle checks that no request waits or runs while no iteration does.
func (c *checker) idle() {
	if c.cfg.Connector != nil {
		return // requests that wait for KV, or for blocks that a load will free, may leave the engine idle
	}
	next := 0
	busyUntil := clock.Time(0)
	for i, ch := range c.t.Changes {
		// Iterations that start by now are known by now.
		for next < len(c.t.Iterations) && c.t.Iterations[next].Start <= ch.At {
			busyUntil = c.t.Iterations[next].End
			next++
		}
		until := clock.Never
		if i+1 < len(c.t.Changes) {
			until = c.t.Changes[i+1].At
		}
		if ch.Levels.Waiting+ch.Levels.Running > 0 {
			end := busyUntil
			for k := next; k < len(c.t.Iterations) && c.t.Iterations[k].Start <= end; k++ {
				end = c.t.Iterations[k].End
			}
			c.want(end >= until, "idle from %v to %v with levels %+v", end, until, ch.Levels)
		}
	}
}

// departure checks when and why the client of a request left, or that it had no reason to leave.
func (c *checker) departure(rec *event.Record) {
	r, client := &rec.Request, workload.Client{}
	if r.Client != nil {
		client = *r.Client
	}
	settled := func(after clock.Duration) clock.Time {
		return max(r.Arrival, r.Arrival.Add(after-c.cfg.NetworkOut))
	}
	started, complete := rec.FirstToken, rec.LastToken
	switch rec.Outcome {
	case event.Rejected:
		started, complete = rec.Released, rec.Released
	case event.Failed:
		started, complete = min(started, rec.Released), rec.Released
	}
	atOnce := rec.Refusal == event.NeverFits && rec.Released == r.Arrival // before a departure can be certain
	missed := func(after clock.Duration, at clock.Time) bool { return after > 0 && settled(after) <= at && !atOnce }
	if !rec.Ending.GaveUp() {
		c.want(rec.Left == clock.Never && !missed(client.FirstTimeout, started) && !missed(client.Timeout, complete) &&
			!missed(client.Cancel, complete),
			"request %d: stayed till the end with client %+v and record %+v", r.ID, client, rec)
		return
	}
	after, awaited := client.Timeout, complete
	switch rec.Ending {
	case workload.Cancelled:
		after = client.Cancel
	case workload.TimedOutFirst:
		after, awaited = client.FirstTimeout, started
	}
	gone, told := settled(after), r.Arrival.Add(after+c.cfg.NetworkIn)
	ok := missed(after, awaited) && rec.Left == r.Arrival.Add(after) && rec.Released >= gone &&
		(rec.ClientFirst != clock.Never) == (started < gone)
	for _, earlier := range []clock.Duration{client.Timeout, client.Cancel, client.FirstTimeout} {
		ok = ok && (earlier == 0 || earlier >= after || earlier == client.FirstTimeout && !missed(earlier, started))
	}
	switch {
	case complete != clock.Never:
		ok = ok && (client.Silent || complete < told)
	case rec.Queued != clock.Never:
		lost := c.cfg.Connector != nil && c.cfg.Connector.FailLost // and its KV may have been before
		ok = ok && (lost || !client.Silent && rec.Released >= told)
	default: // rejected, or its client had left in the front end
		ok = ok && (client.Silent || rec.Released <= told)
	}
	c.want(ok, "request %d: %v with client %+v and record %+v", r.ID, rec.Ending, client, rec)
}

// checkEnded asserts that the source was told of each record once, and correctly.
func checkEnded(cfg *engine.Config, t *Recorder, ended []Ended) error {
	c := checker{cfg: cfg, t: t}
	byID := make(map[int64]Ended)
	for _, e := range ended {
		_, twice := byID[e.Request]
		c.want(!twice, "request %d: done twice", e.Request)
		byID[e.Request] = e
	}
	c.want(len(ended) == len(t.Records), "%d requests are done, %d have ended", len(ended), len(t.Records))
	for i := range t.Records {
		rec := &t.Records[i]
		want := Ended{rec.Request.ID, workload.End{How: rec.Ending, First: rec.ClientFirst}, rec.Again}
		e := byID[want.Request]
		switch {
		case rec.Ending == workload.Answered:
			want.At, want.Tokens = rec.ClientLast, rec.Tokens
		case rec.Ending.GaveUp():
			want.At, want.Tokens = rec.Left, min(e.Tokens, rec.Tokens)
			c.want((e.Tokens > 0) == (e.First != clock.Never), "request %d: %+v", want.Request, e)
		default:
			want.At = rec.Released.Add(cfg.NetworkOut)
			if want.Tokens = rec.Tokens; rec.ClientFirst != clock.Never {
				want.At = max(want.At, rec.ClientFirst)
			}
		}
		c.want(e == want, "request %d: done as %+v, want %+v", want.Request, e, want)
	}
	return errors.Join(c.faults...)
}
