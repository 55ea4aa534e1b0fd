package route

import (
	"clifftop/sim/kv"
	"clifftop/workload/idtable"
)

// activeBlocks counts the prompt blocks of requests that replicas are serving. A block that several requests share
// counts once.
type activeBlocks struct {
	holders kv.PrefixIndex
	of      []workerBlocks // by replica
	held    idtable.Table[promptBlocks]
	vacant  [][]int32
	matched []int32 // by replica: leading blocks of the current prompt that are active
}

type workerBlocks struct {
	again kv.Counter // requests of a shared block beyond the first, by place
	all   int64
}

// promptBlocks are the blocks of a request: those that other requests may share, by place, and the number of the
// others.
type promptBlocks struct {
	shared []int32
	unique int32
}

// match finds which blocks of a prompt are active. A replica that lacks one has none of those behind it.
func (a *activeBlocks) match(path []uint64) { a.matched = a.holders.Match(path, a.matched) }

// with is the number of blocks that a replica would have with those of the last matched prompt.
func (a *activeBlocks) with(replica int, blocks int32) int64 {
	n := int64(blocks)
	if replica < len(a.of) {
		n += a.of[replica].all
	}
	if replica < len(a.matched) {
		n -= int64(a.matched[replica])
	}
	return n
}

func (a *activeBlocks) add(replica int, request int64, path []uint64, unique int32) {
	for replica >= len(a.of) {
		a.of = append(a.of, workerBlocks{})
	}
	var h promptBlocks
	if n := len(a.vacant); n > 0 {
		h.shared, a.vacant = a.vacant[n-1], a.vacant[:n-1]
	}
	w := &a.of[replica]
	for _, key := range path {
		place, fresh := a.holders.Add(key, replica)
		h.shared = append(h.shared, place)
		if fresh {
			w.all++
		} else {
			w.again.Add(uint64(place))
		}
	}
	h.unique = unique
	w.all += int64(unique)
	*a.held.Add(request) = h
}

func (a *activeBlocks) remove(replica int, request int64) {
	h := a.held.Find(request)
	if h == nil {
		return
	}
	w := &a.of[replica]
	w.all -= int64(h.unique)
	for _, place := range h.shared {
		if !w.again.Take(uint64(place)) {
			a.holders.Remove(place, replica)
			w.all--
		}
	}
	a.vacant = append(a.vacant, h.shared[:0])
	a.held.Remove(request)
}
