package engine

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// What a fleet asks its engines.

// Peek is what an admission would reuse now where blocks are not found by hashes.
func (r *Engine) Peek(q *workload.Request) int32 {
	if r.radix == nil {
		return 0
	}
	r.look.text = q.Text(r.look.text[:0])
	return int32(r.radix.Peek(r.look.text, q.InputTokens-1)) * r.cfg.BlockSize
}

// HashedBlocks is the size of the blocks if they are found by hashes, else 0.
func (r *Engine) HashedBlocks() int32 {
	if r.caching {
		return r.cfg.BlockSize
	}
	return 0
}

// TellBlocks makes the prefix cache call tell for each block hash that can be found from now on, and no more.
func (r *Engine) TellBlocks(tell func(key uint64, held bool)) { r.pool.Tell(tell) }

// Unsettled reports whether decoding sequences owe blocks: see Settle.
func (r *Engine) Unsettled() bool { return r.cohort.settled < r.cohort.steps }

// UsedAt is the number of blocks referenced just before an instant that is not past the next boundary.
func (r *Engine) UsedAt(at clock.Time) int {
	used := r.Used()
	if p := &r.ahead; p.N > 1 {
		composed := min(max(p.FirstEndAtOrAfter(at)+r.depth-1, 1), p.N)
		used += r.cohort.takes.over(r.cohort.steps, composed-1)
	}
	return used
}

// IdleFrom is when the GPU has nothing more to do, if it is given nothing.
func (r *Engine) IdleFrom() clock.Time {
	if r.remainder > 0 {
		return r.gpuFree + 1
	}
	return r.gpuFree
}
