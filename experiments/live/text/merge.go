package text

import "clifftop/internal/pq"

// merges are the rules of byte pair encoding: which two neighbouring tokens become one, and how early.
type merges map[[2]uint32]merge

// merge is a rule: the lower rank goes first.
type merge struct{ rank, id uint32 }

// shortWord is the maximum number of tokens of a word whose rules are found by a scan; longer ones need a queue.
const shortWord = 24

// apply applies the rules to the tokens of a word, in place: at each step the rule with the lowest rank, at its
// leftmost place.
func (m merges) apply(ids []uint32) []uint32 {
	if len(ids) > shortWord {
		return m.applyQueue(ids)
	}
	for {
		best, at := merge{rank: noRank}, 0
		for i := 1; i < len(ids); i++ {
			if r, ok := m[[2]uint32{ids[i-1], ids[i]}]; ok && r.rank < best.rank {
				best, at = r, i
			}
		}
		if best.rank == noRank {
			return ids
		}
		ids[at-1] = best.id
		ids = append(ids[:at], ids[at+1:]...)
	}
}

const noRank = 1<<32 - 1

// applyQueue does the same in a time of n log n. The tokens are a linked list.
func (m merges) applyQueue(ids []uint32) []uint32 {
	type link struct{ before, after int }
	links := make([]link, len(ids))
	var queue pq.Queue[[2]uint32] // pairs of tokens; the key is the rank, the tie is the place
	offer := func(left int) {
		if left < 0 || links[left].after >= len(ids) {
			return
		}
		pair := [2]uint32{ids[left], ids[links[left].after]}
		if r, ok := m[pair]; ok {
			queue.Push(pq.Item[[2]uint32]{Value: pair, Key: int64(r.rank), Tie: int64(left)})
		}
	}
	for i := range links {
		links[i] = link{i - 1, i + 1}
	}
	for i := range ids {
		offer(i)
	}
	const gone = 1<<32 - 1
	for queue.Len() > 0 {
		item := queue.Pop()
		left := int(item.Tie)
		right := links[left].after
		if ids[left] != item.Value[0] || right >= len(ids) || ids[right] != item.Value[1] {
			continue // one of the two was merged since
		}
		ids[left] = m[item.Value].id
		ids[right] = gone
		links[left].after = links[right].after
		if next := links[right].after; next < len(ids) {
			links[next].before = left
		}
		offer(links[left].before)
		offer(left)
	}
	out := ids[:0]
	for i := 0; i < len(links); i = links[i].after {
		out = append(out, ids[i])
	}
	return out
}
