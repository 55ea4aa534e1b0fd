package engine

import (
	"math/bits"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/kv"
)

// iteration is an iteration that has been scheduled and whose results have not been processed.
type iteration struct {
	end    clock.Time
	number int64
	// firsts are the sequences that completed a prefill in the iteration, finishes those whose last token it issues,
	// each in running order.
	firsts, finishes []int32
	// lasts are the sequences whose output it completes without the engine knowing in advance. returns are those that
	// were preempted and admitted again while the iteration was in flight with a token of theirs.
	lasts, returns []int32
	// emitters are the sequences that issue a token. The list is used only if partial is set, because a decoding
	// sequence was left out; otherwise the emitting sequences follow from the state of each sequence.
	emitters []int32
	// verified are the sequences that decode with drafts.
	verified []draftRow
	chunks   kv.Chunks // that enter the KV cache when the iteration has been processed
	partial  bool
	stepped  bool  // the cohort made its step
	berth    int32 // with pipeline parallelism: the berth of its cohort
}

// eventful reports whether the iteration does more than issue tokens of the cohort.
func (f *iteration) eventful() bool { return len(f.firsts)+len(f.finishes)+len(f.lasts) > 0 }

func (f *iteration) clear() {
	f.firsts = f.firsts[:0] // each alone, so that only the length is written
	f.finishes = f.finishes[:0]
	f.emitters = f.emitters[:0]
	f.lasts = f.lasts[:0]
	f.returns = f.returns[:0]
	f.verified = f.verified[:0]
	f.partial, f.stepped = false, false
	if f.chunks.N > 0 {
		f.chunks.Clear()
	}
}

// iterationRing is the queue of iterations in flight, oldest first.
type iterationRing struct {
	ring []*iteration // a power of two, more than can be in flight, so that a new one can be built
	head int
	n    int

	// early means that the oldest iteration has results, and ends before the planned span is over.
	early  bool
	cfg    *Config
	seqs   *slab
	most   int     // iterations that can be in flight
	berths *berths // nil without pipeline parallelism
}

// newIterationRing returns an empty queue of up to n iterations.
func newIterationRing(n int, cfg *Config, seqs *slab) iterationRing {
	q := iterationRing{ring: make([]*iteration, 1<<bits.Len(uint(max(n, 2)))), most: n, cfg: cfg, seqs: seqs}
	for i := range q.ring {
		q.ring[i] = new(iteration)
	}
	return q
}

func (q *iterationRing) at(i int) *iteration { return q.ring[(q.head+i)&(len(q.ring)-1)] }

// next returns the empty iteration behind the last one.
func (q *iterationRing) next() *iteration { return q.at(q.n) }

func (q *iterationRing) pop() {
	q.at(0).clear()
	q.head++
	q.n--
}

func without(list []int32, i int32) []int32 {
	kept := list[:0]
	for _, x := range list {
		if x != i {
			kept = append(kept, x)
		}
	}
	return kept
}

// emits reports whether iteration f issues a token of sequence i.
func (q *iterationRing) emits(f *iteration, i int32) bool {
	if q.berths != nil {
		return q.berths.emits(f, q.seqs.at(i))
	}
	if f.partial {
		for _, e := range f.emitters {
			if e == i {
				return true
			}
		}
		return false
	}
	s := q.seqs.at(i)
	switch {
	case q.cfg.Speculative.On():
		return f.rowOf(i) != nil && f.rowOf(i).fresh > 0 || slices.Contains(f.firsts, i)
	case f.number <= s.joinBatch:
		return f.number == s.joinBatch || f.number == s.beforeJoin
	case !f.stepped:
		return false
	}
	return s.phase == decoding || f.number <= s.lastBatch
}

// tokensInFlight returns the number of tokens of sequence i that are issued and not delivered.
func (q *iterationRing) tokensInFlight(i int32) int32 {
	var n int32
	for k := range q.n {
		if q.emits(q.at(k), i) {
			n++
		}
	}
	return n
}
