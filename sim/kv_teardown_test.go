package sim_test

import (
	"context"
	"strings"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// runTiers runs requests on one engine with iterations of 10 ms, a tier that takes 5 ms for a block of 16 tokens, and a
// failure.
func runTiers(t *testing.T, persistent bool, failure sim.Failure, list []workload.Request) *lifecycleLog {
	t.Helper()
	config := func(int) engine.Config {
		cfg := decodeConfig(1, nil)
		cfg.PrefixCaching = true
		cfg.Connector = &engine.Connector{BlockBytes: 1000, Fetch: engine.FetchAlways, Tiers: []engine.Tier{
			{Name: "store", Chunks: 100, BytesPerSecond: 200_000, Persistent: persistent},
		}}
		return cfg
	}
	d := new(lifecycleLog)
	e, err := sim.NewFleet(sim.Fleet{
		Replicas:  []engine.Config{config(0)},
		Lifecycle: &sim.Lifecycle{Renew: config, Failures: []sim.Failure{failure}},
	}, simtest.NewRequests(list), d)
	if err == nil {
		err = e.Run(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestTiersPersist follows a text of 40 tokens, whose two full blocks are copied from 10 to 15 and from 15 to 20
// ms. The engine stops at some instant, is ready again at 100 ms or later, and gets the same text: what had been copied
// to a tier that persists is loaded, and a tier that does not is empty.
func TestTiersPersist(t *testing.T) {
	text := &workload.Content{Segments: []workload.Segment{{ID: workload.SegmentID("text"), Tokens: 40}}}
	ask := func(at clock.Time) workload.Request {
		return workload.Request{Arrival: at, InputTokens: 40, OutputTokens: 2, Content: text}
	}
	for _, c := range []struct {
		persistent bool
		kind       sim.FailureKind
		at         clock.Time
		loaded     int32
		states     string
	}{
		{true, sim.Crash, 9 * ms, 0, "0 9ms down, 0 100ms starting, 0 100ms ready"},
		{true, sim.Crash, 14 * ms, 0, "0 14ms down, 0 100ms starting, 0 100ms ready"},
		{true, sim.Crash, 15 * ms, 16, "0 15ms down, 0 100ms starting, 0 100ms ready"},
		{true, sim.Crash, 19 * ms, 16, "0 19ms down, 0 100ms starting, 0 100ms ready"},
		{true, sim.Crash, 20 * ms, 32, "0 20ms down, 0 100ms starting, 0 100ms ready"},
		{false, sim.Crash, 50 * ms, 0, "0 50ms down, 0 100ms starting, 0 100ms ready"},
		// Its output ends at 20 ms, and it is not off before both blocks are copied.
		{true, sim.Drain, 12 * ms, 32, "0 12ms draining, 0 20ms off, 0 100ms starting, 0 100ms ready"},
		{false, sim.Drain, 12 * ms, 0, "0 12ms draining, 0 20ms off, 0 100ms starting, 0 100ms ready"},
	} {
		back := (100 * ms).Sub(c.at)
		if c.kind == sim.Drain {
			back = 80 * milli // from when it is off
		}
		d := runTiers(t, c.persistent, sim.Failure{Kind: c.kind, At: c.at, For: back},
			[]workload.Request{ask(0), ask(200 * ms)})
		if got := strings.Join(d.states, ", "); got != c.states {
			t.Errorf("%+v: states %s", c, got)
		}
		for i := range d.Records {
			if rec := &d.Records[i]; rec.Request.ID == 1 && (rec.LoadedTokens != c.loaded || rec.CachedTokens != 0) {
				t.Errorf("%+v: %d tokens are loaded and %d found in the cache", c, rec.LoadedTokens, rec.CachedTokens)
			}
		}
	}
}

// TestDrainWaitsForCopies: an output of three blocks is copied when it ends, at 490 ms. A tier that persists has them
// 15 ms later, when the drain ends.
func TestDrainWaitsForCopies(t *testing.T) {
	for persistent, off := range map[bool]string{true: "0 505ms off", false: "0 490ms off"} {
		d := runTiers(t, persistent, sim.Failure{Kind: sim.Drain, At: 12 * ms, For: milli}, []workload.Request{
			{InputTokens: 1, OutputTokens: 49}, {Arrival: 1000 * ms, InputTokens: 1, OutputTokens: 1},
		})
		if got := d.states[1]; got != off {
			t.Errorf("persistent %v: %s, want %s", persistent, got, off)
		}
	}
}

// TestLoadsEndOnCrash: a crash while a request's KV is in flight discards it, and the bytes are accounted
// for.
func TestLoadsEndOnCrash(t *testing.T) {
	config := func(int) engine.Config {
		cfg := decodeConfig(1_000_000_000, func(r *workload.Request) (handoff engine.Handoff) {
			if r.ID == 0 {
				handoff = engine.Handoff{Remote: engine.Remote{Tokens: 400, Path: []int32{0}}}
			}
			return handoff
		})
		cfg.NumGPUBlocks = 27 // room for one of them
		return cfg
	}
	d := new(lifecycleLog)
	e, err := sim.NewFleet(sim.Fleet{
		Replicas:  []engine.Config{config(0)},
		Lifecycle: &sim.Lifecycle{Renew: config, Failures: []sim.Failure{{At: 20 * ms, For: 30 * milli}}},
	}, simtest.NewRequests([]workload.Request{{InputTokens: 400, OutputTokens: 2},
		{Arrival: 60 * ms, InputTokens: 400, OutputTokens: 2}}), d)
	if err == nil {
		err = e.Run(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := outcomes(d), "failed 0/0 at 20ms; completed 0/2 at 80ms"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if u := e.Links()[0]; u.Sent != 25*16<<17 || u.Dropped != u.Sent || u.Underway != 0 {
		t.Errorf("the link: %+v", u)
	}
}

// TestPipelineCrash: two stages of 5 ms have a batch each, of one request, since the prompt of the first one takes the
// whole budget. Tokens come at 10, 20 ms … of the first, and at 15, 25 ms … of the second. At 22 ms both batches are in
// the stages and are gone; what the GPUs were given is done at 30 ms, and the engine starts again.
func TestPipelineCrash(t *testing.T) {
	config := func(int) engine.Config {
		cfg := steady(0)
		cfg.Stages, cfg.MaxNumSeqs, cfg.MaxNumBatchedTokens = 2, 2, 2
		return cfg
	}
	first := asks(0, 9)
	first.InputTokens = 2
	d := new(lifecycleLog)
	e, err := sim.NewFleet(sim.Fleet{
		Replicas:  []engine.Config{config(0)},
		Lifecycle: &sim.Lifecycle{Renew: config, Failures: []sim.Failure{{At: 22 * ms, For: 1 * milli}}},
	}, simtest.NewRequests([]workload.Request{first, asks(0, 9), asks(25*milli, 1)}), d)
	if err == nil {
		err = e.Run(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := outcomes(d), "failed 0/2 at 22ms; failed 0/1 at 22ms; completed 0/1 at 40ms"; got != want ||
		d.states[1] != "0 30ms starting" {
		t.Errorf("%s, want %s; %v", got, want, d.states)
	}
}
