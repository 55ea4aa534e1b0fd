package collect

import (
	"math"
	"testing"

	"clifftop/report"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// The detail of a run is of the requests that its summary is of, whether samples are kept or sketched.
func TestDetailIsOfTheSummary(t *testing.T) {
	for _, exact := range []int{ExactSamples, 10} {
		c := New(Options{Gantt: &report.Gantt{}})
		c.exact = exact
		for i := range int64(500) {
			at := clock.Time(i) * clock.Time(100*clock.Millisecond)
			r := workload.Request{ID: i, Arrival: at, InputTokens: 100, OutputTokens: 11}
			c.Arrived(at, &r)
			first := at.Add(clock.Duration(i%50+1) * clock.Millisecond)
			last := first.Add(200 * clock.Millisecond)
			c.Finished(&event.Record{Request: r, Queued: at, Scheduled: at, FirstToken: first, LastToken: last,
				ClientFirst: first, ClientLast: last, Released: last, Tokens: 11})
		}
		s, d := c.Summary(), c.Detail()
		if d.TTFT.N != s.Latency.TTFT.N || d.TPOT.N != s.Latency.TPOT.N || d.E2E.N != s.Latency.E2E.N || d.TTFT.N == 0 {
			t.Errorf("%d, %d and %d values, want %d", d.TTFT.N, d.TPOT.N, d.E2E.N, s.Latency.TTFT.N)
		}
		half := int64(0)
		for _, b := range d.TTFT.Bins {
			if half += b.N; 2*half >= d.TTFT.N {
				if math.Abs(b.High / *s.Latency.TTFT.P50 - 1) > 0.05 {
					t.Errorf("half of the values are at most %g, the median is %g", b.High, *s.Latency.TTFT.P50)
				}
				break
			}
		}
		if len(d.Series) == 0 || d.Gantt == nil {
			t.Errorf("%d points, opening %v", len(d.Series), d.Gantt)
		}
	}
}

// An opening keeps the first iterations and the earliest requests, whenever these end.
func TestOpening(t *testing.T) {
	o := &report.Gantt{}
	span := &event.Span{Progression: clock.Progression{Start: 0, First: 2e12, Slope: 1e12, N: 3}, Decodes: 4,
		PrefillTokens: 0}
	keepIterations(o, span)
	if len(o.Iterations) != 3 || o.Iterations[1].Start != o.Iterations[0].End || o.Iterations[2].End != span.End(3) {
		t.Errorf("%+v", o.Iterations)
	}
	for range 1000 {
		keepIterations(o, &event.Span{Progression: clock.Progression{Start: 9e9, First: 1e12, N: 7}})
	}
	if len(o.Iterations) != openingIterations {
		t.Errorf("%d iterations", len(o.Iterations))
	}
	const n = 100
	for i := range int64(n) {
		k := (i * 37) % n // in some order
		keepRequest(o, &event.Record{Request: workload.Request{ID: k, Arrival: clock.Time(k)},
			Released: clock.Time(k + 500)})
	}
	if len(o.Requests) != openingRequests {
		t.Fatalf("%d requests", len(o.Requests))
	}
	for i, q := range o.Requests {
		if q.ID != int64(i) || q.End != clock.Time(i+500) {
			t.Errorf("request %d is %+v", i, q)
		}
	}
}
