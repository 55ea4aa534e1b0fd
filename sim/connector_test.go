package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

const ms = clock.Time(clock.Millisecond)

// decodeConfig returns the configuration of a replica that gets requests whose KV is on another replica: iterations of
// 10 ms, and a link of so many bytes per second.
func decodeConfig(bandwidth int64, handoff func(*workload.Request) engine.Handoff) engine.Config {
	return engine.Config{
		Scheduler:  new(sched.VLLM),
		Timer:      simtest.Affine{Base: 1e13},
		MaxNumSeqs: 8, MaxNumBatchedTokens: 8192, MaxModelLen: 8192, BlockSize: 16, NumGPUBlocks: 1001,
		Connector: &engine.Connector{BlockBytes: 16 << 17, Links: []int64{bandwidth}, Handoff: handoff},
		Check:     true,
	}
}

// bothWays runs requests on the naive engine and on the real one, which have to agree, and returns the recording.
func bothWays(t *testing.T, config func() engine.Config, list []workload.Request) *simtest.StepRecorder {
	t.Helper()
	reference, recorder := new(simtest.StepRecorder), new(simtest.StepRecorder)
	if err := naive.Run(config(), simtest.NewRequests(list), reference); err != nil {
		t.Fatal(err)
	}
	cfg := config()
	if err := simtest.CheckRecording(&cfg, &reference.Recorder); err != nil {
		t.Fatal(err)
	}
	e, err := sim.New(config(), simtest.NewRequests(list), recorder)
	if err == nil {
		err = e.Run(context.Background())
	}
	if d := simtest.Diff(&reference.Recorder, &recorder.Recorder); err != nil || d != "" {
		t.Fatalf("%v; naive and engine differ: %s", err, d)
	}
	return recorder
}

// recordOf is the record of a request.
func recordOf(t *testing.T, recorder *simtest.StepRecorder, id int64) *event.Record {
	t.Helper()
	for i := range recorder.Records {
		if rec := &recorder.Records[i]; rec.Request.ID == id {
			return rec
		}
	}
	t.Fatalf("request %d has no record", id)
	return nil
}

// TestLoadIsSeenAtIterations: the prompt of 1000 tokens, 128 KiB each, was computed by another replica, and the request
// comes at 101 ms. The replica decodes another request in iterations that end at 95, 105, 115 ms.
func TestLoadIsSeenAtIterations(t *testing.T) {
	for _, c := range []struct {
		bandwidth int64
		layers    int64
		first     clock.Time
	}{
		{25_000_000_000, 0, 125 * ms}, // 5.28 ms from 105 ms on, seen at 115 ms
		{11_000_000_000, 0, 135 * ms}, // 12 ms
		{500_000_000, 32, 135 * ms},   // 264 ms, but the other replica has sent 31 of 32 layers before: 8.3 ms
		{500_000_000, 0, 385 * ms},
	} {
		t.Run(fmt.Sprint(c.bandwidth, "/", c.layers), func(t *testing.T) {
			config := func() engine.Config {
				return decodeConfig(c.bandwidth, func(r *workload.Request) (handoff engine.Handoff) {
					if r.ID == 1 {
						handoff.Remote = engine.Remote{Tokens: 1000, Layers: c.layers, Path: []int32{0}}
					}
					return handoff
				})
			}
			recorder := bothWays(t, config, []workload.Request{
				{Arrival: 5 * ms, InputTokens: 1, OutputTokens: 100},
				{Arrival: 101 * ms, InputTokens: 1000, OutputTokens: 5},
			})
			rec := recordOf(t, recorder, 1)
			want := c.first
			if c.layers > 0 {
				want = 125 * ms
			}
			if rec.FirstToken != want || rec.Scheduled != want-10*ms || rec.PulledTokens != 999 ||
				rec.Loading != want.Sub(115*ms) {
				t.Errorf("first token at %v, scheduled at %v, %d tokens loaded in %v, want the token at %v and 999 tokens",
					rec.FirstToken, rec.Scheduled, rec.PulledTokens, rec.Loading, want)
			}
			for i, s := range recorder.Steps {
				for _, sh := range s.Scheduled {
					if sh.Request == 1 && sh.Loaded > 0 && (sh.Tokens != 1 || recorder.Iterations[i].Start != want-10*ms) {
						t.Errorf("admitted with %d tokens at %v", sh.Tokens, recorder.Iterations[i].Start)
					}
				}
			}
		})
	}
}

