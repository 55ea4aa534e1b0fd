package collect

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"clifftop/internal/testenv"
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// at is the instant after a number of seconds.
func at(s float64) clock.Time { return clock.Time(clock.FromSeconds(s)) }

// served is the record of a request that did not wait anywhere but where said.
func served(id int64, arrival, first, last float64, tokens int32) *event.Record {
	return &event.Record{
		Request: workload.Request{ID: id, Arrival: at(arrival), InputTokens: 100, OutputTokens: tokens},
		Queued:  at(arrival), Scheduled: at(arrival),
		FirstToken: at(first), LastToken: at(last), ClientFirst: at(first), ClientLast: at(last), Released: at(last),
		Tokens: tokens,
	}
}

// play tells the collector of requests of which nothing but the records matters.
func play(c *Collector, records ...*event.Record) {
	inside := 0
	type change struct {
		at    clock.Time
		delta int
		rec   *event.Record
	}
	var events []change
	for _, r := range records {
		events = append(events, change{r.Request.Arrival, 1, r}, change{ended(r), -1, r})
	}
	slices.SortStableFunc(events, func(a, b change) int { return int(a.at - b.at) })
	for _, e := range events {
		inside += e.delta
		if e.delta > 0 {
			c.Arrived(e.at, &e.rec.Request)
		} else {
			c.Finished(e.rec)
		}
		c.Levels(e.at, &event.Levels{System: inside, Running: inside})
	}
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is unknown, want %v", what, want)
	} else if math.Abs(*got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, *got, want)
	}
}

