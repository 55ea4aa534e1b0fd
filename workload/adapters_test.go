package workload_test

import (
	"math"
	"testing"

	"clifftop/workload"
)

// TestAdapters counts the adapters of requests: the k-th of a Zipf law has the weight 1/k, a part of the requests has
// none, and a conversation keeps its adapter.
func TestAdapters(t *testing.T) {
	fixed := func(n int32) workload.LengthsSpec { return workload.LengthsSpec{Distribution: "fixed", Value: n} }
	const requests = 20_000
	spec := workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: 10}}, Input: fixed(10), Output: fixed(10),
		Adapters: workload.AdapterSpec{First: 5, Count: 3, Zipf: 1, Share: 0.55}, Requests: requests,
	}
	src, err := workload.New(spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	count := map[int32]float64{}
	for range requests {
		r := src.Next()
		count[r.Adapter]++
	}
	for adapter, want := range map[int32]float64{0: 0.45, 5: 0.3, 6: 0.15, 7: 0.1} {
		if got := count[adapter] / requests; math.Abs(got-want) > 0.01 {
			t.Errorf("adapter %d has %.3f of the requests (want %.3f)", adapter, got, want)
		}
	}
	spec.Sessions = &workload.SessionSpec{Turns: fixed(3), FirstPrompt: fixed(10), LaterUserTokens: fixed(10),
		TurnGap: workload.Delay{Mean: 1_000_000_000_000}}
	spec.Input = workload.LengthsSpec{}
	if src, err = workload.New(spec, 1); err != nil {
		t.Fatal(err)
	}
	of := map[int32]int32{}
	kinds := map[int32]bool{}
	for range 3000 {
		r := src.Next()
		if before, ok := of[r.Session]; ok && before != r.Adapter {
			t.Fatalf("session %d changes from adapter %d to %d", r.Session, before, r.Adapter)
		}
		of[r.Session], kinds[r.Adapter] = r.Adapter, true
	}
	if len(kinds) != 4 {
		t.Errorf("the conversations use %d adapters (want 3, and the base model)", len(kinds))
	}
	spec.Adapters.Share = 2
	if spec.Validate() == nil {
		t.Error("a share of 2 is accepted")
	}
}

// TestAdapterTexts compares the keys of equal prompts of different adapters.
func TestAdapterTexts(t *testing.T) {
	content := &workload.Content{Segments: []workload.Segment{{ID: 7, Tokens: 40}}}
	keys, hashes := map[uint64]bool{}, map[uint64]bool{}
	for adapter := range int32(3) {
		r := workload.Request{InputTokens: 40, OutputTokens: 1, Content: content, Adapter: adapter}
		walk := workload.NewBlockKeys(&r, 16)
		key, _ := walk.Next()
		keys[key], hashes[r.PrefixHash(16)] = true, true
	}
	if len(keys) != 3 || len(hashes) != 3 {
		t.Errorf("3 adapters have %d keys and %d hashes of the same text", len(keys), len(hashes))
	}
}