// TestIdleReplicaSeesLoadsAtOnce: nothing runs, so that the KV is found to be there when it comes.
func TestIdleReplicaSeesLoadsAtOnce(t *testing.T) {
	recorder := bothWays(t, func() engine.Config {
		return decodeConfig(1_000_000_000, func(r *workload.Request) engine.Handoff {
			return engine.Handoff{Remote: engine.Remote{Tokens: 160, Latency: clock.Millisecond, Path: []int32{0}}}
		})
	}, []workload.Request{{InputTokens: 160, OutputTokens: 1}})
	rec := recordOf(t, recorder, 0)
	want := clock.Time(10 * (16 << 17) * 1000).Add(clock.Millisecond) // ten blocks at 1 ns a byte, and 1 ms
	if rec.Scheduled != want || rec.FirstToken != want+10*ms {
		t.Errorf("scheduled at %v, want %v", rec.Scheduled, want)
	}
}

// TestPullLimit: a pool of 1000 blocks pulls no prefill while 5 % of it, 50 blocks, are held by requests that are
// loaded or loading and do not run.
func TestPullLimit(t *testing.T) {
	for _, c := range []struct {
		percent int
		started []clock.Time // of the loads
	}{
		{0, []clock.Time{0, 0, 0}},
		// The first two are loaded together, 50 blocks of 2 MiB at 1 GB/s, and both run from then on.
		{5, []clock.Time{0, 0, clock.Time(50 * (16 << 17) * 1000)}},
	} {
		recorder := bothWays(t, func() engine.Config {
			cfg := decodeConfig(1_000_000_000, func(*workload.Request) engine.Handoff {
				return engine.Handoff{Remote: engine.Remote{Tokens: 400, Path: []int32{0}}}
			})
			cfg.Connector.PullPercent = c.percent
			return cfg
		}, []workload.Request{{InputTokens: 400, OutputTokens: 3}, {InputTokens: 400, OutputTokens: 3},
			{InputTokens: 400, OutputTokens: 3}})
		for id, want := range c.started {
			rec := recordOf(t, recorder, int64(id))
			if got := rec.Scheduled.Add(-rec.Loading); got != want {
				t.Errorf("pull limit %d %%: load of request %d began at %v, want %v", c.percent, id, got, want)
			}
		}
	}
}

// TestLeaseHoldsBack: blocks that are kept for another replica are no room for the next prompt, until the lease ends.
func TestLeaseHoldsBack(t *testing.T) {
	recorder := bothWays(t, func() engine.Config {
		cfg := decodeConfig(1, func(*workload.Request) engine.Handoff {
			return engine.Handoff{Lease: 300 * clock.Millisecond}
		})
		cfg.NumGPUBlocks = 51
		return cfg
	}, []workload.Request{{InputTokens: 400, OutputTokens: 1}, {InputTokens: 400, OutputTokens: 1},
		{InputTokens: 400, OutputTokens: 1}})
	if rec := recordOf(t, recorder, 1); rec.Released != 10*ms {
		t.Errorf("the second request ends at %v", rec.Released)
	}
	if rec := recordOf(t, recorder, 2); rec.Scheduled != 310*ms {
		t.Errorf("the third request is scheduled at %v, want the end of the leases at 310 ms", rec.Scheduled)
	}
}

// TestFailedLoad: what could not be loaded is computed.
func TestFailedLoad(t *testing.T) {
	recorder := bothWays(t, func() engine.Config {
		return decodeConfig(1_000_000_000, func(*workload.Request) engine.Handoff {
			return engine.Handoff{Remote: engine.Remote{Tokens: 400, Path: []int32{0}, Fails: true}}
		})
	}, []workload.Request{{InputTokens: 400, OutputTokens: 2}})
	rec := recordOf(t, recorder, 0)
	if rec.PulledTokens != 0 || rec.Loading == 0 || recorder.Iterations[0].PrefillTokens != 400 {
		t.Errorf("%d tokens loaded in %v, %d computed", rec.PulledTokens, rec.Loading, recorder.Iterations[0].PrefillTokens)
	}
}