// A request that tools measure differently: chunks at 0.50 0.55 0.60 0.90 0.95 s after sending.
func TestWorkedExample(t *testing.T) {
	for limit, good := range map[clock.Duration]float64{112 * clock.Millisecond: 0, 113 * clock.Millisecond: 1,
		112500 * clock.Microsecond: 1} {
		slo := &report.SLO{Objectives: []report.Objective{{Metric: "ttft", Percentile: 99,
			Limit: 500 * clock.Millisecond}, {Metric: "tpot", Percentile: 99, Limit: limit}}}
		c := New(Options{SLO: slo})
		rec := &event.Record{
			Request: workload.Request{InputTokens: 10, OutputTokens: 5},
			Queued:  at(.02), Scheduled: at(.20), FirstToken: at(.49), LastToken: at(.94),
			ClientFirst: at(.50), ClientLast: at(.95), Released: at(.96), Tokens: 5,
		}
		c.Arrived(0, &rec.Request)
		c.Levels(0, &event.Levels{System: 1})
		c.Levels(at(.02), &event.Levels{System: 1, Waiting: 1})
		c.Levels(at(.20), &event.Levels{System: 1, Running: 1})
		iteration := func(from, to float64, decodes, gaps, firsts int, others ...event.ChunkGaps) {
			c.Span(&event.Span{
				Progression: clock.Progression{Start: at(from), First: int64(at(to)-at(from)) * 1000, N: 1},
				Decodes:     decodes, FirstTokens: firsts, PrefillTokens: 10 * firsts,
				Delivery: event.Delivery{First: gaps, Others: others},
			})
		}
		iteration(.20, .49, 0, 0, 1)
		c.Levels(at(.49), &event.Levels{System: 1, Running: 1, Decoding: 1})
		iteration(.49, .54, 1, 1, 0)
		iteration(.54, .59, 1, 1, 0)
		// The sequence had been held.
		iteration(.84, .89, 1, 0, 0, event.ChunkGaps{Length: 300 * clock.Millisecond, N: 1})
		iteration(.89, .94, 1, 1, 0)
		c.Levels(at(.94), &event.Levels{System: 1, Running: 1, Decoding: 1})
		c.Finished(rec)
		c.Levels(at(.96), &event.Levels{})
		s := c.Summary()
		near(t, "TTFT", s.Latency.TTFT.P50, 500)
		near(t, "TPOT", s.Latency.TPOT.Mean, 112.5)
		near(t, "E2E", s.Latency.E2E.Max, 950)
		near(t, "queue", s.Latency.Queue.Mean, 180)
		near(t, "mean ITL", s.Latency.ITL.Mean, 112.5)
		near(t, "longest gap", s.Latency.ITL.Max, 300)
		near(t, "attainment", s.Goodput.Attainment, good)
		near(t, "stream speed", s.StreamTPS.Mean, 5/.45)
		near(t, "user's speed", s.E2ETPSUser.Mean, 5/.95)
		near(t, "speed in flight", s.E2ETPSInFlight.Mean, 5/.76)
		if *s.Goodput.Met != (good == 1) {
			t.Errorf("limit %v: met is %v", limit, *s.Goodput.Met)
		}
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A19: TPOT weighs requests alike, ITL tokens.
func TestMeanTPOTAndMeanITL(t *testing.T) {
	c := New(Options{End: at(100)})
	play(c, served(0, 0, 1, 1+9*.020, 10), served(1, 10, 11, 11+999*.050, 1000))
	gaps := func(from, length float64, n int) {
		c.Span(&event.Span{
			Progression: clock.Progression{Start: at(from), First: int64(length * 1e15), N: n}, Decodes: 1,
			Delivery: event.Delivery{First: 1, Later: 1},
		})
	}
	gaps(1, .020, 9)
	gaps(11, .050, 999)
	s := c.Summary()
	near(t, "mean TPOT", s.Latency.TPOT.Mean, 35)
	near(t, "mean ITL", s.Latency.ITL.Mean, (9*20+999*50)/1008.)
	if got := math.Round(*s.Latency.ITL.Mean*1000) / 1000; got != 49.732 {
		t.Errorf("mean ITL is %v, want 49.732", got)
	}
	if s.Latency.ITL.N != 1008 {
		t.Errorf("%d gaps, want 1008", s.Latency.ITL.N)
	}
	if p50 := *s.Latency.ITL.P50; math.Abs(p50-50) > 50./256 {
		t.Errorf("median gap is %v, want 50", p50)
	}
}

// E2E is TTFT and one TPOT for each token after the first, for each request.
func TestFencePosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sample{
			ttft:   clock.Duration(rapid.Int64Range(0, 1e15).Draw(t, "ttft")),
			tokens: rapid.Int32Range(2, 100_000).Draw(t, "tokens"),
		}
		s.e2e = s.ttft + clock.Duration(rapid.Int64Range(0, 1e15).Draw(t, "stream"))
		gap, _ := s.value(tpot)
		if sum := float64(s.ttft) + float64(s.tokens-1)*gap; math.Abs(sum-float64(s.e2e)) > 1 {
			t.Fatalf("%v + %d·%v = %v, want %v", s.ttft, s.tokens-1, gap, sum, s.e2e)
		}
	})
	one := sample{ttft: 5, e2e: 5, tokens: 1}
	if _, ok := one.value(tpot); ok {
		t.Error("a request of one token has a TPOT")
	}
	if _, ok := one.value(streamTPS); ok {
		t.Error("a request of one token has a stream speed")
	}
}

// Population: the TPOT of requests of one token does not count, in the mean or against the limit.
func TestOneTokenRequests(t *testing.T) {
	c := New(Options{SLO: limited("tpot", 99, 50*clock.Millisecond)})
	play(c, served(0, 0, 1, 1.09, 10), served(1, 1, 2, 2.18, 10), served(2, 2, 3, 3, 1))
	s := c.Summary()
	near(t, "mean TPOT", s.Latency.TPOT.Mean, 15)
	near(t, "attainment", s.Goodput.Attainment, 1)
	if s.Latency.TPOT.N != 2 || s.Latency.TTFT.N != 3 {
		t.Errorf("n = %d and %d, want 2 and 3", s.Latency.TPOT.N, s.Latency.TTFT.N)
	}
}

