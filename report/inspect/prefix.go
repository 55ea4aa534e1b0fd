package inspect

import (
	"math/bits"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// stackDistances finds for every use of a block how many different blocks were used since its last use, itself
// counted: its place in a stack of blocks ordered by their last use (Mattson and others 1970). A cache of n
// blocks that drops the least recently used hits where the distance is at most n. The uses are numbered, a
// Fenwick tree counts the blocks whose last use is up to a number.
type stackDistances struct {
	block     int32
	any       bool // a prompt had content
	tree      []int32
	uses      int            // numbers given
	live      int            // different blocks
	last      map[uint64]use // of blocks that others may have
	accesses  int64
	hits      int64
	hitTokens int64
	distances stats.Histogram
	reuse     stats.Histogram // milliseconds
	within    []int64         // hits within lruSizes
}

// use is the last use of a block.
type use struct {
	number int
	at     clock.Duration
}

// lruSizes are the sizes of caches to tell of, in blocks.
func lruSizes() []int64 {
	return []int64{100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000}
}

func newStackDistances(block int32) *stackDistances {
	return &stackDistances{block: block, last: map[uint64]use{}, within: make([]int64, len(lruSizes())),
		tree: make([]int32, 1<<12)}
}

// add uses the blocks of a prompt, and answers how many there are and how many were used before.
func (s *stackDistances) add(q *request, at clock.Duration) (blocks, hits int64) {
	n := (q.InputTokens + s.block - 1) / s.block
	blocks = int64(n)
	s.accesses += blocks
	full := int32(0)
	if q.Content != nil {
		s.any = true
		covered := min(q.Content.Tokens(), int64(q.InputTokens))
		full = int32(covered / int64(s.block))
	}
	if !s.any { // nothing has been shared yet, so that the distance to these is never needed
		return blocks, 0
	}
	keys := workload.NewBlockKeys(q, s.block)
	for range full {
		key, private := keys.Next()
		if private {
			s.fresh()
			continue
		}
		if s.reused(key, at) {
			hits++
		}
	}
	for range n - full {
		s.fresh()
	}
	s.hits += hits
	s.hitTokens += hits * int64(s.block)
	return blocks, hits
}

// fresh uses a block that is not shared.
func (s *stackDistances) fresh() {
	number := s.number() // which looks at what is live
	s.live++
	s.set(number, 1)
}

// reused uses a block, and says whether it was used before.
func (s *stackDistances) reused(key uint64, at clock.Duration) bool {
	number := s.number()
	u, known := s.last[key]
	if known {
		distance := int64(s.live-s.upTo(u.number)) + 1
		s.distances.Record(distance, 1)
		s.reuse.Record(int64((at-u.at)/clock.Millisecond), 1)
		for i, size := range lruSizes() {
			if distance <= size {
				s.within[i]++
			}
		}
		s.set(u.number, -1)
	} else {
		s.live++
	}
	s.set(number, 1)
	s.last[key] = use{number, at}
	return known
}

// Finite is the next use's. When the tree is full, the live uses are numbered anew in their order, in a tree
// with as much room again.
func (s *stackDistances) number() int {
	if s.uses == len(s.tree)-1 {
		for key, u := range s.last { // each by itself: the order does not matter
			u.number = s.upTo(u.number)
			s.last[key] = u
		}
		size := 1 << bits.Len(uint(2*s.live+1))
		s.tree = make([]int32, max(size, len(s.tree)))
		for i := 1; i < len(s.tree); i++ {
			s.tree[i] = int32(max(0, min(i, s.live)-(i&(i-1)))) // ones in (i&(i-1), i]
		}
		s.uses = s.live
	}
	s.uses++
	return s.uses
}

func (s *stackDistances) set(i int, by int32) {
	for ; i < len(s.tree); i += i & -i {
		s.tree[i] += by
	}
}

// upTo is the number of blocks whose last use is number i or earlier.
func (s *stackDistances) upTo(i int) int {
	n := 0
	for ; i > 0; i &= i - 1 {
		n += int(s.tree[i])
	}
	return n
}

// sharing is the result; nil where no prompt has content.
func (s *stackDistances) sharing(inputTokens int64, series []TrafficPoint) *PrefixSharing {
	if !s.any {
		return nil
	}
	p := &PrefixSharing{
		BlockTokens: s.block, Accesses: s.accesses, Unique: s.accesses - s.hits,
		HitBlocks:     stats.Ratio(float64(s.hits), float64(s.accesses)),
		HitTokens:     stats.Ratio(float64(s.hitTokens), float64(inputTokens)),
		StackDistance: report.DistributionOfHistogram(&s.distances, 1),
		Reuse:         report.DistributionOfHistogram(&s.reuse, 1e-3), LRU: []LRUPoint{},
	}
	var blocks, hits int64
	end := 0.0
	if n := len(series); n > 0 {
		end = series[n-1].EndS
	}
	for _, t := range series {
		if t.StartS >= 0.75*end {
			blocks, hits = blocks+t.blocks, hits+t.hits
		}
	}
	p.WarmHitBlocks = stats.Ratio(float64(hits), float64(blocks))
	for i, size := range lruSizes() {
		p.LRU = append(p.LRU, LRUPoint{Blocks: size, Tokens: size * int64(s.block),
			Hit: stats.Ratio(float64(s.within[i]), float64(s.accesses))})
		if s.within[i] == s.hits {
			break
		}
	}
	return p
}
