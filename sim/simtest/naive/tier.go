package naive

import (
	"slices"

	"clifftop/sim/kv"
)

// Tier is what [kv.Tier] is, plainly: lists of keys from the least recently used one.
type Tier struct {
	Capacity int
	Rule     kv.Eviction

	Torn []uint64 // chunks that have their place, and are of no use, since not all of them came

	recent, frequent             []uint64
	recentGhosts, frequentGhosts []uint64
	target                       int // length that the recent list should have
}

// Has reports whether a chunk is in the tier.
func (t *Tier) Has(key uint64) bool { return t.keeps(key) && !slices.Contains(t.Torn, key) }

// keeps reports whether a chunk has a place in the tier.
func (t *Tier) keeps(key uint64) bool {
	return slices.Contains(t.recent, key) || slices.Contains(t.frequent, key)
}

// Tear invalidates a chunk, if it is there, until it is put there again.
func (t *Tier) Tear(key uint64) {
	if t.Has(key) {
		t.Torn = append(t.Torn, key)
	}
}

func (t *Tier) Len() int { return len(t.recent) + len(t.frequent) }

// Use notes a use of a chunk that is in the tier.
func (t *Tier) Use(key uint64) {
	remove(&t.recent, key)
	remove(&t.frequent, key)
	if t.Rule == kv.ARC {
		t.frequent = append(t.frequent, key)
	} else {
		t.recent = append(t.recent, key)
	}
}

// Put enters a chunk that is not in the tier, and returns those that go for it.
func (t *Tier) Put(key uint64) (gone []uint64) {
	if t.keeps(key) {
		remove(&t.Torn, key)
		t.Use(key)
		return nil
	}
	for _, key := range t.enter(key) {
		if !slices.Contains(t.Torn, key) {
			gone = append(gone, key)
		}
		remove(&t.Torn, key)
	}
	return gone
}

// enter makes room for a chunk that has no place, and gives it one.
func (t *Tier) enter(key uint64) (gone []uint64) {
	switch {
	case t.Rule == kv.LRU:
		if t.recent = append(t.recent, key); len(t.recent) > t.Capacity {
			gone = append(gone, shift(&t.recent))
		}
	case slices.Contains(t.recentGhosts, key):
		t.target = min(t.Capacity, t.target+max(1, len(t.frequentGhosts)/len(t.recentGhosts)))
		gone = t.replace(false)
		remove(&t.recentGhosts, key)
		t.frequent = append(t.frequent, key)
	case slices.Contains(t.frequentGhosts, key):
		t.target = max(0, t.target-max(1, len(t.recentGhosts)/len(t.frequentGhosts)))
		gone = t.replace(true)
		remove(&t.frequentGhosts, key)
		t.frequent = append(t.frequent, key)
	default:
		gone = t.makeRoom()
		t.recent = append(t.recent, key)
	}
	return gone
}

// makeRoom evicts what must go before an unknown chunk is stored.
func (t *Tier) makeRoom() []uint64 {
	if len(t.recent)+len(t.recentGhosts) == t.Capacity {
		if len(t.recent) == t.Capacity {
			return []uint64{shift(&t.recent)}
		}
		shift(&t.recentGhosts)
		return t.replace(false)
	}
	all := t.Len() + len(t.recentGhosts) + len(t.frequentGhosts)
	if all == 2*t.Capacity {
		shift(&t.frequentGhosts)
	}
	if all >= t.Capacity {
		return t.replace(false)
	}
	return nil
}

// replace evicts a chunk and keeps its key as a ghost entry, if the tier is full.
func (t *Tier) replace(forFrequentGhost bool) []uint64 {
	if t.Len() < t.Capacity {
		return nil
	}
	n := len(t.recent)
	if n > 0 && (n > t.target || n == t.target && forFrequentGhost || len(t.frequent) == 0) {
		key := shift(&t.recent)
		t.recentGhosts = append(t.recentGhosts, key)
		return []uint64{key}
	}
	key := shift(&t.frequent)
	t.frequentGhosts = append(t.frequentGhosts, key)
	return []uint64{key}
}

func shift(list *[]uint64) (key uint64) {
	key = (*list)[0]
	*list = (*list)[1:]
	return key
}

func remove(list *[]uint64, key uint64) {
	*list = slices.DeleteFunc(*list, func(k uint64) bool { return k == key })
}
