package sim

import "clifftop/workload"

// keyring is the keys of the blocks of a sequence that can be found, made as they are asked for.
type keyring struct {
	keys     []uint64
	walk     workload.BlockKeys
	private  int32 // blocks from this one on can be met by no other request
	indexOwn bool  // such are indexed too, to be found on the return after a preemption or by another attempt
}

// notPrivate is a value of private that no block reaches.
const notPrivate = 1<<31 - 1

// begin makes k that of a request, and keeps its room.
func (k *keyring) begin(r *Replica, req *workload.Request) {
	k.keys = k.keys[:0]
	k.indexOwn = r.conn != nil && len(r.conn.tiers) > 0
	k.private = 0
	if req.SharesPrompt() {
		k.private = notPrivate
	}
	k.walk = workload.NewBlockKeys(req, r.cfg.BlockSize)
}

// key returns the key of block i.
func (k *keyring) key(i int32) uint64 {
	for int32(len(k.keys)) <= i {
		k.walkOn(i + 1)
	}
	return k.keys[i]
}

// findable returns the keys of the first n blocks, up to the first that no other request can have if such are not indexed.
func (k *keyring) findable(n int32) []uint64 {
	for i := int32(len(k.keys)); i < n && (i < k.private || k.indexOwn); i = int32(len(k.keys)) {
		k.walkOn(n)
	}
	if !k.indexOwn {
		n = min(n, k.private)
	}
	return k.keys[:n]
}

// walkOn makes the keys of the next blocks, of the first n at most.
func (k *keyring) walkOn(n int32) {
	known := len(k.keys)
	keys, private := k.walk.Append(k.keys, int(n)-known)
	if private && k.private == notPrivate {
		k.private = int32(known)
	}
	k.keys = keys
}
