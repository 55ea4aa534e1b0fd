package connector

import (
	"testing"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/workload"
)

// slow is a step timer of a millisecond for each token.
type slow struct{ model.StepTimer }

func (slow) Span(b *model.Batch) (first, slope int64, n int) {
	return int64(b.Chunks[0].New) * 1e12, 0, 1
}

// tiered returns a connector with two persistent tiers of 1,000 and 10 blocks per second, and its prefix cache. A block
// has 10 tokens and 100 bytes.
func tiered(net *Transfers, before *Connector) (*Connector, *kv.Hashed) {
	tier := func(name string, blocks int64) engine.Tier {
		return engine.Tier{Name: name, Chunks: 8, BytesPerSecond: 100 * blocks, Persistent: true}
	}
	cfg := &engine.Config{BlockSize: 10, Timer: slow{}, Connector: &engine.Connector{BlockBytes: 100,
		Tiers: []engine.Tier{tier("memory", 1000), tier("disk", 10)}}}
	c := New(cfg, 0, event.Join(), net, before)
	pool := kv.NewHashed(kv.HashedConfig{Usable: 100, BlockSize: 10, IndexOwn: true, WarmOwn: true})
	c.Attach(pool)
	return c, pool
}

// shared is a prompt of 80 tokens of a prefix group, and its text while it waits.
func shared() (*workload.Request, kv.Text) {
	q := &workload.Request{ID: 1, InputTokens: 80, OutputTokens: 1,
		Content: &workload.Content{Segments: []workload.Segment{{ID: 5, Tokens: 80}}}}
	return q, kv.Text{Seq: none, Request: q, Known: 80}
}

// run handles all events up to an instant, and returns the number of loads that arrive.
func run(net *Transfers, c *Connector, to clock.Time) (arrived int) {
	for net.Next() <= to {
		at := net.Next()
		if x := net.Happens(at); x.Replica == 0 && x.Lease == 0 && c.Transferred(at, x) {
			arrived++
		}
	}
	return arrived
}

// TestFetchFaster: a block is computed in 10 ms. The first tier loads it in 1 ms, the second one in 100 ms. So the
// second one is left out, and with it all that follows what it alone has.
func TestFetchFaster(t *testing.T) {
	for _, c := range []struct {
		inSecond, want int32
	}{{0, 80}, {8, 0}, {3, 50}} {
		var net Transfers
		part, pool := tiered(&net, nil)
		q, text := shared()
		part.Warm(q, 8)
		keys := part.pool.KeysOfText(q, 8)
		first := &part.tiers[0]
		first.chunks = kv.NewTier(8, first.Eviction)
		for i := range 8 - c.inSecond {
			first.chunks.Put(keys.At(i))
		}
		pool.Find(text)
		if got := part.Loadable(text, 0, true); got != c.want {
			t.Errorf("%d blocks in the second tier alone: %d tokens can be loaded, want %d", c.inSecond, got, c.want)
		}
		if got := part.Loadable(text, 0, false); got != 0 {
			t.Errorf("a request that is not ready can load %d tokens", got)
		}
	}
}

// TestTornChunks: an engine stops while it copies 8 blocks, of which 5 have arrived. The engine that takes its place
// loads those 5, and its link has been sent what was received and dropped.
func TestTornChunks(t *testing.T) {
	var net Transfers
	old, _ := tiered(&net, nil)
	old.tiers = old.tiers[:1]
	q, text := shared()
	old.enter(old.pool.KeysOfText(q, 8), 8)
	old.Composed(0)
	stop := clock.Time(5500 * clock.Microsecond)
	run(&net, old, stop)
	if old.Drained() {
		t.Error("the connector has drained while it copies")
	}
	old.Abandon(stop)
	if u := net.Use(stop)[0]; u.Sent != 800 || u.Received != 500 || u.Dropped != 300 || u.Underway != 0 {
		t.Errorf("the link carried %+v", u)
	}
	next, pool := tiered(&net, old)
	pool.Find(text)
	if !old.Retired() || next.Retired() {
		t.Error("the wrong engine has retired")
	}
	if got := next.Loadable(text, 0, true); got != 50 {
		t.Errorf("%d tokens can be loaded, want 50", got)
	}
	next.Load(stop, engine.Load{Number: 7, Seq: 3, Request: q.ID})
	if len(next.Received()) > 0 || run(&net, next, clock.Time(clock.Second)) != 1 {
		t.Error("the load has not arrived once, and later")
	}
	want := engine.Received{Number: 7, Seq: 3, Started: stop}
	if got := next.Received(); len(got) != 1 || got[0] != want || net.Awaited() != 0 {
		t.Errorf("received %+v with %d to come, want %+v", got, net.Awaited(), want)
	}
}

// TestAbandonedSource: an engine stops from which another one loads. The load fails at once.
func TestAbandonedSource(t *testing.T) {
	var net Transfers
	source, _ := tiered(&net, nil)
	reader := New(&engine.Config{BlockSize: 10, Connector: &engine.Connector{BlockBytes: 100, Links: []int64{100},
		Handoff: func(*workload.Request) engine.Handoff {
			return engine.Handoff{Remote: engine.Remote{Tokens: 80, Path: []int32{0}, From: source.Number()}}
		}}}, 1, event.Join(), &net, nil)
	q, text := shared()
	reader.Queued(q)
	if got := reader.Loadable(text, 10, true); got != 70 || !reader.Pulls() {
		t.Fatalf("%d tokens can be loaded, want 70", got)
	}
	reader.Load(0, engine.Load{Number: 1, Seq: 2, Request: q.ID, Blocks: 7})
	source.EndLease(clock.Time(clock.Second), 1)
	if net.Awaited() != 2 {
		t.Errorf("%d loads and leases to come, want 2", net.Awaited())
	}
	if failed := source.Abandon(5); len(failed) != 1 || failed[0] != 1 || net.Awaited() != 0 {
		t.Errorf("loads of replicas %v fail, and %d are to come", failed, net.Awaited())
	}
	if got := reader.Received(); len(got) != 1 || !got[0].Failed {
		t.Errorf("received %+v, want a failed load", got)
	}
}
