package collect

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// limited is an objective of one limit.
func limited(metric string, percentile float64, limit clock.Duration) *report.SLO {
	return &report.SLO{Objectives: []report.Objective{{Metric: metric, Percentile: percentile, Limit: limit}}}
}

func TestObjectiveKeys(t *testing.T) {
	for percentile, want := range map[float64]string{0: "ttft_mean", 5: "ttft_p5", 95: "ttft_p95", 99.9: "ttft_p99_9",
		99.999: "ttft_p99_999"} {
		if got := (report.Objective{Metric: "ttft", Percentile: percentile}).Key(); got != want {
			t.Errorf("%v is %s, want %s", percentile, got, want)
		}
	}
	share := .1
	slo := &report.SLO{
		Objectives: []report.Objective{{Metric: "ttft", Percentile: 95, Limit: 800 * clock.Millisecond},
			{Metric: "tpot", Percentile: 99.9, Limit: 80 * clock.Millisecond},
			{Metric: "itl", Percentile: 50, Limit: 20 * clock.Millisecond},
			{Metric: "e2e", Percentile: 0, Limit: clock.Minute}},
		Attainment: .95, WaitProbability: &share,
	}
	const want = `{
 "attainment": 0.95,
 "e2e_mean": "1m0s",
 "itl_p50": "20ms",
 "tpot_p99_9": "80ms",
 "ttft_p95": "800ms",
 "wait_probability": 0.1
}`
	if got := marshal(t, slo); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if l := newLimits(slo); l != (limits{800 * clock.Millisecond, 20 * clock.Millisecond, clock.Minute, noLimit}) {
		t.Errorf("%+v", l)
	}
}

// A server that can do one request a second is asked for two, so that the 41 first of 1000 start within 20 s.
// The others complete too late, and most of them after the window; that must not water goodput down or up.
func TestGoodputOfOverload(t *testing.T) {
	for name, opts := range map[string]Options{
		"whole": {}, "end": {End: at(600)}, "cut": {Warmup: Warmup{Duration: 8 * clock.Second}}, "many": {},
	} {
		opts.SLO = limited("ttft", 95, 20*clock.Second)
		c := New(opts)
		if name == "many" {
			c.exact = 100
		}
		var records []*event.Record
		for i := range 1000 {
			records = append(records, served(int64(i), .5*float64(i), float64(i), float64(i)+1, int32(2+i%7)))
		}
		play(c, records...)
		s := c.Summary()
		offered, good, tokens := 0., 0., 0.
		for i, r := range records {
			if arrival := .5 * float64(i); arrival >= s.Window.StartS && arrival <= s.Window.EndS {
				offered++
				if i <= 40 {
					good++
					tokens += float64(r.Tokens)
				}
			}
		}
		length := s.Window.EndS - s.Window.StartS
		if good < 24 || offered < 900 || length < 490 {
			t.Fatalf("%s: %v of %v requests in %v s", name, good, offered, length)
		}
		near(t, name+": attainment", s.Goodput.Attainment, good/offered)
		near(t, name+": good requests per second", s.Goodput.RequestsPerS, good/length)
		near(t, name+": share of the offered rate", s.Goodput.RequestsPerS, *s.Goodput.Attainment*offered/length)
		near(t, name+": good tokens per second", s.Goodput.OutputTokensPerS, tokens/length)
	}
}

// Goodput may exceed what the window produced: here all are good and all but one end after the last arrival.
func TestGoodputThatEndsAfterTheWindow(t *testing.T) {
	c := New(Options{End: at(10), SLO: limited("e2e", 95, clock.Minute)})
	var records []*event.Record
	for i := range 10 {
		records = append(records, served(int64(i), float64(i), 20, 21, 10))
	}
	records[0] = served(0, 0, 1, 2, 10)
	play(c, records...)
	s := c.Summary()
	near(t, "throughput", s.Throughput.RequestsPerS, .1)
	near(t, "goodput", s.Goodput.RequestsPerS, 1)
	near(t, "tokens", s.Goodput.OutputTokensPerS, 10)
}

