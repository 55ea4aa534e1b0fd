package collect

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/simtest"
	"clifftop/sim/simtest/naive"
)

// taped is a collector together with a tape of the same run.
type taped struct {
	*Collector
	tape *simtest.Recorder
}

func (o taped) Span(s *event.Span)         { o.tape.Span(s); o.Collector.Span(s) }
func (o taped) Finished(rec *event.Record) { o.tape.Finished(rec); o.Collector.Finished(rec) }

// The window's GPU time is that of its iterations, cut at its edges and divided one by one, and what lies between them;
// of it attempts that did not complete give up what they took. Its parts add up to the window, to the last femtosecond.
func TestGPUSecondsAddUp(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(append(simtest.Policies(), simtest.FuzzPolicy)).Draw(t, "policy").Draw(t)
		cfg := config(&k)
		opts, width := drawOptions(t, &cfg)
		c := New(opts)
		c.line = newTimeline(width, maxBuckets, true)
		tape := new(simtest.Recorder)
		if err := naive.Run(cfg, k.Source(), taped{c, tape}); err != nil {
			t.Fatal(err)
		}
		c.settle()
		w := c.window(&report.Summary{})
		if w.end <= w.start {
			return
		}
		sum, detail := c.line.total(w.from, w.to)
		got := summariser{c}.units(&w, &sum, detail)[0].gpuTime(&w)
		all := got.useful.Add(got.cancelled).Add(got.idle)
		for _, part := range got.lost {
			all = all.Add(part)
		}
		if all != got.whole || got.whole != clock.Mul64(uint64(w.end-w.start), 1000*uint64(c.opts.Replicas)) {
			t.Fatalf("%+v adds up to %v in a window of %d ps", got, all, w.end-w.start)
		}
		if got.idle.Cmp(got.unrequested) < 0 {
			t.Fatalf("%+v: more is idle for lack of requests than in all", got)
		}
		if w.until < c.line.start(w.to) || c.opts.Replicas > 1 { // it ends within a bucket: the run went on
			return
		}
		want := divided(c, tape, &w)
		parts := map[string]clock.Uint128{
			"useful": got.useful, "cancelled": got.cancelled, "idle": got.idle, "recompute": got.lost[lostRecompute],
			"miss":   got.lost[lostMiss],
			"drafts": got.lost[lostDrafts], "padding": got.lost[lostPadding], "swap": got.lost[lostSwap],
			"host": got.lost[lostHost],
		}
		// An iteration begins and ends at whole picoseconds on the tape; each may be cut by one bucket.
		slack := 2e-12 * float64(len(tape.Iterations)+maxBuckets)
		for what, part := range parts {
			v := part.Float64() / 1e15
			if math.Abs(v-want[what]) > slack+1e-9*w.seconds() {
				t.Errorf("%s: %v s, want %v", what, v, want[what])
			}
			if v > 0 {
				seen[what]++
			}
		}
	})
	t.Log(seen)
}

// divided divides a window's time by what is on a tape.
func divided(c *Collector, tape *simtest.Recorder, w *window) map[string]float64 {
	want := map[string]float64{"idle": w.seconds()}
	for _, it := range tape.Iterations {
		inside := max(0, float64(min(it.End, w.end)-max(it.Start, w.start)))
		if it.End > it.Start {
			divide(want, &it, inside/float64(it.End-it.Start)*float64(it.Femtos)*1e-15)
		}
	}
	vain := make(map[string]float64)
	for i := range tape.Records {
		rec := &tape.Records[i]
		if at := c.line.find(max(rec.Released, 1) - 1); rec.Outcome == event.Completed || at < w.from || at >= w.to {
			continue
		}
		vain["useful"] += float64(rec.GPU.Prefill+rec.GPU.Decode) * 1e-15
		vain["recompute"] += float64(rec.GPU.Recomputed) * 1e-15
		vain["miss"] += float64(rec.GPU.Lost) * 1e-15
		vain["drafts"] += float64(rec.GPU.Drafts) * 1e-15
	}
	for what, v := range vain {
		v = min(v, want[what])
		want[what] -= v
		want["cancelled"] += v
	}
	return want
}

