package engine

// ranks counts the decoding sequences up to a place in the running batch: a Fenwick tree over slots.
// Slots are given out in order of admission.
type streamOrder struct{ tree []int32 }

func (r *streamOrder) reset(slots int) {
	if cap(r.tree) < slots+1 {
		r.tree = make([]int32, slots+1)
		return
	}
	r.tree = r.tree[:slots+1]
	clear(r.tree)
}

func (r *streamOrder) add(slot int32, n int32) {
	for i := int(slot) + 1; i < len(r.tree); i += i & -i {
		r.tree[i] += n
	}
}

// upTo is the number of decoding sequences in slots 0…slot.
func (r *streamOrder) upTo(slot int32) int32 {
	var n int32
	for i := int(slot) + 1; i > 0; i -= i & -i {
		n += r.tree[i]
	}
	return n
}
