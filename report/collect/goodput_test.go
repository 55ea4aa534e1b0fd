package collect

import (
	"math"
	"testing"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// traffic is a run of 1000 s with a number of requests each second of so many tokens each, which all are emitted, of
// which the share given takes 5 s and the rest 1 s; requests that are cut time out at their end.
func traffic(slo *report.SLO, perSecond int, tokens func(slow bool) int32, slow float64, cut bool) *report.Summary {
	const seconds = 1000
	c := New(Options{SLO: slo, End: at(seconds)})
	var records []*event.Record
	var emitted [seconds]int
	late := 0.0
	for i := range seconds * perSecond {
		arrival, last := float64(i)/float64(perSecond), 1.
		late += slow
		isLate := late >= 1-1e-9
		if isLate {
			late--
			last = 5
		}
		rec := served(int64(i), arrival, arrival+.5, arrival+last, tokens(isLate))
		if isLate && cut {
			rec.Outcome = event.TimedOut
		}
		records = append(records, rec)
		emitted[i/perSecond] += int(tokens(isLate))
	}
	play(c, records...)
	for i, n := range emitted {
		c.Span(&event.Span{Progression: clock.Progression{Start: at(float64(i)), First: 9e14, N: 1}, FirstTokens: n})
	}
	return c.Summary()
}

func equalTokens(bool) int32 { return 200 }

// B21, A22: 2,000 tokens/s of which 90 % of the requests keep the limit are a goodput of 1,800, not of nothing: that is
// what the gate gives, because p95 does not keep it.
func TestGoodputOf2000(t *testing.T) {
	s := traffic(limited("e2e", 95, 2*clock.Second), 10, equalTokens, .1, false)
	g := &s.Goodput
	near(t, "throughput", s.Throughput.OutputTokensPerS, 2000)
	near(t, "attainment", g.Attainment, .9)
	near(t, "goodput", g.OutputTokensPerS, 1800)
	near(t, "good requests", g.RequestsPerS, 9)
	near(t, "gated", g.GatedOutputTokensPerS, 0)
	if *g.Met {
		t.Error("p95 keeps the limit")
	}
	// A23: the product is the same where requests are alike …
	near(t, "product", g.ProductOutputTokensPerS, 1800)
	// B19: what lies beyond a limit is told, not read off percentiles.
	near(t, "within", g.Limits[0].Fraction, .9)
	near(t, "users of ten requests with a bad one", g.AnyBadOf10, 1-math.Pow(.9, 10))

	// … and is not where slow answers are the long ones.
	s = traffic(limited("e2e", 95, 2*clock.Second), 10, func(slow bool) int32 {
		if slow {
			return 1100
		}
		return 100
	}, .1, false)
	near(t, "throughput", s.Throughput.OutputTokensPerS, 2000)
	near(t, "goodput", s.Goodput.OutputTokensPerS, 900)
	near(t, "product", s.Goodput.ProductOutputTokensPerS, 1800)
}

// B22: of 5,000 tokens/s that are emitted 3,000 are left when 40 % of equal requests time out. A30: emitted, successful
// and good tokens come in this order.
func TestTimeoutsTakeGoodput(t *testing.T) {
	s := traffic(limited("e2e", 50, 2*clock.Second), 25, equalTokens, .4, true)
	x := &s.Throughput
	near(t, "emitted", x.OutputTokensPerS, 5000)
	near(t, "good", s.Goodput.OutputTokensPerS, 3000)
	near(t, "attainment", s.Goodput.Attainment, .6)
	// Those of the last seconds time out after the window.
	if v := *x.SuccessfulOutputTokensPerS; math.Abs(v-3000) > 12 {
		t.Errorf("successful %v", v)
	}
	if *x.OutputTokensPerS < *x.SuccessfulOutputTokensPerS ||
		*x.SuccessfulOutputTokensPerS < *s.Goodput.OutputTokensPerS-1e-9 {
		t.Errorf("%v, %v, %v are out of order", *x.OutputTokensPerS, *x.SuccessfulOutputTokensPerS,
			*s.Goodput.OutputTokensPerS)
	}
}

// B23: at 90 % of the throughput with 20 % timeouts at most 72 % is of use.
func TestTimeoutsAtHighThroughput(t *testing.T) {
	const capacity = 2000
	s := traffic(limited("e2e", 50, 2*clock.Second), 9, equalTokens, .2, true)
	near(t, "use of the capacity", stats.Finite(*s.Throughput.OutputTokensPerS/capacity), .9)
	near(t, "goodput of the capacity", stats.Finite(*s.Goodput.OutputTokensPerS/capacity), .72)
}

// B18, B19: 1 % of bad requests are 1 % of requests, not of users: of users with ten requests, 9.6 % have a bad one.
// p95 of 400 ms and p99 of 8 s say that 1 % takes longer than 8 s; of the 4 % between they say nothing.
func TestAnyBad(t *testing.T) {
	for k, want := range map[int]float64{0: 0, 1: .01, 10: .0956179, 100: .6339677} {
		if got := report.AnyBad(.01, k); math.Abs(got-want) > 1e-6 {
			t.Errorf("%d requests: %v, want %v", k, got, want)
		}
	}
	c := New(Options{End: at(10_000), SLO: limited("ttft", 99, 8*clock.Second)})
	var records []*event.Record
	for i := range 10_000 {
		ttft := .15
		switch {
		case i%100 == 0:
			ttft = 9
		case i%25 == 1:
			ttft = .45
		}
		records = append(records, served(int64(i), float64(i), float64(i)+ttft, float64(i)+ttft+.1, 5))
	}
	play(c, records...)
	s := c.Summary()
	over := 1 - *s.Goodput.Limits[0].Fraction
	if math.Abs(over-.01) > 1e-9 || *s.Latency.TTFT.P50 != 150 || *s.Latency.TTFT.P95 > 450 {
		t.Errorf("%v are beyond 8 s; p50 %v, p95 %v", over, *s.Latency.TTFT.P50, *s.Latency.TTFT.P95)
	}
	if mean := *s.Latency.TTFT.Mean; mean < .01*8000 { // Markov's inequality
		t.Errorf("mean %v", mean)
	}
}

// A21: beside an answer of 10 tokens one of 1000 has 111 times the weight in the mean gap, and the same in mean TPOT.
// A20: it is gaps that weigh all tokens alike.
func TestWeightOfALongAnswer(t *testing.T) {
	mean := func(short, long float64) (tpot, itl float64) {
		c := New(Options{End: at(200)})
		play(c, served(0, 0, 1, 1+9*short, 10), served(1, 10, 11, 11+999*long, 1000))
		for _, v := range []struct {
			from, gap float64
			n         int
		}{{1, short, 9}, {11, long, 999}} {
			c.Span(&event.Span{Progression: clock.Progression{Start: at(v.from), First: int64(math.Round(v.gap * 1e15)),
				N: v.n}, Decodes: 1,
				Delivery: event.Delivery{First: 1, Later: 1}})
		}
		s := c.Summary()
		return *s.Latency.TPOT.Mean, *s.Latency.ITL.Mean
	}
	tpot0, itl0 := mean(.020, .050)
	tpot1, itl1 := mean(.021, .050)
	tpot2, itl2 := mean(.020, .051)
	if ratio := (itl2 - itl0) / (itl1 - itl0); math.Abs(ratio-111) > .5 {
		t.Errorf("in the mean gap it weighs %v times as much", ratio)
	}
	if ratio := (tpot2 - tpot0) / (tpot1 - tpot0); math.Abs(ratio-1) > 1e-6 {
		t.Errorf("in mean TPOT it weighs %v times as much", ratio)
	}
}

// A24: of 10 s in which the GPU is busy for 8, good requests needed 3: what was computed again for them was waste, and
// so was all that was done for others.
func TestGoodputOfGPUTime(t *testing.T) {
	const second = 1e15
	c := New(Options{SLO: limited("e2e", 50, 2*clock.Second), End: at(10)})
	good, again, late := served(0, 0, .5, 1, 10), served(1, 1, 1.5, 2, 10), served(2, 2, 3, 6, 10)
	good.GPU = event.GPUTime{Prefill: second / 2, Decode: second}
	again.GPU = event.GPUTime{Prefill: second, Decode: second / 2, Recomputed: second, Lost: second}
	late.GPU = event.GPUTime{Prefill: second, Decode: 2 * second}
	play(c, good, again, late)
	c.Span(&event.Span{Progression: clock.Progression{Start: at(0), First: 8 * second, N: 1}, Decodes: 1})
	s := c.Summary()
	near(t, "of busy time", s.Goodput.GPUBusyFraction, 3./8)
	near(t, "of all time", s.Goodput.GPUWallFraction, 3./10)
}

// An answer of one token has no time per output token: nothing is measured, and nothing can break the limit, in one run
// as in pooled ones.
func TestLimitOnNothingMeasured(t *testing.T) {
	run := func(tokens int32) *report.Summary {
		c := New(Options{End: at(10), SLO: &report.SLO{Objectives: []report.Objective{
			{Metric: "tpot", Limit: 50 * clock.Millisecond},
			{Metric: "tpot", Percentile: 95, Limit: 50 * clock.Millisecond},
		}}})
		play(c, served(0, 0, 1, 2, tokens))
		return c.Summary()
	}
	single := run(1)
	for what, s := range map[string]*report.Summary{"single": single,
		"pooled": report.Pool([]*report.Summary{run(1), run(1)})} {
		for i := range s.Goodput.Limits {
			l := &s.Goodput.Limits[i]
			if l.N != 0 || l.ValueMs != nil || l.Fraction != nil {
				t.Errorf("%s: %s is %v, %v of %d keep it", what, l.Key, l.ValueMs, l.Fraction, l.N)
			}
			if l.Met == nil || !*l.Met || s.SLOUse() != 0 ||
				curve.Breaks(s) != "" {
				t.Errorf("%s: %s, met %v, use %v, breaks %q", what, l.Key, l.Met, s.SLOUse(),
					curve.Breaks(s))
			}
		}
	}
	// 1 s for 10 more tokens; the other run has no part in the mean.
	mixed := report.Pool([]*report.Summary{single, run(11)}).Goodput.Limits
	near(t, "mean of the one that has some", mixed[0].ValueMs, 100)
	if mixed[0].N != 1 || mixed[0].Met == nil || *mixed[0].Met {
		t.Errorf("%+v", mixed[0])
	}
}
