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
	c.totals.records.add(rec)
	c.totals.stayed(rec)
	if rec.FirstToken != clock.Never { // a prompt counts at the time of its first token
		b := c.line.upTo(rec.FirstToken)
		b.prefilled(rec)
		b.power.attended(rec)
		c.totals.prefilled(rec)
		if rec.LoadedTokens > 0 && len(c.opts.Tiers) > 0 {
			c.loaded(&c.line, rec)
		}
	}
	if c.opts.Requests != nil || c.opts.Gantt != nil || c.stages != nil || c.classes != nil {
		c.passOn(rec)
	}
	if rec.Outcome == event.Completed {
		c.succeeded(rec)
	} else {
		c.failed(rec, last)
	}
}

// passOn gives the record to the other observers: files, the Gantt chart, traffic phases and classes.
func (c *Collector) passOn(rec *event.Record) {
	if c.opts.Requests != nil {
		c.opts.Requests.Finished(rec)
	}
	if c.opts.Gantt != nil {
		keepRequest(c.opts.Gantt, rec)
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
		if c.sloHours != nil {
			c.sloHours.at(sent).failures++
		}
	}
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
	good := c.classes.limitsOf(rec.Request.Class, c).good(&s)
	if good {
		t.goodTokens += int64(s.tokens)
		add(&t.goodTime, rec.GPU.Prefill+rec.GPU.Decode)
		t.goodWork += int64(computed-rec.LaterCachedTokens) + int64(rec.Tokens-1)
	}
	c.line.at(s.arrival).sample(&s, good)
	if c.stages != nil {
		c.stages.at(s.arrival).sample(&s, good)
	}
	if c.sloHours != nil {
		t := c.sloHours.at(s.arrival)
		t.sample(&s, good)
		t.sketch.latencies(&s)
	}
	if c.kept.n < c.exact && !c.folded {
		c.kept.add(&s)
	} else {
		c.fold(&s)
	}
}

// fold puts a sample into a sketch, and those that were kept: there are too many to store them all.
func (c *Collector) fold(s *sample) {
	if !c.folded {
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
