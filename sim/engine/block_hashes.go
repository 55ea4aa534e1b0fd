package engine

import (
	"clifftop/sim/kv"
	"clifftop/workload"
)

// blockHashes is the keys of the blocks of a sequence that can be found, made as they are asked for.
type blockHashes struct {
	keys     kv.Keys
	walk     workload.BlockKeys
	private  int32 // blocks from this one on can be met by no other request
	indexOwn bool  // such are indexed too, to be found on the return after a preemption or by another attempt
}

// notPrivate is a value of private that no block reaches.
const notPrivate = 1<<31 - 1

// begin makes k that of a request, and keeps its room.
func (k *blockHashes) begin(r *Engine, req *workload.Request) {
	k.keys.Reset()
	k.indexOwn = r.conn != nil && len(r.conn.tiers) > 0
	k.private = 0
	if req.SharesPrompt() {
		k.private = notPrivate
	}
	k.walk = workload.NewBlockKeys(req, r.cfg.BlockSize)
}

// key returns the key of block i.
func (k *blockHashes) key(i int32) uint64 {
	k.make(i + 1)
	return k.keys.At(i)
}

// findable is how many of the first n blocks can be found: those before the first that no other request can have, if such are not
// indexed. Their keys are made.
func (k *blockHashes) findable(n int32) int32 {
	if k.indexOwn {
		k.make(n)
		return n
	}
	for k.keys.Len() < min(n, k.private) {
		k.walkOn(n)
	}
	return min(n, k.private)
}

// make makes the keys of the first n blocks.
func (k *blockHashes) make(n int32) {
	for k.keys.Len() < n {
		k.walkOn(n)
	}
}

// walkOn makes the keys of the next blocks, of the first n at most.
func (k *blockHashes) walkOn(n int32) {
	known := k.keys.Len()
	key, blocks, private := k.walk.NextRun(n - known)
	if private && k.private == notPrivate {
		k.private = known
	}
	k.keys.Add(key, blocks)
}
