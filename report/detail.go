package report

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Detail is what a run was like beyond its [Summary], for pictures of it. It is of one run, also where several are pooled.
type Detail struct {
	// Distributions over the window, in milliseconds: what the summary's latencies are of.
	TTFT, TPOT, E2E, ITL Shape
	// Series is the run in buckets of time.
	Series []SeriesPoint
	// Opening is how the run began; nil where nobody looked.
	Opening *Opening
}

// Shape is a distribution in bins, whose width is at most 1/32 of their values.
type Shape struct {
	N    int64
	Bins []Bin // that are not empty, in ascending order
}

// Bin counts values from Low up to High, in milliseconds.
type Bin struct {
	Low, High float64
	N         int64
}

// joined is how many buckets of a [Histogram] make a bin of a [Shape].
const joined = 4

// shape is the distribution of what the histogram recorded, multiplied by scale.
func (h *Histogram) shape(scale float64) Shape {
	s := Shape{N: int64(h.n)}
	for p, counts := range h.pages {
		if counts == nil {
			continue
		}
		for sub := 0; sub < subs; sub += joined {
			var n uint64
			for _, k := range counts[sub : sub+joined] {
				n += k
			}
			if n > 0 {
				lo, _ := bounds(p, sub)
				_, hi := bounds(p, sub+joined-1)
				s.Bins = append(s.Bins, Bin{float64(max(lo, h.min)) * scale, float64(min(hi, h.max)) * scale, int64(n)})
			}
		}
	}
	return s
}

// Detail is what can be drawn of the run so far.
func (c *Collector) Detail() *Detail {
	const (
		msPerPico  = 1e-9
		msPerFemto = 1e-12
	)
	c.settle()
	w := c.window(&Summary{})
	var itl Histogram
	var of [metrics]Histogram
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
		TTFT: of[ttft].shape(msPerPico), TPOT: of[tpot].shape(msPerPico), E2E: of[e2e].shape(msPerPico), ITL: itl.shape(msPerFemto),
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

// span counts like iterations.
func (o *Opening) span(s *event.Span) {
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

// finished keeps the requests that arrived first.
func (o *Opening) finished(rec *event.Record) {
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