// TestFailedLoadFails: with that policy a request ends when its KV turns out to be lost, and its client, which tries
// once more, is served by what is computed here. The blocks are free for the others.
func TestFailedLoadFails(t *testing.T) {
	recorder := bothWays(t, func() engine.Config {
		cfg := decodeConfig(1_000_000_000, func(r *workload.Request) (handoff engine.Handoff) {
			if r.ID == 0 {
				handoff.Remote = engine.Remote{Tokens: 400, Path: []int32{0}, Fails: true}
			}
			return handoff
		})
		cfg.Connector.FailLost, cfg.NumGPUBlocks = true, 27 // room for one of them
		return cfg
	}, []workload.Request{{InputTokens: 400, OutputTokens: 2}, {InputTokens: 400, OutputTokens: 2}})
	found := clock.Time(25 * (16 << 17) * 1000) // 25 blocks at 1 ns a byte
	rec := recordOf(t, recorder, 0)
	if rec.Outcome != event.Failed || rec.Ending != workload.Disconnected || rec.Released != found ||
		rec.Loading != found.Sub(0) || rec.Tokens != 0 {
		t.Errorf("record %+v", rec)
	}
	if rec := recordOf(t, recorder, 1); rec.Outcome != event.Completed || rec.Scheduled != found ||
		recorder.Iterations[0].PrefillTokens != 400 {
		t.Errorf("the other request: %+v", rec)
	}
}

// TestClientLeavesWhileLoading: its blocks are free only when the KV has come.
func TestClientLeavesWhileLoading(t *testing.T) {
	recorder := bothWays(t, func() engine.Config {
		cfg := decodeConfig(1_000_000_000, func(r *workload.Request) (handoff engine.Handoff) {
			if r.ID == 0 {
				handoff.Remote = engine.Remote{Tokens: 480, Path: []int32{0}}
			}
			return handoff
		})
		cfg.NumGPUBlocks = 51
		return cfg
	}, []workload.Request{
		{InputTokens: 480, OutputTokens: 2, Client: &workload.Client{Timeout: 20 * clock.Millisecond}},
		{InputTokens: 400, OutputTokens: 2},
	})
	gone, next := recordOf(t, recorder, 0), recordOf(t, recorder, 1)
	come := clock.Time(30 * (16 << 17) * 1000)
	if gone.Released != 20*ms || next.Scheduled != come {
		t.Errorf("the client is gone at %v, and the next request scheduled at %v, want 20 ms and %v", gone.Released,
			next.Scheduled, come)
	}
}

// TestValidateConnector checks what cannot be combined with a connector.
func TestValidateConnector(t *testing.T) {
	tier := engine.Tier{Name: "host", Chunks: 10, BytesPerSecond: 1}
	for _, c := range []struct {
		change func(*engine.Config)
		want   string
	}{
		{func(c *engine.Config) { c.Scheduler = new(sched.Orca) }, "policy orca: it does not support a KV connector"},
		{func(c *engine.Config) { c.Scheduler = &sched.VLLM{Admission: sched.FullLength} }, "full length"},
		{func(c *engine.Config) { c.Connector.Tiers = []engine.Tier{tier} }, "they need prefix caching"},
		{func(c *engine.Config) { c.Connector.BlockBytes = 0 }, "0 bytes"},
		{func(c *engine.Config) { c.HostBlocks = 1 }, "swap space"},
		{func(c *engine.Config) { c.PrefixCaching, c.Radix = true, true }, "radix"},
		{func(c *engine.Config) { c.Contiguous = true }, "contiguous"},
		{func(c *engine.Config) { c.Speculative = engine.Speculative{Tokens: 1, Acceptance: []float64{1}} }, "drafts"},
		{func(c *engine.Config) {
			c.PrefixCaching, c.Connector.Tiers = true, []engine.Tier{{Name: "host", BytesPerSecond: 1}}
		}, "tier host: 0 chunks"},
		{func(c *engine.Config) {
			c.PrefixCaching, c.Connector.Tiers = true, []engine.Tier{{Name: "host", Chunks: 1}}
		}, "tier host: a bandwidth"},
		{func(c *engine.Config) {
			back := tier
			back.WriteBack = true
			c.PrefixCaching, c.Connector.ChunkBlocks, c.Connector.Tiers = true, 16, []engine.Tier{back}
		}, "cannot keep chunks of 16"},
		{func(c *engine.Config) { c.Connector.Links = []int64{0} }, "no bandwidth"},
		{func(c *engine.Config) { c.Connector.PullPercent = 101 }, "no percentage"},
	} {
		cfg := decodeConfig(1, nil)
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
}
