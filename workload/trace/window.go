package trace

import "clifftop/workload"

// held is a row in the sort window; equal arrivals keep the order of the file.
type held struct {
	request workload.Request
	seq     int64
}

func (h *held) before(g *held) bool {
	return h.request.Arrival < g.request.Arrival || h.request.Arrival == g.request.Arrival && h.seq < g.seq
}

// window is a binary heap of rows by arrival.
type window []held

func (w *window) push(h held) {
	*w = append(*w, h)
	s := *w
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = h
}

func (w *window) pop() held {
	s := *w
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*w = s
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].before(&s[child]) {
			child++
		}
		if !s[child].before(&last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = last
	}
	return top
}
