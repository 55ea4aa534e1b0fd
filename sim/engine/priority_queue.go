package engine

// priorityQueue is the waiting requests of an ordered queue: a binary heap, the most urgent on top.
type priorityQueue []waiting

// top is the most urgent request, or nil.
func (h priorityQueue) top() *waiting {
	if len(h) == 0 {
		return nil
	}
	return &h[0]
}

func (h *priorityQueue) push(w waiting) {
	*h = append(*h, w)
	s := *h
	i := len(s) - 1
	for u := w.urgency(); i > 0; {
		up := (i - 1) / 2
		if !u.Less(s[up].urgency()) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = w
}

func (h *priorityQueue) pop() {
	s := *h
	n := len(s) - 1
	last := s[n]
	s[n] = waiting{}
	s = s[:n]
	*h = s
	if n == 0 {
		return
	}
	i := 0
	for u := last.urgency(); ; {
		down := 2*i + 1
		if down >= n {
			break
		}
		if r := down + 1; r < n && s[r].urgency().Less(s[down].urgency()) {
			down = r
		}
		if !s[down].urgency().Less(u) {
			break
		}
		s[i] = s[down]
		i = down
	}
	s[i] = last
}
