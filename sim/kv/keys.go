package kv

import "sort"

// Keys are the keys of the leading blocks of a text. They come in runs of consecutive numbers (see
// [workload.BlockKeys]). The zero Keys are none.
type Keys struct {
	runs   []keyRun
	blocks int32
}

// keyRun is consecutive keys, up to the next run.
type keyRun struct {
	first uint64
	from  int32 // block
}

func (k *Keys) Len() int32 { return k.blocks }

// Reset removes all keys, and keeps the memory.
func (k *Keys) Reset() { k.runs, k.blocks = k.runs[:0], 0 }

// Add adds the keys of the next blocks, which are consecutive numbers from the first one on.
func (k *Keys) Add(first uint64, blocks int32) {
	if n := len(k.runs); n == 0 || k.runs[n-1].first+uint64(k.blocks-k.runs[n-1].from) != first {
		k.runs = append(k.runs, keyRun{first, k.blocks})
	}
	k.blocks += blocks
}

// At is the key of block i.
func (k *Keys) At(i int32) uint64 {
	r := k.runs[k.run(i)]
	return r.first + uint64(i-r.from)
}

func (k *Keys) run(i int32) int {
	if n := len(k.runs); n > 0 && k.runs[n-1].from <= i {
		return n - 1
	}
	return sort.Search(len(k.runs), func(r int) bool { return k.runs[r].from > i }) - 1
}

// walk returns a walk over the keys of blocks [from, to).
func (k *Keys) walk(from, to int32) keyWalk {
	if from >= to {
		return keyWalk{}
	}
	return keyWalk{k.runs[k.run(from):], from, to}
}

// keyWalk is a walk over keys.
type keyWalk struct {
	runs   []keyRun // the current run and those after it
	at, to int32    // blocks
}

// next returns the key of the next block, and how many blocks, including it, have the following keys up to the next
// multiple of size. Both are 0 at the end.
func (w *keyWalk) next(size uint64) (key uint64, blocks int32) {
	if w.at == w.to {
		return 0, 0
	}
	r := w.runs[0]
	end := w.to
	if len(w.runs) > 1 && w.runs[1].from <= end {
		end = w.runs[1].from
	}
	key = r.first + uint64(w.at-r.from)
	blocks = min(end-w.at, int32(size-key%size))
	if w.at += blocks; w.at == end && len(w.runs) > 1 {
		w.runs = w.runs[1:]
	}
	return key, blocks
}