// 90 % within the limits is a goodput of 90 %, even where the objective as a whole is missed and the
// gated goodput is 0.
func TestGoodputIsNotAGate(t *testing.T) {
	c := New(Options{SLO: limited("e2e", 95, 2*clock.Second), End: at(1000)})
	var records []*event.Record
	for i := range 1000 {
		last := float64(i) + 1
		if i%10 == 9 {
			last = float64(i) + 5
		}
		records = append(records, served(int64(i), float64(i), float64(i)+.5, last, 10))
	}
	play(c, records...)
	for i := range 1000 {
		c.Span(&event.Span{Progression: clock.Progression{Start: at(float64(i)), First: 9e14, N: 1}, FirstTokens: 10})
	}
	s := c.Summary()
	near(t, "attainment", s.Goodput.Attainment, .9)
	near(t, "goodput", s.Goodput.OutputTokensPerS, *s.Throughput.OutputTokensPerS*.9)
	near(t, "gated goodput", s.Goodput.GatedOutputTokensPerS, 0)
	if *s.Goodput.Met || *s.Tokens.OutputGood != 9000 {
		t.Errorf("met %v, %d good tokens; want false, 9000", *s.Goodput.Met, *s.Tokens.OutputGood)
	}
	ordered := *s.Throughput.OutputTokensPerS >= *s.Throughput.SuccessfulOutputTokensPerS &&
		*s.Throughput.SuccessfulOutputTokensPerS >= *s.Goodput.OutputTokensPerS
	if !ordered {
		t.Error("emitted ≥ successful ≥ good does not hold")
	}
}

func TestFailuresAreInfinite(t *testing.T) {
	slo := limited("ttft", 50, clock.Second)
	slo.Attainment = .5
	c := New(Options{SLO: slo})
	var records []*event.Record
	for i := range 100 {
		rec := served(int64(i), float64(i), float64(i)+.2, float64(i)+.5, 5)
		switch {
		case i >= 90:
			rec.Outcome = event.TimedOut
			rec.ClientFirst, rec.ClientLast, rec.FirstToken, rec.LastToken = clock.Never, clock.Never, clock.Never,
				clock.Never
			rec.Tokens = 0
		case i >= 80:
			rec.Outcome, rec.Refusal = event.Rejected, event.NeverFits
			if i >= 83 {
				rec.Refusal = event.Busy
			}
			rec.Scheduled, rec.ClientFirst, rec.ClientLast = clock.Never, clock.Never, clock.Never
			rec.FirstToken, rec.LastToken, rec.Tokens = clock.Never, clock.Never, 0
		}
		records = append(records, rec)
	}
	play(c, records...)
	s := c.Summary()
	if r := s.Requests; r.Offered != 100 || r.Completed != 80 || r.Rejected != 10 || r.RejectedLong != 3 ||
		r.RejectedBusy != 7 || r.TimedOut != 10 || r.InSystemAtEnd != 0 {
		t.Errorf("%+v", r)
	}
	w := s.Latency.WithFailures
	if w.Failures != 20 || w.TTFT.N != 100 || w.TTFT.P90 != nil || w.TTFT.Mean != nil || w.TTFT.Max != nil {
		t.Errorf("%+v", w)
	}
	near(t, "p50 with failures", w.TTFT.P50, 200)
	near(t, "p99 without", s.Latency.TTFT.P99, 200)
	near(t, "attainment", s.Goodput.Attainment, .8)
	near(t, "errors", s.System.ErrorRate, .2)
}

