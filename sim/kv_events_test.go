package sim_test

import (
	"context"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// TestCacheEvents: an observer of prefix caches changes nothing, and knows their content at every instant.
func TestCacheEvents(t *testing.T) {
	for _, p := range append(simtest.Policies(), simtest.FuzzPolicy) {
		t.Run(p.Name, func(t *testing.T) { simtest.VerifyCaches(t, p) })
	}
}

// cacheLog follows the caches of a fleet.
type cacheLog struct {
	simtest.Recorder
	held   []map[uint64]bool // by replica
	resets []clock.Time
	most   int // blocks of a cache
}

func (d *cacheLog) CacheChanged(c *event.CacheChange) {
	if c.Reset {
		d.resets = append(d.resets, c.At)
		clear(d.held[c.Replica])
	}
	for _, b := range c.Blocks {
		if b.Stored {
			d.held[c.Replica][b.Key] = true
		} else {
			delete(d.held[c.Replica], b.Key)
		}
	}
	d.most = max(d.most, len(d.held[c.Replica]))
}

// TestCacheResets: a replica that crashes loses its cache, and a router that looks into the caches decides the same
// with and without an observer of them. Requests have a common prompt of 40 blocks, and none of their own.
func TestCacheResets(t *testing.T) {
	config := func(int) engine.Config {
		cfg := steady(0)
		cfg.PrefixCaching, cfg.NumGPUBlocks = true, 100
		return cfg
	}
	var list []workload.Request
	for k := range 40 {
		list = append(list, workload.Request{Arrival: clock.Time(clock.Duration(k) * 50 * milli), InputTokens: 650,
			OutputTokens: 5, Content: &workload.Content{Segments: []workload.Segment{{ID: uint64(k / 20), Tokens: 640}}}})
	}
	run := func(obs event.Observer) {
		f := sim.Fleet{Routers: []route.Router{new(route.KVAware)}, Replicas: []engine.Config{config(0), config(1)},
			Lifecycle: &sim.Lifecycle{Renew: config, Failures: []sim.Failure{
				{Kind: sim.Crash, At: clock.Time(1300 * milli), For: 100 * milli}}}}
		e, err := sim.NewFleet(f, simtest.NewRequests(list), obs)
		if err == nil {
			err = e.Run(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plain, d := new(simtest.Recorder), &cacheLog{held: []map[uint64]bool{{}, {}}}
	run(plain)
	run(d)
	if diff := simtest.Diff(plain, &d.Recorder); diff != "" {
		t.Errorf("an observer of caches changes the run: %s", diff)
	}
	if len(d.resets) != 1 || d.resets[0] != clock.Time(1300*milli) || d.most < 40 {
		t.Errorf("resets at %v, at most %d blocks in a cache; want one at 1.3 s, and the 40 blocks of a prompt",
			d.resets, d.most)
	}
}
