package model_test

import (
	"testing"

	"clifftop/model"
)

// TestKVGroups compares pools and charges of each kind of group with values computed by hand. Blocks have 16 tokens; a
// token has 100 bytes in each layer.
func TestKVGroups(t *testing.T) {
	group := func(kind model.KVKind, layers, window int) model.KVGroup {
		return model.KVGroup{Kind: kind, Layers: layers, Window: window, TokenBytes: 100}
	}
	for _, c := range []struct {
		name    string
		groups  model.KVGroups
		pool    int64       // bytes of a token in the blocks that the pool counts
		charges map[int]int // by blocks held
		most    int         // blocks from which on it stays the same
	}{
		{"full", model.KVGroups{group(model.FullAttention, 32, 0)}, 3200, map[int]int{0: 0, 1: 0, 500: 0}, 0},
		{"latent", model.KVGroups{group(model.LatentAttention, 61, 0)}, 6100, map[int]int{7: 0}, 0},
		{"chunked layers keep all tokens", model.KVGroups{group(model.FullAttention, 12, 0),
			group(model.ChunkedLocalAttention, 36, 8192)}, 4800, map[int]int{9: 0, 900: 0}, 0},
		// A window of 128 tokens touches at most 128/16+1 = 9 blocks. 9 blocks of 10 layers are 90/30 = 3 of 30 layers.
		{"window", model.KVGroups{group(model.FullAttention, 30, 0), group(model.SlidingWindow, 10, 128)}, 3000,
			map[int]int{0: 0, 1: 1, 3: 1, 4: 2, 8: 3, 9: 3, 10: 3, 1000: 3}, 9},
		// Each group is rounded up separately: 1/3 of 2 blocks and 2/3 of 2 blocks are 1 and 2.
		{"two windows", model.KVGroups{group(model.FullAttention, 3, 0), group(model.SlidingWindow, 1, 16),
			group(model.SlidingWindow, 2, 32)}, 300, map[int]int{1: 2, 2: 3, 3: 3, 50: 3}, 3},
		// The pool counts the blocks of a single group, whatever its kind.
		{"windows alone", model.KVGroups{group(model.SlidingWindow, 40, 128)}, 4000, map[int]int{1: 0, 100: 0}, 0},
	} {
		if err := c.groups.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := c.groups.PoolBytesPerToken(); got != c.pool {
			t.Errorf("%s: a token has %d bytes in the pool, want %d", c.name, got, c.pool)
		}
		for held, want := range c.charges {
			if got := c.groups.Charge(held, 16); got != want {
				t.Errorf("%s: %d blocks are charged %d, want %d", c.name, held, got, want)
			}
		}
		if got := c.groups.MostCharged(16); got != c.most {
			t.Errorf("%s: the charge grows up to %d blocks, want %d", c.name, got, c.most)
		}
	}
	for name, g := range map[string]model.KVGroup{"no layers": group(model.FullAttention, 0, 0),
		"no window": group(model.SlidingWindow, 1, 0), "no kind": group(99, 1, 0)} {
		if (model.KVGroups{g}).Validate() == nil {
			t.Errorf("%s: no fault is found", name)
		}
	}
}

// TestKVGroupsOfModels checks the groups of catalog models against their architectures.
func TestKVGroupsOfModels(t *testing.T) {
	for name, want := range map[string][]model.KVKind{
		"llama-3.1-8b":          {model.FullAttention},
		"deepseek-r1":           {model.LatentAttention},
		"gpt-oss-120b":          {model.SlidingWindow, model.FullAttention},
		"llama-4-scout-17b-16e": {model.ChunkedLocalAttention, model.FullAttention},
	} {
		groups := deploy(t, name, "b200", model.Options{TensorParallel: 8}).KVGroups()
		var kinds []model.KVKind
		for _, g := range groups {
			kinds = append(kinds, g.Kind)
		}
		if len(kinds) != len(want) || kinds[0] != want[0] || kinds[len(kinds)-1] != want[len(want)-1] {
			t.Errorf("%s has groups %v, want %v", name, kinds, want)
		}
	}
}