// marshal is a summary as JSON.
func marshal(t interface{ Fatal(...any) }, v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNothingIsNull(t *testing.T) {
	for name, c := range map[string]*Collector{
		"plain": New(Options{}),
		"full": New(Options{Warmup: Warmup{Auto: true}, SLO: &report.SLO{Attainment: .9}, UsableBlocks: 10,
			Work: &Work{}, USDPerHour: 3}),
		"end":  New(Options{End: at(10), Warmup: Warmup{Duration: clock.Second}}),
		"late": New(Options{End: at(1), Warmup: Warmup{Duration: 5 * clock.Second}}),
	} {
		s := c.Summary()
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text := marshal(t, s)
		for _, d := range []report.Distribution{s.Latency.TTFT, s.Latency.TPOT, s.Latency.ITL, s.Latency.E2E,
			s.Latency.Queue, s.StreamTPS} {
			if d != (report.Distribution{}) {
				t.Errorf("%s: a statistic over nothing is not null: %s", name, text)
			}
		}
		if s.Goodput.Attainment != nil || s.Goodput.Met != nil || s.System.PrefixHitRate != nil ||
			s.System.ErrorRate != nil {
			t.Errorf("%s: a share of nothing is not null: %s", name, text)
		}
		if name != "end" && (s.Throughput.OutputTokensPerS != nil || s.Concurrency.InSystem.Mean != nil) {
			t.Errorf("%s: a rate over no time is not null: %s", name, text)
		}
		for _, key := range []string{`"ttft": {`, `"p99_9": null`, `"ci95": null`, `"schema": "clifftop.summary/1"`,
			`"work_fraction": null`} {
			if !strings.Contains(text, key) {
				t.Errorf("%s: no %s in %s", name, key, text)
			}
		}
	}
}

func TestOneRequest(t *testing.T) {
	c := New(Options{Warmup: Warmup{Auto: true}})
	play(c, served(0, 0, .25, 1.25, 11))
	s := c.Summary()
	near(t, "TTFT p99", s.Latency.TTFT.P99, 250)
	near(t, "TPOT", s.Latency.TPOT.Mean, 100)
	near(t, "sd", s.Latency.TTFT.SD, 0)
	near(t, "requests/s", s.Throughput.RequestsPerS, 1/1.25)
	if s.Window.Stationary != nil {
		t.Error("one request says nothing of a steady state")
	}
}

// Percentiles are those of sorting, and agree with gonum and, for five numbers, numpy.
func TestDistribution(t *testing.T) {
	d := report.DistributionOfValues([]float64{5, 1, 4, 2, 3.5}, 1, 0)
	near(t, "p50", d.P50, 3.5)
	near(t, "p90", d.P90, 4.6)            // numpy.percentile([5, 1, 4, 2, 3.5], 90)
	near(t, "p99", d.P99, 4.96)           // numpy.percentile(…, 99)
	near(t, "sd", d.SD, 1.42828568570857) // numpy.std
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 10, 101, 5000} {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Floor(math.Exp(rng.NormFloat64()) * 100)
		}
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		mean, sd := stat.PopMeanStdDev(values, nil)
		d := report.DistributionOfValues(values, 2, 0)
		near(t, "mean", d.Mean, 2*mean)
		if n > 1 {
			near(t, "sd", d.SD, 2*sd)
		}
		near(t, "max", d.Max, 2*sorted[n-1])
		for q, got := range map[float64]*float64{.5: d.P50, .9: d.P90, .95: d.P95, .99: d.P99, .999: d.P999} {
			near(t, "quantile", got, 2*interpolated(sorted, q))
		}
	}
}

// interpolated is a quantile of sorted values by linear interpolation.
func interpolated(sorted []float64, q float64) float64 {
	at := float64(len(sorted)-1) * q
	i := int(at)
	return sorted[i] + (at-float64(i))*(sorted[min(i+1, len(sorted)-1)]-sorted[i])
}

// Once there are too many samples to keep, percentiles are within 1/256 of those of all.
func TestSketchIsClose(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	exact, sketched := New(Options{}), New(Options{})
	sketched.exact = 700
	var records []*event.Record
	arrival := 0.0
	for i := range 5000 {
		arrival += rng.ExpFloat64() / 10
		first := arrival + math.Exp(rng.NormFloat64()-1)
		tokens := int32(1 + rng.IntN(300))
		records = append(records, served(int64(i), arrival, first,
			first+float64(tokens-1)*.02*math.Exp(rng.NormFloat64()/5), tokens))
	}
	play(exact, records...)
	play(sketched, records...)
	a, b := exact.Summary(), sketched.Summary()
	pairs := map[string][2]report.Distribution{
		"ttft": {a.Latency.TTFT, b.Latency.TTFT}, "tpot": {a.Latency.TPOT, b.Latency.TPOT},
		"e2e":    {a.Latency.E2E, b.Latency.E2E},
		"stream": {a.StreamTPS, b.StreamTPS}, "user": {a.E2ETPSUser, b.E2ETPSUser},
		"flight": {a.E2ETPSInFlight, b.E2ETPSInFlight},
	}
	for name, p := range pairs {
		if p[0].N != p[1].N {
			t.Errorf("%s: n is %d, want %d", name, p[1].N, p[0].N)
		}
		for i, q := range [][2]*float64{{p[0].P50, p[1].P50}, {p[0].P90, p[1].P90}, {p[0].P99, p[1].P99},
			{p[0].P999, p[1].P999}, {p[0].Max, p[1].Max}, {p[0].Mean, p[1].Mean}} {
			if math.Abs(*q[0]-*q[1]) > *q[0]/256+1e-9 {
				t.Errorf("%s, statistic %d: %v, want %v", name, i, *q[1], *q[0])
			}
		}
	}
	if sketched.kept.chunks != nil {
		t.Error("the samples are still kept")
	}
}