// By hand: an engine on two GPUs, and iterations that begin at 0, 20 and 40 ms.
func TestGPUSeconds(t *testing.T) {
	const ms = int64(clock.Millisecond) * clock.FemtosPerPico
	at := func(i int64) clock.Time { return clock.Time(i * int64(clock.Millisecond)) }
	c := New(Options{GPUs: 2, End: at(100)})
	span := func(start, first, slope int64, n int, s event.Span) {
		s.Progression = clock.Progression{Start: at(start), First: first * ms, Slope: slope * ms, N: n}
		c.Span(&s)
	}
	// 2 ms of copies and 3 of the host leave 15, of which 3 of 5 tokens are lost.
	span(0, 20, 0, 1, event.Span{Decodes: 1, PrefillTokens: 1, RecomputedTokens: 1, PaddedRows: 1, PaddedTokens: 1,
		SwappedBlocks: 4, SwapFemtos: 2 * ms, HostFemtos: 3 * ms})
	// The host hides ever less: it takes 4 + 3 + 2 + 1 of the 5 ms each, and a third of the rest is padding.
	span(20, 5, 0, 4, event.Span{Decodes: 4, PaddedRows: 2, HostFemtos: 4 * ms, HostSlope: -ms})
	// Iterations of 5, 6 and 7 ms, half of them padding.
	span(40, 5, 1, 3, event.Span{Decodes: 1, PaddedRows: 1})
	// Of 10 ms half is for tokens that the cache had lost; a request that timed out took 2 ms of these and 1 ms of
	// others.
	span(60, 10, 0, 1, event.Span{PrefillTokens: 4, LostTokens: 2})
	c.Finished(&event.Record{Outcome: event.TimedOut, Released: at(70), GPU: event.GPUTime{Lost: 2 * ms, Decode: ms}})
	// Requests are in the system but for the last 20 ms.
	c.Levels(0, &event.Levels{System: 1})
	c.Levels(at(80), &event.Levels{})
	want := report.GPUSeconds{
		Useful: stats.Finite(2 * (.006 + .01*2/3 + .009 + .004)), CacheMiss: stats.Finite(2 * .003),
		Cancelled: stats.Finite(2 * .003), Padding: stats.Finite(2 * (.006 + .01/3 + .009)),
		Recompute: stats.Finite(2 * .003), Swap: stats.Finite(2 * .002), Host: stats.Finite(2 * (.003 + .010)),
		Idle:        stats.Finite(2 * .032),
		IdleByCause: report.IdleByCause{NoRequests: stats.Finite(2 * .02), FrontEnd: stats.Finite(2 * .012)},
	}
	if got := c.Summary().System.GPUSeconds; !sameParts(got, want) {
		t.Errorf("%s, want %s", marshal(t, got), marshal(t, want))
	}
}

// sameParts reports whether all parts are equal but for rounding.
func sameParts(a, b report.GPUSeconds) bool {
	parts := func(g report.GPUSeconds) (list []float64) {
		for _, v := range []*float64{g.Useful, g.Recompute, g.CacheMiss, g.Cancelled, g.Rejected, g.Padding, g.Swap,
			g.Host, g.Idle, g.IdleByCause.NoRequests, g.IdleByCause.FrontEnd} {
			sum := 0.0
			if v != nil {
				sum = *v
			}
			list = append(list, sum)
		}
		return list
	}
	return slices.EqualFunc(parts(a), parts(b), func(v, w float64) bool { return math.Abs(v-w) < 1e-12 })
}

// divide takes so many seconds of an iteration out of the idle ones.
func divide(want map[string]float64, it *simtest.Iteration, seconds float64) {
	femtos := float64(it.Femtos)
	want["idle"] -= seconds
	want["swap"] += seconds * float64(it.SwapFemtos) / femtos
	want["host"] += seconds * float64(it.HostFemtos) / femtos
	seconds *= (femtos - float64(it.SwapFemtos+it.HostFemtos)) / femtos
	again, miss, padded := float64(it.RecomputedTokens), float64(it.LostTokens), float64(it.PaddedRows+it.PaddedTokens)
	rejected := float64(it.Drafts - it.Accepted + it.Discarded)
	tokens := float64(it.Decodes+it.Drafts+it.PrefillTokens) + again + padded
	want["drafts"] += seconds * rejected / tokens
	want["recompute"] += seconds * again / tokens
	want["miss"] += seconds * miss / tokens
	want["padding"] += seconds * padded / tokens
	want["useful"] += seconds * (tokens - again - miss - rejected - padded) / tokens
}

// C5: of 10 usable blocks 8 are held for 4 of 10 seconds, and 6, 5, 4 and 3 of these are empty.
func TestReservedBlocks(t *testing.T) {
	c := New(Options{UsableBlocks: 10, End: clock.Time(10 * clock.Second)})
	c.Span(&event.Span{
		Progression: clock.Progression{First: 1e15, N: 4}, Decodes: 1, UsedBlocks: 8, MostBlocks: 8,
		BlockFemtos: clock.Mul64(8, 4e15),
		EmptyBlocks: 3, EmptyFemtos: clock.Mul64(6+5+4+3, 1e15),
	})
	kv := c.Summary().System.KVUsage
	if *kv.Mean != .32 || *kv.ReservedMean != .18 {
		t.Errorf("KV usage %v, of it reserved %v", *kv.Mean, *kv.ReservedMean)
	}
}
