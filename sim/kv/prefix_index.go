package kv

import "math/bits"

// PrefixIndex knows which of many caches hold which blocks, by the blocks' keys. One walk over a text finds how much
// each of them holds.
type PrefixIndex struct {
	table table    // of places
	words int      // of a set of caches
	sets  []uint64 // by place: the holders
	live  []uint64 // scratch of Match
}

// Len is the number of blocks that some cache holds.
func (h *PrefixIndex) Len() int { return h.table.len() }

// Add notes that a cache, numbered from 0, holds the block of a key. It returns the place of the key, which does not
// change while some cache holds it, and whether the cache did not hold the block before.
func (h *PrefixIndex) Add(key uint64, cache int) (place int32, fresh bool) {
	if cache >= h.words*64 {
		h.widen(cache/64 + 1)
	}
	if place = h.table.find(key); place == 0 {
		place = h.table.add(key)
		if n := (int(place)+1)*h.words - len(h.sets); n > 0 {
			h.sets = append(h.sets, make([]uint64, n)...)
		}
	}
	word, bit := &h.set(place)[cache/64], uint64(1)<<(cache%64)
	fresh = *word&bit == 0
	*word |= bit
	return place, fresh
}

// widen makes room for more caches.
func (h *PrefixIndex) widen(words int) {
	sets := make([]uint64, words*(h.table.most()+1))
	for place := 1; place <= h.table.most(); place++ {
		copy(sets[place*words:], h.set(int32(place)))
	}
	h.words, h.sets, h.live = words, sets, make([]uint64, words)
}

// Remove notes that a cache no longer holds the block at a place.
func (h *PrefixIndex) Remove(place int32, cache int) {
	if cache >= h.words*64 {
		return
	}
	set := h.set(place)
	set[cache/64] &^= 1 << (cache % 64)
	for _, w := range set {
		if w != 0 {
			return
		}
	}
	h.table.drop(place)
}

// RemoveKey is Remove by key.
func (h *PrefixIndex) RemoveKey(key uint64, cache int) {
	if place := h.table.find(key); place != 0 {
		h.Remove(place, cache)
	}
}

// Clear notes that a cache is empty.
func (h *PrefixIndex) Clear(cache int) {
	if cache >= h.words*64 {
		return
	}
	for place := int32(1); place <= int32(h.table.most()); place++ {
		if h.set(place)[cache/64]>>(cache%64)&1 != 0 {
			h.Remove(place, cache)
		}
	}
}

func (h *PrefixIndex) set(place int32) []uint64 { return h.sets[int(place)*h.words:][:h.words] }

// Match finds how many leading blocks of a text each cache holds, and writes them to held, by cache, which grows as
// needed.
func (h *PrefixIndex) Match(text []uint64, held []int32) []int32 {
	for len(held) < h.words*64 {
		held = append(held, 0)
	}
	clear(held)
	for i, key := range text {
		place := h.table.find(key)
		if place == 0 {
			h.settle(held, int32(i))
			return held
		}
		set := h.set(place)
		if i == 0 {
			copy(h.live, set)
			continue
		}
		some := uint64(0)
		for w, live := range h.live {
			for gone := live &^ set[w]; gone != 0; gone &= gone - 1 {
				held[w*64+bits.TrailingZeros64(gone)] = int32(i)
			}
			h.live[w] = live & set[w]
			some |= h.live[w]
		}
		if some == 0 {
			return held
		}
	}
	h.settle(held, int32(len(text)))
	return held
}

// settle sets the length of the caches that are still alive.
func (h *PrefixIndex) settle(held []int32, length int32) {
	if length == 0 {
		return
	}
	for w, live := range h.live {
		for ; live != 0; live &= live - 1 {
			held[w*64+bits.TrailingZeros64(live)] = length
		}
	}
}
