package sim

// entry is an item of a heap: ordered by key, then tie.
type entry struct {
	key, tie int64
	ref      int32
}

func (a *entry) before(b *entry) bool {
	return a.key < b.key || a.key == b.key && a.tie < b.tie
}

// heap is a binary min-heap of entries.
type heap []entry

func (h *heap) push(e entry) {
	*h = append(*h, e)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = e
}

func (h *heap) pop() entry {
	s := *h
	top := s[0]
	last := s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(s) {
			break
		}
		if r := down + 1; r < len(s) && s[r].before(&s[down]) {
			down = r
		}
		if !s[down].before(&last) {
			break
		}
		s[i] = s[down]
		i = down
	}
	s[i] = last
	return top
}

// keep removes the entries that keep refuses.
func (h *heap) keep(keep func(entry) bool) {
	all := *h
	*h = all[:0]
	for _, x := range all {
		if keep(x) {
			h.push(x)
		}
	}
}