// cut is a record of a request whose client left after a number of seconds without an answer.
func cut(id int64, arrival, after float64) *event.Record {
	rec := served(id, arrival, arrival, arrival+after, 5)
	rec.Outcome, rec.Tokens = event.TimedOut, 0
	rec.ClientFirst, rec.ClientLast, rec.FirstToken, rec.LastToken = clock.Never, clock.Never, clock.Never, clock.Never
	return rec
}

// Of 100 requests 45 complete, all alike and well within every limit. A percentile of all requests that lies
// among those keeps its limit, one beyond does not, and no mean does.
func TestRunsThatFailAreNotMet(t *testing.T) {
	for _, exact := range []int{10, ExactSamples} {
		for _, metric := range []string{"ttft", "tpot", "itl", "e2e", "queue"} {
			for percentile, want := range map[float64]bool{40: true, 44: true, 45: false, 50: false, 95: false,
				0: false} {
				slo := limited(metric, percentile, 10*clock.Second)
				if metric == "itl" {
					slo.Objectives[0].Limit = clock.Second
				}
				c := New(Options{SLO: slo})
				c.exact = exact
				var records []*event.Record
				for i := range int64(100) {
					if at := float64(i); i%20 < 9 {
						records = append(records, served(i, at, at+.1, at+.5, 5))
					} else {
						records = append(records, cut(i, at, 10))
					}
				}
				play(c, records...)
				for range 45 {
					c.Span(&event.Span{Progression: clock.Progression{Start: at(49), First: 1e15, N: 1},
						Delivery: event.Delivery{Others: []event.ChunkGaps{{Length: 100 * clock.Millisecond, N: 1}}}})
				}
				s := c.Summary()
				near(t, "attainment", s.Goodput.Attainment, .45)
				if got := *s.Goodput.Met; got != want {
					t.Errorf("%s, percentile %v: met is %v", metric, percentile, got)
				}
				gated := 0.
				if want {
					gated = *s.Throughput.OutputTokensPerS
				}
				near(t, "gated goodput", s.Goodput.GatedOutputTokensPerS, gated)
				told := slices.ContainsFunc(s.Warnings, func(w report.Warning) bool { return w.Code == "slo_failures" })
				if told == want {
					t.Errorf("%s, percentile %v: a warning of failures: %v", metric, percentile, told)
				}
			}
		}
	}
}

// Requests still in the system when the run stops leave the verdict open only where it hangs on them.
func TestUnfinishedRequests(t *testing.T) {
	one := 1.
	for _, test := range []struct {
		unfinished int64
		slo        *report.SLO
		want       string
	}{
		{1, limited("ttft", 95, clock.Second), "met"},
		{10, limited("ttft", 95, clock.Second), "open"},
		{10, limited("ttft", 95, 50*clock.Millisecond), "missed"},
		{10, limited("ttft", 0, clock.Second), "open"},
		{10, limited("ttft", 0, 50*clock.Millisecond), "missed"},
		{10, limited("tpot", 50, clock.Second), "met"},
		{10, &report.SLO{Attainment: .9}, "met"},
		{10, &report.SLO{Attainment: .95}, "open"},
		{10, &report.SLO{WaitProbability: &one}, "met"},
		{10, &report.SLO{WaitProbability: new(float64)}, "open"},
		{0, &report.SLO{WaitProbability: new(float64)}, "met"},
	} {
		c := New(Options{SLO: test.slo, End: at(100)})
		var records []*event.Record
		for i := range 100 - test.unfinished {
			records = append(records, served(i, float64(i), float64(i)+.1, float64(i)+.5, 5))
		}
		play(c, records...)
		for i := range test.unfinished {
			c.Arrived(at(99.9), &workload.Request{ID: 100 + i, Arrival: at(99.9)})
			c.Levels(at(99.9), &event.Levels{System: int(i) + 1})
		}
		s := c.Summary()
		got := "open"
		if s.Goodput.Met != nil {
			got = "missed"
			if *s.Goodput.Met {
				got = "met"
			}
		}
		if got != test.want {
			t.Errorf("%d unfinished, %s: %s, want %s", test.unfinished, marshal(t, test.slo), got, test.want)
		}
		if (s.Goodput.GatedOutputTokensPerS == nil) != (got == "open") {
			t.Errorf("%s, but the gated goodput is %v", got, s.Goodput.GatedOutputTokensPerS)
		}
		if got != "missed" {
			near(t, "attainment", s.Goodput.Attainment, float64(100-test.unfinished)/100)
		}
	}
}