// config is the case's, without a cache that an unlimited pool cannot have.
func config(c *simtest.Case) engine.Config {
	cfg := c.Config()
	cfg.PrefixCaching = cfg.PrefixCaching && cfg.NumGPUBlocks > 0
	return cfg
}

// drawOptions makes random options and a first width of buckets, small enough that they join.
func drawOptions(t *rapid.T, cfg *engine.Config) (Options, clock.Duration) {
	slo := &report.SLO{Attainment: .9, Objectives: []report.Objective{
		{Metric: "ttft", Percentile: 95, Limit: 100 * clock.Millisecond},
		{Metric: "tpot", Percentile: 50, Limit: 30 * clock.Millisecond},
		{Metric: "itl", Percentile: 0, Limit: 30 * clock.Millisecond},
		{Metric: "e2e", Percentile: 99, Limit: 2 * clock.Second},
		{Metric: "queue", Percentile: 0, Limit: 5 * clock.Millisecond},
	}}
	o := Options{
		SLO: slo, GPUs: 2, MaxNumSeqs: cfg.MaxNumSeqs, UsableBlocks: int64(cfg.UsableBlocks()), USDPerHour: 3,
		Work: &Work{FLOPsPerToken: 1, FLOPsPerContextToken: 2, FLOPsPerEmit: 3, BytesPerIteration: 4,
			BytesPerContextToken: 5, BytesPerToken: 6, PeakFLOPsPerS: 7, PeakBytesPerS: 8},
		Power: testPower(t), Facility: Facility{ServerPower: 1.5},
	}
	switch rapid.IntRange(0, 3).Draw(t, "warmup") {
	case 1:
		o.Warmup.Auto = true
	case 2:
		o.Warmup.Duration = clock.Duration(rapid.Int64Range(1, 300).Draw(t, "warmup ms")) * clock.Millisecond
	case 3:
		o.End = clock.Time(clock.Duration(rapid.Int64Range(1, 900).Draw(t, "end ms")) * clock.Millisecond)
	}
	end := clock.Time(0)
	for range rapid.IntRange(0, 4).Draw(t, "stages") {
		end += clock.Time(rapid.Int64Range(1, int64(300*clock.Millisecond)).Draw(t, "stage"))
		o.Stages = append(o.Stages, StageSpan{Name: "stage", End: end})
	}
	return o, clock.Duration(rapid.Int64Range(1e6, 1e9).Draw(t, "width"))
}

// drawCase makes a random case of a random policy.
func drawCase(t *rapid.T) simtest.Case {
	return rapid.SampledFrom(simtest.Policies()).Draw(t, "policy").Draw(t)
}

// The result does not depend on how iterations are reported: one by one, by a plain stepper of single
// sequences, or many at once.
func TestSplittingSpansChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawCase(t)
		cfg := config(&k)
		opts, width := drawOptions(t, &cfg)
		make := func() *Collector {
			c := New(opts)
			c.line = newTimeline(width, maxBuckets, true)
			return c
		}
		results := func(c *Collector) string {
			if err := c.Check(); err != nil {
				t.Fatalf("check: %v\n%v", err, k)
			}
			return marshal(t, c.Summary()) + marshal(t, c.Series())
		}
		reference := make()
		if err := naive.Run(cfg, k.Source(), reference); err != nil {
			t.Fatal(err)
		}
		want := results(reference)
		for _, maxSpan := range []int{1, 3, 0} {
			c := make()
			cfg := config(&k)
			cfg.MaxSpan = maxSpan
			e, err := sim.New(cfg, k.Source(), c)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := results(c); got != want {
				t.Fatalf("spans of %d give\n%s\nwant\n%s\n%v", maxSpan, got, want, k)
			}
		}
	})
}

