package report

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/simtest"
)

// GPU time that is shared out is a sum over single iterations.
func TestPortions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, slope := rapid.Int64Range(0, 1<<50).Draw(t, "first"), rapid.Int64Range(0, 1<<40).Draw(t, "slope")
		n, whole := rapid.Int64Range(1, 300).Draw(t, "n"), rapid.Int64Range(1, 1<<30).Draw(t, "whole")
		part := rapid.Int64Range(0, whole).Draw(t, "part")
		var want int64
		for k := range n {
			x := big.NewInt(first + k*slope)
			want += x.Mul(x, big.NewInt(part)).Quo(x, big.NewInt(whole)).Int64()
		}
		if got := portions(first, slope, n, part, whole); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

// taped is a collector together with a tape of the same run.
type taped struct {
	*Collector
	tape *simtest.Tape
}

func (o taped) Span(s *sim.Span) { o.tape.Span(s); o.Collector.Span(s) }

// The window's GPU time is that of its iterations, cut at its edges and divided one by one, and what lies between them.
func TestGPUSecondsAddUp(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(append(simtest.Policies(), simtest.Chaos)).Draw(t, "policy").Draw(t)
		cfg := config(&k)
		opts, width := drawOptions(t, &cfg)
		c := NewCollector(opts)
		c.line = newTimeline(width)
		tape := new(simtest.Tape)
		if err := simtest.Naive(cfg, k.Source(), taped{c, tape}); err != nil {
			t.Fatal(err)
		}
		s := c.Summary()
		w := c.window(&Summary{})
		if w.end <= w.start || w.until < c.line.start(w.to) { // it ends within a bucket: the run went on
			return
		}
		want := map[string]float64{"idle": w.seconds()}
		for _, it := range tape.Iterations {
			inside := max(0, float64(min(it.End, w.end)-max(it.Start, w.start)))
			if it.End > it.Start {
				divide(want, &it, inside/float64(it.End-it.Start)*float64(it.Femtos)*1e-15)
			}
		}
		got, sum := make(map[string]float64), 0.0
		if err := json.Unmarshal([]byte(marshal(t, s.System.GPUSeconds)), &got); err != nil {
			t.Fatal(err)
		}
		gpus := float64(c.opts.GPUs)
		// An iteration begins and ends at whole picoseconds on the tape; each may be cut by one bucket.
		slack := 2e-12 * float64(len(tape.Iterations)+maxBuckets)
		for what, v := range got {
			sum += v
			if math.Abs(v/gpus-want[what]) > slack+1e-9*w.seconds() {
				t.Errorf("%s: %v s of each GPU, want %v", what, v/gpus, want[what])
			}
			if v > 0 {
				seen[what]++
			}
		}
		if len(got) < len(want) || math.Abs(sum-gpus*w.seconds()) > gpus*(slack+1e-12*w.seconds()) {
			t.Errorf("%v s in all, want %v: %v", sum, gpus*w.seconds(), got)
		}
	})
	t.Log(seen)
}

// By hand: an engine on two GPUs, and iterations that begin at 0, 20 and 40 ms.
func TestGPUSeconds(t *testing.T) {
	const ms = int64(clock.Millisecond) * clock.FemtosPerPico
	at := func(i int64) clock.Time { return clock.Time(i * int64(clock.Millisecond)) }
	c := NewCollector(Options{GPUs: 2, End: at(100)})
	span := func(start, first, slope int64, n int, s sim.Span) {
		s.Progression = clock.Progression{Start: at(start), First: first * ms, Slope: slope * ms, N: n}
		c.Span(&s)
	}
	// 2 ms of copies and 3 of the host leave 15, of which 3 of 5 tokens are lost.
	span(0, 20, 0, 1, sim.Span{Decodes: 1, PrefillTokens: 1, RecomputedTokens: 1, PaddedRows: 1, PaddedTokens: 1, SwappedBlocks: 4, SwapFemtos: 2 * ms, HostFemtos: 3 * ms})
	// The host hides ever less: it takes 4 + 3 + 2 + 1 of the 5 ms each, and a third of the rest is padding.
	span(20, 5, 0, 4, sim.Span{Decodes: 4, PaddedRows: 2, HostFemtos: 4 * ms, HostSlope: -ms})
	// Iterations of 5, 6 and 7 ms, half of them padding.
	span(40, 5, 1, 3, sim.Span{Decodes: 1, PaddedRows: 1})
	want := GPUSeconds{
		Useful: number(2 * (.006 + .01*2/3 + .009)), Padding: number(2 * (.006 + .01/3 + .009)),
		Recompute: number(2 * .003), Swap: number(2 * .002), Host: number(2 * (.003 + .010)), Idle: number(2 * .042),
	}
	if got := c.Summary().System.GPUSeconds; !sameParts(got, want) {
		t.Errorf("%s, want %s", marshal(t, got), marshal(t, want))
	}
}

// sameParts reports whether all parts are equal but for rounding.
func sameParts(a, b GPUSeconds) bool {
	x, y := []*float64{a.Useful, a.Recompute, a.Padding, a.Swap, a.Host, a.Idle}, []*float64{b.Useful, b.Recompute, b.Padding, b.Swap, b.Host, b.Idle}
	return slices.EqualFunc(x, y, func(v, w *float64) bool { return math.Abs(*v-*w) < 1e-12 })
}

// divide takes so many seconds of an iteration out of the idle ones.
func divide(want map[string]float64, it *simtest.Iteration, seconds float64) {
	femtos := float64(it.Femtos)
	want["idle"] -= seconds
	want["swap"] += seconds * float64(it.SwapFemtos) / femtos
	want["host"] += seconds * float64(it.HostFemtos) / femtos
	seconds *= (femtos - float64(it.SwapFemtos+it.HostFemtos)) / femtos
	again, padded := float64(it.RecomputedTokens), float64(it.PaddedRows+it.PaddedTokens)
	rejected := float64(it.Drafts - it.Accepted + it.Discarded)
	tokens := float64(it.Decodes+it.Drafts+it.PrefillTokens) + again + padded
	want["rejected_drafts"] += seconds * rejected / tokens
	want["recompute"] += seconds * again / tokens
	want["padding"] += seconds * padded / tokens
	want["useful"] += seconds * (tokens - again - rejected - padded) / tokens
}

// Of 10 usable blocks 8 are held for 4 of 10 seconds, and 6, 5, 4 and 3 of these are empty.
func TestReservedBlocks(t *testing.T) {
	c := NewCollector(Options{UsableBlocks: 10, End: clock.Time(10 * clock.Second)})
	c.Span(&sim.Span{
		Progression: clock.Progression{First: 1e15, N: 4}, Decodes: 1, UsedBlocks: 8, BlockFemtos: sim.Mul64(8, 4e15),
		EmptyBlocks: 3, EmptyFemtos: sim.Mul64(6+5+4+3, 1e15),
	})
	kv := c.Summary().System.KVUsage
	if *kv.Mean != .32 || *kv.ReservedMean != .18 {
		t.Errorf("KV usage %v, of it reserved %v", *kv.Mean, *kv.ReservedMean)
	}
}
