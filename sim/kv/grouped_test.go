package kv

import (
	"testing"

	"clifftop/model"
	"clifftop/workload"
)

// TestGrouped follows two requests with a common prompt through a pool of a window and full attention, in blocks of 4
// tokens.
func TestGrouped(t *testing.T) {
	const usable = 20
	pool := newCachingPool(usable, false)
	g := newGrouped(pool, GroupedConfig{Groups: []model.CacheGroup{{Kind: model.SlidingWindow, Window: 5, BlockSize: 4},
		{Kind: model.FullAttention, BlockSize: 4}}, Most: 40, InFlight: 40, Caching: true})
	request := func(id int64) *workload.Request {
		return &workload.Request{ID: id, InputTokens: 18, OutputTokens: 8, Content: &workload.Content{
			Segments: []workload.Segment{{ID: workload.SegmentID("system"), Tokens: 17}}}}
	}
	var a, b groupTables
	expect := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d (want %d)", what, got, want)
		}
	}
	g.Start(&a, request(1))
	expect("hit of an empty cache", int(g.Find(&a, 17)), 0)
	expect("blocks for the prompt", g.Needs(&a, 18, false), 10)
	g.Take(&a)
	if !g.Grow(&a, 18, 0) {
		t.Fatal("no room for the prompt")
	}
	g.Register(&a, 18)
	expect("free with the prompt", pool.Free(), 10)
	g.Grow(&a, 19, 18) // token 18 attends to tokens 14 and later: three blocks of the window are free
	expect("free with the window", pool.Free(), 13)

	g.Start(&b, request(2))
	expect("hit of the common blocks", int(g.Find(&b, 17)), 16) // the window has the one before the end of the prompt
	expect("blocks behind the hit", g.Needs(&b, 18, false), 2)
	g.Take(&b)
	g.Grow(&b, 18, 16)
	expect("free with both", pool.Free(), 11)
	expect("shared tokens", int(g.Shared()), 16)
	if g.Grow(&b, 48, 18) {
		t.Error("there is room for 48 tokens")
	}
	g.Free(&a)
	g.Free(&b)
	expect("free at the end", pool.Free(), usable)
	expect("shared at the end", int(g.Shared()), 0)
}