// witness keeps what a run reports of requests, and counts the tokens it computes.
type witness struct {
	*Collector
	arrivals []workload.Request
	records  []event.Record
	computed int64
}

func (w *witness) Arrived(at clock.Time, r *workload.Request) {
	w.arrivals = append(w.arrivals, *r)
	w.Collector.Arrived(at, r)
}

func (w *witness) Finished(rec *event.Record) {
	w.records = append(w.records, *rec)
	w.Collector.Finished(rec)
}

func (w *witness) Span(s *event.Span) {
	w.computed += int64(s.N) * int64(s.Computed())
	w.Collector.Span(s)
}

// Goodput of any run is that of its requests, one after the other.
func TestGoodputAgainstRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := simtest.Draw(t)
		cfg := config(&k)
		opts, width := drawOptions(t, &cfg)
		ms := func(what string) clock.Duration {
			return clock.Duration(rapid.Int64Range(1, 2000).Draw(t, what)) * clock.Millisecond
		}
		percentile := rapid.SampledFrom([]float64{0, 50, 95}).Draw(t, "percentile")
		metric := rapid.SampledFrom([]string{"ttft", "tpot", "e2e", "queue"}).Draw(t, "metric")
		opts.SLO = limited(metric, percentile, ms("limit"))
		limit := opts.SLO.Objectives[0].Limit
		if rapid.Bool().Draw(t, "attainment") {
			opts.SLO.Attainment = .8
		}
		seen := &witness{Collector: New(opts)}
		seen.line = newTimeline(width, maxBuckets, true)
		e, err := sim.New(cfg, k.Source(), seen)
		if err != nil {
			t.Fatal(err)
		}
		e.Horizon = opts.End
		if err := e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		s, w := seen.Summary(), seen.window(&report.Summary{})
		inside := func(r *workload.Request) bool { _, sent := r.First(); return sent >= w.start && sent < w.until }
		offered, unfinished := 0., 0.
		for i := range seen.arrivals {
			if r := &seen.arrivals[i]; r.Attempt() == 0 && inside(r) {
				offered++
				unfinished++
			}
		}
		good, tokens, needed := 0., 0., 0.
		var values []float64
		for i := range seen.records {
			r := &seen.records[i]
			if r.Again {
				continue
			}
			in := inside(&r.Request)
			_, sent := r.Request.First()
			if in {
				unfinished--
			}
			if r.Outcome != event.Completed {
				if in {
					values = append(values, math.Inf(1))
				}
				continue
			}
			gaps := float64(r.Tokens - 1)
			var v, most float64
			switch metric {
			case "ttft":
				v = float64(r.ClientFirst - sent)
			case "tpot":
				v = float64(r.ClientLast-r.ClientFirst) / gaps
			case "e2e":
				v = float64(r.ClientLast - sent)
			default:
				v = float64(r.Scheduled - r.Queued)
			}
			if metric == "tpot" && gaps == 0 {
				most = math.Inf(1) // has none, and v is no number
				v = 0
			} else {
				most = float64(limit)
				if in {
					values = append(values, v)
				}
			}
			if v > most {
				continue
			}
			needed += float64(r.Request.InputTokens-r.CachedTokens-r.LoadedTokens-r.PulledTokens-r.LaterCachedTokens) +
				gaps
			if in {
				good++
				tokens += float64(r.Tokens)
			}
		}
		if got := s.Goodput.WorkFraction; seen.computed == 0 && got != nil {
			t.Fatalf("no work is good by %v", *got)
		} else if seen.computed > 0 {
			same(t, "work fraction", got, needed/float64(seen.computed))
			if *got > 1 {
				t.Fatalf("good requests needed %v of %d tokens", needed, seen.computed)
			}
		}
		if offered == 0 {
			return
		}
		same(t, "attainment", s.Goodput.Attainment, good/offered)
		if length := s.Window.EndS - s.Window.StartS; length > 0 {
			same(t, "requests", s.Goodput.RequestsPerS, good/w.seconds())
			same(t, "tokens", s.Goodput.OutputTokensPerS, tokens/w.seconds())
		}
		keeps := func(unknown, extra float64) bool {
			all := slices.Clone(values)
			for range int(unfinished) {
				all = append(all, unknown)
			}
			return statistic(all, percentile) <= float64(limit) && (good+extra)/offered >= opts.SLO.Attainment
		}
		switch worst, best := keeps(math.Inf(1), 0), keeps(0, unfinished); {
		case worst != best && s.Goodput.Met != nil:
			t.Fatalf("met is %v, though %v requests decide", *s.Goodput.Met, unfinished)
		case worst == best && (s.Goodput.Met == nil || *s.Goodput.Met != worst):
			t.Fatalf("met is %v, want %v", s.Goodput.Met, worst)
		}
	})
}

