package trace

import "clifftop/workload/internal/heap"

// held is a row in the sort window; equal arrivals keep the order of the file.
type held struct {
	row Row
	seq int64
}

func (h *held) before(g *held) bool {
	return h.row.Arrival < g.row.Arrival || h.row.Arrival == g.row.Arrival && h.seq < g.seq
}

// window is the rows held, by arrival.
type window struct{ heap.Heap[held] }

func newWindow() window { return window{heap.Heap[held]{Before: (*held).before}} }
