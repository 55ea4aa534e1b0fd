package report

import (
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Detail is what a run was like beyond its [Summary], for pictures of it. It is of one run, also where several are pooled.
type Detail struct {
	// Distributions over the window, in milliseconds: what the summary's latencies are of.
	TTFT, TPOT, E2E, ITL stats.Shape
	// Series is the run in buckets of time.
	Series []SeriesPoint
	// Opening is how the run began; nil where nobody looked.
	Opening *Opening
}

// Detail is what can be drawn of the run so far.
func (c *Collector) Detail() *Detail {
	const (
		msPerPico  = 1e-9
		msPerFemto = 1e-12
	)
	c.settle()
	w := c.window(&Summary{})
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
	c.kept.each(func(x *sample) {
		if x.arrival >= w.start && x.arrival < w.until {
			for _, m := range drawn {
				if v, ok := x.value(m); ok {
					of[m].Record(int64(v), 1)
				}
			}
		}
	})
	return &Detail{
		TTFT: of[ttft].Shape(msPerPico), TPOT: of[tpot].Shape(msPerPico), E2E: of[e2e].Shape(msPerPico), ITL: itl.Shape(msPerFemto),
		Series: c.series(&w), Opening: c.opts.Opening,
	}
}

// An Opening is how a run began: its first iterations, and the first requests. A [Collector] that is given an empty one
// fills it.
type Opening struct {
	Iterations []Iteration
	Requests   []Phases // in order of arrival
}

// Iteration is one iteration of a replica's batch.
type Iteration struct {
	Start, End    clock.Time
	Replica       int
	Decodes       int // sequences that decoded
	PrefillTokens int // of prompts, those computed again after a preemption among them
}

// Phases are the instants of a request, [clock.Never] where it did not come so far.
type Phases struct {
	ID                                          int64
	Arrival, Queued, Scheduled, FirstToken, End clock.Time
	InputTokens, OutputTokens                   int32
	Outcome                                     event.Outcome
}

// The numbers of iterations and of requests that an opening keeps.
const (
	openingIterations = 600
	openingRequests   = 32
)

// keepIterations counts like iterations.
func keepIterations(o *Opening, s *event.Span) {
	if len(o.Iterations) >= openingIterations {
		return
	}
	for k := range min(s.N, openingIterations-len(o.Iterations)) {
		start := s.Start
		if k > 0 {
			start = s.End(k)
		}
		o.Iterations = append(o.Iterations, Iteration{
			Start: start, End: s.End(k + 1), Replica: s.Replica, Decodes: s.Decodes, PrefillTokens: s.PrefillTokens + s.RecomputedTokens,
		})
	}
}

// keepRequest keeps the requests that arrived first.
func keepRequest(o *Opening, rec *event.Record) {
	n := len(o.Requests)
	if n == openingRequests && o.Requests[n-1].Arrival <= rec.Request.Arrival {
		return
	}
	p := Phases{
		ID: rec.Request.ID, Arrival: rec.Request.Arrival, Queued: rec.Queued, Scheduled: rec.Scheduled, FirstToken: rec.FirstToken,
		End: ended(rec), InputTokens: int32(rec.Request.InputTokens), OutputTokens: rec.Tokens, Outcome: rec.Outcome,
	}
	at := n
	for at > 0 && o.Requests[at-1].Arrival > p.Arrival {
		at--
	}
	if n == openingRequests {
		n--
	} else {
		o.Requests = append(o.Requests, Phases{})
	}
	copy(o.Requests[at+1:n+1], o.Requests[at:n])
	o.Requests[at] = p
}
