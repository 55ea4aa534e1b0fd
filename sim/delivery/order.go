package delivery

import (
	"math/bits"
	"slices"
)

// order is the stream order: the running sequences in order of admission, and a count of those that decode up to each.
// It has a slot for each sequence, a bit for each slot, and a Fenwick tree over the words of 64 bits. Slots are given
// out in order of admission, so that a sequence never changes its order; when they are used up, all running sequences
// get new ones.
type order struct {
	decode []uint64 // bits of the slots of decoding sequences
	tree   []int32  // their number in a word and those before; the word k has the node k+1
	bySlot []int32  // the running sequence with a slot, or none
	size   int      // running sequences
}

const none = int32(-1)

// flip changes whether the sequence in a slot decodes, which adds n to their number.
func (r *order) flip(slot, n int32) {
	r.decode[slot>>6] ^= 1 << (slot & 63)
	for i := int(slot>>6) + 1; i < len(r.tree); i += i & -i {
		r.tree[i] += n
	}
}

// upTo returns the number of decoding sequences in slots 0…slot.
func (r *order) upTo(slot int32) int32 {
	word := int(slot >> 6)
	n := int32(bits.OnesCount64(r.decode[word] << (63 - slot&63)))
	for ; word > 0; word -= word & -word {
		n += r.tree[word]
	}
	return n
}

// Enter puts sequence i, which begins to run, behind the others.
func (l *Line) Enter(i int32) {
	if len(l.bySlot) >= 64*len(l.decode) {
		l.renumber()
	}
	l.streams[i].slot = int32(len(l.bySlot))
	l.bySlot = append(l.bySlot, i)
	l.size++
}

// Exit removes sequence i, which stops running and does not decode.
func (l *Line) Exit(i int32) {
	l.bySlot[l.streams[i].slot] = none
	l.size--
}

// renumber gives the running sequences new slots from 0, keeping their order.
func (l *Line) renumber() {
	words := l.size/16 + 1
	l.decode, l.tree = slices.Grow(l.decode[:0], words)[:words], slices.Grow(l.tree[:0], words+1)[:words+1]
	clear(l.decode)
	clear(l.tree)
	running, left := l.bySlot, l.gone
	l.bySlot = l.bySlot[:0]
	for old, i := range running {
		if i == none {
			continue
		}
		n, s := int32(len(l.bySlot)), &l.streams[i]
		for ; len(left) > 0 && left[0].slot < int32(old); left = left[1:] {
			left[0].slot = n - 1
		}
		s.slot = n
		l.bySlot = append(l.bySlot, i)
		if s.decodes {
			l.flip(n, 1)
		}
	}
	for k := range left {
		left[k].slot = int32(len(l.bySlot)) - 1
	}
}

// Joins notes that sequence i decodes from now on. It completed its prefill in the iteration with a number.
func (l *Line) Joins(i int32, number int64) {
	s := &l.streams[i]
	s.decodes, s.joined = true, number
	l.flip(s.slot, 1)
}

// Leaves notes that sequence i stops decoding, and when its last chunk is sent.
func (l *Line) Leaves(i int32) {
	s := &l.streams[i]
	switch {
	case l.Free():
		s.sent = l.base
	case l.level:
		k := l.ahead(s.slot)
		s.placed, s.sentIn = l.upTo(s.slot)+int32(k), l.last
		s.sent = l.leave(l.base, s.placed)
		l.goes(k, s.slot, s.placed)
	case l.members > 0:
		l.settle(s)
		l.steady = false
	}
	s.decodes = false
	l.flip(s.slot, -1)
}

// place returns the place of s, which decodes, in the iteration that was sent last, if that was level.
func (l *Line) place(s *stream) int32 { return l.upTo(s.slot) + int32(l.ahead(s.slot)) }

// ahead returns the number of sequences in gone that were ahead of a slot.
func (l *Line) ahead(slot int32) int {
	n := len(l.gone)
	for n > 0 && l.gone[n-1].slot >= slot { // nearly always none is behind
		n--
	}
	return n
}

// goes adds the slot and the place of a sequence that is not in the iteration after the last one, behind k others.
func (l *Line) goes(k int, slot, place int32) {
	if l.gone = append(l.gone, gone{slot, place}); k < len(l.gone)-1 {
		copy(l.gone[k+1:], l.gone[k:])
		l.gone[k] = gone{slot, place}
	}
}