// QuantileAmong is a percentile by sorting, or the mean for 0; nothing is 0.
func statistic(values []float64, percentile float64) float64 {
	slices.Sort(values)
	if len(values) == 0 {
		return 0
	}
	if percentile == 0 {
		return stats.Mean(values)
	}
	below, part := math.Modf(float64(len(values)-1) * (percentile / 100))
	v := values[int(below)]
	if part > 0 && !math.IsInf(v, 1) {
		v += part * (values[int(below)+1] - v)
	}
	return v
}

func same(t *rapid.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Fatalf("%s is unknown, want %v", what, want)
	}
	if math.Abs(*got-want) > 1e-9*want {
		t.Fatalf("%s is %v, want %v", what, *got, want)
	}
}

// A summary that is read is not judged by something else than what it says.
func TestReadObjectives(t *testing.T) {
	var slo report.SLO
	if err := slo.UnmarshalJSON([]byte(`{"ttft_p99_9": "2s", "tpot_mean": "50ms", "attainment": 0.9}`)); err != nil ||
		len(slo.Objectives) != 2 {
		t.Fatalf("%+v, %v", slo, err)
	}
	if got := marshal(t, &slo); got != marshal(t,
		&report.SLO{Attainment: .9, Objectives: []report.Objective{{Metric: "tpot", Percentile: 0,
			Limit: 50 * clock.Millisecond}, {Metric: "ttft", Percentile: 99.9, Limit: 2 * clock.Second}}}) {
		t.Error(got)
	}
	for _, key := range []string{"ttft", "ttft_", "ttft_q95", "ttft_p", "ttft_p0", "ttft_p100", "ttft_pNaN",
		"speed_p95"} {
		if err := slo.UnmarshalJSON([]byte(`{"` + key + `": "1s"}`)); err == nil {
			t.Errorf("%s is read as %+v", key, slo.Objectives)
		}
	}
}

func TestLimitName(t *testing.T) {
	for key, want := range map[string]string{"ttft_p95": "TTFT p95", "e2e_p99_9": "E2E p99.9",
		"queue_mean": "queue mean", "my_chat: tpot_p95": "my_chat: TPOT p95", "attainment": "attainment",
		"wait_probability": "wait probability"} {
		if got := report.LimitName(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}
