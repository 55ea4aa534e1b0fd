package collect

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Finished implements [event.Observer].
func (c *Collector) Finished(rec *event.Record) {
	last := c.totals.finished(rec)
	if rec.Replica < 0 {
		c.unrouted++
	}
	c.totals.worked(rec)
	c.totals.stayed(rec)
	if rec.FirstToken != clock.Never {
		c.prefilled(rec)
	}
	c.passOn(rec)
	if rec.Outcome == event.Completed {
		c.succeeded(rec)
	} else {
		c.failed(rec, last)
	}
}

// worked counts what was computed for an attempt.
func (t *totals) worked(rec *event.Record) {
	t.recTokens += int64(rec.Tokens)
	t.recRecomputed += int64(rec.RecomputedTokens)
	t.gpu.add(&rec.GPU)
}

// stayed adds the times that an attempt was in the system and in its parts.
func (t *totals) stayed(rec *event.Record) {
	arrival := rec.Request.Arrival
	add(&t.endedArrivals, int64(arrival))
	add(&t.system, int64(ended(rec)-arrival))
	if rec.Queued == clock.Never || rec.Released == clock.Never {
		return
	}
	add(&t.engine, int64(rec.Released-rec.Queued)-int64(rec.Between))
	if rec.HandedOver {
		t.handed++
	}
	admitted := min(rec.Scheduled, rec.Released)
	add(&t.queue, int64(admitted-rec.Queued))
	add(&t.running, int64(rec.Released-admitted))
	if rec.FirstToken < rec.Released {
		add(&t.decoding, int64(rec.Released-rec.FirstToken))
	}
}

// prefilled counts a prompt at the time of its first token.
func (c *Collector) prefilled(rec *event.Record) {
	c.line.upTo(rec.FirstToken).prefilled(rec)
	c.totals.input += int64(rec.Request.InputTokens)
	c.totals.cached += int64(rec.CachedTokens)
	if rec.LoadedTokens > 0 && len(c.opts.Tiers) > 0 {
		c.loaded(&c.line, rec)
	}
}

// prefilled counts a prompt whose first token came in the bucket.
func (b *bucket) prefilled(rec *event.Record) {
	b.input += int64(rec.Request.InputTokens)
	b.cached += int64(rec.CachedTokens)
}

// passOn gives the record to all who keep an account of their own.
func (c *Collector) passOn(rec *event.Record) {
	if c.opts.Requests != nil {
		c.opts.Requests.Finished(rec)
	}
	if c.opts.Opening != nil {
		keepRequest(c.opts.Opening, rec)
	}
	if c.stages != nil {
		c.stages.finished(rec)
	}
	c.classes.finished(rec)
}

// failed counts an attempt that did not complete; last says that its request has ended with it.
func (c *Collector) failed(rec *event.Record, last bool) {
	if rec.Scheduled != clock.Never {
		c.totals.undone++
	}
	c.totals.wasted += int64(rec.Tokens)
	c.line.upTo(ended(rec)).failed(rec)
	if _, sent := rec.Request.First(); last {
		c.line.at(sent).failures++
	}
}

// failed counts what an attempt produced in vain that ended in the bucket.
func (b *bucket) failed(rec *event.Record) {
	b.failedOutput += int64(rec.Tokens)
	b.vain.add(&rec.GPU)
}

// succeeded counts a completed request, and takes its sample.
func (c *Collector) succeeded(rec *event.Record) {
	c.line.upTo(rec.ClientLast).completions++
	t := &c.totals
	computed := rec.Request.InputTokens - spared(rec)
	t.successful += int64(rec.Tokens)
	t.completedPrompts += int64(rec.Request.InputTokens)
	t.completedInput += int64(computed)
	s := newSample(rec)
	good := c.limits.good(&s)
	if good {
		t.good += int64(s.tokens)
		add(&t.goodTime, rec.GPU.Prefill+rec.GPU.Decode)
		t.goodWork += int64(computed-rec.LaterCachedTokens) + int64(rec.Tokens-1)
	}
	c.line.at(s.arrival).sample(&s, good)
	if c.stages != nil {
		c.stages.at(s.arrival).sample(&s, good)
	}
	c.keep(&s)
}

// sample counts a completed request that arrived in the bucket.
func (b *bucket) sample(s *sample, good bool) {
	b.samples++
	add(&b.ttft, int64(s.ttft))
	if s.waited {
		b.waited++
	}
	if good {
		b.good++
		b.goodTokens += int64(s.tokens)
	}
}

// keep stores a sample, in a sketch once there are too many to store them all.
func (c *Collector) keep(s *sample) {
	if !c.folded {
		if c.kept.n < c.exact {
			c.kept.add(s)
			return
		}
		c.kept.each(c.sketch)
		c.kept, c.folded = samples{}, true
	}
	c.sketch(s)
}

func (c *Collector) sketch(s *sample) {
	if c.parts != nil {
		c.parts[s.replica].sketched(s)
	}
	d := &c.line.detail[c.line.find(s.arrival)]
	if d.sketch == nil {
		d.sketch = new(sketch)
	}
	d.sketch.add(s)
	if c.stages != nil {
		c.stages.at(s.arrival).sketch.add(s)
	}
}

// ended is when the request left the system.
func ended(rec *event.Record) clock.Time {
	if rec.Released != clock.Never {
		return rec.Released
	}
	return rec.Request.Arrival
}