// A span that reaches over edges is cut by the collector itself; with one level of blocks the result
// is that of single iterations.
func TestCollectorCutsSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := clock.Duration(rapid.Int64Range(1, 1e7).Draw(t, "width"))
		whole, single := New(Options{}), New(Options{})
		whole.line, single.line = newTimeline(width, maxBuckets, true), newTimeline(width, maxBuckets, true)
		p := clock.Progression{
			Start:     clock.Time(rapid.Int64Range(0, 1e9).Draw(t, "start")),
			Remainder: rapid.Int64Range(0, 999).Draw(t, "remainder"),
			First:     rapid.Int64Range(0, 1e11).Draw(t, "first"), Slope: rapid.Int64Range(0, 1e8).Draw(t, "slope"),
			N: rapid.IntRange(1, 200).Draw(t, "n"),
		}
		s := event.Span{
			Progression: p, Decodes: rapid.IntRange(1, 20).Draw(t, "decodes"),
			Wait:    clock.Duration(rapid.Int64Range(0, 1e6).Draw(t, "wait")),
			Context: 1000, Shared: 10, UsedBlocks: 50, MostBlocks: 50,
			BlockFemtos: clock.Mul64(50, uint64(p.Femtos(p.N))),
			EmptyFemtos: clock.Mul64(20, uint64(p.Femtos(p.N))),
		}
		s.Delivery = event.Delivery{First: rapid.IntRange(0, s.Decodes).Draw(t, "gaps"), Later: s.Decodes,
			Others: []event.ChunkGaps{{Length: 5 * clock.Millisecond, N: 2}}}
		if rapid.Bool().Draw(t, "cycle") {
			each := clock.Duration(rapid.Int64Range(1, 1e8).Draw(t, "each"))
			s.Delivery = event.Delivery{Cycle: 7 * each, Each: each, Turn: p.Start.Add(3 * each / 2)}
		}
		whole.Span(&s)
		for s.N > 1 {
			one := head(&s, 1)
			one.BlockFemtos, one.EmptyFemtos = clock.Mul64(50, uint64(one.Femtos(1))),
				clock.Mul64(20, uint64(one.Femtos(1)))
			single.Span(&one)
		}
		single.Span(&s)
		if len(whole.line.buckets) != len(single.line.buckets) {
			t.Fatalf("%d buckets, want %d", len(whole.line.buckets), len(single.line.buckets))
		}
		for i := range whole.line.buckets {
			a, b := whole.line.buckets[i], single.line.buckets[i]
			// Dividing the blocks of several iterations rounds down.
			a.blocks, b.blocks, a.empty, b.empty = clock.Uint128{}, clock.Uint128{}, clock.Uint128{}, clock.Uint128{}
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("bucket %d: %+v, want %+v", i, a, b)
			}
			if a, b := &whole.line.detail[i].itl, &single.line.detail[i].itl; a.Sum() != b.Sum() ||
				!reflect.DeepEqual(a.Shape(1), b.Shape(1)) {
				t.Fatalf("bucket %d: gaps %v, want %v", i, a.Shape(1), b.Shape(1))
			}
		}
		if a, b := whole.line.whole(), single.line.whole(); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v, want %+v", a, b)
		}
	})
}

