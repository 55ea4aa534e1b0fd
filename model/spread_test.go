package model_test

import (
	"reflect"
	"testing"

	"clifftop/model"
)

// TestSpread: of 10 sequences on 4 ranks the busiest has 3, of 6 chunks two, those with the most tokens.
func TestSpread(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100-sxm", model.Options{})
	rank, err := model.NewKernels(d, model.KernelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if model.NewSpread(rank, 1, 1, 200) != model.StepTimer(rank) {
		t.Error("one rank has another timer")
	}
	spread := model.NewSpread(rank, 4, 1, 200).(*model.Spread)
	all := model.Batch{Decodes: 10, Drafts: 20, Context: 5000, SharedTokens: 160, Emit: 32,
		Chunks: []model.Chunk{{New: 10}, {New: 20}, {New: 30}, {New: 40}, {New: 100, Cached: 7}, {New: 5}}}
	want := model.Batch{Decodes: 3, Drafts: 6, Context: 1500, SharedTokens: 48, Emit: 3 + 6 + 1,
		Chunks: []model.Chunk{{New: 10}, {New: 100, Cached: 7}}, GroupTokens: 10 + 20 + 205, BusiestTokens: 3 + 6 + 110}
	if got := spread.Busiest(&all); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	first, _, _ := spread.Span(&all)
	if alone, _, _ := rank.Span(&want); first != alone {
		t.Errorf("an iteration takes %d fs, that of its busiest rank %d", first, alone)
	}
	// A rank with a budget of 50 tokens computes 50 of 70; the other ranks have the rest. A chunk is never divided.
	tight := model.NewSpread(rank, 2, 1, 50).(*model.Spread)
	for _, c := range []struct{ chunks, want []model.Chunk }{
		{[]model.Chunk{{New: 30}, {New: 5}, {New: 40}}, []model.Chunk{{New: 30}, {New: 20}}},
		{[]model.Chunk{{New: 60}, {New: 5}, {New: 40}}, []model.Chunk{{New: 60}}},
	} {
		if got := tight.Busiest(&model.Batch{Chunks: c.chunks, Emit: 3}).Chunks; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v of %v (want %v)", got, c.chunks, c.want)
		}
	}
	// Of a worker of 12 ranks a third is simulated: the experts have the tokens of all.
	third := model.NewSpread(rank, 12, 3, 200).(*model.Spread)
	want.GroupTokens *= 3
	if got := third.Busiest(&all); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	// A span of a worker's decodes is that of its busiest rank: 8 sequences are 2 on each.
	decodes := model.Batch{Decodes: 8, Context: 8 * 1000, Emit: 8}
	first, slope, n := spread.Span(&decodes)
	a, b, c := rank.Span(&model.Batch{Decodes: 2, Context: 2 * 1000, Emit: 2})
	if first != a || slope != b || n != c {
		t.Errorf("%d + k·%d for %d iterations (want %d, %d, %d)", first, slope, n, a, b, c)
	}
}
