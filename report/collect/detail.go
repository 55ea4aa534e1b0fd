package collect

import (
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/event"
)

// Detail is what can be drawn of the run so far.
func (c *Collector) Detail() *report.Detail {
	const (
		msPerPico  = 1e-9
		msPerFemto = 1e-12
	)
	c.settle()
	w := c.window(&report.Summary{})
	var itl stats.Histogram
	var of [metrics]stats.Histogram
	drawn := [...]int{ttft, tpot, e2e}
	for i := w.from; i < w.to; i++ {
		itl.Merge(&c.line.detail[i].itl)
		if k := c.line.detail[i].sketch; k != nil {
			for _, m := range drawn {
				of[m].Merge(&k[m])
			}
		}
	}
	c.kept.in(w.start, w.until, func(x *sample) {
		for _, m := range drawn {
			if v, ok := x.value(m); ok {
				of[m].Record(int64(v), 1)
			}
		}
	})
	return &report.Detail{
		TTFT: of[ttft].Shape(msPerPico), TPOT: of[tpot].Shape(msPerPico), E2E: of[e2e].Shape(msPerPico),
		ITL:    itl.Shape(msPerFemto),
		Series: summariser{c}.series(&w), Gantt: c.opts.Gantt,
	}
}

// The numbers of iterations and requests that a [report.Gantt] holds.
const (
	openingIterations = 600
	openingRequests   = 32
)

// keepIterations counts like iterations.
func keepIterations(o *report.Gantt, s *event.Span) {
	if len(o.Iterations) >= openingIterations {
		return
	}
	for k := range min(s.N, openingIterations-len(o.Iterations)) {
		start := s.Start
		if k > 0 {
			start = s.End(k)
		}
		o.Iterations = append(o.Iterations, report.Iteration{
			Start: start, End: s.End(k + 1), Replica: s.Replica, Decodes: s.Decodes,
			PrefillTokens: s.PrefillTokens + s.RecomputedTokens,
		})
	}
}

// keepRequest keeps the requests that arrived first.
func keepRequest(o *report.Gantt, rec *event.Record) {
	n := len(o.Requests)
	if n == openingRequests && o.Requests[n-1].Arrival <= rec.Request.Arrival {
		return
	}
	p := report.Phases{
		ID: rec.Request.ID, Arrival: rec.Request.Arrival, Queued: rec.Queued, Scheduled: rec.Scheduled,
		FirstToken: rec.FirstToken,
		End:        ended(rec), InputTokens: int32(rec.Request.InputTokens), OutputTokens: rec.Tokens,
		Outcome: rec.Outcome,
	}
	at := n
	for at > 0 && o.Requests[at-1].Arrival > p.Arrival {
		at--
	}
	if n == openingRequests {
		n--
	} else {
		o.Requests = append(o.Requests, report.Phases{})
	}
	copy(o.Requests[at+1:n+1], o.Requests[at:n])
	o.Requests[at] = p
}
