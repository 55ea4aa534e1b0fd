package collect

import (
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/table"
	"clifftop/sim/clock"
)

// A class that has all requests has the numbers of the run, but for inter-token gaps.
func TestClassesShareOutTheRun(t *testing.T) {
	strict := &report.SLO{Objectives: []report.Objective{{Metric: "ttft", Percentile: 95,
		Limit: 2500 * clock.Millisecond}, {Metric: "itl", Percentile: 99, Limit: clock.Millisecond}}}
	c := New(Options{
		SLO: &report.SLO{Objectives: []report.Objective{{Metric: "ttft", Percentile: 95,
			Limit: 500 * clock.Millisecond}}},
		Classes: []ClassSpan{{"chat", strict}, {"batch", nil}, {"unused", nil}},
	})
	records := []float64{0, 1, 2, 3, 10, 11, 12, 13}
	for i, arrival := range records {
		rec := served(int64(i), arrival, arrival+1+float64(i%3), arrival+8, 11)
		rec.Request.Class = uint16(i % 2)
		play(c, rec)
	}
	s := c.Summary()
	if len(s.Classes) != 2 || s.Classes[0].Name != "chat" || s.Classes[1].Name != "batch" {
		t.Fatalf("%+v", s.Classes)
	}
	var requests float64
	for _, k := range s.Classes {
		if k.Requests.Offered != 4 || k.Latency.TTFT.N > 4 || k.Latency.ITL.N != 0 {
			t.Errorf("%s: %+v, %d samples", k.Name, k.Requests, k.Latency.TTFT.N)
		}
		requests += *k.Throughput.OfferedRequestsPerS
	}
	near(t, "requests per second", &requests, *s.Throughput.OfferedRequestsPerS)
	// First tokens after 1, 3, 2 and 1 s of chat, and 2, 1, 3 and 2 s of batch; a request in the last moment is not in
	// the window.
	chat, batch := &s.Classes[0].Goodput, &s.Classes[1].Goodput
	near(t, "attainment of chat", chat.Attainment, 0.75)
	near(t, "attainment of batch, by the limit of the run", batch.Attainment, 0)
	if len(chat.Limits) != 1 || *chat.Met || len(batch.Limits) != 1 {
		t.Errorf("limits %+v and %+v", chat.Limits, batch.Limits)
	}
	var b strings.Builder
	if err := table.Write(s, &b, report.DefaultProfile()); err != nil || !strings.Contains(b.String(), "\nbatch ") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := report.WriteClasses(&b, s.Classes); err != nil || !strings.HasPrefix(b.String(), "class,offered,") ||
		!strings.Contains(b.String(), "\nbatch,4,4,") {
		t.Errorf("%v\n%s", err, b.String())
	}
	two := report.Pool([]*report.Summary{s, c.Summary()})
	if len(two.Classes) != 2 || two.Classes[0].Requests.Offered != 8 {
		t.Errorf("pooled: %+v", two.Classes)
	}
	near(t, "pooled attainment of chat", two.Classes[0].Goodput.Attainment, 0.75)
}
