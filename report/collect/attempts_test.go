package collect

import (
	"bytes"
	"context"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/table"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// tried is the record of an attempt: number k of the request whose first attempt has an ID and was sent at an instant.
func tried(rec *event.Record, k int32, first int64, sent float64, causes ...workload.Ending) *event.Record {
	c := &workload.Client{Timeout: clock.Second, Attempt: k, First: first, Sent: at(sent), MayRetry: true}
	for _, e := range causes {
		c.Earlier = c.Earlier.With(e)
	}
	rec.Request.Client = c
	return rec
}

// gaveUp is the record of an attempt that its client left.
func gaveUp(id int64, arrival, left float64, how workload.Ending, again bool) *event.Record {
	rec := served(id, arrival, left, left, 7)
	rec.Outcome, rec.Ending, rec.Again, rec.Left, rec.Tokens = event.TimedOut, how, again, at(left), 4
	rec.LastToken, rec.ClientLast = clock.Never, clock.Never
	return rec
}

// attempts is a run of four requests: one answered at once, one at the third attempt, one given up at the second,
// and one that was refused for good.
func attempts() []*event.Record {
	busy := served(3, 2, 2, 2, 1)
	busy.Outcome, busy.Ending, busy.Refusal, busy.Again, busy.Tokens = event.Rejected, workload.RefusedBusy, event.Busy,
		true, 0
	busy.FirstToken, busy.LastToken, busy.ClientFirst, busy.ClientLast = clock.Never, clock.Never, clock.Never,
		clock.Never
	refused := *busy
	refused.Request.ID, refused.Again = 5, false
	return []*event.Record{
		tried(served(0, 0, .5, 2, 11), 0, 0, 0),
		tried(gaveUp(1, 1, 2, workload.TimedOutFirst, true), 0, 1, 1),
		tried(busy, 1, 1, 1, workload.TimedOutFirst),
		tried(served(6, 3, 4, 5, 11), 2, 1, 1, workload.TimedOutFirst, workload.RefusedBusy),
		tried(gaveUp(2, 1.5, 2.5, workload.TimedOut, true), 0, 2, 1.5),
		tried(gaveUp(7, 3.5, 4.5, workload.TimedOut, false), 1, 2, 1.5, workload.TimedOut),
		tried(&refused, 0, 5, 2),
	}
}

func TestLogicalRequests(t *testing.T) {
	c := New(Options{SLO: &report.SLO{Objectives: []report.Objective{{Metric: "e2e", Percentile: 95,
		Limit: 3 * clock.Second}}}, Reading: 5})
	play(c, attempts()...)
	s := c.Summary()
	want := report.Requests{Offered: 4, Completed: 2, TimedOut: 1, Rejected: 1, RejectedBusy: 1, Attempts: 7,
		Retries: 3, RetriedAfter: report.RetriedAfter{FirstTimeout: 1, Timeout: 1, Busy: 1, Connection: 0}}
	if s.Requests != want {
		t.Errorf("got  %+v\nwant %+v", s.Requests, want)
	}
	near(t, "error rate", s.System.ErrorRate, 0.5)
	near(t, "attainment", s.Goodput.Attainment, 0.25) // the request of three attempts took four seconds
	near(t, "slowest answer", s.Latency.E2E.Max, 4000)
	near(t, "slowest first token", s.Latency.TTFT.Max, 3000)
	near(t, "pace surplus", s.PaceSurplus.Max, 11/1./5)
	if s.Tokens.Wasted != 12 || s.Tokens.OutputSuccessful != 22 {
		t.Errorf("tokens %+v", s.Tokens)
	}
	// The window ends with the last request that came, not with the last attempt.
	if s.Window.EndS < 2 || s.Window.EndS > 2.1 {
		t.Errorf("window %+v", s.Window)
	}
	var b strings.Builder
	if err := table.Write(s, &b, report.DefaultProfile()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"4 offered, 2 completed, 1 rejected as busy, 1 timed out attempts",
		"attempts 7, 1.75 for each request; sent again after 1 TTFT timeouts, 1 timeouts, 1 refusals throughput",
		" pace "} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), text) {
			t.Errorf("no %q in\n%s", text, b.String())
		}
	}
}

// TestRetriedRefusals: requests that come without a client and are sent again after a refusal are each counted once.
func TestRetriedRefusals(t *testing.T) {
	list := make([]workload.Request, 3)
	for i := range list {
		list[i] = workload.Request{InputTokens: 1, OutputTokens: 1}
	}
	c := New(Options{SLO: limited("ttft", 0, clock.Second), End: at(10)})
	e, err := sim.New(engine.Config{
		Scheduler: new(sched.VLLM), Timer: simtest.Affine{Base: 10e12},
		MaxNumSeqs: 1, MaxNumBatchedTokens: 3, MaxModelLen: 3, BlockSize: 1, MaxQueuedTokens: 1,
	}, simtest.NewRequests(list).Retry(simtest.Retries{Most: 1, Delay: 5 * clock.Millisecond}), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	// The first fills the queue, so that the others are refused. When they come again it is computed, and one of them
	// waits.
	s := c.Summary()
	want := report.Requests{Offered: 3, Completed: 2, Rejected: 1, RejectedBusy: 1, Attempts: 5, Retries: 2,
		RetriedAfter: report.RetriedAfter{Busy: 2}}
	if s.Requests != want {
		t.Errorf("got  %+v\nwant %+v", s.Requests, want)
	}
	near(t, "attainment", s.Goodput.Attainment, 2./3)
}

// TestLogicalConservation: what is lost or told twice shows.
func TestLogicalConservation(t *testing.T) {
	fault := func(change func([]*event.Record)) string {
		records := attempts()
		change(records)
		c := New(Options{})
		play(c, records...)
		if err := c.totals.checked(); err != "" {
			return err
		}
		return "none"
	}
	if got := fault(func([]*event.Record) {}); got != "none" {
		t.Error(got)
	}
	for name, change := range map[string]func([]*event.Record){
		"a request that ends twice":       func(r []*event.Record) { r[4].Again = false },
		"an attempt without a client":     func(r []*event.Record) { r[5].Again = true },
		"another request's attempt":       func(r []*event.Record) { r[5].Request.Client.First = 0 },
		"an attempt with a wrong number":  func(r []*event.Record) { r[5].Request.Client.Attempt = 2 },
		"one ends twice, another not yet": func(r []*event.Record) { r[4].Again, r[5].Again = false, true },
	} {
		if got := fault(change); got == "none" {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}

// checked is the first contradiction.
func (l *attemptCounts) checked() (fault string) {
	l.check(false, func(what string, a, b any) {
		if a != b && fault == "" {
			fault = what
		}
	})
	return fault
}

func TestAttemptRows(t *testing.T) {
	var b bytes.Buffer
	w := NewRequestWriter(&b)
	for _, rec := range attempts() {
		w.Finished(rec)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := []string{"request", "attempt", "arrival_s", "sent_s", "outcome", "ending", "again", "retry_causes",
		"ttft_ms", "e2e_ms"}
	for i, want := range []string{
		"0 0 0.000000000 0.000000000 completed answered false  500.000000 2000.000000",
		"1 0 1.000000000 1.000000000 timed_out ttft_timeout true  1000.000000 ",
		"1 1 2.000000000 1.000000000 rejected busy true ttft_timeout  ",
		"1 2 3.000000000 1.000000000 completed answered false ttft_timeout|busy 3000.000000 4000.000000",
	} {
		var got []string
		for _, name := range columns {
			got = append(got, rows[i+1][slices.Index(rows[0], name)])
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("row %d is %q, want %q", i, s, want)
		}
	}
}
