package sim_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/part/connector"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// linkStats sums what an observer gets of transfers.
type linkStats struct {
	quiet
	moved  map[[2]int]int64 // bytes to and from a tier, by replica and tier
	pulled int64            // bytes of KV that requests were admitted with
	gone   int              // requests that were handed over, and not completed
}

const trafficBlock = 1000 // bytes of 4 tokens

func (c *linkStats) Moved(_ clock.Time, m event.Move)    { c.moved[[2]int{m.Replica, m.Tier}] += m.Bytes }
func (c *linkStats) LinkBusy(clock.Time, int, int, bool) {}
func (c *linkStats) Finished(rec *event.Record) {
	if rec.PulledTokens > 0 {
		c.pulled += int64(rec.PulledTokens+1+3) / 4 * trafficBlock // the last token is computed again
	}
	if rec.HandedOver && rec.Outcome != event.Completed {
		c.gone++
	}
}

// drawTraffic draws a fleet that computes prompts apart, with tiers or without, and requests whose clients may leave.
func drawTraffic(t *rapid.T) (f sim.Fleet, list []workload.Request) {
	draw := func(name string, of ...int64) int64 { return rapid.SampledFrom(of).Draw(t, name) }
	prefills, decodes := rapid.IntRange(1, 3).Draw(t, "prefills"), rapid.IntRange(1, 3).Draw(t, "decodes")
	f = splitFleet(prefills, decodes, draw("bandwidth", 3, 1000, 100_000, 10_000_000))
	d := f.Disaggregation
	d.Lease = clock.Duration(draw("lease", 0, 0, 40, 300)) * clock.Millisecond
	d.Latency, d.Layers = clock.Duration(draw("latency", 0, 7))*clock.Millisecond, draw("layers", 0, 8)
	d.MinTokens = int32(draw("min tokens", 0, 0, 20))
	for i := range f.Replicas {
		if draw("outage", 0, 0, 1) == 1 {
			d.Outages = append(d.Outages,
				sim.Outage{Replica: i, At: clock.Time(draw("down", 5, 60, 400)) * ms,
					For: clock.Duration(draw("for", 10, 300)) * clock.Millisecond})
		}
	}
	fails, tiers, blocks := rapid.Bool().Draw(t, "fails"), rapid.IntRange(0, 2).Draw(t, "tiers"),
		int(draw("blocks", 40, 80, 1001))
	for i := range f.Replicas {
		c := &f.Replicas[i]
		c.BlockSize, c.NumGPUBlocks, c.MaxModelLen, c.PrefixCaching = 4, blocks, 150, tiers > 0
		c.Connector = &engine.Connector{BlockBytes: trafficBlock, FailLost: fails}
		for k := range tiers {
			c.Connector.Tiers = append(c.Connector.Tiers, engine.Tier{
				Name: fmt.Sprint(k), Chunks: int(draw("chunks", 2, 20, 500)),
				BytesPerSecond: draw("tier bandwidth", 1000, 1_000_000), WriteBack: k > 0,
			})
		}
	}
	var at clock.Time
	for range rapid.IntRange(1, 40).Draw(t, "requests") {
		at += clock.Time(draw("gap", 0, 1, 20, 90)) * ms
		r := workload.Request{Arrival: at, InputTokens: int32(rapid.IntRange(2, 100).Draw(t, "input")),
			OutputTokens: int32(rapid.IntRange(1, 40).Draw(t, "output"))}
		if text := draw("text", 0, 0, 1, 2); text > 0 {
			r.Content = &workload.Content{Segments: []workload.Segment{{ID: uint64(text), Tokens: r.InputTokens}}}
		}
		if draw("patience", 0, 1) == 1 {
			r.Client = &workload.Client{Timeout: clock.Duration(draw("timeout", 15, 120, 500)) * clock.Millisecond}
		}
		list = append(list, r)
	}
	return f, list
}

// TestBytesAreConserved draws fleets that compute prompts apart and keep KV in tiers: on every link bytes sent are
// received, dropped or in flight, with losses and aborts; what leaves the prefill replicas arrives at the
// decode replicas; and what links carried is what requests and tiers report.
func TestBytesAreConserved(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f, list := drawTraffic(t)
		obs := &linkStats{moved: map[[2]int]int64{}}
		e, err := sim.NewFleet(f, simtest.NewRequests(list), obs)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		links := e.Links()
		next := 0
		take := func() connector.LinkUse { next++; return links[next-1] }
		for i := range f.Replicas {
			for k := range f.Replicas[i].Connector.Tiers {
				u := take()
				if u.Sent != obs.moved[[2]int{i, k}] || u.Sent != u.Received+u.Dropped+u.Underway {
					t.Fatalf("tier %d of replica %d: %+v, but %d bytes were said to move", k, i, u,
						obs.moved[[2]int{i, k}])
				}
				seen["to tiers"] += int(u.Sent)
			}
		}
		var out, in connector.LinkUse
		for i := range f.Replicas {
			sum := &in
			if i < f.Disaggregation.Prefills {
				sum = &out
			}
			u := take()
			if u.Sent != u.Received+u.Dropped || u.Underway != 0 {
				t.Fatalf("link of replica %d: %+v at the end", i, u)
			}
			sum.Sent, sum.Received, sum.Dropped = sum.Sent+u.Sent, sum.Received+u.Received, sum.Dropped+u.Dropped
		}
		if next != len(links) || out != in {
			t.Fatalf("%d links, %d known; out of prefill replicas %+v, into decode replicas %+v", len(links),
				next, out, in)
		}
		if whole := f.Disaggregation.Layers < 2 && !f.Replicas[0].PrefixCaching; whole &&
			(in.Received < obs.pulled || obs.gone == 0 && in.Received != obs.pulled) {
			t.Fatalf("%d bytes were received, requests were admitted with %d, and %d of them did not complete",
				in.Received, obs.pulled, obs.gone)
		}
		seen["received"] += int(in.Received)
		seen["dropped"] += int(in.Dropped)
	})
	for _, what := range []string{"received", "dropped", "to tiers"} {
		if seen[what] == 0 {
			t.Errorf("no bytes were %s in any run", what)
		}
	}
	t.Log(seen)
}