// Integrals and distributions of levels are those of a plain sum over the changes.
func TestLevelsAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Options{MaxNumSeqs: 5})
		c.line = newTimeline(clock.Duration(rapid.Int64Range(1, 1000).Draw(t, "width")), maxBuckets, true)
		var now clock.Time
		var l event.Levels
		weights := make(map[int]uint64)
		var integral, gap, seed uint64
		for range rapid.IntRange(1, 100).Draw(t, "changes") {
			d := clock.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(0, 20).Draw(t, "scale")).Draw(t, "d"))
			integral += uint64(l.Running) * uint64(d)
			weights[l.Running] += uint64(d)
			if l.Waiting > 0 && l.Running > 0 && l.Blocked == sched.LacksKV {
				gap += uint64(d)
			}
			if l.Waiting > 0 && l.Running < 5 {
				seed += uint64(d)
			}
			now = now.Add(d)
			l = event.Levels{
				Running: rapid.IntRange(0, 200).Draw(t, "running"), Waiting: rapid.IntRange(0, 3).Draw(t, "waiting"),
				Blocked: sched.Cause(rapid.IntRange(0, int(sched.NumberOfCauses)-1).Draw(t, "blocked")),
			}
			c.Levels(now, &l)
		}
		c.settle()
		all, d := c.line.total(0, len(c.line.buckets))
		h := &d.levels[running]
		if h.Sum() != (clock.Uint128{Lo: integral}) || h.Count() != uint64(now) {
			t.Fatalf("integral %v over %d, want %d over %d", h.Sum(), h.Count(), integral, now)
		}
		if got := all.gaps[2*gapKV] + all.gaps[2*gapKV+1]; uint64(got) != gap {
			t.Fatalf("gap %d, want %d", got, gap)
		}
		var seats int64
		for class := range gapClasses {
			seats += all.gaps[2*class+1]
		}
		if uint64(seats) != seed {
			t.Fatalf("gap with free seats %d, want %d", seats, seed)
		}
		if now == 0 {
			return
		}
		var below uint64
		want := 0
		for level := 0; ; level++ {
			if below += weights[level]; float64(below) >= .95*float64(now) {
				want = level
				break
			}
		}
		if got := h.Level(.95); got != float64(want) {
			t.Fatalf("p95 %v, want %d", got, want)
		}
	})
}

func TestTimelineIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newTimeline(clock.Duration(rapid.Int64Range(1, 1<<50).Draw(t, "width")), maxBuckets, true)
		i := rapid.Int64Range(0, 1e6).Draw(t, "i")
		edge := i * l.width
		if edge/l.width != i {
			t.Skip("overflow")
		}
		for _, at := range []int64{edge, edge + 1, edge + l.width - 1, max(edge-1, 0)} {
			if got := l.index(clock.Time(at)); int64(got) != at/l.width {
				t.Fatalf("%d is in bucket %d of width %d, want %d", at, got, l.width, at/l.width)
			}
		}
	})
}

// The edges of a window asked for are edges of buckets.
func TestWindowEdgesAreExact(t *testing.T) {
	for name, o := range map[string]Options{
		"end":    {End: at(60)},
		"warmup": {Warmup: Warmup{Duration: 7 * clock.Second}},
	} {
		c := New(o)
		var records []*event.Record
		for i := range 650 {
			records = append(records, served(int64(i), float64(i)/10, float64(i)/10+.1, float64(i)/10+1, 5))
		}
		play(c, records...)
		w := c.Summary().Window
		switch {
		case name == "end" && (w.StartS != 0 || w.EndS != 60), name == "warmup" &&
			(w.StartS != 7 || w.WarmupS != 7 || w.EndS < 64.9 || w.EndS > 65.2):
			t.Errorf("%s: window %+v", name, w)
		}
	}
}

// The memory of a run of ten million requests is that of one of a million.
func TestMemoryIsFlat(t *testing.T) {
	testenv.NeedsLong(t, "three million requests are left out")
	c := New(Options{})
	feed := newFeed(c)
	size := func() int {
		n := c.kept.n * 48
		for i := range c.line.detail {
			d := &c.line.detail[i]
			hs := []*stats.Histogram{&d.itl}
			for l := range d.levels {
				hs = append(hs, &d.levels[l])
			}
			if d.sketch != nil {
				for m := range d.sketch {
					hs = append(hs, &d.sketch[m])
				}
			}
			for _, h := range hs {
				pages := reflect.ValueOf(h).Elem().FieldByName("pages")
				n += 8 * pages.Len()
				for k := range pages.Len() {
					if p := pages.Index(k); !p.IsNil() {
						n += 8 * p.Elem().Len()
					}
				}
			}
		}
		return n
	}
	feed.run(ExactSamples)
	few := size()
	feed.run(2 * ExactSamples)
	many := size()
	t.Logf("%.1f MB at 2^20 requests, %.1f MB at 3·2^20", float64(few)/1e6, float64(many)/1e6)
	if few > 62e6 || many > 45e6 {
		t.Errorf("%d bytes, then %d", few, many)
	}
}
